use proptest::prelude::*;
use serde_json::json;

use super::*;

const LATER: &str = "2030-01-01T12:00:00.75Z";

fn now() -> Timestamp {
    LATER.parse().unwrap()
}

fn status() -> Value {
    json!({"phase": "Up", "conditions": [
        // Of another writer, with a time and a field of its own making.
        {"type": "Scaled", "status": "True", "lastUpdateTime": "x", "reason": "Enough", "message": "",
         "lastTransitionTime": "2030-01-01T11:00:00.000+00:00"},
        {"type": "Old", "status": "True"},
        {"type": "Ready", "status": "False", "reason": "Starting", "message": "1 of 2", "observedGeneration": 3,
         "lastTransitionTime": "2030-01-01T11:00:00Z"},
    ]})
}

fn written(conditions: &Conditions) -> Value {
    serde_json::to_value(conditions).unwrap()
}

#[test]
fn what_is_set_to_what_it_is_stays_byte_for_byte() {
    let status = status();
    let mut conditions = Conditions::of_status(&status);
    assert_eq!(conditions.set("Ready", State::False, "Starting", "1 of 2", Some(3), now()), Ok(false));
    assert_eq!(conditions.set("Scaled", State::True, "Enough", "", None, now()), Ok(false));
    assert_eq!(written(&conditions).to_string(), status["conditions"].to_string());
}

#[test]
fn the_time_moves_only_with_the_status() {
    let mut conditions = Conditions::of_status(&status());
    assert_eq!(conditions.set("Ready", State::False, "Waiting", "for a volume", Some(4), now()), Ok(true));
    assert_eq!(
        written(&conditions)[2],
        json!({"type": "Ready", "status": "False", "reason": "Waiting", "message": "for a volume",
               "observedGeneration": 4, "lastTransitionTime": "2030-01-01T11:00:00Z"})
    );
    assert_eq!(conditions.set("Ready", State::True, "AllReady", "", Some(4), now()), Ok(true));
    assert_eq!(written(&conditions)[2]["lastTransitionTime"], "2030-01-01T12:00:00Z");
    assert_eq!(
        conditions.get("Ready").unwrap().last_transition_time.0,
        "2030-01-01T12:00:00Z".parse().unwrap()
    );
}

#[test]
fn order_is_kept_and_a_new_condition_comes_last() {
    let mut conditions = Conditions::of_status(&status());
    conditions.set("Looping", State::False, "Stable", "", None, now()).unwrap();
    conditions.set("Scaled", State::False, "TooFew", "", None, now()).unwrap();
    let written = written(&conditions);
    let types: Vec<_> =
        written.as_array().unwrap().iter().map(|found| found["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["Scaled", "Old", "Ready", "Looping"]);
}

#[test]
fn a_condition_in_another_shape_is_kept_until_it_is_set() {
    let mut conditions = Conditions::of_status(&status());
    assert_eq!(conditions.get("Old"), None);
    conditions.set("Old", State::True, "Seen", "", None, now()).unwrap();
    assert!(conditions.is_true("Old"));
    assert_eq!(written(&conditions)[1]["lastTransitionTime"], "2030-01-01T12:00:00Z");
}

#[test]
fn removal_tells_whether_there_was_one() {
    let mut conditions = Conditions::of_status(&status());
    assert!(conditions.remove("Old") && conditions.remove("Ready") && !conditions.remove("Ready"));
    assert_eq!(conditions.iter().map(|condition| condition.type_.as_str()).collect::<Vec<_>>(), ["Scaled"]);
}

#[test]
fn no_status_has_no_conditions() {
    for status in [Value::Null, json!({}), json!({"conditions": null}), json!({"conditions": "none"})] {
        assert_eq!(Conditions::of_status(&status), Conditions::new());
    }
}

#[test]
fn what_the_api_server_would_refuse_is_refused_with_its_name() {
    let mut conditions = Conditions::new();
    let mut set = |type_: &str, reason: &str| {
        conditions.set(type_, State::True, reason, "", None, now()).map_err(|error| error.to_string())
    };
    for type_ in ["Ready", "example.com/Ready", "a-b.example.com/Pod_Ready.v1"] {
        assert_eq!(set(type_, "AsWanted"), Ok(true));
    }
    for type_ in ["", "Is ready", "/Ready", "Example.com/Ready", "a/b/C", "Ready-", "ex..com/Ready"] {
        let said =
            format!("cannot set condition {type_:?}: a type is a word such as Ready, or example.com/Ready");
        assert_eq!(set(type_, "AsWanted"), Err(said));
    }
    for reason in ["a", "Image_Pulled", "Quota:exceeded", "A,B"] {
        set("Ready", reason).unwrap();
    }
    for reason in ["", "not ready", "1st", "Done.", "Done:", "É", "A\n", &"A".repeat(1025)] {
        let said = format!("cannot set condition Ready: the reason {reason:?} is not one CamelCase word");
        assert_eq!(set("Ready", reason), Err(said));
    }
}

#[test]
fn a_long_message_is_cut_between_characters_and_then_stays() {
    let mut conditions = Conditions::new();
    let long = "é".repeat(MESSAGE_CHARS_MAX + 1);
    assert_eq!(conditions.set("Ready", State::Unknown, "Long", &long, None, now()), Ok(true));
    assert_eq!(conditions.get("Ready").unwrap().message.chars().count(), MESSAGE_CHARS_MAX);
    assert_eq!(conditions.set("Ready", State::Unknown, "Long", &long, None, now()), Ok(false));
}

#[test]
fn typed_conditions_go_in_and_come_out() {
    let mut conditions = Conditions::new();
    conditions.set("Ready", true.into(), "AllReady", "", Some(1), now()).unwrap();
    let typed: Vec<Condition> = conditions.clone().into();
    assert_eq!(Conditions::from(typed), conditions);
}

proptest! {
    /// Whatever is set in whatever order, setting it once more changes nothing, and every time is that of the last
    /// change of status.
    #[test]
    fn setting_twice_is_setting_once(
        steps in proptest::collection::vec((0..3_usize, any::<bool>(), "[A-Z][a-z]{0,3}", any::<Option<i64>>()), 0..12)
    ) {
        let mut conditions = Conditions::new();
        let mut last: [Option<(bool, Timestamp)>; 3] = [None; 3];
        for (step, (which, is_so, reason, generation)) in (0..).zip(&steps) {
            let time = Timestamp::from_second(step).unwrap();
            let type_ = ["A", "B", "C"][*which];
            conditions.set(type_, (*is_so).into(), reason, "", *generation, time).unwrap();
            if last[*which].is_none_or(|(before, _)| before != *is_so) {
                last[*which] = Some((*is_so, time));
            }
            let read = written(&conditions);
            let mut again = Conditions::of_status(&json!({"conditions": read}));
            let changed = again.set(type_, (*is_so).into(), reason, "", *generation, now());
            prop_assert_eq!(changed, Ok(false));
            prop_assert_eq!(written(&again), read);
            prop_assert_eq!(&conditions.get(type_).unwrap().last_transition_time.0, &last[*which].unwrap().1);
        }
    }
}
