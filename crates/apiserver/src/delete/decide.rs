//! What a deletion does to an object, decided from its state and the options alone.

use super::{DeleteOptions, Propagation};
use crate::builtin::rules::json::text_at;
use crate::builtin::rules::objects::crd;
use crate::builtin::rules::pod::deletion::grace_period_seconds;
use crate::kind::Kind;
use crate::server::format_time;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What a deletion does to an object.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// It is on its way out already.
    Nothing,
    /// It becomes this, and waits.
    Mark(Value),
    /// It is marked for good, and goes.
    MarkThenRemove(Value),
    /// It goes; this is its last state.
    Remove(Value),
}

/// Kinds whose dependents stay when a deletion does not say.
pub(super) fn orphans_by_default(kind: &Kind) -> bool {
    kind.kind == "Job" && kind.builtin().is_some()
}

/// Whether the metadata of an object says all that its deletion depends on.
pub(super) fn is_decided_on_metadata(kind: &Kind) -> bool {
    let looks_further = ["Namespace", "Pod", "CustomResourceDefinition"];
    kind.custom().is_some() || !looks_further.contains(&kind.kind.as_str())
}

pub(super) const ORPHANED_PODS: &str = "child pods are preserved by default when jobs are deleted; set \
     propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

pub(super) fn decide(kind: &Kind, mut live: Value, options: &DeleteOptions, now: Timestamp) -> Decision {
    let deleting = live.pointer("/metadata/deletionTimestamp").is_some();
    if kind.builtin().is_some() && kind.kind == "Namespace" {
        return decide_namespace(live, options, deleting, now);
    }
    if kind.kind == "CustomResourceDefinition" && kind.builtin().is_some() && !deleting {
        set_propagation(&mut live, options.propagation);
        bump_generation(&mut live);
        live["metadata"]["deletionTimestamp"] = format_time(now).into();
        crd::begin_deletion(&mut live, &format_time(now));
        return Decision::Mark(live);
    }
    let grace = if kind.builtin().is_some() && kind.kind == "Pod" {
        match pod_grace(&mut live, options, deleting, now) {
            Grace::Pending => return Decision::Nothing,
            Grace::Marked(seconds) => Some(seconds),
            Grace::None => None,
        }
    } else {
        None
    };
    let held = finalizers(&live).iter().any(|f| f == ORPHAN || f == FOREGROUND);
    let orphans = orphans_by_default(kind) && !held;
    set_propagation(&mut live, options.propagation.or(orphans.then_some(Propagation::Orphan)));
    let waits = !finalizers(&live).is_empty();
    match grace {
        Some(seconds) if seconds > 0 || waits => Decision::Mark(live),
        Some(_) => Decision::MarkThenRemove(live),
        None if waits
            && deleting
            && live.pointer("/metadata/deletionGracePeriodSeconds") == Some(&json!(0)) =>
        {
            Decision::Mark(live)
        }
        None if waits => {
            mark(&mut live, now);
            Decision::Mark(live)
        }
        None => Decision::Remove(live),
    }
}

fn decide_namespace(mut live: Value, options: &DeleteOptions, deleting: bool, now: Timestamp) -> Decision {
    if !deleting {
        live["metadata"]["deletionTimestamp"] = format_time(now).into();
        live["status"]["phase"] = "Terminating".into();
        set_propagation(&mut live, options.propagation);
        return Decision::Mark(live);
    }
    let held = live.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty());
    if held || !finalizers(&live).is_empty() { Decision::Nothing } else { Decision::Remove(live) }
}

enum Grace {
    /// Nothing graceful about it.
    None,
    /// A shorter or equal grace period is running.
    Pending,
    /// The object is marked with this many seconds.
    Marked(i64),
}

/// The course of a pod's graceful deletion: only ever shortened once it has begun.
fn pod_grace(live: &mut Value, options: &DeleteOptions, deleting: bool, now: Timestamp) -> Grace {
    let running = live.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    if deleting {
        let Some(running) = running.filter(|seconds| *seconds != 0) else { return Grace::None };
        let Some(mut period) = options.grace_seconds else { return Grace::Pending };
        if period >= running {
            return Grace::Pending;
        }
        let until: Timestamp = text_at(live, "/metadata/deletionTimestamp").parse().unwrap_or(now);
        let mut moved = later(until, period.saturating_sub(running));
        if moved < now {
            moved = now;
            if period != 0 {
                period = 1;
            }
        }
        live["metadata"]["deletionTimestamp"] = format_time(moved).into();
        live["metadata"]["deletionGracePeriodSeconds"] = period.into();
        return Grace::Marked(period);
    }
    let period = grace_period_seconds(live, options.grace_seconds);
    live["metadata"]["deletionTimestamp"] = format_time(later(now, period)).into();
    live["metadata"]["deletionGracePeriodSeconds"] = period.into();
    bump_generation(live);
    Grace::Marked(period)
}

/// The time so many seconds after another. The first and the last time that can be written down are the limits.
fn later(time: Timestamp, seconds: i64) -> Timestamp {
    let limit = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(limit)
}

fn mark(object: &mut Value, now: Timestamp) {
    if object.pointer("/metadata/deletionTimestamp").is_none() {
        bump_generation(object);
        object["metadata"]["deletionTimestamp"] = format_time(now).into();
    }
    object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
}

fn bump_generation(object: &mut Value) {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    if generation > 0 {
        object["metadata"]["generation"] = (generation + 1).into();
    }
}

fn finalizers(object: &Value) -> &[Value] {
    object.pointer("/metadata/finalizers").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Writes a propagation policy down as the finalizer that the garbage collector acts on.
fn set_propagation(object: &mut Value, propagation: Option<Propagation>) {
    let has = |name: &str| finalizers(object).iter().any(|f| f == name);
    let (orphan, foreground) = match propagation {
        Some(policy) => (policy == Propagation::Orphan, policy == Propagation::Foreground),
        None => (has(ORPHAN), has(FOREGROUND)),
    };
    if orphan == has(ORPHAN) && foreground == has(FOREGROUND) {
        return;
    }
    let mut kept: Vec<Value> =
        finalizers(object).iter().filter(|f| *f != ORPHAN && *f != FOREGROUND).cloned().collect();
    kept.extend(orphan.then(|| ORPHAN.into()));
    kept.extend(foreground.then(|| FOREGROUND.into()));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        if kept.is_empty() {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers".into(), kept.into());
        }
    }
}

/// Whether nothing keeps a marked object any longer, so that the write of this state removes it.
pub(crate) fn is_complete(kind: &Kind, object: &Value) -> bool {
    let marked = object.pointer("/metadata/deletionTimestamp").is_some();
    let held_namespace = kind.builtin().is_some()
        && kind.kind == "Namespace"
        && object.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty());
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    marked && finalizers(object).is_empty() && grace == 0 && !held_namespace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn propagation_becomes_a_finalizer_and_replaces_the_other() {
        let mut object = json!({"metadata": {"finalizers": ["a/b", "orphan"]}});
        set_propagation(&mut object, Some(Propagation::Foreground));
        assert_eq!(object["metadata"]["finalizers"], json!(["a/b", "foregroundDeletion"]));
        set_propagation(&mut object, None);
        assert_eq!(object["metadata"]["finalizers"], json!(["a/b", "foregroundDeletion"]));
        set_propagation(&mut object, Some(Propagation::Background));
        assert_eq!(object["metadata"]["finalizers"], json!(["a/b"]));
    }

    proptest::proptest! {
        #[test]
        fn no_grace_period_is_beyond_the_ends_of_time(
            requested in proptest::option::of(seconds()),
            of_spec in seconds(),
            running in proptest::option::of(seconds()),
            until in times(),
            now in times(),
        ) {
            let mut pod = json!({
                "metadata": {"name": "p", "generation": 1},
                "spec": {"nodeName": "n", "terminationGracePeriodSeconds": of_spec},
                "status": {"phase": "Running"},
            });
            if let Some(running) = running {
                pod["metadata"]["deletionGracePeriodSeconds"] = running.into();
                pod["metadata"]["deletionTimestamp"] = format_time(until).into();
            }
            let options = DeleteOptions { grace_seconds: requested, ..DeleteOptions::default() };
            if let Grace::Marked(_) = pod_grace(&mut pod, &options, running.is_some(), now) {
                let marked: Timestamp = text_at(&pod, "/metadata/deletionTimestamp").parse().unwrap();
                proptest::prop_assert!(marked.as_second() >= now.as_second(), "{marked} is before {now}");
            }
        }
    }

    /// All of 64 bits, their ends more often than by chance.
    fn seconds() -> impl proptest::strategy::Strategy<Value = i64> {
        use proptest::prelude::*;
        prop_oneof![0_i64..100, any::<i64>(), proptest::sample::select(vec![i64::MIN, -1, 0, 1, i64::MAX])]
    }

    fn times() -> impl proptest::strategy::Strategy<Value = Timestamp> {
        use proptest::prelude::*;
        let ends = proptest::sample::select(vec![
            "0001-01-01T00:00:00Z".parse().unwrap(),
            Timestamp::UNIX_EPOCH,
            Timestamp::MAX,
        ]);
        prop_oneof![
            ends,
            (-1_000_000_000_i64..10_000_000_000).prop_map(|second| Timestamp::from_second(second).unwrap())
        ]
    }
}
