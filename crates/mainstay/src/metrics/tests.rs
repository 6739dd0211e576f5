use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use prometheus_client::metrics::gauge::Gauge;

use super::*;

const TOOK: Duration = Duration::from_millis(3);

/// Metrics in which everything has happened once.
fn eventful() -> Metrics {
    let metrics = Metrics::new("shop", "1.2.3");
    let kind = Kind::of::<Deployment>();
    metrics.sync_started(&kind, TOOK);
    metrics.handler_finished(&kind, TOOK);
    metrics.sync_finished(&kind, "ok", TOOK);
    metrics.sync_failed(&kind, "handler");
    metrics.request_finished("apply", &kind, Some(200), TOOK);
    metrics.written(&kind, "create");
    metrics.deletions_withheld(&kind, 2);
    metrics.event_dropped("full");
    metrics.observe(move |reading| {
        reading.parents_failing(&kind, 1);
        reading.queue_depth(&kind, "user", 4);
        reading.queue_running(&kind, 1);
        reading.cached(&kind, 10, 4096);
        reading.watched(&kind, 2, 1);
        reading.watch_lag(&kind, std::time::Duration::ZERO);
        reading.loops(&kind, 0);
        reading.lease_held(0, true);
    });
    metrics
}

/// Rows as `docs/metrics.md` has them: name, type, labels and meaning, from the text of a scrape.
fn rows(text: &str) -> Vec<String> {
    let mut families: BTreeMap<String, (String, String, BTreeSet<String>)> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<_> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, help] => {
                families.entry((*name).to_owned()).or_default().1 = (*help).to_owned();
            }
            ["#", "TYPE", name, kind] => {
                families.entry((*name).to_owned()).or_default().0 = (*kind).to_owned();
            }
            ["#", ..] => {}
            _ => {
                let (sample, labels) = line.split_once('{').unwrap();
                let found = families.iter_mut().filter(|(name, _)| sample.starts_with(*name));
                let (_, family) = found.max_by_key(|(name, _)| name.len()).unwrap();
                let names = labels.split(',').map(|label| label.split('=').next().unwrap().to_owned());
                family.2.extend(names.filter(|name| name != "le"));
            }
        }
    }
    let suffix = |kind: &str| match kind {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    };
    families
        .into_iter()
        .map(|(name, (kind, help, labels))| {
            let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
            format!("| `{name}{}` | {kind} | {} | {help} |", suffix(&kind), labels.join(", "))
        })
        .collect()
}

#[test]
fn the_documentation_lists_every_metric_as_it_is() {
    let document = include_str!("../../../../docs/metrics.md");
    let documented: Vec<_> = document.lines().filter(|line| line.starts_with("| `")).collect();
    let wanted = rows(&eventful().render().unwrap());
    assert_eq!(documented, wanted, "docs/metrics.md should have these rows:\n{}", wanted.join("\n"));
}

#[test]
fn the_same_numbers_give_the_same_text_in_the_order_of_labels() {
    let count = |kinds: [Kind; 2]| {
        let metrics = Metrics::new("shop", "1");
        for kind in &kinds {
            metrics.written(kind, "create");
        }
        metrics.render().unwrap()
    };
    let (deployment, service) = (Kind::of::<Deployment>(), Kind::of::<Service>());
    let text = count([deployment.clone(), service.clone()]);
    assert_eq!(text, count([service, deployment]));
    expect_test::expect![[r#"
        # HELP mainstay_build The operator, its version and that of the framework; always 1.
        # TYPE mainstay_build info
        mainstay_build_info{operator="shop",version="1",framework="0.1.0"} 1
        # HELP mainstay_writes Steps of plans that were executed, by the kind they changed.
        # TYPE mainstay_writes counter
        mainstay_writes_total{kind="Service.v1",step="create"} 1
        mainstay_writes_total{kind="Deployment.apps/v1",step="create"} 1
        # EOF
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_request_without_an_answer_has_no_code() {
    let metrics = Metrics::new("shop", "1");
    metrics.request_finished("list", &Kind::of::<Service>(), None, TOOK);
    metrics.request_finished("list", &Kind::of::<Service>(), Some(429), TOOK);
    let text = metrics.render().unwrap();
    assert!(
        text.contains(r#"mainstay_api_requests_total{verb="list",kind="Service.v1",code="none"} 1"#),
        "{text}"
    );
    assert!(
        text.contains(r#"mainstay_api_requests_total{verb="list",kind="Service.v1",code="429"} 1"#),
        "{text}"
    );
    assert!(
        text.contains(r#"mainstay_api_request_duration_seconds_count{verb="list",kind="Service.v1"} 2"#),
        "{text}"
    );
}

#[test]
fn sources_are_asked_at_every_scrape_and_added_up() {
    let metrics = Metrics::new("shop", "1");
    let depth = Arc::new(std::sync::atomic::AtomicUsize::new(3));
    for _ in 0..2 {
        let depth = depth.clone();
        metrics.observe(move |reading| {
            let depth = depth.load(std::sync::atomic::Ordering::Relaxed);
            reading.queue_depth(&Kind::of::<Service>(), "user", depth);
        });
    }
    let shows = |number: u32| {
        let line = format!("mainstay_queue_depth{{kind=\"Service.v1\",priority=\"user\"}} {number}\n");
        metrics.render().unwrap().contains(&line)
    };
    assert!(shows(6));
    depth.store(0, std::sync::atomic::Ordering::Relaxed);
    assert!(shows(0));
}

#[test]
fn an_operator_adds_its_own_metrics_under_their_own_names() {
    let metrics = Metrics::new("shop", "1");
    let orders = Gauge::<i64>::default();
    metrics.register("shop_orders_open", "Orders that are open", orders.clone());
    orders.set(7);
    assert!(metrics.render().unwrap().contains("\nshop_orders_open 7\n"));
}
