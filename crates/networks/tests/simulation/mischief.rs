//! Peers that misbehave: they are told of by name and reason, and delay nobody.

use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Script};
use serde_json::json;

use crate::simulation::peers::behaviour::{BABBLES, HANGS, LIES};
use crate::simulation::pods::{BEHAVES, CUT};
use crate::simulation::world::{Dials, cluster, disturbed, happens, killed, lab, networks};

/// Two peers as they should be and a third one, of another group, that is not. Later it is replaced by one that is.
fn with_a_third(behaviour: &str) -> Script {
    let groups = |behaviour: &str| {
        let image = format!("example.com/{behaviour}:1");
        json!([{"image": "example.com/peer:1", "weight": 2}, {"image": image}])
    };
    let spec = json!({"replicas": 3, "peers": groups(behaviour), "bootstrap": {"patienceSeconds": 20}});
    let replaced = json!({"spec": {"peers": groups("peer")}});
    Script::new().create(lab(&spec)).patch(&networks(), "lab", replaced)
}

#[test]
fn the_others_are_connected_without_a_peer_that_hangs() {
    let check = cluster(Dials::Forgiven).script(with_a_third(HANGS));
    let happens_then =
        ["(peers-1-0: RpcTimeout)", "wire peers-0-0 peers-0-1: created", "wire peers-0-0 peers-1-0: created"];
    happens(&check, &happens_then);
    disturbed(check);
}

#[test]
fn the_others_are_connected_without_a_peer_that_babbles() {
    let check = cluster(Dials::Forgiven).script(with_a_third(BABBLES));
    happens(&check, &["(peers-1-0: RpcGarbage)", "wire peers-0-0 peers-0-1: created"]);
    // Where the first image goes unseen, the history of the `StatefulSet` does not tell of it.
    disturbed(check.but(Family::Watches));
}

#[test]
fn of_two_peers_with_one_id_neither_is_listed() {
    let check = cluster(Dials::Forgiven).script(with_a_third(LIES));
    happens(&check, &["(peers-0-0: DuplicateId, ", "wire peers-0-0 peers-1-0: created"]);
    disturbed(check);
}

#[test]
fn a_peer_that_hangs_for_a_while_is_listed_again() {
    let script = Script::new().create(lab(&json!({"topology": {"observeSeconds": 30}})));
    let script = behaves(behaves(script, HANGS), "peer");
    let check = cluster(Dials::Forgiven).script(script);
    happens(&check, &["(peers-0-1: RpcTimeout)"]);
    disturbed(check);
}

#[test]
fn a_wire_that_is_cut_is_dialled_again_and_no_other() {
    let lab = lab(&json!({"replicas": 3, "topology": {"observeSeconds": 20}}));
    let script = annotated(Script::new().create(lab), CUT, "peers-0-2");
    happens(&cluster(Dials::Noted).script(script.clone()), &["1 of 3 declared connections are missing"]);
    // By crashes only: a peer whose answer is lost is not listed for a while, even in a further pass.
    killed(cluster(Dials::Noted).script(script));
}

fn behaves(script: Script, behaviour: &str) -> Script {
    annotated(script, BEHAVES, behaviour)
}

fn annotated(script: Script, annotation: &str, value: &str) -> Script {
    let patch = json!({"metadata": {"annotations": {annotation: value}}});
    script.patch(&Kind::of::<Pod>(), "network-lab/peers-0-1", patch)
}
