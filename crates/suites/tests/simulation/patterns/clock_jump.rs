//! The age of something is the difference between another's clock and one's own.
//!
//! Time to live, certificates, leases: an operator compares a time that the server or an earlier incarnation wrote down
//! with what its own clock shows. A clock that is set forward by an hour makes everything an hour older. Knative compares
//! so (knative/serving#561), and Kubernetes warns of it in the documentation of `ttlSecondsAfterFinished`.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::{Client, ResourceExt as _};
use mainstay_testkit::simulation::{Family, Part, Program, Script, Violation, WorldClock, check, program};
use serde_json::json;
use tokio::time::Instant;

use super::by_hand::{Due, changes, claim, create, delete, every, found_in, list, paint, patch};

const TIME_TO_LIVE: Duration = Duration::from_mins(10);

/// What the operator knows of time.
struct Times {
    clock: WorldClock,
    first_seen: BTreeMap<String, Instant>,
    fix: bool,
}

/// Each ConfigMap gets a claim that lives for ten minutes.
fn operator(fix: bool) -> Program {
    program("scratch", move |seat| async move {
        let client = seat.client();
        let mut times = Times { clock: seat.clock(), first_seen: BTreeMap::new(), fix };
        let (parents, claims) = (changes::<ConfigMap>(&client), changes::<PersistentVolumeClaim>(&client));
        let mut due = Due::on(vec![parents, claims, every(Duration::from_mins(5))]);
        loop {
            due.wait().await;
            due.done(&pass(&client, &mut times).await);
        }
    })
}

impl Times {
    fn is_over(&mut self, claim: &PersistentVolumeClaim) -> bool {
        if self.fix {
            // Time that has passed here and now is never longer than it was.
            let seen = self.first_seen.entry(claim.uid().unwrap_or_default()).or_insert_with(Instant::now);
            return seen.elapsed() > TIME_TO_LIVE;
        }
        let made = claim.creation_timestamp().map_or(self.clock.now(), |time| time.0);
        self.clock.now().duration_since(made).unsigned_abs() > TIME_TO_LIVE
    }
}

async fn pass(client: &Client, times: &mut Times) -> kube::Result<()> {
    let claims = list::<PersistentVolumeClaim>(client).await?;
    for parent in list::<ConfigMap>(client).await? {
        let name = parent.name_any();
        let existing = claims.iter().find(|claim| claim.name_any() == name);
        let is_over = parent.annotations().contains_key("over");
        match existing {
            Some(_) if is_over => delete::<PersistentVolumeClaim>(client, &name).await?,
            Some(existing) if times.is_over(existing) => {
                patch(client, &parent, json!({"metadata": {"annotations": {"over": "yes"}}})).await?;
            }
            None if !is_over => create(client, &claim::<PersistentVolumeClaim>(&name)).await?,
            _ => {}
        }
    }
    Ok(())
}

fn script() -> Script {
    Script::new().create(paint(&json!({})))
}

#[test]
fn an_end_before_its_time_is_caught() {
    let report = check(operator(false)).script(script()).every_clock_jump().report();
    let failure = found_in(&report, Part::Each(Family::ClockJumps));
    assert_eq!(failure.faults.to_string(), "clock +3600s at write 1");
    let lost = |violation: &Violation| matches!(violation, Violation::Lost { what, .. } if what == "persistentvolumeclaims default/paint");
    assert!(failure.violations.iter().any(lost), "{}", failure.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    check(operator(true)).script(script()).every_fault().seeds(10).run();
}

#[test]
fn the_corrected_one_removes_what_is_over() {
    let script = script().wait(Duration::from_hours(1));
    let check = check(operator(true)).script(script);
    let removed = check.clone().always("something is left", |state| {
        let over = state.objects().any(|(_, object)| object.pointer("/metadata/annotations/over").is_some());
        if over { Err("it is over".to_owned()) } else { Ok(()) }
    });
    assert_eq!(removed.report().failed(), 1, "nothing comes to its end");
    check.every_crash_point().every_clock_jump().every_second_leader().run();
}
