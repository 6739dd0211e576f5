//! Facts about admission, without a network (`matching`, `review`, `patching`, `conditions`) and with a
//! real HTTPS server on loopback (`calls`).

mod calls;
mod conditions;
mod matching;
mod patching;
mod review;
mod server;

use super::{Attributes, Equivalents, Gvk, Gvr, Operation};
use crate::server::User;
use serde_json::{Value, json};
use std::sync::LazyLock;

static USER: LazyLock<User> = LazyLock::new(|| User {
    name: "admin".to_owned(),
    groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
});

static CREATE_OPTIONS: LazyLock<Value> =
    LazyLock::new(|| json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}));

/// A resource that is served in one form only.
const ONE_FORM: Equivalents<'static> =
    Equivalents { served: &[], convert: &|object: &Value, _: Gvk<'_>| Ok(object.clone()) };

/// The creation of the `ConfigMap` named `a` in the namespace `test`.
fn create_config_map() -> Attributes<'static> {
    Attributes {
        operation: Operation::Create,
        kind: Gvk { group: "", version: "v1", kind: "ConfigMap" },
        resource: Gvr { group: "", version: "v1", resource: "configmaps" },
        subresource: "",
        namespace: "test",
        name: "a",
        namespace_object: None,
        user: &USER,
        dry_run: false,
        options: &CREATE_OPTIONS,
        equivalents: ONE_FORM,
    }
}

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "test"}, "data": {"a": "1"}})
}
