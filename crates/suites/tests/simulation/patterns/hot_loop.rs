//! A report that is another each time.
//!
//! A condition whose `lastTransitionTime` is the time of the last look, not of the last transition, makes of every look a
//! write and of every write an event. Knative's routes spun so as soon as they had that field (knative/serving#1181).

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use mainstay_testkit::simulation::{Part, Program, Script, Violation, WorldClock, check, program};
use serde_json::json;

use super::by_hand::{Due, changes, every, found_in, list};

/// Each Service is told that it was seen.
fn operator(fix: bool) -> Program {
    program("reports", move |seat| async move {
        let client = seat.client();
        let mut due = Due::on(vec![changes::<Service>(&client), every(Duration::from_secs(30))]);
        loop {
            due.wait().await;
            due.done(&pass(&client, &seat.clock(), fix).await);
        }
    })
}

async fn pass(client: &Client, clock: &WorldClock, fix: bool) -> kube::Result<()> {
    let services = Api::<Service>::default_namespaced(client.clone());
    for service in list::<Service>(client).await? {
        let conditions =
            service.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let is_told =
            conditions.iter().any(|condition| condition.type_ == "Seen" && condition.status == "True");
        if fix && is_told {
            continue;
        }
        let now = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let seen = json!({"type": "Seen", "status": "True", "reason": "Seen", "message": "", "lastTransitionTime": now});
        let change = Patch::Merge(json!({"status": {"conditions": [seen]}}));
        services.patch_status(&service.name_any(), &PatchParams::default(), &change).await?;
    }
    Ok(())
}

fn script() -> Script {
    let spec = json!({"ports": [{"port": 80}], "clusterIP": "None"});
    Script::new()
        .create(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "paint"}, "spec": spec}))
}

#[test]
fn a_loop_without_end_is_caught() {
    let report = check(operator(false)).script(script()).limit(Duration::from_mins(10)).report();
    let failure = found_in(&report, Part::Baseline);
    let [Violation::Unsettled { last }] = &failure.violations[..] else { panic!("{}", failure.story) };
    assert!(
        last.starts_with("reports: services default/paint: status.conditions[0].lastTransitionTime"),
        "{last}"
    );
}

#[test]
fn the_corrected_one_passes_everything() {
    check(operator(true)).script(script()).every_fault().seeds(10).run();
}
