//! `pods/eviction`: whether disruption budgets let a pod go.

use super::super::Env;
use super::super::json::{ensure_object, generation, int, list, put, set, text};
use super::super::workloads::selects;
use super::conditions::{is_true, set_condition, time};
use crate::status::{ApiError, Subject};
use serde_json::{Map, Value, json};

/// More evictions than this are not remembered at a time.
const DISRUPTED_PODS_MAX: usize = 2000;
const WOULD_VIOLATE: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// What to do with an eviction.
#[derive(Debug, PartialEq)]
pub(crate) enum Eviction {
    /// Delete the pod. `if_unchanged` says that this is only right for the pod as it was looked at, so the
    /// deletion must be conditional on its resource version.
    Delete {
        /// Whether the pod must still be as it was.
        if_unchanged: bool,
    },
    /// Store the status of this budget, which has paid for the eviction; then delete the pod. On a conflict,
    /// decide again.
    Pay(Value),
}

/// Decides an eviction. `budgets` are those of the pod's namespace.
pub(crate) fn decide(pod: &Value, budgets: &[Value], env: &Env<'_>) -> Result<Eviction, ApiError> {
    let nothing = Value::Null;
    let meta = pod.get("metadata").unwrap_or(&nothing);
    let phase = pod.get("status").map_or("", |s| text(s, "phase"));
    let ended = matches!(phase, "Succeeded" | "Failed") || set(meta, "deletionTimestamp").is_some();
    if ended || phase == "Pending" {
        return Ok(Eviction::Delete { if_unchanged: !ended });
    }
    let labels = meta.get("labels");
    let mut guarding = budgets.iter().filter(|b| selects(b.pointer("/spec/selector"), labels) == Some(true));
    let Some(budget) = guarding.next() else { return Ok(Eviction::Delete { if_unchanged: false }) };
    if guarding.next().is_some() {
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not \
                   support.";
        return Err(ApiError::plain(500, "", why));
    }
    let status = budget.get("status").unwrap_or(&nothing);
    let healthy = |field: &str| int(status, field).unwrap_or(0);
    if !is_true(pod, "Ready") {
        let always =
            budget.get("spec").is_some_and(|s| text(s, "unhealthyPodEvictionPolicy") == "AlwaysAllow");
        let desired = healthy("desiredHealthy");
        if always || (healthy("currentHealthy") >= desired && desired > 0) {
            return Ok(Eviction::Delete { if_unchanged: true });
        }
    }
    refuse_unless_allowed(budget, status)?;
    Ok(Eviction::Pay(charged(budget, text(meta, "name"), env)))
}

/// Marks a pod that is about to be deleted for an eviction.
pub(crate) fn mark_evicted(pod: &mut Value, env: &Env<'_>) {
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": null,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    });
    set_condition(pod, condition, env.now);
}

/// The refusal when the pod changed while it was being evicted.
pub(crate) fn too_many_requests(budget: &str) -> ApiError {
    let why = format!("The disruption budget {budget} is still being processed by the server.");
    refusal(&why, Some(10))
}

fn refusal(why: &str, retry_after_seconds: Option<i64>) -> ApiError {
    let mut details = Map::new();
    details.insert("causes".into(), json!([{"reason": "DisruptionBudget", "message": why}]));
    if let Some(seconds) = retry_after_seconds {
        details.insert("retryAfterSeconds".into(), seconds.into());
    }
    let mut error = ApiError::plain(429, "TooManyRequests", WOULD_VIOLATE);
    error.details = Some(Box::new(details));
    error
}

fn refuse_unless_allowed(budget: &Value, status: &Value) -> Result<(), ApiError> {
    let name = budget.get("metadata").map_or("", |m| text(m, "name"));
    let of = |field: &str| int(status, field).unwrap_or(0);
    if of("observedGeneration") < generation(budget) {
        return Err(too_many_requests(name));
    }
    let subject = Subject { group: "policy", kind: "poddisruptionbudget" };
    let allowed = of("disruptionsAllowed");
    if allowed < 0 {
        return Err(ApiError::forbidden(&subject, name, "pdb disruptions allowed is negative"));
    }
    if status.get("disruptedPods").and_then(Value::as_object).is_some_and(|p| p.len() > DISRUPTED_PODS_MAX) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden(&subject, name, why));
    }
    if allowed > 0 {
        return Ok(());
    }
    let conditions = list(status, "conditions");
    let condition = conditions
        .iter()
        .find(|c| text(c, "type") == "DisruptionAllowed")
        .filter(|c| text(c, "status") == "False" && !text(c, "message").is_empty());
    let (current, desired) = (of("currentHealthy"), of("desiredHealthy"));
    let why = match condition {
        Some(condition) if text(condition, "reason") == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            text(condition, "message")
        ),
        _ if current <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
        }
        Some(condition) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            text(condition, "reason"),
            text(condition, "message")
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    };
    Err(refusal(&why, None))
}

/// The budget after it has paid for the eviction of this pod.
fn charged(budget: &Value, pod: &str, env: &Env<'_>) -> Value {
    let mut budget = budget.clone();
    let observed = budget.pointer("/status/observedGeneration").cloned();
    let Some(status) = ensure_object(&mut budget, "status") else { return budget };
    let left = int(status, "disruptionsAllowed").unwrap_or(0) - 1;
    put(status, "disruptionsAllowed", left);
    if left == 0 {
        let mut condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""});
        if let Some(observed) = observed {
            put(&mut condition, "observedGeneration", observed);
        }
        set_condition(&mut budget, condition, env.now);
    }
    if !env.dry_run
        && let Some(pods) =
            ensure_object(&mut budget, "status").and_then(|s| ensure_object(s, "disruptedPods"))
    {
        put(pods, pod, time(env.now));
    }
    budget
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> Env<'static> {
        Env { now: jiff::Timestamp::UNIX_EPOCH, uid: &String::new, dry_run: false }
    }

    fn pod(phase: &str, ready: &str) -> Value {
        json!({
            "metadata": {"name": "p", "labels": {"a": "b"}},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
        })
    }

    fn budget(allowed: i64, current: i64, desired: i64) -> Value {
        json!({
            "metadata": {"name": "pd", "generation": 1},
            "spec": {"selector": {"matchLabels": {"a": "b"}}},
            "status": {
                "observedGeneration": 1,
                "disruptionsAllowed": allowed,
                "currentHealthy": current,
                "desiredHealthy": desired,
            },
        })
    }

    #[test]
    fn pods_that_do_not_run_need_no_budget() {
        let none = [budget(0, 1, 1)];
        let decided = |phase| decide(&pod(phase, "True"), &none, &env()).unwrap();
        assert_eq!(decided("Pending"), Eviction::Delete { if_unchanged: true });
        assert_eq!(decided("Failed"), Eviction::Delete { if_unchanged: false });
    }

    #[test]
    fn an_unready_pod_goes_while_enough_others_are_healthy() {
        let decided = |budget| decide(&pod("Running", "False"), &[budget], &env());
        assert_eq!(decided(budget(0, 2, 2)), Ok(Eviction::Delete { if_unchanged: true }));
        assert_eq!(decided(budget(0, 1, 2)).unwrap_err().code, 429);
    }

    #[test]
    fn a_ready_pod_is_paid_for() {
        let Eviction::Pay(paid) = decide(&pod("Running", "True"), &[budget(1, 2, 1)], &env()).unwrap() else {
            panic!("not paid")
        };
        assert_eq!(paid["status"]["disruptionsAllowed"], 0);
        assert_eq!(paid["status"]["disruptedPods"]["p"], "1970-01-01T00:00:00Z");
        assert_eq!(paid["status"]["conditions"][0]["reason"], "InsufficientPods");
    }

    #[test]
    fn a_budget_that_is_used_up_refuses() {
        let error = decide(&pod("Running", "True"), &[budget(0, 1, 1)], &env()).unwrap_err();
        let status = error.to_status();
        assert_eq!(status["code"], 429);
        assert_eq!(
            status["details"]["causes"][0]["message"],
            "The disruption budget pd needs 1 healthy pods and has 1 currently"
        );
        let two = [budget(1, 2, 1), budget(1, 2, 1)];
        assert_eq!(decide(&pod("Running", "True"), &two, &env()).unwrap_err().code, 500);
    }
}
