//! Webhooks that cannot be reached: they refuse whatever they are asked about, or slow it down, and nobody sees why.

use super::finding::Finding;
use crate::cluster::{Cluster, get, list};
use serde_json::Value;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Finds the webhooks of an object.
type HooksOf = fn(&Value) -> Vec<Hook>;

/// A webhook behind a Service.
#[derive(Debug, PartialEq, Eq)]
struct Hook {
    /// The object that has it, and its name in there.
    of: String,
    namespace: String,
    service: String,
    /// Whether requests fail if it does not answer.
    is_strict: bool,
}

/// One finding for all, or one for each that is wrong.
pub(super) async fn examine(cluster: &Cluster) -> Vec<Finding> {
    let what = "webhooks";
    let mut hooks = Vec::new();
    let sources: [(String, HooksOf); 3] = [
        (format!("{ADMISSION}/validatingwebhookconfigurations"), admission),
        (format!("{ADMISSION}/mutatingwebhookconfigurations"), admission),
        (DEFINITIONS.to_owned(), conversion),
    ];
    for (path, of) in sources {
        match list(&cluster.client, &path).await {
            Ok(objects) => hooks.extend(objects.iter().flat_map(of)),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                return vec![Finding::noted(what, "you may not look at those of the cluster")];
            }
            Err(error) => return vec![Finding::failed_with(what, &cluster.failed("list webhooks", error))],
        }
    }
    let mut findings = Vec::new();
    for hook in &hooks {
        findings.extend(wrong(cluster, hook).await.map(|wrong| finding(hook, &wrong)));
    }
    if findings.is_empty() {
        findings.push(match hooks.len() {
            0 => Finding::passed(what, "there are none in the cluster"),
            number => Finding::passed(
                what,
                format!("all {number} in the cluster have a Service with something behind it"),
            ),
        });
    }
    findings
}

/// Why nobody answers for a webhook.
enum Wrong {
    NoService,
    NothingReady,
}

fn finding(hook: &Hook, wrong: &Wrong) -> Finding {
    let service = format!("Service {}/{}", hook.namespace, hook.service);
    let (why, remedy) = match wrong {
        Wrong::NoService => ("does not exist", format!("bring back {service}")),
        Wrong::NothingReady => ("has no pod that is ready", format!("have a pod of {service} ready")),
    };
    let detail = format!("{}: {service} {why}", hook.of);
    let fix = format!("{remedy}, or delete {}", hook.of.split(':').next().unwrap_or_default());
    if hook.is_strict {
        Finding::failed("webhooks", detail, fix)
    } else {
        Finding::noted("webhooks", detail).with_fix(fix)
    }
}

async fn wrong(cluster: &Cluster, hook: &Hook) -> Option<Wrong> {
    let Hook { namespace, service, .. } = hook;
    let found = get(&cluster.client, &format!("/api/v1/namespaces/{namespace}/services/{service}")).await;
    let Some(found) = found.ok()? else {
        return Some(Wrong::NoService);
    };
    // Where there is no selector, who knows what is behind it.
    found.pointer("/spec/selector")?;
    let slices = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io/service-name={service}"
    );
    let slices = list(&cluster.client, &slices).await.ok()?;
    (!slices.iter().any(has_ready)).then_some(Wrong::NothingReady)
}

fn has_ready(slice: &Value) -> bool {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    // Unknown counts as ready, as Kubernetes has it.
    endpoints.into_iter().any(|endpoint| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false)))
}

fn service(client_config: &Value) -> Option<(String, String)> {
    let service = client_config.get("service")?;
    Some((service["namespace"].as_str()?.to_owned(), service["name"].as_str()?.to_owned()))
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// Of a webhook configuration.
fn admission(object: &Value) -> Vec<Hook> {
    let kind = object["kind"].as_str().unwrap_or("webhook configuration");
    let hooks = object["webhooks"].as_array().into_iter().flatten();
    let hook = |hook: &Value| {
        let (namespace, service) = service(&hook["clientConfig"])?;
        let of = format!("{kind} {}: {}", name(object), hook["name"].as_str().unwrap_or_default());
        Some(Hook { of, namespace, service, is_strict: hook["failurePolicy"] != "Ignore" })
    };
    hooks.filter_map(hook).collect()
}

/// Of a definition that has its objects converted.
fn conversion(object: &Value) -> Vec<Hook> {
    let config = object.pointer("/spec/conversion/webhook/clientConfig");
    let hook = |(namespace, service)| {
        let of = format!("CustomResourceDefinition {}: conversion", name(object));
        Hook { of, namespace, service, is_strict: true }
    };
    config.and_then(service).map(hook).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn webhooks_are_found_wherever_they_are() {
        let config = json!({"service": {"namespace": "a", "name": "s"}});
        let validating = json!({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "v"}, "webhooks": [
            {"name": "one.example.com", "failurePolicy": "Ignore", "clientConfig": config},
            {"name": "two.example.com", "clientConfig": {"url": "https://example.com"}}]});
        let hooks = admission(&validating);
        assert_eq!(hooks.len(), 1, "one by URL is nobody's Service");
        assert_eq!(
            (hooks[0].of.as_str(), hooks[0].is_strict),
            ("ValidatingWebhookConfiguration v: one.example.com", false)
        );
        let definition =
            json!({"metadata": {"name": "d"}, "spec": {"conversion": {"webhook": {"clientConfig": config}}}});
        assert!(conversion(&definition)[0].is_strict);
        assert_eq!(conversion(&json!({"spec": {"conversion": {"strategy": "None"}}})), []);
    }

    #[test]
    fn an_endpoint_is_ready_unless_it_says_no() {
        let slice = |endpoints: Value| has_ready(&json!({"endpoints": endpoints}));
        assert!(slice(json!([{"conditions": {"ready": true}}])) && slice(json!([{}])));
        assert!(
            !slice(json!([{"conditions": {"ready": false}}])) && !slice(json!([])) && !slice(Value::Null)
        );
    }
}
