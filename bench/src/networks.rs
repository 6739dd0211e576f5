//! A network of a thousand simulated peers: how long until all answer and are connected as declared, what the operator asks of peers and of the
//! API server for that, and what it does when connections are cut.
//!
//! Everything is in this process: the API server, the controller of Jobs, a node whose pods are simulated, the operator, and the [peers](Crowd),
//! which answer at once and count what they are asked. Their pods are made by this program in the place of a controller and a node: a thousand of
//! them would be the measure of those.

mod crowd;

use crate::measure::as_f64;
use crate::process::resident_peak;
use crate::report::{Aim, Better, Row, render};
use crate::streams::{define, requests};
use anyhow::{Result, ensure};
use crowd::{Calls, Crowd};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource as _;
use kube::api::{Api, Patch, PatchParams, PostParams};
use mainstay::Operator;
use mainstay_apiserver::ApiServer;
use mainstay_local::controllers;
use mainstay_local::stand_in::simulated_node;
use mainstay_networks::config::NetworkConfig;
use mainstay_networks::kinds::{Network, NetworkStatus, definitions};
use mainstay_networks::simulation::HttpManagers;
use mainstay_networks::{NAME, configure_with};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PEERS: u64 = 1000;
/// Each peer dials so many.
const NEIGHBOURS: u64 = 3;
const EDGES: u64 = PEERS * NEIGHBOURS;
/// One in a hundred.
const CUT: u64 = EDGES / 100;
const OBSERVE_SECONDS: u64 = 5;
/// If peers are not asked anything for so long, the operator has ended its look.
const QUIET: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_mins(10);
const NETWORK: &str = "bench";
const SEED: u64 = 7;
const MIB: f64 = 1024.0 * 1024.0;

/// What is measured until the network is as declared.
struct Assembled {
    pods_seconds: f64,
    answering_seconds: f64,
    connected_seconds: f64,
    calls: Calls,
    requests: u64,
}

/// What is measured when connections are cut.
struct Mended {
    dials: u64,
    /// From the first question of the look that finds it to the last dial.
    dialled_seconds: f64,
    /// From the cut to the status that says so.
    told_seconds: f64,
}

/// Runs and prints it.
pub(crate) async fn measure() -> Result<()> {
    let client = kube::Client::new(ApiServer::builder().build()?, "default");
    for definition in definitions() {
        define(&client, &json!(definition)).await?;
    }
    let mut others = simulated_node(client.clone(), "local").await?;
    let jobs = Operator::builder(controllers::NAME, client.clone());
    let is_for_jobs = |kind: &mainstay::Kind| ["Job", "Pod"].contains(&kind.kind());
    others.push(controllers::configure_only(jobs, is_for_jobs).build()?);
    let crowd = Arc::new(Crowd::default());
    let builder = Operator::builder(NAME, client.clone());
    let operator =
        configure_with(builder, Arc::clone(&crowd) as _, Arc::new(HttpManagers::default())).build()?;
    let mut tasks = tokio::task::JoinSet::new();
    for operator in others.into_iter().chain([operator.clone()]) {
        tasks.spawn(async move { operator.run(std::future::pending()).await });
    }
    // They have started before the clock does.
    tokio::time::sleep(QUIET).await;

    let networks: Api<Network> = Api::all(client.clone());
    let assembled = assemble(&networks, client, &crowd, &operator).await?;
    until_quiet(&crowd).await?;
    let look = one_look(&crowd).await?;
    let mended = mend(&networks, &crowd).await?;
    let peak = as_f64(resident_peak(std::process::id())?) / MIB;
    print!("{}", render(&rows(&assembled, look, &mended, peak)));
    println!("\nthe bootstrap Job is simulated and dials nobody; peers are asked every {OBSERVE_SECONDS} s");
    Ok(())
}

async fn assemble(
    networks: &Api<Network>,
    client: kube::Client,
    crowd: &Crowd,
    operator: &Operator,
) -> Result<Assembled> {
    let network = json!({
        "apiVersion": "networks.mainstay.dev/v1alpha1", "kind": "Network", "metadata": {"name": NETWORK},
        "spec": {
            "replicas": PEERS, "peers": [{"image": "example.com/peer:1"}],
            "bootstrap": {"method": "ring", "n": NEIGHBOURS}, "topology": {"observeSeconds": OBSERVE_SECONDS},
        },
    });
    let started = Instant::now();
    networks.patch(NETWORK, &PatchParams::apply("bench"), &Patch::Apply(&network)).await?;
    run_pods(client).await?;
    let pods_seconds = started.elapsed().as_secs_f64();
    until(networks, "all peers answer", |status| u64::try_from(status.ready_replicas) == Ok(PEERS)).await?;
    let answering_seconds = started.elapsed().as_secs_f64();
    until(networks, "all connections are there", is_converged).await?;
    let connected_seconds = started.elapsed().as_secs_f64();
    let requests = u64::try_from(requests(&operator.metrics()))?;
    Ok(Assembled { pods_seconds, answering_seconds, connected_seconds, calls: crowd.calls(), requests })
}

/// Makes the pods of the set that the operator has made, and says that they are ready.
async fn run_pods(client: kube::Client) -> Result<()> {
    let namespace = NetworkConfig::namespace(NETWORK);
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), &namespace);
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let started = Instant::now();
    let set = loop {
        if let Some(set) = sets.get_opt("peers-0").await? {
            break set;
        }
        ensure!(started.elapsed() < PATIENCE, "there is no StatefulSet");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let owner = set.controller_owner_ref(&());
    let labels = set.spec.and_then(|spec| spec.template.metadata).and_then(|metadata| metadata.labels);
    for ordinal in 0..PEERS {
        let name = format!("peers-0-{ordinal}");
        let pod = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
            // No scheduler but this program.
            "spec": {"schedulerName": "bench", "containers": [{"name": "peer", "image": "example.com/peer:1"}]},
        }))?;
        pods.create(&PostParams::default(), &pod).await?;
        let ip = format!("10.128.{}.{}", ordinal / 250, ordinal % 250 + 1);
        let status = json!({"status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [{"type": "Ready", "status": "True"}],
        }});
        pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    Ok(())
}

/// Waits for a look and counts what peers are asked in it.
async fn one_look(crowd: &Crowd) -> Result<u64> {
    let before = crowd.calls().total();
    until_asked(crowd, before).await?;
    until_quiet(crowd).await?;
    Ok(crowd.calls().total() - before)
}

async fn mend(networks: &Api<Network>, crowd: &Crowd) -> Result<Mended> {
    let before = crowd.calls();
    crowd.cut(usize::try_from(CUT)?, SEED);
    let cut = Instant::now();
    // The status says that nothing is missing until the operator has looked.
    until_asked(crowd, before.total()).await?;
    let asked = Instant::now();
    while crowd.wires() < usize::try_from(EDGES)? {
        ensure!(cut.elapsed() < PATIENCE, "only {} connections are there again", crowd.wires());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let dialled_seconds = asked.elapsed().as_secs_f64();
    until(networks, "all connections are there again", is_converged).await?;
    let told_seconds = cut.elapsed().as_secs_f64();
    // Whatever is still dialled after that counts too.
    one_look(crowd).await?;
    Ok(Mended { dials: crowd.calls().dials - before.dials, dialled_seconds, told_seconds })
}

fn is_converged(status: &NetworkStatus) -> bool {
    let is_whole = status
        .edges
        .as_ref()
        .is_some_and(|edges| edges.missing == 0 && u64::try_from(edges.desired) == Ok(EDGES));
    is_whole
        && status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

async fn until(networks: &Api<Network>, what: &str, is: impl Fn(&NetworkStatus) -> bool) -> Result<()> {
    let started = Instant::now();
    loop {
        let status = networks.get(NETWORK).await?.status.unwrap_or_default();
        if is(&status) {
            return Ok(());
        }
        let (answering, edges) = (status.ready_replicas, status.edges);
        ensure!(
            started.elapsed() < PATIENCE,
            "not so after ten minutes: {what}; {answering} answer, {edges:?}, {:?}",
            status.conditions
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until peers were asked something more than so much.
async fn until_asked(crowd: &Crowd, before: u64) -> Result<()> {
    let started = Instant::now();
    while crowd.calls().total() == before {
        ensure!(started.elapsed() < PATIENCE, "peers are not asked any more");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn until_quiet(crowd: &Crowd) -> Result<()> {
    let started = Instant::now();
    let (mut known, mut since) = (crowd.calls().total(), Instant::now());
    while since.elapsed() < QUIET {
        ensure!(started.elapsed() < PATIENCE, "peers are asked without end");
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = crowd.calls().total();
        if now != known {
            (known, since) = (now, Instant::now());
        }
    }
    Ok(())
}

fn rows(assembled: &Assembled, look: u64, mended: &Mended, peak_mib: f64) -> Vec<Row> {
    let per_peer = |count: u64| as_f64(count) / as_f64(PEERS);
    let row = |what: &str, unit, ours, aim| Row {
        what: what.into(),
        unit,
        real: None,
        ours,
        better: Better::Less,
        aim,
    };
    let calls = &assembled.calls;
    vec![
        row("1,000 peers: until all pods are ready", "s", assembled.pods_seconds, Aim::None),
        row("until all answer", "s", assembled.answering_seconds, Aim::None),
        row("until all 3,000 connections are there", "s", assembled.connected_seconds, Aim::None),
        row("RPC calls until then", "calls", as_f64(calls.total()), Aim::None),
        row("RPC calls until then", "per peer", per_peer(calls.total()), Aim::None),
        row("of these, dials", "calls", as_f64(calls.dials), Aim::AtMost(as_f64(EDGES))),
        row("requests of the operator until then", "per peer", per_peer(assembled.requests), Aim::None),
        row("a look at what is converged: RPC calls", "per peer", per_peer(look), Aim::AtMost(1.0)),
        row("1 % cut: dials", "calls", as_f64(mended.dials), Aim::AtMost(as_f64(CUT))),
        row("1 % cut: from being seen to being mended", "s", mended.dialled_seconds, Aim::None),
        row("1 % cut: from the cut to the status", "s", mended.told_seconds, Aim::None),
        row("peak memory, all in one process", "MiB", peak_mib, Aim::None),
    ]
}
