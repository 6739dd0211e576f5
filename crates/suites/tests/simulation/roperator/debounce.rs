//! Every sync waits half a second for more events to come. All is right in the end, so this is about time: what takes
//! several syncs, one after the other, takes seconds. Roperator waits before each sync of each parent.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Part, Program, Script, State, Violation, check, program};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::by_hand::{Watched, carry_out, child, each_parent, failure, name_of, parent, plan};

/// How many children there are, each made when the one before it is there.
const CHILDREN: usize = 5;

fn stairs(fix: bool) -> Program {
    program("stairs", move |seat| {
        let secrets = Kind::of::<Secret>();
        let watched = vec![Watched::parents(), Watched::all(&secrets)];
        each_parent(seat.client(), watched, move |parent, children| {
            let (client, secrets) = (seat.client(), secrets.clone());
            async move {
                if !fix {
                    sleep(Duration::from_millis(500)).await;
                }
                let stair = |number: usize| {
                    child(&parent, &secrets, &format!("{}-{number}", name_of(&parent)), json!({}))
                };
                let desired: Vec<Value> = (0..CHILDREN.min(children.len() + 1)).map(stair).collect();
                for write in plan(&desired, &children, |_, _| true) {
                    carry_out(&client, &write).await?;
                }
                Ok::<_, kube::Error>(())
            }
        })
    })
}

fn time_of(object: &Value) -> Timestamp {
    object["metadata"]["creationTimestamp"].as_str().unwrap_or_default().parse().unwrap()
}

/// Requests and events take milliseconds, but the server's clock shows seconds.
fn is_quick(state: &State) -> Result<(), String> {
    let Some(parent) = state.get(&Watched::parents().kind, "default", "house") else { return Ok(()) };
    for stair in state.of(&Kind::of::<Secret>()) {
        let late = time_of(stair).duration_since(time_of(parent)).as_secs();
        if late > 1 {
            return Err(format!("{} came {late} s after its parent", name_of(stair)));
        }
    }
    Ok(())
}

fn scene(fix: bool) -> Check {
    check(stairs(fix)).script(Script::new().create(parent("house", &json!({}))))
}

#[test]
fn wait_is_caught_by_a_property_about_time() {
    let found = failure(&scene(false).always("stairs come at once", is_quick).report(), Part::Baseline);
    assert!(
        matches!(&found.violations[..], [Violation::Property { why, .. }] if why.contains("after its parent")),
        "{}",
        found.story
    );
}

#[test]
fn the_corrected_one_is_quick_and_passes_everything() {
    scene(true).always("stairs come at once", is_quick).run();
    scene(true).every_fault().seeds(10).run();
}
