//! Which set is which, and what is written on them.

use kube::ResourceExt as _;
use serde_json::json;

use super::super::annotations::{self, Annotations};
use super::super::sets::{self, Revisions, Way, way};
use super::*;

fn names(sets: &[ReplicaSet]) -> Vec<String> {
    sets.iter().map(ReplicaSet::name_any).collect()
}

fn told_apart(all: Vec<ReplicaSet>) -> (Option<String>, Vec<String>) {
    let revisions = Revisions::of(all, &spec(&json!({})).template, "web-made");
    (revisions.new.map(|new| new.name_any()), names(&revisions.old))
}

#[test]
fn the_new_set_is_the_oldest_that_has_the_template() {
    let other = replica_set("a", "web:0", &json!({}));
    let younger =
        replica_set("b", "web:1", &json!({"metadata": {"creationTimestamp": "2030-01-01T00:00:09Z"}}));
    let older = replica_set("c", "web:1", &json!({}));
    assert_eq!(
        told_apart(vec![other.clone(), younger, older]),
        (Some("c".into()), vec!["a".into(), "b".into()])
    );
    assert_eq!(told_apart(vec![other]), (None, vec!["a".into()]));
}

#[test]
fn a_set_that_somebody_changed_is_known_by_its_name_and_gets_its_template_back() {
    let changed = replica_set("web-made", "web:evil", &json!({}));
    let (new, _) = told_apart(vec![changed.clone()]);
    assert_eq!(new.as_deref(), Some("web-made"));
    let renewed = sets::renewed(&changed, &spec(&json!({})), "web-made", 3, Annotations::new());
    let template = json!(renewed.spec.unwrap().template);
    assert_eq!(template["spec"]["containers"][0]["image"], "web:1");
    assert_eq!(template["metadata"]["labels"], json!({"app": "web", "pod-template-hash": "web-made"}));
    // An adopted one is left as it is.
    let renewed = sets::renewed(&changed, &spec(&json!({})), "web-other", 3, Annotations::new());
    assert_eq!(json!(renewed.spec.unwrap().template)["spec"]["containers"][0]["image"], "web:evil");
}

#[test]
fn a_set_that_is_kept_names_all_that_it_was_made_with() {
    let spec = spec(&json!({"minReadySeconds": 5}));
    let made = sets::made(&spec, "web-x", "x", 2, Annotations::from([("a".into(), "b".into())]));
    let kept = sets::kept(&made, 2, annotations::own(&made));
    assert_eq!(kept, made);
    assert_eq!(sets::renewed(&made, &spec, "web-x", 2, annotations::own(&made)), made);
    let json = json!(made);
    assert_eq!(json["spec"]["selector"]["matchLabels"], json!({"app": "web", "pod-template-hash": "x"}));
    assert_eq!(json["metadata"]["labels"], json["spec"]["template"]["metadata"]["labels"]);
    assert_eq!(json["spec"]["minReadySeconds"], 5);
}

#[test]
fn a_name_follows_from_the_template_and_the_collisions_and_is_never_too_long() {
    let (one, two) = (spec(&json!({})).template, spec(&json!({"template": template("web:2")})).template);
    assert_eq!(sets::hash(&one, 0), sets::hash(&one, 0));
    assert_ne!(sets::hash(&one, 0), sets::hash(&two, 0));
    assert_ne!(sets::hash(&one, 0), sets::hash(&one, 1));
    assert_ne!(sets::hash(&one, 1), sets::hash(&one, 2));
    assert_eq!(sets::name("web", "abc"), "web-abc");
    assert_eq!(sets::name(&"w".repeat(253), "0123456789").len(), 253);
}

#[test]
fn a_name_of_somebody_else_is_given_up_but_not_that_of_a_predecessor() {
    let owned = |kind: &str, name: &str| {
        let owner =
            json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "0", "controller": true});
        replica_set("a", "web:1", &json!({"metadata": {"ownerReferences": [owner]}}))
    };
    let deployment = deployment(&json!({}));
    let way = |other: Option<&ReplicaSet>| way(&deployment, other);
    assert_eq!(way(None), Way::Clear);
    assert_eq!(way(Some(&replica_set("a", "web:1", &json!({})))), Way::Taken);
    assert_eq!(way(Some(&owned("Deployment", "shop"))), Way::Taken);
    assert_eq!(way(Some(&owned("Robot", "web"))), Way::Taken);
    assert_eq!(way(Some(&owned("Deployment", "web"))), Way::Blocked);
    let going = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}});
    assert_eq!(way(Some(&replica_set("a", "web:1", &going))), Way::Blocked);
}

#[test]
fn sets_beyond_the_limit_are_forgotten_unless_they_have_pods() {
    let old = |name: &str, revision: i32, changes: &Value| {
        let mut set = replica_set(name, name, changes);
        set.annotations_mut().insert(annotations::REVISION.into(), revision.to_string());
        set
    };
    let idle = json!({});
    let all = vec![
        old("a", 4, &idle),
        old("b", 10, &idle),
        old("c", 2, &idle),
        old("d", 1, &json!({"spec": {"replicas": 1}})),
        old("e", 3, &json!({"metadata": {"generation": 2}})),
    ];
    let revisions = Revisions { new: None, old: all };
    assert_eq!(revisions.forgotten(Some(2)), ["c"]);
    assert_eq!(revisions.forgotten(Some(0)), ["c", "a", "b"]);
    assert!(revisions.forgotten(Some(9)).is_empty());
    assert!(revisions.forgotten(None).is_empty());
    assert!(revisions.forgotten(Some(i32::MAX)).is_empty());
    assert_eq!(revisions.highest_old(), 10);
}

fn annotated(pairs: &[(&str, &str)]) -> Annotations {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_new_set_has_the_highest_revision_and_remembers_those_it_had() {
    const REVISION: &str = "deployment.kubernetes.io/revision";
    const HISTORY: &str = "deployment.kubernetes.io/revision-history";
    let none = Annotations::new();
    let first = annotations::of_new(none.clone(), &none, 0);
    assert_eq!(first, annotated(&[(REVISION, "1")]));
    let again = annotations::of_new(first.clone(), &none, 0);
    assert_eq!(again, first);
    let back = annotations::of_new(first, &none, 4);
    assert_eq!(back, annotated(&[(REVISION, "5"), (HISTORY, "1")]));
    let back = annotations::of_new(back, &none, 7);
    assert_eq!(back, annotated(&[(REVISION, "8"), (HISTORY, "1,5")]));
    let strange = annotated(&[(REVISION, "latest")]);
    assert_eq!(annotations::of_new(strange.clone(), &none, 3), strange);
    let long = annotated(&[(REVISION, "9000"), (HISTORY, &vec!["1234"; 400].join(","))]);
    let history = &annotations::of_new(long, &none, 9000)[HISTORY];
    assert!(history.len() <= 2000 && history.ends_with(",9000"), "{history}");
}

#[test]
fn a_deployments_annotations_are_copied_but_for_those_that_are_about_itself() {
    let deployment = annotated(&[
        ("kubernetes.io/change-cause", "a new image"),
        ("kubectl.kubernetes.io/last-applied-configuration", "{}"),
        ("deployment.kubernetes.io/revision", "7"),
        ("mainstay.dev/applied", "abc"),
    ]);
    let set = annotations::of_new(annotated(&[("kept", "yes")]), &deployment, 0);
    let expected = [
        ("kept", "yes"),
        ("kubernetes.io/change-cause", "a new image"),
        ("deployment.kubernetes.io/revision", "1"),
    ];
    assert_eq!(set, annotated(&expected));
}
