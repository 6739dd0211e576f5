//! Whether the pods of a Job do their work, and what holds them up.

use serde_json::Value;

use crate::lifecycle::Health;

/// The most characters that are passed on of what a node or the scheduler says: the status of the stream holds them.
const WHY_CHARS_MAX: usize = 160;
/// What a container waits for that comes by itself.
const ON_ITS_WAY: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Whether a Job counts a pod as ready.
pub(super) fn is_ready(job: &Value) -> bool {
    job["status"]["ready"].as_u64().is_some_and(|ready| ready > 0)
}

/// Whether the pods of a Job do their work. The pods are looked at only if the Job counts none as ready.
pub(super) fn health(job: &Value, pods: &[&Value]) -> Health {
    if is_ready(job) {
        return Health::Ready;
    }
    let is_over = |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let live = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null() && !is_over(pod));
    // News of a pod may come before the Job counts it: then nothing holds it up.
    let held_up = live.into_iter().find_map(|pod| held_up(pod));
    let (reason, message) = held_up.unwrap_or_default();
    let is_stuck = !reason.is_empty() && !ON_ITS_WAY.contains(&reason.as_str());
    let why = if message.is_empty() { reason } else { format!("{reason}: {message}") };
    Health::NotYet { why: cut(&why), is_stuck }
}

/// What holds a pod up: the reason and the message of its node or of the scheduler.
fn held_up(pod: &Value) -> Option<(String, String)> {
    let status = &pod["status"];
    let has_ended_well = |step: &&Value| step["state"]["terminated"]["exitCode"] == 0;
    let steps = list(&status["initContainerStatuses"]).filter(|step| !has_ended_well(step));
    let mut containers = steps.chain(list(&status["containerStatuses"]));
    containers.find_map(of_container).or_else(|| {
        let scheduled = list(&status["conditions"]).find(|condition| condition["type"] == "PodScheduled")?;
        (scheduled["status"] == "False").then(|| (text(&scheduled["reason"]), text(&scheduled["message"])))
    })
}

/// A container that ends again and again waits for its next start. Its last end tells more than that.
fn of_container(container: &Value) -> Option<(String, String)> {
    let waiting = &container["state"]["waiting"];
    let reason = Some(text(&waiting["reason"])).filter(|reason| !reason.is_empty())?;
    let message = match container["lastState"]["terminated"]["exitCode"].as_i64() {
        Some(code) => format!("it ended with code {code}"),
        None => text(&waiting["message"]),
    };
    Some((reason, message))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(WHY_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn not_yet(why: &str, is_stuck: bool) -> Health {
        Health::NotYet { why: why.to_owned(), is_stuck }
    }

    #[test]
    fn a_job_is_as_ready_as_its_pods() {
        let none = json!({"status": {"active": 1, "ready": 0}});
        assert_eq!(health(&json!({"status": {"active": 1, "ready": 1}}), &[]), Health::Ready);
        assert_eq!(health(&json!({}), &[]), not_yet("", false));
        let check = |status: Value, expected: Health| {
            let pod = json!({"metadata": {}, "status": status});
            assert_eq!(health(&none, &[&pod]), expected);
        };
        let waiting = |reason: &str, message: &str| json!({"containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]});
        check(waiting("ContainerCreating", ""), not_yet("ContainerCreating", false));
        check(waiting("ErrImagePull", "not found"), not_yet("ErrImagePull: not found", true));
        let mut again = waiting("CrashLoopBackOff", "back-off 10s");
        again["containerStatuses"][0]["lastState"] = json!({"terminated": {"exitCode": 3}});
        check(again.clone(), not_yet("CrashLoopBackOff: it ended with code 3", true));
        again["phase"] = json!("Failed");
        check(again, not_yet("", false));
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"});
        check(json!({"conditions": [condition]}), not_yet("Unschedulable: 0/1 nodes", true));
        let mut init = waiting("PodInitializing", "");
        init["initContainerStatuses"] = json!([
            {"state": {"terminated": {"exitCode": 0}}},
            {"state": {"waiting": {"reason": "ImagePullBackOff"}}},
        ]);
        check(init, not_yet("ImagePullBackOff", true));
    }

    #[test]
    fn what_a_node_says_is_cut() {
        let pod = json!({"metadata": {}, "status": {"containerStatuses": [
            {"state": {"waiting": {"reason": "ErrImagePull", "message": "ä".repeat(1000)}}},
        ]}});
        let Health::NotYet { why, .. } = health(&json!({}), &[&pod]) else { panic!("ready") };
        assert_eq!(why.chars().count(), WHY_CHARS_MAX + 1);
    }
}
