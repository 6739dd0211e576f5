//! The life of a network: it is connected, mended, put under load and judged, looked at, and removed.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use mainstay::Kind;
use serde_json::{Value, json};

use crate::networks::looks;
use crate::networks::peers::{connections, of, without};
use crate::networks::world::{World, in_each_world, networks, simulations};

/// Four peers, everyone connected to everyone. What is declared among three of them is the same whether the fourth is there or not.
pub(crate) fn spec() -> Value {
    json!({"replicas": 4, "bootstrap": {"method": "full"}, "topology": {"observeSeconds": 1}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_of_processes_is_connected_mended_judged_and_removed() {
    in_each_world(async |world| {
        world.network("lab", spec()).await;
        check_connected(world).await;
        check_mended(world).await;
        check_judged(world).await;
        looks::check(world).await;
        check_removed(world).await;
    })
    .await;
}

/// All peers are processes, and a process has connected them.
async fn check_connected(world: &World) {
    let network = world.until_reason("lab", "Ready").await;
    assert_eq!(connections(&network).await.len(), 12, "both ends of six connections");
    let runs = |what: &str| world.processes().iter().filter(|line| line.contains(what)).count();
    assert_eq!((runs(" runner peer"), world.processes().len()), (4, 4), "{:?}", world.processes());
    let [job] = &world.parts("lab", &Kind::of::<Job>()).await[..] else { panic!("one Job") };
    assert_eq!(job["status"]["succeeded"], 1, "{job:#}");
    let pods = world.parts("lab", &Kind::of::<Pod>()).await;
    let by_job = |pod: &&Value| pod["metadata"]["labels"]["job-name"] == job["metadata"]["name"];
    let ran: Vec<&Value> = pods.iter().filter(by_job).collect();
    let [ran] = &ran[..] else { panic!("one pod of the Job") };
    // Pods that are simulated are elsewhere.
    assert!(ran["status"]["podIP"].as_str().unwrap().starts_with("127."), "{ran:#}");
    assert_eq!(ran["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 0, "{ran:#}");
}

/// Which pod of this name there is.
async fn uid(world: &World, pod: &str) -> Value {
    world.find("lab", &Kind::of::<Pod>(), pod).await.unwrap()["metadata"]["uid"].clone()
}

/// A peer whose pod is deleted comes back and is connected again, and the connections of the others are those that they had.
async fn check_mended(world: &World) {
    let network = world.until_reason("lab", "Ready").await;
    let (before, former) = (connections(&network).await, uid(world, "peers-0-2").await);
    world.delete("lab", &Kind::of::<Pod>(), "peers-0-2").await;
    world.until_reason("lab", "PeersMissing").await;
    let network = world.until_reason("lab", "Ready").await;
    let after = connections(&network).await;
    assert_ne!(uid(world, "peers-0-2").await, former);
    assert_eq!(without(&after, "peers-0-2"), without(&before, "peers-0-2"));
    assert_eq!(of(&after, "peers-0-2").len(), 6, "a network that is ready is connected: {after:#?}");
}

fn criterion(metric: &str, aggregation: &str, comparison: &str, threshold: i32) -> Value {
    json!({"metric": metric, "aggregation": aggregation, "comparison": comparison, "threshold": threshold})
}

/// Much goes wrong, and is over before the end.
fn storm() -> Value {
    json!({
        "scenario": "blocks", "users": 2, "runTimeSeconds": 16, "throttleRequests": 50,
        "faults": [
            {"action": "kill", "atSeconds": 1, "peers": ["peers-0-3"]},
            {"action": "partition", "atSeconds": 3, "durationSeconds": 3, "peers": ["peers-0-0", "peers-0-1"]},
        ],
        "criteria": [
            criterion("requests", "min", ">", 0),
            criterion("readyPeers", "min", ">=", 3),
            criterion("components", "max", ">=", 2),
            criterion("components", "last", "==", 1),
            criterion("missingEdges", "last", "==", 0),
        ],
    })
}

/// One of the criteria cannot be met.
fn dream() -> Value {
    let mut impossible = criterion("readyPeers", "max", ">", 4);
    impossible["name"] = json!("more than all");
    json!({
        "scenario": "identity", "runTimeSeconds": 5, "throttleRequests": 20,
        "criteria": [criterion("requests", "min", ">", 0), impossible],
    })
}

/// Two simulations at once: one stands what goes wrong, and one asks for more than there can be.
async fn check_judged(world: &World) {
    let former = uid(world, "peers-0-3").await;
    world.simulation("network-lab", "storm", storm()).await;
    world.simulation("network-lab", "dream", dream()).await;

    world
        .until("lab", "the load", async || {
            let found = world.find("lab", &simulations(), "storm").await?;
            (found["status"]["phase"] == "Running").then_some(())
        })
        .await;
    let running = world.ask("simulations report storm").await;
    assert_eq!(running.code, Some(1), "{running:?}");
    assert!(running.stdout.contains("verdict     none, it is Running\n"), "{running:?}");
    assert!(running.stdout.contains("\nbegun       "), "{running:?}");

    let dream = world.until_judged("lab", "dream").await;
    assert_eq!(dream["status"]["verdict"], "Failed");
    let met: Vec<&Value> =
        dream["status"]["criteria"].as_array().unwrap().iter().map(|one| &one["met"]).collect();
    assert_eq!(met, [true, false], "{dream:#}");
    let storm = world.until_judged("lab", "storm").await;
    assert_eq!(storm["status"]["verdict"], "Passed", "{storm:#}");
    let over: Vec<&Value> =
        storm["status"]["faults"].as_array().unwrap().iter().map(|fault| &fault["phase"]).collect();
    assert_eq!(over, ["Over", "Over"], "{storm:#}");
    assert_ne!(uid(world, "peers-0-3").await, former, "it was killed");
    for name in ["storm", "dream"] {
        let report = format!("{name}-report");
        world
            .until("lab", &report, async || world.find("lab", &Kind::of::<ConfigMap>(), &report).await)
            .await;
    }
    world.until_reason("lab", "Ready").await;
}

/// With the network goes all that it was.
async fn check_removed(world: &World) {
    assert!(world.processes().len() >= 4 && world.directories() >= 4);
    world.cluster.delete(&networks(), "lab").await;
    let namespaces = Kind::of::<Namespace>();
    world
        .until("lab", "its namespace to go", async || {
            world.cluster.find(&namespaces, "network-lab").await.is_none().then_some(())
        })
        .await;
    world
        .until("lab", "its processes to end and their files to go", async || {
            (world.processes().is_empty() && world.directories() == 0).then_some(())
        })
        .await;
}
