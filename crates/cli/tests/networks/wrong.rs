//! What cannot work, and whether a person is told why.

use expect_test::{Expect, expect};
use mainstay_networks::config::NetworkConfig;
use serde_json::{Value, json};

use crate::networks::world::{World, in_each_world, networks, simulations};

/// Waits until a peer of a network is in trouble for this reason, as its node has it.
async fn until_told(world: &World, network: &str, part: &str) {
    world
        .until(network, part, async || {
            let found = world.cluster.find(&networks(), network).await?;
            let unready = found["status"]["unready"].as_array()?.clone();
            let tells = |peer: &Value| peer["message"].as_str().is_some_and(|message| message.contains(part));
            (unready.len() == 2 && unready.iter().all(tells)).then_some(())
        })
        .await;
}

/// What `describe` says but for conditions and events.
async fn describes(world: &World, network: &str, expected: Expect) {
    let told = world.ask(&format!("describe {network}")).await;
    let (shown, _) = told.stdout.split_once("\nCONDITION ").unwrap();
    // Only on a slow machine.
    let stderr = told.stderr.replace("reading the cluster…\n", "");
    expected.assert_eq(&format!("{shown}! {stderr}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_cannot_run_tell_why() {
    in_each_world(async |world| {
        world.network("foreign", json!({"replicas": 2, "peers": [{"image": "example.com/peer:1"}]})).await;
        world.network("broken", json!({"replicas": 2, "peers": [{"args": ["runner", "nobody"]}]})).await;
        world.network("nowhere", json!({"replicas": 2, "peers": [{"command": ["/no/such/peer"]}]})).await;
        until_told(world, "foreign", "simulated").await;
        describes(world, "foreign", expect![[r#"
            Network foreign

            state       0 of 2 peers answer (peers-0-0: Simulated, peers-0-1: Simulated)
            namespace   network-foreign
            peers       0 of 2 answer
            topology    ring, degree 3

            PEER        STATE       WHY
            peers-0-0   Simulated   its pod is simulated: nothing runs in it that could be asked
            peers-0-1   Simulated   its pod is simulated: nothing runs in it that could be asked
            ! next: name an image that is a program of this machine; mainstay up --rules FILE says which are
        "#]]).await;
        until_told(world, "broken", "CrashLoopBackOff").await;
        describes(world, "broken", expect![[r#"
            Network broken

            state       0 of 2 peers answer (peers-0-0: PodNotReady, peers-0-1: PodNotReady)
            namespace   network-broken
            peers       0 of 2 answer
            topology    ring, degree 3

            PEER        STATE         WHY
            peers-0-0   PodNotReady   its pod is not ready: CrashLoopBackOff: it ended with code 2
            peers-0-1   PodNotReady   its pod is not ready: CrashLoopBackOff: it ended with code 2
            ! next: kubectl describe pod -n network-broken peers-0-0, or kubectl logs -n network-broken peers-0-0
        "#]]).await;
        until_told(world, "nowhere", "RunContainerError").await;
        describes(world, "nowhere", expect![[r#"
            Network nowhere

            state       0 of 2 peers answer (peers-0-0: PodPending, peers-0-1: PodPending)
            namespace   network-nowhere
            peers       0 of 2 answer
            topology    ring, degree 3

            PEER        STATE        WHY
            peers-0-0   PodPending   its pod does not run yet: RunContainerError: exec: "/no/such/peer": no such file or directory
            peers-0-1   PodPending   its pod does not run yet: RunContainerError: exec: "/no/such/peer": no such file or directory
            ! next: kubectl describe pod -n network-nowhere peers-0-0, or kubectl logs -n network-nowhere peers-0-0
        "#]]).await;
        expect![[r#"
            NAME  PEERS  READY  AGE
            broken  0/2  PeersMissing  <s>
            foreign  0/2  PeersMissing  <s>
            nowhere  0/2  PeersMissing  <s>
            ! 3 networks
            ! next: mainstay networks describe broken
        "#]].assert_eq(&world.ask("list").await.shown());
        expect![[r#"
            PEER  WHY
            peers-0-0  does not answer: PodNotReady
            peers-0-1  does not answer: PodNotReady
            ! no peer answers yet
            ! next: mainstay networks describe broken
        "#]].assert_eq(&world.ask("topology broken").await.shown());
        check_simulations(world).await;
    })
    .await;
}

/// Simulations that cannot begin, or not be.
async fn check_simulations(world: &World) {
    let foreign = NetworkConfig::namespace("foreign");
    let wrong = json!({
        "scenario": "blocks",
        "criteria": [{"metric": "requests", "aggregation": "last", "comparison": ">", "threshold": 0}],
    });
    world.simulation(&foreign, "early", json!({"scenario": "identity"})).await;
    world.simulation(&foreign, "wrong", wrong).await;
    world.simulation("default", "lost", json!({"scenario": "identity"})).await;
    for (namespace, name) in [(foreign.as_str(), "early"), (&foreign, "wrong"), ("default", "lost")] {
        let path = format!("{}/{name}", simulations().collection_path(Some(namespace)));
        let is_told =
            async || world.cluster.get(&path).await.1["status"]["conditions"].is_array().then_some(());
        world.until("foreign", name, is_told).await;
    }
    expect![[r#"
        NAMESPACE  SIMULATION  SCENARIO  PHASE  AGE  WHY
        default  lost  identity  Pending  <s>  this namespace is no network's: a simulation is made in that of its network, network-NAME
        network-foreign  early  identity  Pending  <s>  the network is not ready: PeersMissing: 0 of 2 peers answer (peers-0-0: Simulated, peers-0-1: Simulated)
        network-foreign  wrong  blocks  Pending  <s>  spec.criteria[0].aggregation: must not be last, because only readyPeers, missingEdges and components have a last value
        ! 3 simulations
        ! next: mainstay networks simulations report lost
    "#]].assert_eq(&world.ask("simulations list").await.shown());
    expect![[r#"
        Simulation lost

        verdict  none, it is Pending
        why  this namespace is no network's: a simulation is made in that of its network, network-NAME
        network  none
        load  identity, 1 user for each peer, for 60 s
        [exit 1]
    "#]]
    .assert_eq(&world.ask("simulations report lost").await.shown());
    expect![[r#"
        Simulation wrong

        verdict  none, it is Pending
        why  spec.criteria[0].aggregation: must not be last, because only readyPeers, missingEdges and components have a last value
        network  foreign
        load  blocks, 1 user for each peer, for 60 s
        [exit 1]
    "#]].assert_eq(&world.ask("simulations report wrong").await.shown());

    let unknown = json!({
        "apiVersion": simulations().api_version(), "kind": "Simulation",
        "metadata": {"name": "unknown"}, "spec": {"scenario": "chess"},
    });
    let request = http::Request::post(simulations().collection_path(Some(&foreign)))
        .header("content-type", "application/json")
        .body(unknown.to_string().into_bytes());
    let (status, answer) = world.cluster.send(request.unwrap()).await;
    assert_eq!(status, 422);
    let message = answer["message"].as_str().unwrap();
    for part in ["spec.scenario: Unsupported value: \"chess\"", "\"identity\"", "\"peers\"", "\"blocks\""] {
        assert!(message.contains(part), "{part}: {message}");
    }
}
