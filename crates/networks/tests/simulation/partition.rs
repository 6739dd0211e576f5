//! Networks and simulations together: a partition in a network that became ready by itself.

use mainstay_testkit::simulation::{Check, Family, Script};
use serde_json::json;

use crate::simulation::world::{Dials, cluster, disturbed, happens, killed, lab, load};

/// A partition that lasts for a part of the run, and criteria that say so.
fn script() -> Script {
    let criterion = |metric: &str, aggregation: &str, comparison: &str, threshold: i32| json!({"metric": metric, "aggregation": aggregation, "comparison": comparison, "threshold": threshold});
    let storm = json!({
        "runTimeSeconds": 12,
        "faults": [{"atSeconds": 1, "action": "partition", "durationSeconds": 5, "peers": ["peers-0-1"]}],
        "criteria": [
            criterion("missingEdges", "max", "==", 2),
            criterion("missingEdges", "last", "==", 0),
            criterion("components", "max", "==", 2),
        ],
    });
    let network = lab(&json!({"replicas": 3, "topology": {"observeSeconds": 3}}));
    Script::new().create(network).create(load(&storm))
}

#[test]
fn wherever_the_operator_dies_it_mends_a_partition_when_that_is_over_and_not_before() {
    let check = cluster(Dials::Noted).script(script());
    happens(
        &check,
        &[
            "10.1.0.2 keeps out: created",
            "EdgesSevered",
            r#""Running" -> "Judged""#,
            "3 of 3 criteria are met",
        ],
    );
    killed(check);
}

#[test]
fn whatever_goes_wrong_a_partition_is_mended_and_there_is_a_verdict() {
    // A run is timed by the operator's clock, and is over before an answer that is lost is given up.
    let left_out = [Family::ClockJumps, Family::Requests];
    let check = cluster(Dials::Forgiven).script(script());
    disturbed(left_out.into_iter().fold(check, Check::but));
}
