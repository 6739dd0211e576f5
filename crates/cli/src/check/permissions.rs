//! Whether whoever asks may do all that a system does.

use super::finding::Finding;
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::output::count;
use crate::systems::{Reach, System};
use futures::StreamExt as _;
use http::Request;
use serde_json::{Value, json};

const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// Requests under way at one time.
const AT_ONCE: usize = 16;

/// What may be allowed or not: one verb on one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Act {
    verb: String,
    group: String,
    resource: String,
    namespace: Option<String>,
    /// Of one object only.
    name: Option<String>,
}

/// The finding for a system.
pub(super) async fn examine(
    cluster: &Cluster,
    system: &System,
    reach: Reach<'_>,
) -> Result<Finding, Failure> {
    let operator = system.unconnected(reach).build();
    let operator = operator
        .map_err(|error| Failure::new(error).context(format!("cannot tell what {} needs", system.name)))?;
    let acts = acts(&operator.rbac().roles());
    let what = format!("{}: permissions", system.name);
    let number = acts.len();
    let answers: Vec<_> = futures::stream::iter(acts)
        .map(async |act| {
            let allowed = is_allowed(cluster, &act).await;
            (act, allowed)
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut refused = Vec::new();
    for (act, allowed) in answers {
        match allowed {
            Ok(true) => {}
            Ok(false) => refused.push(act),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 501) => {
                let detail = format!("this server has no SelfSubjectAccessReview: {}", status.message);
                return Ok(Finding::noted(what, detail));
            }
            Err(error) => {
                return Ok(Finding::failed_with(&what, &cluster.failed("ask what is allowed", error)));
            }
        }
    }
    if refused.is_empty() {
        let detail = format!("you may do all of the {} that it does", count(number, "thing"));
        return Ok(Finding::passed(what, detail));
    }
    let rbac = format!("mainstay rbac {} --service-account NAMESPACE/NAME", system.name);
    Ok(Finding::failed(what, told(&refused), format!("{rbac} | kubectl apply -f -, and run it as that")))
}

async fn is_allowed(cluster: &Cluster, act: &Act) -> Result<bool, kube::Error> {
    let (resource, part) = act.resource.split_once('/').unwrap_or((&act.resource, ""));
    let attributes = json!({"verb": act.verb, "group": act.group, "resource": resource, "subresource": part,
        "namespace": act.namespace, "name": act.name});
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes}});
    let request = Request::post(PATH)
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    let answer: Value = cluster.client.request(request).await?;
    Ok(answer.pointer("/status/allowed") == Some(&json!(true)))
}

/// Everything that roles allow, one by one.
fn acts(roles: &[Value]) -> Vec<Act> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut acts = Vec::new();
    for role in roles {
        let namespace = role.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned);
        for rule in role["rules"].as_array().into_iter().flatten() {
            let names = texts(&rule["resourceNames"]);
            let names: Vec<Option<String>> =
                if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        acts.extend(names.iter().map(|name| Act {
                            verb: verb.clone(),
                            group: group.clone(),
                            resource: resource.clone(),
                            namespace: namespace.clone(),
                            name: name.clone(),
                        }));
                    }
                }
            }
        }
    }
    acts.sort();
    acts.dedup();
    acts
}

/// What is refused, the verbs of a resource in one line.
fn told(refused: &[Act]) -> String {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for act in refused {
        let mut resource = act.resource.clone();
        if !act.group.is_empty() {
            resource = format!("{resource}.{}", act.group);
        }
        if let Some(namespace) = &act.namespace {
            resource = format!("{resource} in namespace {namespace}");
        }
        match lines.iter_mut().find(|(known, _)| *known == resource) {
            Some((_, verbs)) => verbs.push(&act.verb),
            None => lines.push((resource, vec![&act.verb])),
        }
    }
    let lines: Vec<_> = lines
        .iter()
        .map(|(resource, verbs)| format!("you may not {} {resource}", verbs.join(", ")))
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_told_by_resource() {
        let roles = [json!({"metadata": {"namespace": "shop"}, "rules": [
            {"apiGroups": ["apps"], "resources": ["deployments", "deployments/status"], "verbs": ["patch", "get"]}]})];
        let all = acts(&roles);
        assert_eq!(all.len(), 4);
        assert_eq!(
            told(&all),
            "you may not get, patch deployments.apps in namespace shop\n\
             you may not get, patch deployments/status.apps in namespace shop"
        );
    }
}
