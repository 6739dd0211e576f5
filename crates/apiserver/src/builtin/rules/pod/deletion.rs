//! How long a pod may take to end.

use super::super::json::{int, text};
use serde_json::Value;

/// The grace period of a deletion: what the request asks for, else what the pod asks for. Pods that no
/// kubelet has, or that ended already, go at once.
pub(crate) fn grace_period_seconds(pod: &Value, requested: Option<i64>) -> i64 {
    let nothing = Value::Null;
    let (spec, status) = (pod.get("spec").unwrap_or(&nothing), pod.get("status").unwrap_or(&nothing));
    let unscheduled = text(spec, "nodeName").is_empty();
    if unscheduled || matches!(text(status, "phase"), "Failed" | "Succeeded") {
        return 0;
    }
    let period = requested.or_else(|| int(spec, "terminationGracePeriodSeconds")).unwrap_or(0);
    // Negative periods are from before they were refused; they mean the shortest there is.
    if period < 0 { 1 } else { period }
}

#[cfg(test)]
mod tests {
    use super::grace_period_seconds;
    use serde_json::json;

    #[test]
    fn only_running_pods_have_time_to_end() {
        let pod = |node: &str, phase: &str, seconds: i64| json!({"spec": {"nodeName": node, "terminationGracePeriodSeconds": seconds}, "status": {"phase": phase}});
        assert_eq!(grace_period_seconds(&pod("n", "Running", 30), None), 30);
        assert_eq!(grace_period_seconds(&pod("n", "Running", 30), Some(5)), 5);
        assert_eq!(grace_period_seconds(&pod("n", "Running", -7), None), 1);
        assert_eq!(grace_period_seconds(&pod("", "Pending", 30), Some(5)), 0);
        assert_eq!(grace_period_seconds(&pod("n", "Succeeded", 30), None), 0);
    }
}
