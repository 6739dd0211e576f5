//! Two thousand streams that begin at once: how long until all run, what that takes of the API server, and what is kept in memory.
//!
//! Everything is in this process: the API server, the controllers of Jobs, a node whose pods are simulated, and the operator, whose
//! requests are counted.

use crate::report::{Aim, Better, Row, render};
use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use mainstay::Operator;
use mainstay_apiserver::ApiServer;
use mainstay_local::controllers;
use mainstay_local::stand_in::simulated_node;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const STREAMS: usize = 2000;
const NAMESPACE: &str = "default";
/// The group of the example's kind.
const FEEDS: &str = "feeds.examples.mainstay.dev";
/// So many requests may be made for a stream until it runs: its Job, its status, and what is read.
const AIM_CALLS: f64 = 4.0;

/// Runs and prints them.
pub(crate) async fn measure() -> Result<()> {
    let client = kube::Client::new(ApiServer::builder().build()?, NAMESPACE);
    for definition in mainstay_streams::kinds::definitions() {
        define(&client, &definition).await?;
    }
    let plugin = Plugin::read()?;
    define(&client, &plugin.definition).await?;
    let feeds = of_kind(&client, FEEDS, "v1", "Feed", "feeds");
    let templates =
        of_kind(&client, "streams.mainstay.dev", "v1alpha1", "StreamingJobTemplate", "streamingjobtemplates");
    templates.create(&kube::api::PostParams::default(), &object(plugin.template)?).await?;
    for number in 0..STREAMS {
        feeds.create(&kube::api::PostParams::default(), &object(feed(number))?).await?;
    }
    let mut tasks = tokio::task::JoinSet::new();
    let built = controllers::configure(Operator::builder(controllers::NAME, client.clone())).build()?;
    for operator in simulated_node(client.clone(), "local").await?.into_iter().chain([built]) {
        tasks.spawn(async move { operator.run(std::future::pending()).await });
    }
    let streams =
        mainstay_streams::configure(Operator::builder(mainstay_streams::NAME, client.clone())).build()?;
    let running = streams.clone();
    tasks.spawn(async move { running.run(std::future::pending()).await });

    let started = Instant::now();
    let classes: Api<DynamicObject> = {
        let kind = GroupVersionKind::gvk("streams.mainstay.dev", "v1alpha1", "StreamClass");
        Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "streamclasses"))
    };
    classes.create(&kube::api::PostParams::default(), &object(plugin.class)?).await?;
    let mut running = 0;
    while running < STREAMS {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let all = feeds.list(&ListParams::default()).await?;
        running = all.iter().filter(|feed| feed.data["status"]["phase"] == "Running").count();
        anyhow::ensure!(
            started.elapsed() < Duration::from_mins(10),
            "only {running} of them run after ten minutes"
        );
    }
    let seconds = started.elapsed().as_secs_f64();
    // Whatever is still written after that counts too.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let calls = requests(&streams.metrics());
    let bytes: usize = streams.caches().iter().map(|cache| cache.allocated_bytes).sum();
    #[expect(clippy::cast_precision_loss, reason = "far fewer than a float can count")]
    let per_stream = |amount: usize| amount as f64 / STREAMS as f64;
    let row = |what: &str, unit, ours, aim| Row {
        what: what.into(),
        unit,
        real: None,
        ours,
        better: Better::Less,
        aim,
    };
    print!(
        "{}",
        render(&[
            row("2,000 streams: until all run", "s", seconds, Aim::None),
            row("requests of the operator", "per stream", per_stream(calls), Aim::Below(AIM_CALLS)),
            row(
                "its caches (streams, Jobs, pods asked for)",
                "KiB per stream",
                per_stream(bytes) / 1024.0,
                Aim::None
            ),
        ])
    );
    Ok(())
}

/// All requests that an operator has made, as its metrics tell.
pub(crate) fn requests(metrics: &str) -> usize {
    let counted = metrics.lines().filter(|line| line.starts_with("mainstay_api_requests_total{"));
    counted.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

pub(crate) async fn define(client: &kube::Client, definition: &Value) -> Result<()> {
    let all: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = definition["metadata"]["name"].as_str().context("a name")?;
    all.patch(name, &PatchParams::apply("bench"), &Patch::Apply(definition)).await?;
    loop {
        let status = all.get(name).await?.status.unwrap_or_default();
        let established = |kind: &str, status: &str| kind == "Established" && status == "True";
        let conditions = status.conditions.unwrap_or_default();
        if conditions.iter().any(|condition| established(&condition.type_, &condition.status)) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn of_kind(
    client: &kube::Client,
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(client.clone(), NAMESPACE, &ApiResource::from_gvk_with_plural(&kind, plural))
}

fn object(value: Value) -> Result<DynamicObject> {
    Ok(serde_json::from_value(value)?)
}

/// The plugin of the example, whose streams run until they are stopped.
struct Plugin {
    definition: Value,
    class: Value,
    template: Value,
}

impl Plugin {
    fn read() -> Result<Self> {
        let mut class: Value = serde_saphyr::from_str(feed_plugin::PLUGIN[0])?;
        // All at once: what is measured is the operator, not its patience.
        class["spec"]["startRate"] = json!({"burst": STREAMS, "perMinute": STREAMS});
        let templates: Vec<Value> = serde_saphyr::from_multiple(feed_plugin::PLUGIN[1])?;
        let mut template = templates.into_iter().next().context("a template")?;
        let pod = &mut template["spec"]["template"]["spec"]["template"];
        pod["metadata"] = json!({"annotations": {"mainstay.dev/ends-after": "never"}});
        Ok(Self { definition: serde_saphyr::from_str(feed_plugin::CRD)?, class, template })
    }
}

fn feed(number: usize) -> Value {
    json!({
        "apiVersion": format!("{FEEDS}/v1"), "kind": "Feed", "metadata": {"name": format!("feed-{number}")},
        "spec": {"source": format!("table-{number}"), "sink": "warehouse", "jobTemplateRef": {"name": "feed"}},
    })
}
