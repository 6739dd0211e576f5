//! How the time until pods run grows with their number: 1×, 4× and 16× as many, in one run. If work grows with the number of pods,
//! the time for one pod stays about the same; if it grew with the square, it would be four and sixteen times as long.
//!
//! Everything is in this process: the API server, the controllers, the scheduler, and a node whose pods are simulated.

use crate::report::{Aim, Better, Row, render};
use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, PostParams};
use mainstay::Operator;
use mainstay_apiserver::ApiServer;
use mainstay_local::controllers;
use mainstay_local::stand_in::simulated_node;
use serde_json::json;
use std::time::{Duration, Instant};

/// 1×, 4× and 16×.
const SIZES: [i32; 3] = [50, 200, 800];
/// So many times as long as with the fewest, a pod may take with the most.
const AIM_GROWTH: f64 = 3.0;

/// Runs and prints them.
pub(crate) async fn measure() -> Result<()> {
    let mut seconds = Vec::new();
    for size in SIZES {
        seconds.push(time_for(size).await?);
    }
    let per_pod = |place: usize| seconds[place] * 1000.0 / f64::from(SIZES[place]);
    let row = |what: String, unit, ours, aim| Row { what, unit, real: None, ours, better: Better::Less, aim };
    let mut rows = Vec::new();
    for (place, size) in SIZES.iter().enumerate() {
        rows.push(row(
            format!("{size} pods of a Deployment: until all are ready"),
            "ms per pod",
            per_pod(place),
            Aim::None,
        ));
    }
    for (place, times) in [(1, 4), (2, 16)] {
        let growth = per_pod(place) / per_pod(0);
        rows.push(row(
            format!("a pod among {times} times as many"),
            "times as long",
            growth,
            Aim::Below(AIM_GROWTH),
        ));
    }
    print!("{}", render(&rows));
    Ok(())
}

/// How many seconds it takes until a Deployment has so many ready pods.
async fn time_for(replicas: i32) -> Result<f64> {
    let client = kube::Client::new(ApiServer::builder().build()?, "default");
    let mut tasks = tokio::task::JoinSet::new();
    let built = controllers::configure(Operator::builder(controllers::NAME, client.clone())).build()?;
    for operator in simulated_node(client.clone(), "local").await?.into_iter().chain([built]) {
        tasks.spawn(async move { operator.run(std::future::pending()).await });
    }
    let labels = json!({"app": "many"});
    let deployment = json!({
        "metadata": {"name": "many"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels, "annotations": {"mainstay.dev/starts-after": "0s"}},
            "spec": {"containers": [{"name": "main", "image": "web"}]},
        }},
    });
    let deployments: Api<Deployment> = Api::default_namespaced(client);
    let started = Instant::now();
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment)?).await?;
    loop {
        let ready =
            deployments.get("many").await?.status.and_then(|status| status.ready_replicas).unwrap_or(0);
        if ready == replicas {
            return Ok(started.elapsed().as_secs_f64());
        }
        anyhow::ensure!(
            started.elapsed() < Duration::from_mins(10),
            "only {ready} of {replicas} pods are ready after ten minutes"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
