//! `ServiceAccount`: references to secrets are names and nothing else.

use super::{check_meta_again, check_new_meta_again};
use crate::builtin::rules::json::{list_mut, text};
use crate::builtin::rules::names::dns1123_subdomain;
use crate::builtin::rules::{Env, Rules};
use serde_json::{Value, json};

const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) static RULES: Rules = Rules {
    prepare_create: |object, _| keep_names(object),
    prepare_update: |new, _, _: &Env<'_>| keep_names(new),
    validate_update: |new, old, errors| {
        check_meta_again(new, old, errors);
        check_new_meta_again(new, true, dns1123_subdomain, errors);
    },
    warnings,
    name: dns1123_subdomain,
    ..Rules::NONE
};

fn keep_names(object: &mut Value) {
    for secret in list_mut(object, "secrets") {
        *secret = match text(secret, "name") {
            "" => json!({}),
            name => json!({"name": name}),
        };
    }
}

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let has = |object: &Value| object["metadata"]["annotations"].get(MOUNTABLE).is_some();
    if !has(new) || old.is_some_and(has) {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access \
         to mounted secrets"
    )]
}
