//! What the API server is told about the webhooks, as values.
//!
//! Everything that the server would fill in is named, so that what is wanted can be compared with what is there, field by
//! field, without knowing the server's defaults.

pub(super) mod apply;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::Webhooks;
use super::hook::{FailurePolicy, Hook, Role, resource_name};
use crate::{Kind, Scope};

/// Holds a digest of what was applied: when it is another one, something may have to be removed that no comparison of
/// fields shows.
pub(super) const APPLIED: &str = "mainstay.dev/applied";

/// How the API server reaches the webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reach {
    Service {
        namespace: String,
        name: String,
        port: u16,
    },
    /// `https://host:port`, without a slash at its end.
    Url(String),
}

impl Reach {
    /// The names that the certificate must have, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = match self {
            Self::Service { namespace, name, .. } => {
                ["", ".svc", ".svc.cluster.local"].map(|end| format!("{name}.{namespace}{end}")).to_vec()
            }
            Self::Url(url) => vec![host(url).to_owned()],
        };
        names.sort();
        names
    }

    fn client_config(&self, path: &str, bundle: Option<&str>) -> Value {
        let mut config = match self {
            Self::Service { namespace, name, port } => {
                json!({"service": {"namespace": namespace, "name": name, "port": port, "path": path}})
            }
            Self::Url(url) => json!({"url": format!("{url}{path}")}),
        };
        if let Some(bundle) = bundle {
            config["caBundle"] = BASE64.encode(bundle).into();
        }
        config
    }
}

/// The host of a URL, without the brackets of an IPv6 address.
fn host(url: &str) -> &str {
    let authority = url.strip_prefix("https://").unwrap_or(url);
    let authority = authority.split('/').next().unwrap_or(authority);
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    authority.split(':').next().unwrap_or(authority)
}

/// One object that is to be registered.
#[derive(Debug, Clone)]
pub(super) struct Registration {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) wanted: Option<Value>,
}

impl Registration {
    /// Whether the object belongs to somebody else, who made it: it is then changed but never created or deleted.
    pub(super) fn is_guest(&self) -> bool {
        self.kind.kind() == "CustomResourceDefinition"
    }
}

/// Everything to register: the two configurations, without a `wanted` where there are no hooks for one, and the definition
/// of each kind that is converted.
pub(super) fn plan_registrations(
    webhooks: &Webhooks,
    reach: &Reach,
    bundle: Option<&str>,
) -> Vec<Registration> {
    let roles = [Role::Mutate, Role::Validate];
    let mut all: Vec<_> =
        roles.into_iter().map(|role| plan_configuration(webhooks, role, reach, bundle)).collect();
    all.extend(
        webhooks.conversions.values().map(|conversion| plan_conversion(&conversion.kind, reach, bundle)),
    );
    all
}

fn plan_configuration(webhooks: &Webhooks, role: Role, reach: &Reach, bundle: Option<&str>) -> Registration {
    let (kind, plural) = match role {
        Role::Validate => ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        Role::Mutate => ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    };
    let kind = Kind::new("admissionregistration.k8s.io/v1", kind, plural, Scope::Cluster);
    let hooks = webhooks.hooks.iter().filter(|hook| hook.role() == role);
    let hooks: Vec<_> = hooks.map(|hook| render_hook(hook, reach, bundle)).collect();
    let name = webhooks.name.clone();
    let wanted = (!hooks.is_empty()).then(|| {
        let mut wanted = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind(),
            "metadata": {"name": name},
            "webhooks": hooks,
        });
        let mark = mark(&wanted);
        wanted["metadata"]["annotations"] = json!({APPLIED: mark});
        wanted
    });
    Registration { kind, name, wanted }
}

fn render_hook(hook: &Hook, reach: &Reach, bundle: Option<&str>) -> Value {
    let kind = hook.kind();
    let (namespaces, objects) = hook.selectors();
    let mut webhook = json!({
        "name": hook.webhook_name(),
        "admissionReviewVersions": ["v1"],
        "clientConfig": reach.client_config(&hook.path(), bundle),
        "rules": [{
            "operations": hook.operations(),
            "apiGroups": [kind.group()],
            "apiVersions": [kind.version()],
            "resources": hook.resources(),
            "scope": match kind.scope() {
                Scope::Namespaced => "Namespaced",
                Scope::Cluster => "Cluster",
            },
        }],
        "failurePolicy": match hook.policy() {
            FailurePolicy::Fail => "Fail",
            FailurePolicy::Ignore => "Ignore",
        },
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": hook.patience().as_secs(),
        "namespaceSelector": namespaces,
        "objectSelector": objects,
    });
    if hook.role() == Role::Mutate {
        webhook["reinvocationPolicy"] = if hook.is_asked_again() { "IfNeeded" } else { "Never" }.into();
    }
    webhook
}

fn plan_conversion(kind: &Kind, reach: &Reach, bundle: Option<&str>) -> Registration {
    let definition = definition_kind();
    let name = resource_name(kind);
    let wanted = json!({
        "apiVersion": definition.api_version(), "kind": definition.kind(),
        "metadata": {"name": name},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": {
            "clientConfig": reach.client_config(&conversion_path(kind), bundle),
            "conversionReviewVersions": ["v1"],
        }}},
    });
    Registration { kind: definition, name, wanted: Some(wanted) }
}

fn definition_kind() -> Kind {
    let plural = "customresourcedefinitions";
    Kind::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", plural, Scope::Cluster)
}

/// Where a kind's conversion is served.
pub(super) fn conversion_path(kind: &Kind) -> String {
    format!("/convert/{}", resource_name(kind))
}

fn mark(wanted: &Value) -> String {
    let digest = digest(&SHA256, wanted.to_string().as_bytes());
    BASE64.encode(&digest.as_ref()[..12])
}

/// What is to be done about one registered object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    Apply,
    Delete,
    /// The definition is not there yet, and it is not ours to create.
    Wait,
}

/// Compares what is wanted with what is there.
pub(super) fn plan_change(registration: &Registration, live: Option<&Value>) -> Change {
    match (&registration.wanted, live) {
        (Some(_), None) if registration.is_guest() => Change::Wait,
        (Some(wanted), Some(live)) if covers(live, wanted) => Change::Nothing,
        (Some(_), _) => Change::Apply,
        // One that was not made here is somebody else's of the same name.
        (None, Some(live)) if live["metadata"]["annotations"].get(APPLIED).is_some() => Change::Delete,
        (None, _) => Change::Nothing,
    }
}

/// Whether everything wanted is there as it is wanted. Maps may hold more; lists may not.
fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| live.get(name).is_some_and(|live| covers(live, wanted)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        _ => live == wanted,
    }
}

/// Whether what is registered trusts an authority wherever it names ours: every `caBundle` there holds it.
pub(super) fn trusts(live: &Value, authority: &str) -> bool {
    let holds = |config: &Value| {
        let bundle = config["caBundle"].as_str().and_then(|text| BASE64.decode(text).ok());
        bundle.is_some_and(|bundle| String::from_utf8_lossy(&bundle).contains(authority.trim()))
    };
    match live["webhooks"].as_array() {
        Some(webhooks) => webhooks.iter().all(|webhook| holds(&webhook["clientConfig"])),
        None => holds(&live["spec"]["conversion"]["webhook"]["clientConfig"]),
    }
}

#[cfg(test)]
mod tests;
