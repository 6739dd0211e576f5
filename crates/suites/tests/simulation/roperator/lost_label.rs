//! A child that has lost its label is no longer seen, and making it again fails for ever because the name is taken.
//! Roperator watches only children with its tracking label, and takes the server's 409 for an error like any other.

use k8s_openapi::api::core::v1::Secret;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Part, Program, Script, Violation, check, program};
use serde_json::{Value, json};

use super::by_hand::{
    TRACKING, Watched, Write, api, carry_out, child, each_parent, failure, name_of, parent, plan, uid_of,
};

/// A Secret for each parent.
fn tokens(fix: bool) -> Program {
    program("tokens", move |seat| {
        let secrets = Kind::of::<Secret>();
        let watched = vec![Watched::parents(), Watched { kind: secrets.clone(), label: Some(TRACKING) }];
        each_parent(seat.client(), watched, move |parent, children| {
            let (client, secrets) = (seat.client(), secrets.clone());
            async move {
                let desired = child(&parent, &secrets, name_of(&parent), json!({}));
                for write in plan(&[desired], &children, |_, _| true) {
                    let done = carry_out(&client, &write).await;
                    match (done, write) {
                        (Err(kube::Error::Api(refusal)), Write::Create(desired))
                            if fix && refusal.code == 409 =>
                        {
                            adopt(&client, &secrets, &parent, desired).await?;
                        }
                        (done, _) => done?,
                    }
                }
                Ok::<_, kube::Error>(())
            }
        })
    })
}

/// Puts right what has the name already, if it is the parent's.
async fn adopt(
    client: &kube::Client,
    kind: &Kind,
    parent: &Value,
    desired: Value,
) -> Result<(), kube::Error> {
    let live = api(client, kind).get(name_of(&desired)).await?;
    let mut live = serde_json::to_value(live).unwrap();
    (live["apiVersion"], live["kind"]) = (desired["apiVersion"].clone(), desired["kind"].clone());
    if live["metadata"]["ownerReferences"][0]["uid"].as_str() == uid_of(parent).as_deref() {
        carry_out(client, &Write::Replace(live, desired)).await?;
    }
    Ok(())
}

fn scene(fix: bool) -> Check {
    let script = Script::new().create(parent("door", &json!({}))).patch(
        &Kind::of::<Secret>(),
        "door",
        json!({"metadata": {"labels": {TRACKING: null}}}),
    );
    check(tokens(fix)).script(script).silent()
}

#[test]
fn create_that_fails_for_ever_is_caught_without_any_fault() {
    let found = failure(&scene(false).report(), Part::Baseline);
    assert!(
        matches!(&found.violations[..], [Violation::SecondPass { writes }]
        if writes.iter().all(|write| write == "create secrets default")),
        "{}",
        found.story
    );
    assert!(found.story.contains("create secrets default (write 2) -> 409"), "{}", found.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    scene(true).every_fault().seeds(10).run();
}
