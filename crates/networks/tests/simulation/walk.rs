//! Networks whose spec changes, back again and in sequences: the end depends on the last spec only.

use kube::CustomResourceExt as _;
use mainstay_networks::kinds::Network;
use mainstay_testkit::simulation::Script;
use serde_json::{Value, json};

use crate::simulation::pods::Kept;
use crate::simulation::world::{Dials, QUIET, cluster_with, lab};

/// The definition of networks with nothing but a property of each sort: one that makes and removes peers, one that renames an object, and one that has peers
/// connected anew. Others come to the same, and there are two hundred. Those that restart peers are left out, because the history of a `StatefulSet` tells of
/// them, and so is `repair`, because what is not mended depends on what was there.
fn cut_down() -> Value {
    let mut definition = json!(Network::crd());
    let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    keep(&mut spec["properties"], &["replicas", "peersConfigMap", "bootstrap"]);
    // Of one peer nothing is declared, but the Job that has connected two stays.
    spec["properties"]["replicas"] = json!({"type": "integer", "minimum": 2, "maximum": 3});
    // For a spec that is refused nothing is changed, and the end is that of the one before.
    spec["properties"]["peersConfigMap"] = json!({"type": "string", "enum": ["keramik-peers", "others"]});
    keep(&mut spec["properties"]["bootstrap"]["properties"], &["method"]);
    // Among two or three peers these declare different connections, or dial them in another direction.
    spec["properties"]["bootstrap"]["properties"]["method"] =
        json!({"type": "string", "enum": ["ring", "full"]});
    definition
}

fn keep(properties: &mut Value, names: &[&str]) {
    properties.as_object_mut().unwrap().retain(|name, _| names.contains(&name.as_str()));
}

#[test]
fn the_way_to_a_spec_makes_no_difference() {
    let check = cluster_with(Dials::Noted, Kept::OnlyOfLiving).quiet(QUIET);
    check.script(Script::new().create(lab(&json!({})))).every_spec_change(cut_down(), 1).run();
}
