//! What serving webhooks takes in permissions, and no more.

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::Webhooks;
use super::hook::resource_name;
use super::serving::{Serving, Source};

/// The least that an operator must be allowed for its webhooks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WebhookPermissions {
    /// For a `ClusterRole`.
    pub cluster: Vec<PolicyRule>,
    /// For a `Role`, in this namespace; `None` is the one that the operator runs in.
    pub namespaced: Vec<(Option<String>, PolicyRule)>,
}

impl Webhooks {
    /// What the operator must be allowed so that these webhooks can be served in this way.
    pub fn permissions(&self, serving: &Serving) -> WebhookPermissions {
        let mut permissions = WebhookPermissions::default();
        if serving.register {
            let resources = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
            // Deleting is for those that an earlier version registered and this one has no hooks for.
            let verbs = ["get", "create", "patch", "delete"];
            let names = vec![self.name.clone()];
            permissions.cluster.push(rule("admissionregistration.k8s.io", &resources, &verbs, names));
        }
        let definitions: Vec<_> =
            self.conversions.values().map(|conversion| resource_name(&conversion.kind)).collect();
        if serving.register && !definitions.is_empty() {
            let resources = ["customresourcedefinitions"];
            let group = "apiextensions.k8s.io";
            permissions.cluster.push(rule(group, &resources, &["get", "patch"], definitions));
        }
        if let Source::Secret(secret) = &serving.source {
            let namespace = secret.namespace().map(str::to_owned);
            let named = rule("", &["secrets"], &["get", "update"], vec![secret.name().to_owned()]);
            // RBAC cannot tell what is created by its name.
            let create = rule("", &["secrets"], &["create"], Vec::new());
            permissions.namespaced.extend([named, create].map(|rule| (namespace.clone(), rule)));
        }
        permissions
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str], names: Vec<String>) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        resource_names: (!names.is_empty()).then_some(names),
        ..PolicyRule::default()
    }
}
