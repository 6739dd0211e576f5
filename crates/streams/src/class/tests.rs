use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use mainstay::{Registered, RegisteredState};
use serde_json::{Value, json};

use super::*;

fn class(name: &str, made_at: &str, spec: &Value) -> StreamClass {
    let mut all = json!({
        "apiGroupRef": "example.com", "apiVersion": "v1", "kindRef": "Feed", "pluralName": "feeds",
    });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "apiVersion": "streams.mainstay.dev/v1alpha1", "kind": "StreamClass",
        "metadata": {"name": name, "creationTimestamp": made_at}, "spec": all,
    }))
    .unwrap()
}

fn definition(change: impl FnOnce(&mut Value)) -> CustomResourceDefinition {
    let mut definition = json!({
        "metadata": {"name": "feeds.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Feed", "plural": "feeds"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "jobTemplateRef": {"type": "object", "properties": {"name": {"type": "string"}}},
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
        "status": {"conditions": [{"type": "Established", "status": "True", "reason": "r", "message": "m"}]},
    });
    change(&mut definition);
    serde_json::from_value(definition).unwrap()
}

fn judged(
    class: &StreamClass,
    definition: Option<&CustomResourceDefinition>,
    others: &[StreamClass],
    state: Option<RegisteredState>,
) -> Judged {
    let config = StreamClassConfig::from(&class.spec);
    let claim = examine(class, &config, definition, others);
    let registered =
        state.map(|state| Registered { state, parents: 3, counts: [("Running".to_owned(), 2)].into() });
    judge(&config, &claim, registered.as_ref())
}

#[test]
fn a_class_is_ready_when_all_of_its_streams_have_been_seen() {
    let (feeds, defined) = (class("feeds", "2030-01-01T00:00:00Z", &json!({})), definition(|_| ()));
    let phase = |state| judged(&feeds, Some(&defined), &[], state).phase;
    assert_eq!(phase(None), ClassPhase::Pending);
    assert_eq!(phase(Some(RegisteredState::Starting)), ClassPhase::Pending);
    let ready = judged(&feeds, Some(&defined), &[], Some(RegisteredState::Ready));
    assert_eq!((ready.phase, ready.ready.state), (ClassPhase::Ready, State::True));
    assert_eq!(ready.streams, StreamCounts { total: 3, by_phase: [("Running".to_owned(), 2)].into() });
}

#[test]
fn what_is_wrong_with_the_definition_is_told_with_its_place() {
    let feeds = class("feeds", "2030-01-01T00:00:00Z", &json!({}));
    let check = |definition: Option<CustomResourceDefinition>,
                 phase: ClassPhase,
                 reason: &str,
                 words: &str| {
        let judged = judged(&feeds, definition.as_ref(), &[], None);
        assert_eq!((judged.phase, judged.ready.reason, judged.ready.state), (phase, reason, State::False));
        assert!(judged.ready.message.contains(words), "{}", judged.ready.message);
    };
    check(None, ClassPhase::Pending, "NotDefined", "there is no CustomResourceDefinition feeds.example.com");
    let with = |change: fn(&mut Value)| Some(definition(change));
    check(
        with(|crd| crd["spec"]["names"]["kind"] = json!("Food")),
        ClassPhase::Failed,
        "OtherKind",
        "spec.kindRef: feeds.example.com defines Food, not Feed",
    );
    check(
        with(|crd| crd["spec"]["scope"] = json!("Cluster")),
        ClassPhase::Failed,
        "ClusterScoped",
        "cluster-scoped",
    );
    check(
        with(|crd| crd["spec"]["versions"][0]["name"] = json!("v2")),
        ClassPhase::Failed,
        "VersionNotServed",
        "spec.apiVersion: feeds.example.com does not serve v1, but v2",
    );
    check(
        with(|crd| crd["spec"]["versions"][0]["subresources"] = json!({})),
        ClassPhase::Failed,
        "NoStatus",
        "no status subresource in v1",
    );
    check(
        with(|crd| crd["status"]["conditions"][0]["status"] = json!("False")),
        ClassPhase::Pending,
        "NotEstablished",
        "not established yet",
    );
    check(
        with(|crd| crd["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z")),
        ClassPhase::Pending,
        "Terminating",
        "is being deleted",
    );
}

#[test]
fn paths_that_lead_nowhere_fail_the_class() {
    let paths = json!({"paths": {"suspended": "spec.execution.suspended"}});
    let feeds = class("feeds", "2030-01-01T00:00:00Z", &paths);
    let judged = judged(&feeds, Some(&definition(|_| ())), &[], Some(RegisteredState::Ready));
    assert_eq!((judged.phase, judged.ready.reason), (ClassPhase::Failed, "PathsDoNotFit"));
    assert!(judged.ready.message.contains("spec.paths.suspended"), "{}", judged.ready.message);
}

#[test]
fn the_older_class_has_the_kind() {
    let old = class("old", "2030-01-01T00:00:00Z", &json!({}));
    let new = class("new", "2030-01-02T00:00:00Z", &json!({}));
    let defined = definition(|_| ());
    let both = [new.clone(), old.clone()];
    let state = || Some(RegisteredState::Ready);
    assert_eq!(judged(&old, Some(&defined), &both, state()).phase, ClassPhase::Ready);
    let late = judged(&new, Some(&defined), &both, state());
    assert_eq!((late.phase, late.ready.reason), (ClassPhase::Failed, "ClaimedByAnother"));
    assert_eq!(late.ready.message, "the StreamClass old has Feed already");
    let stopped = class("old", "2030-01-01T00:00:00Z", &json!({"stopped": true}));
    assert_eq!(
        judged(&new, Some(&defined), std::slice::from_ref(&stopped), state()).phase,
        ClassPhase::Ready
    );
    assert_eq!(judged(&stopped, Some(&defined), &[], None).phase, ClassPhase::Stopped);
}

#[test]
fn a_missing_permission_fails_the_class_and_says_which() {
    let (feeds, defined) = (class("feeds", "2030-01-01T00:00:00Z", &json!({})), definition(|_| ()));
    let why = "the operator may not list feeds at cluster scope".to_owned();
    let judged = judged(&feeds, Some(&defined), &[], Some(RegisteredState::Forbidden(why.clone())));
    assert_eq!(
        (judged.phase, judged.ready.reason, judged.ready.message),
        (ClassPhase::Failed, "Forbidden", why)
    );
    assert_eq!(judged.permitted.state, State::False);
}
