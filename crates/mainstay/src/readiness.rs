//! Whether an object does what it is there for. Pure.
//!
//! Knows the workload kinds of Kubernetes. Of any other kind it believes a `Ready` or `Available` condition; an object
//! that has neither is ready as soon as its controller has seen it.

use serde_json::Value;

/// Whether an object is ready, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It does its work.
    Ready,
    /// Not yet, for this reason.
    NotReady(String),
}

impl Readiness {
    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }
}

/// Whether an object is ready.
pub fn readiness(object: &Value) -> Readiness {
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return not("it is being deleted");
    }
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let observed = object.pointer("/status/observedGeneration").and_then(Value::as_i64);
    if let (Some(generation), Some(observed)) = (generation, observed)
        && observed < generation
    {
        return not("its controller has not seen the last change");
    }
    match (object["apiVersion"].as_str(), object["kind"].as_str()) {
        (Some("apps/v1"), Some("Deployment")) => {
            seen(observed).unwrap_or_else(|| replicas(object, &["updatedReplicas", "availableReplicas"]))
        }
        (Some("apps/v1"), Some("StatefulSet")) => {
            seen(observed).unwrap_or_else(|| replicas(object, &["updatedReplicas", "readyReplicas"]))
        }
        (Some("apps/v1"), Some("ReplicaSet")) => {
            seen(observed).unwrap_or_else(|| replicas(object, &["availableReplicas"]))
        }
        (Some("apps/v1"), Some("DaemonSet")) => seen(observed).unwrap_or_else(|| daemons(object)),
        (Some("batch/v1"), Some("Job")) => {
            condition(object, "Complete").unwrap_or_else(|| not("it has not completed"))
        }
        (Some("v1"), Some("Pod")) => condition(object, "Ready").unwrap_or_else(|| not("it has not started")),
        (Some("v1"), Some("PersistentVolumeClaim")) => {
            match object.pointer("/status/phase").and_then(Value::as_str) {
                Some("Bound") => Readiness::Ready,
                phase => not(format!("it is {}", phase.unwrap_or("new"))),
            }
        }
        _ => {
            condition(object, "Ready").or_else(|| condition(object, "Available")).unwrap_or(Readiness::Ready)
        }
    }
}

/// Workloads say nothing before their controller has seen them.
fn seen(observed: Option<i64>) -> Option<Readiness> {
    observed.is_none().then(|| not("its controller has not seen it"))
}

fn replicas(object: &Value, counted: &[&str]) -> Readiness {
    let wanted = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    for field in counted {
        let count = object["status"][field].as_i64().unwrap_or(0);
        if count < wanted {
            return not(format!("{field} is {count} of {wanted}"));
        }
    }
    Readiness::Ready
}

fn daemons(object: &Value) -> Readiness {
    let status = |field: &str| object["status"][field].as_i64().unwrap_or(0);
    let wanted = status("desiredNumberScheduled");
    for field in ["updatedNumberScheduled", "numberAvailable"] {
        if status(field) < wanted {
            return not(format!("{field} is {} of {wanted}", status(field)));
        }
    }
    Readiness::Ready
}

fn condition(object: &Value, wanted: &str) -> Option<Readiness> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == wanted)?;
    if condition["status"] == "True" {
        return Some(Readiness::Ready);
    }
    let why = ["message", "reason"]
        .into_iter()
        .filter_map(|field| condition[field].as_str())
        .find(|text| !text.is_empty());
    Some(not(why.map_or_else(|| format!("condition {wanted} is not True"), str::to_owned)))
}

fn not(why: impl Into<String>) -> Readiness {
    Readiness::NotReady(why.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployment_is_ready_when_all_replicas_are_updated_and_available() {
        let mut deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"generation": 2}, "spec": {"replicas": 2},
            "status": {"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2}});
        assert_eq!(readiness(&deployment), not("its controller has not seen the last change"));
        deployment["status"]["observedGeneration"] = json!(2);
        assert!(readiness(&deployment).is_ready());
        deployment["status"]["availableReplicas"] = json!(1);
        assert_eq!(readiness(&deployment), not("availableReplicas is 1 of 2"));
    }

    #[test]
    fn an_unknown_kind_is_believed_by_its_condition_and_ready_without_one() {
        let mut thing = json!({"apiVersion": "example.com/v1", "kind": "Thing"});
        assert!(readiness(&thing).is_ready());
        thing["status"] =
            json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Cold", "message": ""}]});
        assert_eq!(readiness(&thing), not("Cold"));
    }

    #[test]
    fn what_is_being_deleted_is_never_ready() {
        let thing = json!({"kind": "Thing", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert!(!readiness(&thing).is_ready());
    }
}
