//! A request is sent again of which nobody knows whether it was carried out.
//!
//! An answer that does not come says nothing about the request. Together with a name that the server makes up, the second
//! try makes a second object. That is why Kubernetes' own controllers do not try again after a timeout, for which they
//! paid with pods that were never made (kubernetes/kubernetes#67662).

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Family, Part, Program, Script, Violation, check, program};
use serde_json::json;

use super::by_hand::{Due, changes, found_in, list, object, paint, pause};

/// Each ConfigMap gets a Pod.
fn operator(fix: bool) -> Program {
    program("pods", move |seat| async move {
        let client = seat.client();
        let mut due = Due::on(vec![changes::<ConfigMap>(&client), changes::<Pod>(&client)]);
        loop {
            due.wait().await;
            due.done(&pass(&client, fix).await);
        }
    })
}

async fn pass(client: &Client, fix: bool) -> kube::Result<()> {
    let pods = list::<Pod>(client).await?;
    for parent in list::<ConfigMap>(client).await? {
        let name = parent.name_any();
        if pods.iter().any(|pod| pod.labels().get("of") == Some(&name)) {
            continue;
        }
        let mut metadata = json!({"labels": {"of": name}});
        if fix {
            metadata["name"] = json!(name);
        } else {
            metadata["generateName"] = json!(format!("{name}-"));
        }
        let spec = json!({"containers": [{"name": "paint", "image": "paint:1"}]});
        create_at_any_price(client, &object(json!({"metadata": metadata, "spec": spec}))).await;
    }
    Ok(())
}

async fn create_at_any_price(client: &Client, pod: &Pod) {
    let pods = Api::<Pod>::default_namespaced(client.clone());
    loop {
        match pods.create(&PostParams::default(), pod).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => return,
            Err(_) => pause().await,
        }
    }
}

fn checked(fix: bool) -> Check {
    let script = Script::new().create(paint(&json!({})));
    check(operator(fix)).script(script).always("never two Pods of one ConfigMap", |state| {
        match state.of(&Kind::of::<Pod>()).count() {
            0 | 1 => Ok(()),
            count => Err(format!("there are {count}")),
        }
    })
}

#[test]
fn a_second_try_is_caught() {
    let report = checked(false).every_failed_request().report();
    let failure = found_in(&report, Part::Each(Family::Requests));
    assert_eq!(failure.faults.to_string(), "lose the answer to write 1");
    let [Violation::Property { why, .. }] = &failure.violations[..] else { panic!("{}", failure.story) };
    assert_eq!(why, "there are 2");
    assert!(failure.story.contains("create pods default (write 1) -> no answer"), "{}", failure.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    checked(true).every_fault().seeds(10).run();
}
