//! Which container's log is meant, and which of its attempts. Pure, and in the words of Kubernetes.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

/// The container that a request names, or the only one.
pub(super) fn container(pod: &Pod, named: Option<&str>) -> Result<String, String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let spec = pod.spec.as_ref();
    let containers = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let early = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let late = spec.and_then(|spec| spec.ephemeral_containers.as_deref()).unwrap_or_default();
    let all = early.iter().chain(containers).map(|container| container.name.as_str());
    let all: Vec<&str> = all.chain(late.iter().map(|container| container.name.as_str())).collect();
    match (named, containers) {
        (Some(named), _) if all.contains(&named) => Ok(named.to_owned()),
        (Some(named), _) => Err(format!("container {named} is not valid for pod {name}")),
        (None, [only]) => Ok(only.name.clone()),
        (None, _) => Err(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        )),
    }
}

/// The attempt whose log is meant, by the container's status; the first is 0.
pub(super) fn attempt(pod: &Pod, container: &str, previous: bool) -> Result<u32, String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let about = format!("container {container:?} in pod {name:?}");
    let Some(status) = status(pod, container) else { return Err(format!("{about} is not available")) };
    let restarts = u32::try_from(status.restart_count).unwrap_or_default();
    let state = status.state.as_ref();
    let has_state = state.is_some_and(|state| state.running.is_some() || state.terminated.is_some());
    let ended = status.last_state.as_ref().is_some_and(|last| last.terminated.is_some());
    match (previous, ended) {
        // While one waits to be started again, the attempt that counts is the one that has ended.
        (true, true) if has_state => Ok(restarts.saturating_sub(1)),
        (true, true) => Ok(restarts),
        (true, false) => Err(format!("previous terminated {about} not found")),
        (false, _) if has_state || ended => Ok(restarts),
        (false, _) => Err(match state.and_then(|state| state.waiting.as_ref()) {
            Some(waiting) => {
                let reason = match waiting.reason.as_deref().unwrap_or_default() {
                    "ErrImagePull" => "image can't be pulled",
                    "ImagePullBackOff" => "trying and failing to pull image",
                    reason => reason,
                };
                format!("{about} is waiting to start: {reason}")
            }
            None => format!("{about} is waiting to start - no logs yet"),
        }),
    }
}

fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let all =
        [&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses];
    all.into_iter().flatten().flatten().find(|status| status.name == container)
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "fixtures and expectations are literals")]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(containers: &[&str], status: Value) -> Pod {
        let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name})).collect();
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"initContainers": [{"name": "setup"}], "containers": containers},
            "status": {"containerStatuses": [status]},
        }))
        .unwrap()
    }

    fn absent() -> Value {
        json!({"name": "x", "image": "", "imageID": "", "ready": false, "restartCount": 0})
    }

    #[test]
    fn only_container_need_not_be_named() {
        assert_eq!(container(&pod(&["a"], absent()), None), Ok("a".into()));
        assert_eq!(container(&pod(&["a"], absent()), Some("setup")), Ok("setup".into()));
        let pod = pod(&["a", "b"], absent());
        assert_eq!(container(&pod, Some("b")), Ok("b".into()));
        assert_eq!(
            container(&pod, None),
            Err("a container name must be specified for pod web, choose one of: [setup a b]".into()),
        );
        assert_eq!(container(&pod, Some("c")), Err("container c is not valid for pod web".into()));
    }

    fn check(state: Value, last: Value, previous: bool, expected: Result<u32, &str>) {
        let status = json!({
            "name": "a", "image": "", "imageID": "", "ready": false, "restartCount": 2, "state": state, "lastState": last,
        });
        let found = attempt(&pod(&["a"], status), "a", previous);
        assert_eq!(found.as_ref().copied().map_err(String::as_str), expected);
    }

    #[test]
    fn attempt_follows_from_the_status() {
        let (running, ended) = (json!({"running": {}}), json!({"terminated": {"exitCode": 1}}));
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        check(running.clone(), ended.clone(), false, Ok(2));
        check(running.clone(), ended.clone(), true, Ok(1));
        check(ended.clone(), ended.clone(), false, Ok(2));
        check(ended.clone(), ended.clone(), true, Ok(1));
        check(waiting.clone(), ended.clone(), false, Ok(2));
        check(waiting, ended, true, Ok(2));
        check(running, json!({}), true, Err("previous terminated container \"a\" in pod \"web\" not found"));
    }

    #[test]
    fn container_that_has_not_started_has_no_log() {
        let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
        let about = "container \"a\" in pod \"web\"";
        for (state, expected) in [
            (waiting("ContainerCreating"), "is waiting to start: ContainerCreating"),
            (waiting("ErrImagePull"), "is waiting to start: image can't be pulled"),
            (json!({}), "is waiting to start - no logs yet"),
        ] {
            check(state, json!({}), false, Err(&format!("{about} {expected}")));
        }
        let other = attempt(&pod(&["a"], absent()), "a", false);
        assert_eq!(other, Err(format!("{about} is not available")));
    }
}
