//! Who may do what. Pure.

use crate::output::Manifest;
use serde_json::json;
use std::str::FromStr;

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Account {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Account { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(super) fn manifest(&self) -> Manifest {
        let metadata = json!({"name": self.name, "namespace": self.namespace});
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    }
}

impl FromStr for Account {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                Ok(Account::new(namespace, name))
            }
            _ => Err("expected a namespace and a name, as in shops/webapp".to_owned()),
        }
    }
}

/// What everything that is installed for a system is called: beside others' objects, `webapp` could be anybody's.
pub(super) fn name(system: &str) -> String {
    format!("mainstay-{system}")
}

/// A role under that name.
pub(super) fn renamed(mut role: Manifest) -> Manifest {
    let named = role["metadata"]["name"].as_str().map(name);
    role["metadata"]["name"] = json!(named);
    role
}

/// Grants a role to an account.
pub(super) fn binding(role: &Manifest, account: &Account) -> Manifest {
    let kind = if role["kind"] == "ClusterRole" { "ClusterRoleBinding" } else { "RoleBinding" };
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": role["metadata"],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "namespace": account.namespace, "name": account.name}],
    })
}
