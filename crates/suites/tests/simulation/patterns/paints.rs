//! The kind that Acto's patterns are shown with.

use std::collections::BTreeMap;

use kube::{CustomResource, CustomResourceExt as _};
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Program, Script, check};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const PROPERTIES: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";

/// What a user may say of a paint.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Paint", namespaced)]
#[serde(default)]
#[derive(Default)]
pub(super) struct PaintSpec {
    pub(super) colour: String,
    pub(super) coats: u16,
    pub(super) spare: bool,
    pub(super) shades: BTreeMap<String, String>,
}

/// Its definition, in a version that knows one property only: what is not looked at need not be changed.
pub(super) fn definition(property: &str) -> Value {
    let mut definition = serde_json::to_value(Paint::crd()).expect("a definition");
    let properties = definition.pointer_mut(PROPERTIES).and_then(Value::as_object_mut).expect("properties");
    properties.retain(|name, _| name == property);
    definition
}

/// A check of a program that serves paints, in which a paint is made and its property is then given these values.
pub(super) fn check_paint<const N: usize>(program: Program, property: &str, values: [Value; N]) -> Check {
    let mut specs = values.map(|value| json!({"spec": {property: value}})).into_iter();
    let mut paint = specs.next().expect("a first value");
    paint["apiVersion"] = json!("example.com/v1");
    paint["kind"] = json!("Paint");
    paint["metadata"] = json!({"name": "paint"});
    let kind = Kind::of::<Paint>();
    let script = specs.fold(Script::new().create(paint), |script, spec| script.patch(&kind, "paint", spec));
    check(program).given(definition(property)).script(script)
}
