//! A finalizer that asks to be called again in ten seconds is called in twenty: roperator waits before it puts the parent
//! back into its queue, and the queue waits as well. All is right in the end, so this is about time.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use mainstay_testkit::simulation::{Check, Part, Program, Script, Seat, State, Violation, check, program};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::by_hand::{Watched, api, each_parent, failure, name_of, parent, uid_of};

const FINALIZER: &str = "example.dev/account";
const SINCE: &str = "example.dev/closing-since";
const TOOK_SECONDS: &str = "example.dev/closing-took-seconds";
/// How long an account takes to be closed.
const CLOSING: Duration = Duration::from_secs(10);

/// Parents are accounts, which have to be closed before they can go.
fn accounts(fix: bool) -> Program {
    program("accounts", move |seat| {
        each_parent(seat.client(), vec![Watched::parents()], move |parent, _| {
            let seat = seat.clone();
            async move {
                let name = name_of(&parent);
                if parent["metadata"]["deletionTimestamp"].is_null() {
                    let has_finalizer = parent["metadata"]["finalizers"].is_array();
                    let metadata = json!({"uid": uid_of(&parent), "finalizers": [FINALIZER]});
                    return if has_finalizer { Ok(()) } else { note(&seat, name, metadata).await };
                }
                while finalize(&seat, name).await? == Finalized::Later {
                    sleep(CLOSING).await;
                    if !fix {
                        sleep(CLOSING).await;
                    }
                }
                Ok(())
            }
        })
    })
}

#[derive(PartialEq)]
enum Finalized {
    Yes,
    Later,
}

/// Closes an account, which takes its time, and says how long it took.
async fn finalize(seat: &Seat, name: &str) -> Result<Finalized, kube::Error> {
    let Some(parent) = api(&seat.client(), &Watched::parents().kind).get_opt(name).await? else {
        return Ok(Finalized::Yes);
    };
    let (uid, now) = (parent.metadata.uid, seat.clock().now());
    let annotations = parent.metadata.annotations.unwrap_or_default();
    let Some(since) = annotations.get(SINCE).and_then(|since| since.parse::<Timestamp>().ok()) else {
        note(seat, name, json!({"uid": uid, "annotations": {SINCE: now.to_string()}})).await?;
        return Ok(Finalized::Later);
    };
    let seconds = now.duration_since(since).as_secs().to_string();
    note(seat, name, json!({"uid": uid, "annotations": {TOOK_SECONDS: seconds}})).await?;
    note(seat, name, json!({"uid": uid, "finalizers": null})).await?;
    Ok(Finalized::Yes)
}

/// Changes the metadata of a parent, unless it is gone or another has its name.
async fn note(seat: &Seat, name: &str, metadata: Value) -> Result<(), kube::Error> {
    let api = api(&seat.client(), &Watched::parents().kind);
    match api.patch(name, &PatchParams::default(), &Patch::Merge(json!({"metadata": metadata}))).await {
        Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
        answer => answer.map(drop),
    }
}

fn is_called_in_time(state: &State) -> Result<(), String> {
    for parent in state.of(&Watched::parents().kind) {
        let took = parent["metadata"]["annotations"][TOOK_SECONDS].as_str().unwrap_or("0");
        if took.parse::<i64>().is_ok_and(|seconds| seconds > 15) {
            return Err(format!("called again after {took} s"));
        }
    }
    Ok(())
}

fn scene(fix: bool) -> Check {
    let script =
        Script::new().create(parent("savings", &json!({}))).delete(&Watched::parents().kind, "savings");
    check(accounts(fix)).script(script)
}

#[test]
fn second_wait_is_caught_by_a_property_about_time() {
    let found = failure(
        &scene(false).always("accounts are closed in time", is_called_in_time).report(),
        Part::Baseline,
    );
    assert!(
        matches!(&found.violations[..], [Violation::Property { why, .. }] if why == "called again after 20 s"),
        "{}",
        found.story
    );
}

#[test]
fn the_corrected_one_is_in_time_and_passes_everything() {
    scene(true).always("accounts are closed in time", is_called_in_time).run();
    scene(true).every_fault().seeds(10).run();
}
