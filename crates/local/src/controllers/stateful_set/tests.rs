use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSetSpec;
use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use super::decide::{Act, Member, State, Update, Wish, decide};
use super::status::{Course, status};
use super::{pod, wish};

const ROLLING: Update = Update::Rolling { partition: 0, max_unavailable: None };

/// One letter per pod from ordinal 0: `a`vailable, `u`navailable, `e`nded, `g`oing, `b`locked, `.` none; capital: has the new
/// template.
fn members(text: &str) -> BTreeMap<i32, Member> {
    let state = |letter: char| match letter.to_ascii_lowercase() {
        'a' => State::Available,
        'u' => State::Unavailable,
        'e' => State::Ended,
        'g' => State::Going,
        _ => State::Blocked,
    };
    let member =
        |letter: char| Member { state: state(letter), is_updated: letter.is_uppercase(), is_labelled: true };
    let numbered = (0..).zip(text.chars());
    numbered.filter(|(_, letter)| *letter != '.').map(|(ordinal, letter)| (ordinal, member(letter))).collect()
}

/// `+` makes, `-` deletes, `=` labels.
fn told(acts: &[Act]) -> String {
    let told = acts.iter().map(|act| match act {
        Act::Make(ordinal) => format!("+{ordinal}"),
        Act::Delete(ordinal) => format!("-{ordinal}"),
        Act::Label(ordinal) => format!("={ordinal}"),
    });
    told.collect::<Vec<_>>().join(" ")
}

fn ordered(replicas: i32, update: Update) -> Wish {
    Wish { start: 0, replicas, ordered: true, update, room: 500 }
}

fn parallel(replicas: i32, update: Update) -> Wish {
    Wish { ordered: false, ..ordered(replicas, update) }
}

#[track_caller]
fn check(wish: &Wish, pods: &str, expected: &str) {
    assert_eq!(told(&decide(wish, &members(pods))), expected, "{pods} for {wish:?}");
}

#[test]
fn an_ordered_set_makes_one_pod_at_a_time() {
    let wish = ordered(3, ROLLING);
    check(&wish, "", "+0");
    check(&wish, "U", "");
    check(&wish, "A", "+1");
    check(&wish, "AA", "+2");
    check(&wish, "AAA", "");
}

#[test]
fn an_ordered_set_waits_for_a_pod_that_never_becomes_ready() {
    check(&ordered(3, ROLLING), "aUa", "");
    check(&ordered(1, ROLLING), "Uaa", "");
    check(&ordered(2, ROLLING), "a.a", "+1");
    check(&ordered(2, ROLLING), "aga", "");
    check(&ordered(2, ROLLING), "aba", "");
}

#[test]
fn a_parallel_set_makes_and_deletes_all_at_once() {
    check(&parallel(3, ROLLING), "", "+0 +1 +2");
    check(&parallel(3, ROLLING), ".U.", "+0 +2");
    check(&parallel(1, ROLLING), "AUAA", "-3 -2 -1");
    check(&parallel(3, ROLLING), "bg", "+2");
}

#[test]
fn a_set_shrinks_from_the_top_one_by_one() {
    let wish = ordered(1, ROLLING);
    check(&wish, "AAA", "-2");
    check(&wish, "AAG", "");
    check(&wish, "AA", "-1");
}

#[test]
fn of_those_beyond_a_set_only_the_lowest_that_ails_goes_before_it_is_well() {
    let wish = ordered(1, ROLLING);
    check(&wish, "AAU", "-2");
    check(&wish, "AUU", "");
    check(&wish, "AUA", "-2");
    check(&wish, "AU", "-1");
}

#[test]
fn two_ailing_pods_beyond_a_set_stay_until_the_upper_is_well_or_deleted() {
    check(&ordered(0, ROLLING), "EE", "");
    check(&ordered(0, ROLLING), "E", "-0");
}

#[test]
fn a_pod_that_ended_is_replaced() {
    check(&ordered(2, ROLLING), "EA", "-0");
    check(&ordered(2, ROLLING), "gA", "");
    check(&parallel(3, ROLLING), "EAE", "-0 -2");
}

#[test]
fn a_set_begins_at_its_first_ordinal() {
    let wish = Wish { start: 2, ..ordered(2, ROLLING) };
    check(&wish, "", "+2");
    check(&wish, "..A", "+3");
    check(&wish, "AAAA", "-1");
    check(&Wish { start: 1, ..parallel(2, ROLLING) }, "A.A", "+1 -0");
}

#[test]
fn an_update_goes_from_the_top_and_waits_for_each() {
    let wish = ordered(3, ROLLING);
    check(&wish, "aaa", "-2");
    check(&wish, "aag", "");
    check(&wish, "aa", "+2");
    check(&wish, "aaU", "");
    check(&wish, "aaA", "-1");
    check(&wish, "aAA", "-0");
    check(&wish, "AAA", "");
}

#[test]
fn an_update_goes_no_further_than_its_partition() {
    let to = |partition| ordered(3, Update::Rolling { partition, max_unavailable: None });
    check(&to(2), "aaa", "-2");
    check(&to(2), "aaA", "");
    check(&to(3), "aaa", "");
    check(&to(9), "aaa", "");
    check(&Wish { start: 1, ..to(1) }, ".aaA", "-2");
    check(&Wish { start: 1, ..to(1) }, ".aAA", "");
}

#[test]
fn an_update_in_a_parallel_set_waits_only_for_those_above() {
    let wish = parallel(3, ROLLING);
    check(&wish, "uaa", "-2");
    check(&wish, "uaU", "");
    check(&wish, "uuA", "-1");
    check(&wish, "aa", "+2");
}

#[test]
fn an_update_with_a_maximum_takes_so_many_at_once() {
    let wish = |replicas| parallel(replicas, Update::Rolling { partition: 0, max_unavailable: Some(2) });
    check(&wish(4), "aaaa", "-3 -2");
    check(&wish(4), "aaag", "-2");
    check(&wish(4), "aaUG", "");
    check(&wish(4), "uaaA", "-2");
    check(&wish(4), "uuaA", "");
}

#[test]
fn without_rolling_only_what_is_deleted_is_updated() {
    check(&ordered(3, Update::OnDelete), "aaa", "");
    check(&ordered(3, Update::OnDelete), "a.a", "+1");
}

#[test]
fn a_pod_without_its_labels_gets_them_once_those_before_it_are_well() {
    let mut pods = members("AA");
    pods.get_mut(&1).unwrap().is_labelled = false;
    assert_eq!(told(&decide(&ordered(2, ROLLING), &pods)), "=1");
    pods.get_mut(&0).unwrap().state = State::Unavailable;
    assert_eq!(told(&decide(&ordered(2, ROLLING), &pods)), "");
    assert_eq!(told(&decide(&parallel(2, ROLLING), &pods)), "=1");
}

/// The world obeys at once: what is made is available and new, what is deleted is gone.
fn obey(acts: &[Act], pods: &mut BTreeMap<i32, Member>) {
    for act in acts {
        match act {
            Act::Make(ordinal) => {
                let member = Member { state: State::Available, is_updated: true, is_labelled: true };
                pods.insert(*ordinal, member);
            }
            Act::Delete(ordinal) => {
                pods.remove(ordinal);
            }
            Act::Label(ordinal) => {
                if let Some(pod) = pods.get_mut(ordinal) {
                    pod.is_labelled = true;
                }
            }
        }
    }
}

#[test]
fn a_set_makes_no_more_than_there_is_room_for_however_many_it_asks_for() {
    let full = Update::Rolling { partition: 0, max_unavailable: Some(i32::MAX) };
    for update in [ROLLING, full, Update::OnDelete] {
        for start in [0, 7, i32::MAX - 10, i32::MAX] {
            let wish = Wish { start, room: 2, ..parallel(i32::MAX, update) };
            let there = decide(&wish, &BTreeMap::new());
            assert_eq!(there.len(), wish.ordinals().len().min(2), "{wish:?}");
            let wish = Wish { room: 0, ..wish };
            assert_eq!(
                decide(&wish, &members("aau.e")).iter().filter(|act| matches!(act, Act::Make(_))).count(),
                0
            );
            let wish = Wish { start, ..ordered(i32::MAX, update) };
            assert!(decide(&wish, &BTreeMap::new()).len() <= 1);
        }
    }
    // What is there is still seen to.
    check(&Wish { room: 1, ..parallel(i32::MAX, ROLLING) }, "Ae.U", "-1 +2");
}

proptest! {
    #[test]
    fn in_a_willing_world_every_set_gets_what_it_asks_for(
        start in prop_oneof![0..3, (i32::MAX - 6)..=i32::MAX], replicas in prop_oneof![0..5, Just(-1), Just(i32::MIN)], ordered: bool,
        partition in prop_oneof![0..6, Just(i32::MAX)],
        most in prop::option::of(prop_oneof![1..4, Just(i32::MAX)]), before in "[aA.]{0,8}",
    ) {
        let update = Update::Rolling { partition, max_unavailable: most };
        let wish = Wish { start, replicas, ordered, update, room: 500 };
        let mut pods = members(&before);
        let mut rounds = 0;
        loop {
            let acts = decide(&wish, &pods);
            if acts.is_empty() {
                break;
            }
            if ordered && most.is_none() {
                prop_assert!(acts.len() <= 1);
            }
            obey(&acts, &mut pods);
            rounds += 1;
            prop_assert!(rounds < 50, "it never ends");
        }
        prop_assert!(pods.keys().copied().eq(wish.ordinals()));
        prop_assert!(pods.values().all(|pod| pod.state == State::Available));
        let is_updated = |(ordinal, pod): (&i32, &Member)| *ordinal < start.saturating_add(partition) || pod.is_updated;
        prop_assert!(pods.iter().all(is_updated));
    }

    #[test]
    fn nothing_is_made_where_something_is_nor_deleted_where_nothing_is(
        start in prop_oneof![0..3, Just(i32::MIN), Just(i32::MAX)],
        replicas in prop_oneof![0..5, Just(i32::MIN), Just(i32::MAX)],
        partition in prop_oneof![0..6, Just(i32::MIN), Just(i32::MAX)],
        most in prop::option::of(prop_oneof![0..4, Just(i32::MIN), Just(i32::MAX)]),
        ordered: bool, before in "[aAuUeEgG.]{0,8}",
    ) {
        let update = Update::Rolling { partition, max_unavailable: most };
        let (wish, pods) = (Wish { start, replicas, ordered, update, room: 500 }, members(&before));
        for act in decide(&wish, &pods) {
            match act {
                Act::Make(ordinal) => prop_assert!(!pods.contains_key(&ordinal)),
                Act::Delete(ordinal) | Act::Label(ordinal) => {
                    prop_assert!(!matches!(pods[&ordinal].state, State::Going));
                }
            }
        }
    }
}

fn spec(extra: &Value) -> StatefulSetSpec {
    let mut spec = json!({
        "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": []}},
    });
    spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    from_value(spec).unwrap()
}

#[test]
fn a_spec_that_says_little_means_the_usual() {
    assert_eq!(wish(&spec(&json!({}))), ordered(1, ROLLING));
    let most = |most: Value| {
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}});
        wish(&spec(&json!({"replicas": 10, "updateStrategy": strategy}))).update
    };
    let at_most = |count| Update::Rolling { partition: 0, max_unavailable: Some(count) };
    assert_eq!(most(json!(3)), at_most(3));
    assert_eq!(most(json!("25%")), at_most(2));
    assert_eq!(most(json!("1%")), at_most(1));
    assert_eq!(wish(&spec(&json!({"updateStrategy": {"type": "OnDelete"}}))).update, Update::OnDelete);
    assert_eq!(wish(&spec(&json!({"ordinals": {"start": 5}}))).ordinals(), 5..6);
}

#[test]
fn only_names_of_the_set_with_a_number_have_an_ordinal() {
    let cases = [("db-0", Some(0)), ("db-12", Some(12)), ("db-01", None), ("db-x", None), ("db", None)];
    for (name, ordinal) in cases {
        assert_eq!(pod::ordinal("db", name), ordinal, "{name}");
    }
    assert_eq!(pod::ordinal("db", "db-1-0"), None);
    assert_eq!(pod::ordinal("db", "web-0"), None);
    assert_eq!(pod::ordinal("db", "db--1"), None);
}

#[test]
fn a_pod_has_its_name_its_claims_and_its_labels() {
    let claim = json!({
        "metadata": {"name": "data", "labels": {"tier": "gold", "app": "other"}},
        "spec": {"accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Pending"},
    });
    let volumes = json!([{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]);
    let template = json!({
        "metadata": {"labels": {"app": "db"}, "annotations": {"note": "x"}},
        "spec": {"containers": [], "volumes": volumes},
    });
    let spec = spec(&json!({"volumeClaimTemplates": [claim], "template": template}));
    let pod = pod::new_pod("db", &spec, &spec.template, "db-abc", 3);
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "db-3", "generateName": "db-", "annotations": {"note": "x"},
            "labels": {
                "app": "db", "controller-revision-hash": "db-abc",
                "statefulset.kubernetes.io/pod-name": "db-3", "apps.kubernetes.io/pod-index": "3",
            },
        },
        "spec": {
            "containers": [], "hostname": "db-3", "subdomain": "db",
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-3"}},
                {"name": "tmp", "emptyDir": {}},
            ],
        },
    });
    assert_eq!(json!(pod), expected);
    let claims = json!(pod::claims("db", "u", &spec, 3));
    let metadata = json!({"name": "data-db-3", "labels": {"tier": "gold", "app": "db"}});
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
        "spec": {"accessModes": ["ReadWriteOnce"]},
    });
    assert_eq!(claims, json!([claim]));
}

#[test]
fn a_claim_belongs_to_its_set_only_if_it_is_to_go_with_it() {
    let owned = |policy: &Value| {
        let claim = json!({"metadata": {"name": "data"}, "spec": {}});
        let extra = json!({"volumeClaimTemplates": [claim], "persistentVolumeClaimRetentionPolicy": policy});
        let claims = pod::claims("db", "u", &spec(&extra), 0);
        claims[0].metadata.owner_references.clone()
    };
    assert_eq!(owned(&json!({"whenDeleted": "Retain", "whenScaled": "Delete"})), None);
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u",
        "controller": true, "blockOwnerDeletion": true,
    }]);
    assert_eq!(json!(owned(&json!({"whenDeleted": "Delete"}))), owner);
}

#[test]
fn a_pod_is_labelled_as_it_is() {
    let pod: Pod = from_value(json!({
        "metadata": {
            "name": "db-1", "labels": {"app": "db"}, "annotations": {"mainstay.dev/applied": "x", "a": "b"},
        },
        "spec": {"containers": [], "nodeName": "one"}, "status": {"phase": "Running"},
    }))
    .unwrap();
    assert!(!pod::is_labelled(&pod));
    let labelled = pod::labelled(&pod, 1);
    let again: Pod = from_value(labelled.clone()).unwrap();
    assert!(pod::is_labelled(&again));
    assert_eq!(labelled["metadata"]["labels"]["app"], "db");
    assert_eq!(labelled["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(labelled["spec"]["nodeName"], "one");
    assert!(labelled.get("status").is_none());
}

fn live(revision: &str, ready_for: Option<i64>, going: bool) -> Pod {
    let since = format!("1970-01-01T00:00:{:02}Z", 30 - ready_for.unwrap_or(0));
    let condition = json!({
        "type": "Ready", "status": if ready_for.is_some() { "True" } else { "False" }, "lastTransitionTime": since,
    });
    let deleted = going.then_some("1970-01-01T00:00:30Z");
    from_value(json!({
        "metadata": {"name": "x", "labels": {"controller-revision-hash": revision}, "deletionTimestamp": deleted},
        "status": {"phase": "Running", "conditions": [condition]},
    }))
    .unwrap()
}

#[test]
fn a_status_counts_pods_by_revision_and_readiness() {
    let course = Course {
        current: "old",
        update: "new",
        replicas: 4,
        strategy: ROLLING,
        min_ready_seconds: Some(10),
        collisions: 0,
        now: "1970-01-01T00:00:30Z".parse().unwrap(),
    };
    let pods = [
        live("old", Some(20), false),
        live("old", None, false),
        live("new", Some(5), false),
        live("old", Some(20), true),
    ];
    let expected = json!({
        "replicas": 4, "readyReplicas": 3, "availableReplicas": 2, "currentReplicas": 2, "updatedReplicas": 1,
        "currentRevision": "old", "updateRevision": "new", "collisionCount": 0,
    });
    assert_eq!(json!(status(course, &pods)), expected);

    let all = [(); 4].map(|()| live("new", Some(20), false));
    let done = json!(status(course, &all));
    assert_eq!((&done["currentRevision"], &done["currentReplicas"]), (&json!("new"), &json!(4)));
    let by_hand = json!(status(Course { strategy: Update::OnDelete, ..course }, &all));
    assert_eq!((&by_hand["currentRevision"], by_hand.get("currentReplicas")), (&json!("old"), None));
    let none = json!(status(course, &[]));
    assert_eq!((&none["availableReplicas"], none.get("readyReplicas")), (&json!(0), None));
}
