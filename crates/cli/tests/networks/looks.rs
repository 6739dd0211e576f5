//! What `mainstay networks` shows of a network that lives.

use expect_test::{Expect, expect};
use k8s_openapi::api::batch::v1::Job;
use mainstay::Kind;
use regex::Regex;
use serde_json::{Value, json};
use std::collections::BTreeSet;

use crate::networks::life::spec;
use crate::networks::world::{World, networks};

/// Looks at the network of [`life`](crate::networks::life) after its simulations.
pub(crate) async fn check(world: &World) {
    check_overviews(world).await;
    check_pictures(world).await;
    check_reports(world).await;
    check_rendered(world).await;
}

async fn shows(world: &World, words: &str, expected: Expect) {
    expected.assert_eq(&world.ask(words).await.shown());
}

async fn check_overviews(world: &World) {
    shows(
        world,
        "list",
        expect![[r#"
            NAME  PEERS  EDGES  MISSING  ISLANDS  READY  AGE
            lab  4/4  6  0  1  yes  <s>
            ! 1 network
        "#]],
    )
    .await;
    shows(
        world,
        "topology lab",
        expect![[r#"
            PEER  CONNECTED  DIALS
            peers-0-0  3
            peers-0-1  3  peers-0-0
            peers-0-2  3  peers-0-0 peers-0-1
            peers-0-3  3  peers-0-0 peers-0-1 peers-0-2
            ! 6 declared, 6 there, 0 missing; 1 island
            ! next: mainstay networks topology lab -o svg > lab.svg
        "#]],
    )
    .await;
    shows(
        world,
        "plan lab",
        expect![[r#"
            Network lab: nothing to do
            ! 0 writes for 1 object; nothing was written
        "#]],
    )
    .await;
    shows(world, "simulations list", expect![[r#"
        NAMESPACE  SIMULATION  SCENARIO  PHASE  VERDICT  AGE  WHY
        network-lab  dream  identity  Finished  Failed  <s>  1 of 2 criteria are met; more than all: max of readyPeers is <n>, which is not > 4
        network-lab  storm  blocks  Finished  Passed  <s>  5 of 5 criteria are met
        ! 2 simulations
        ! next: mainstay networks simulations report dream --network lab
    "#]]).await;
    let told = world.ask("describe lab").await;
    let (facts, tables) = told.stdout.split_once("\n\nPEER ").unwrap();
    expect![[r#"
        Network lab

        state       4 of 4 peers answer; all 6 declared connections are there
        namespace   network-lab
        peers       4 of 4 answer
        topology    full
        edges       6 declared, 6 there
        islands     1"#]]
    .assert_eq(facts);
    for peer in 0..4 {
        let row = Regex::new(&format!(r"(?m)^peers-0-{peer} +answers +Qm\w{{44}} +http://127\.[\d.]+:5001$"));
        assert!(row.unwrap().is_match(tables), "{told:?}");
    }
    for part in ["\nstorm ", "\ndream ", "\nReady ", "\nBootstrapped ", " EdgesRepaired "] {
        assert!(tables.contains(part), "{part}: {told:?}");
    }
}

async fn check_pictures(world: &World) {
    shows(world, "topology lab -o dot", expect![[r#"
        graph "lab" {
          layout=circo; node [shape=box]; label="4 of 4 peers answer; of the declared connections 6 are there and 0 are missing; 0 are not declared; 1 island";
          subgraph cluster_0 { label="peers-0";
            "peers-0-0";
            "peers-0-1";
            "peers-0-2";
            "peers-0-3";
          }
          "peers-0-1" -- "peers-0-0" [style=solid];
          "peers-0-2" -- "peers-0-0" [style=solid];
          "peers-0-2" -- "peers-0-1" [style=solid];
          "peers-0-3" -- "peers-0-0" [style=solid];
          "peers-0-3" -- "peers-0-1" [style=solid];
          "peers-0-3" -- "peers-0-2" [style=solid];
        }
    "#]]).await;
    let json = world.ask_json("topology lab").await;
    let counts = json!({"peers": 4, "ready": 4, "present": 6, "missing": 0, "surplus": 0, "components": 1});
    assert_eq!(json["counts"], counts);
    let edges = json["edges"].as_array().unwrap();
    assert_eq!(edges.iter().filter(|edge| edge["state"] == "present").count(), 6, "{json:#}");

    let svg = world.ask("topology lab -o svg").await.stdout;
    check_well_formed(&svg);
    let count = |part: &str| svg.matches(part).count();
    // There is one of either kind of peer and of each kind of line in the legend.
    assert_eq!((count("<circle "), count("<path class=\"present\""), count("<line ")), (6, 6, 3), "{svg}");
}

/// Every element that is opened is closed, in the reverse order.
fn check_well_formed(svg: &str) {
    let tags = Regex::new(r"<(/?)(\w+)((?:\s+[\w:-]+=\x22[^\x22<]*\x22)*)\s*(/?)>").unwrap();
    let mut open = Vec::new();
    for tag in tags.captures_iter(svg) {
        match (&tag[1], &tag[4]) {
            ("/", _) => assert_eq!(open.pop().as_deref(), Some(&tag[2]), "{svg}"),
            (_, "/") => {}
            _ => open.push(tag[2].to_owned()),
        }
    }
    assert!(open.is_empty(), "{open:?}: {svg}");
    let between = tags.replace_all(svg, "");
    assert!(!between.contains(['<', '>']), "{between}");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
}

async fn check_reports(world: &World) {
    shows(
        world,
        "simulations report dream --network other",
        expect![[r#"
            ! error: there is no simulation dream of network other
            !  next: mainstay networks simulations list
            [exit 2]
        "#]],
    )
    .await;
    for (name, expected) in [
        (
            "storm",
            expect![[r#"
                Simulation storm

                verdict  Passed
                why  5 of 5 criteria are met
                network  lab
                load  blocks, 2 users for each peer, for 16 s, at most 50 requests a second to each
                took  <s>

                CRITERION  MET  WHY
                min of requests > 0  yes  min of requests is <n>, which is > 0
                min of readyPeers >= 3  yes  min of readyPeers is <n>, which is >= 3
                max of components >= 2  yes  max of components is <n>, which is >= 2
                last of components == 1  yes  last of components is <n>, which is == 1
                last of missingEdges == 0  yes  last of missingEdges is <n>, which is == 0

                FAULT  STATE  PEERS
                kill  Over  peers-0-3
                partition  Over  peers-0-0 peers-0-1
                [exit 0]
            "#]],
        ),
        (
            "dream",
            expect![[r#"
                Simulation dream

                verdict  Failed
                why  1 of 2 criteria are met; more than all: max of readyPeers is <n>, which is not > 4
                network  lab
                load  identity, 1 user for each peer, for 5 s, at most 20 requests a second to each
                took  <s>

                CRITERION  MET  WHY
                min of requests > 0  yes  min of requests is <n>, which is > 0
                more than all  no  max of readyPeers is <n>, which is not > 4
                [exit 1]
            "#]],
        ),
    ] {
        let told = world.ask(&format!("simulations report {name}")).await;
        let shown = told.shown();
        let (found, peers) = shown.split_once("\nPEER ").unwrap();
        expected.assert_eq(&format!("{found}[exit {}]\n", told.code.unwrap()));
        let rows: Vec<&str> = peers.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(rows[..5], ["peers-0-0", "peers-0-1", "peers-0-2", "peers-0-3", "total"], "{shown}");
        let data = world.ask_json(&format!("simulations report {name}")).await;
        let requests = |report: &Value| report["requests"].as_u64().unwrap();
        let each: u64 = data["report"]["peers"].as_array().unwrap().iter().map(requests).sum();
        assert!(each > 0 && each == requests(&data["report"]["total"]), "{data:#}");
    }
}

/// What is rendered without a cluster is what there is in one.
async fn check_rendered(world: &World) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let kind = networks();
    let network = json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": "lab"}, "spec": spec()});
    std::fs::write(file.path(), network.to_string()).unwrap();
    let names = world.ask(&format!("render -f {} -o name", file.path().display())).await.stdout;
    let jobs = world.parts("lab", &Kind::of::<Job>()).await;
    let names_of_jobs = jobs.iter().filter_map(|job| job["metadata"]["name"].as_str());
    let bootstrap: Vec<&str> = names_of_jobs.filter(|name| name.starts_with("bootstrap-")).collect();
    let expected = BTreeSet::from([
        "namespace/network-lab".to_owned(),
        "configmap/network-config".to_owned(),
        "configmap/keramik-peers".to_owned(),
        "configmap/network-edges".to_owned(),
        "secret/network-secret".to_owned(),
        "service/peers-0".to_owned(),
        "statefulset.apps/peers-0".to_owned(),
        format!("job.batch/{}", bootstrap.concat()),
    ]);
    assert_eq!(names.lines().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
}
