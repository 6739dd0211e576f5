//! What an operator tells about itself while it runs: health, metrics, debug pages, spans.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::{Controller, Error, Operator, Scope, SyncRequest, SyncResponse};
use mainstay_testkit::{Cluster, RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span;

use crate::operator::kinds::{config_map, config_maps, define_shop, shop, shop_kind, step_through};
use crate::operator::own_kinds::{object, own_kind, undefine};
use crate::operator::seam::Seam;

/// An operator that serves its pages.
struct Served {
    running: RunningOperator,
    address: SocketAddr,
}

impl Served {
    async fn start(cluster: &Cluster, client: kube::Client, controller: Controller) -> Self {
        let operator = Operator::builder("shops", client)
            .namespace(cluster.namespace())
            .serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .controller(controller)
            .build()
            .unwrap();
        let running = RunningOperator::start(operator);
        let address = eventually("an address", async || running.operator().address()).await;
        Self { running, address }
    }

    /// The answer to GET: its code and its body.
    async fn get(&self, path: &str) -> (u16, String) {
        let address = self.address;
        let request = format!("GET {path} HTTP/1.1\r\nHost: operator\r\nConnection: close\r\n\r\n");
        let asked = tokio::task::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        let answer = asked.await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer with a head");
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
        (code, body.to_owned())
    }

    async fn json(&self, path: &str) -> Value {
        let (code, body) = self.get(path).await;
        assert_eq!(code, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    async fn ready(&self) {
        eventually("/readyz to be 200", async || (self.get("/readyz").await.0 == 200).then_some(())).await;
    }

    /// Waits until `/readyz` fails with all of these words.
    async fn unready(&self, words: &[&str]) {
        eventually(&format!("/readyz to fail with {words:?}"), async || {
            let (code, body) = self.get("/readyz").await;
            (code == 500 && words.iter().all(|word| body.contains(word))).then_some(())
        })
        .await;
    }
}

fn one_map(request: &SyncRequest) -> Result<SyncResponse, Error> {
    if request.parent_json()["spec"]["fail"] == true {
        return Err(Error::new("no paint left"));
    }
    SyncResponse::new().with_child(config_map(request.name(), json!({"a": "1"})))
}

fn shops() -> Controller {
    Controller::for_kind(shop_kind()).owns::<ConfigMap>().sync(one_map)
}

#[tokio::test]
async fn live_and_ready_are_told_when_caches_are_filled() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let served = Served::start(&cluster, cluster.client(), shops()).await;
        served.ready().await;
        assert_eq!(served.get("/livez").await, (200, "ok\n".to_owned()));
        let (code, checks) = served.get("/readyz?verbose").await;
        assert_eq!(code, 200);
        assert!(checks.contains("[+]ConfigMap.v1 ok"), "{checks}");
        assert!(checks.contains("[+]Shop.test.mainstay.dev/v1 ok"), "{checks}");
        assert_eq!(served.json("/version").await["operator"], "shops");
        served.running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn not_ready_before_the_first_list_is_answered() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        seam.lose("/configmaps");
        let served = Served::start(&cluster, seam.client(), shops()).await;
        served.unready(&["[+]Shop.test.mainstay.dev/v1 ok", "[-]ConfigMap.v1 failed"]).await;
        assert_eq!(served.get("/livez").await.0, 200, "what waits is not stuck");
    })
    .await;
}

#[tokio::test]
async fn missing_permission_is_named_by_readyz_until_it_is_given() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        cluster.create(shop("paint", json!({}))).await;
        let seam = Seam::new(&cluster);
        seam.refuse("/configmaps", 403);
        let served = Served::start(&cluster, seam.client(), shops()).await;
        let place = format!("configmaps in namespace {}", cluster.namespace());
        served.unready(&["[-]ConfigMap.v1 failed", "the operator may not", &place]).await;
        assert_eq!(served.get("/livez").await.0, 200);
        assert!(seam.writes().is_empty(), "it decided without knowing the children");

        seam.allow();
        served.ready().await;
        eventually("the child", async || cluster.find(&config_maps(), "paint").await).await;
    })
    .await;
}

#[tokio::test]
async fn missing_definition_is_named_by_readyz_until_it_comes() {
    for_each_cluster(async |cluster| {
        let (stalls, definition) = own_kind("Stall", Scope::Namespaced);
        let controller = Controller::for_kind(stalls.clone()).owns::<ConfigMap>().sync(one_map);
        let served = Served::start(&cluster, cluster.client(), controller).await;
        served.unready(&[&format!("[-]{stalls} failed: there is no such kind")]).await;

        cluster.define(definition).await;
        served.ready().await;
        cluster.create(object(&stalls, "paint", json!({}))).await;
        eventually("the child", async || cluster.find(&config_maps(), "paint").await).await;
        served.running.stop().await;
        undefine(&cluster, &stalls).await;
    })
    .await;
}

#[tokio::test]
async fn metrics_count_syncs_and_writes_and_name_no_object() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        for name in ["paint", "books"] {
            cluster.create(shop(name, json!({"fail": name == "books"}))).await;
        }
        let served = Served::start(&cluster, cluster.client(), shops()).await;
        let wanted = [
            r#"mainstay_writes_total{kind="ConfigMap.v1",step="create"} 1"#,
            r#"mainstay_syncs_total{kind="Shop.test.mainstay.dev/v1",result="wrote"} 1"#,
            r#"mainstay_syncs_total{kind="Shop.test.mainstay.dev/v1",result="settled"}"#,
            r#"mainstay_sync_errors_total{kind="Shop.test.mainstay.dev/v1",reason="SyncFailed"}"#,
            r#"mainstay_queue_depth{kind="Shop.test.mainstay.dev/v1",priority="now"} 0"#,
            r#"mainstay_queue_running{kind="Shop.test.mainstay.dev/v1"} 0"#,
            r#"mainstay_parents_failing{kind="Shop.test.mainstay.dev/v1"} 1"#,
            r#"mainstay_cache_objects{kind="Shop.test.mainstay.dev/v1"} 2"#,
            r#"mainstay_api_requests_total{verb="apply",kind="ConfigMap.v1",code="201"} 1"#,
        ];
        let text = eventually("all metrics", async || {
            let (code, text) = served.get("/metrics").await;
            (code == 200 && wanted.iter().all(|wanted| text.contains(wanted))).then_some(text)
        })
        .await;
        assert!(!text.contains("paint") && !text.contains("books"), "{text}");
        assert!(!text.contains(cluster.namespace()), "{text}");
    })
    .await;
}

#[tokio::test]
async fn debug_pages_show_queue_state_and_last_plan_and_no_secret() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let controller = Controller::for_kind(shop_kind()).owns::<Secret>().sync(|request: &SyncRequest| {
            let _ = one_map(request)?;
            SyncResponse::new().with_child(json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name()},
                "stringData": {"key": "swordfish"}, "data": {"other": "c3dvcmRmaXNo"},
            }))
        });
        cluster.create(shop("paint", json!({}))).await;
        cluster.create(shop("books", json!({"fail": true}))).await;
        let served = Served::start(&cluster, cluster.client(), controller).await;
        let ns = cluster.namespace();
        let paint = eventually("a plan that was carried out", async || {
            let (code, body) = served.get(&format!("/debug/parents/Shop/{ns}/paint")).await;
            let parent: Value = serde_json::from_str(&body).ok().filter(|_| code == 200)?;
            (parent["queue"] == "idle" && parent["history"][0]["outcomes"][0] == "done").then_some(parent)
        })
        .await;
        let past = &paint["history"][0];
        assert_eq!(past["plan"]["steps"][0]["action"], "Create", "{paint}");
        assert_eq!(past["triggers"], json!(["it was found"]), "{paint}");

        let books = eventually("two failures", async || {
            let books = served.json(&format!("/debug/parents/Shop/{ns}/books")).await;
            (books["failures"].as_u64() >= Some(2)).then_some(books)
        })
        .await;
        assert_eq!(books["error"], "no paint left");
        let queue = books["queue"].as_str().unwrap();
        assert!(
            queue.starts_with("failed") && queue.contains("tried again in") || queue == "running",
            "{queue}"
        );

        let (_, all) = served.get("/debug/parents").await;
        let list: Value = serde_json::from_str(&all).unwrap();
        assert_eq!(list["parents"].as_array().map(Vec::len), Some(2), "{all}");
        assert_eq!(list["controllers"][0]["failing"], 1);
        for told in [all, paint.to_string()] {
            assert!(!told.contains("swordfish") && !told.contains("c3dvcmRmaXNo"), "{told}");
        }
        assert_eq!(served.get(&format!("/debug/parents/Shop/{ns}/none")).await.0, 404);
    })
    .await;
}

/// Keeps the fields of every span of a sync, of all tests: which spans are wanted is remembered for the whole process.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl tracing::Subscriber for Spans {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("mainstay")
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        if attributes.metadata().name() == "sync" {
            let mut fields = BTreeMap::new();
            attributes.record(&mut Fields(&mut fields));
            self.0.lock().unwrap().push(fields);
        }
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Spans {
    fn install() -> Self {
        let spans = Self::default();
        tracing::subscriber::set_global_default(spans.clone()).expect("nobody else installs one");
        spans
    }

    /// The triggers of all syncs of a parent since the last look.
    fn triggers(&self, parent: &str) -> Vec<String> {
        let mut all = self.0.lock().unwrap();
        let of_parent = all.extract_if(.., |fields| fields["parent"] == parent);
        of_parent.map(|fields| fields["trigger"].clone()).collect()
    }
}

#[tokio::test]
async fn spans_of_syncs_say_what_triggered_them() {
    let spans = Spans::install();
    for_each_cluster(async |cluster| {
        let paint = format!("{}/paint", cluster.namespace());
        let test = step_through(&cluster, shops()).await;
        test.settle().await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        assert_eq!(spans.triggers(&paint), ["created", "own-writes"]);
        test.patch(&shop_kind(), "paint", json!({"spec": {"colour": "red"}})).await;
        test.settle().await;
        assert_eq!(spans.triggers(&paint), ["changed"]);
        test.delete(&config_maps(), "paint").await;
        test.settle().await;
        assert_eq!(spans.triggers(&paint), ["child", "own-writes"]);
    })
    .await;
}
