//! Keywords that Kubernetes forbids, or allows only together with others.

use super::costs::Costs;
use super::rules::check_rules;
use super::{Json, object, properties, property};
use crate::field::{FieldError, Path};
use crate::schema::read::{array, count, flag, text};
use crate::schema::{Additional, Schema};
use serde_json::Value;

/// Reports wrong use of keywords, then rules that don't compile or cost too much. Rules are looked at only if
/// the schema is `sound` otherwise, and only where nothing at or below their place is wrong.
pub(super) fn check(
    root: &Json,
    schema: &Schema,
    at: &Path<'_>,
    sound: bool,
    costs: &mut Costs,
) -> Vec<FieldError> {
    let mut found = Found { errors: Vec::new(), rule_errors: Vec::new(), costs };
    let scope = Scope { root: true, cardinality: Some(1), ..Scope::default() };
    found.node(root, sound.then_some(schema), &scope, at);
    found.errors.extend(found.rule_errors);
    found.errors
}

struct Found<'c> {
    errors: Vec<FieldError>,
    rule_errors: Vec<FieldError>,
    costs: &'c mut Costs,
}

/// What is true of a node because of where it stands.
#[derive(Clone, Default)]
struct Scope {
    root: bool,
    /// Inside `apiVersion`, `kind` or `metadata` of a resource.
    in_metadata: bool,
    /// Why there may be no defaults.
    no_defaults: Option<String>,
    /// The list whose items cannot be told apart between two versions of an object.
    uncorrelated: Option<String>,
    /// How many values of the node an object can have; none if nothing limits it.
    cardinality: Option<u64>,
}

/// How many values each child of a node has for one value of the node; none if nothing limits it.
fn elements_max(map: &Json) -> Option<u64> {
    match text(map, "type") {
        Some("object") if map.get("additionalProperties").is_some_and(|values| !values.is_null()) => {
            count(map, "maxProperties")
        }
        Some("array") => count(map, "maxItems"),
        _ => Some(1),
    }
}

impl Found<'_> {
    fn node(&mut self, map: &Json, schema: Option<&Schema>, scope: &Scope, at: &Path<'_>) {
        let before = self.errors.len();
        self.forbidden(map, scope, at);
        let cardinality = scope.cardinality.zip(elements_max(map)).map(|(of, each)| of.saturating_mul(each));
        let inner = Scope { root: false, cardinality, ..scope.clone() };
        self.additional(map, schema, &inner, at);
        self.properties(map, schema, scope, cardinality, at);
        if let Some(not) = object(map, "not") {
            self.node(not, None, &inner, &at.field("not"));
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            let list = at.field(name);
            for (index, branch) in array(map, name).iter().enumerate() {
                let Value::Object(branch) = branch else { continue };
                self.node(branch, None, &inner, &list.index(index));
            }
        }
        if let Some(items) = object(map, "items") {
            let mut scope = inner.clone();
            if text(map, "x-kubernetes-list-type") != Some("map") && scope.uncorrelated.is_none() {
                scope.uncorrelated = Some(at.to_string());
            }
            let schema = schema.and_then(|schema| schema.items.as_deref());
            self.node(items, schema, &scope, &at.field("items"));
        }
        self.collection_types(map, at);
        self.list_keys(map, at);
        let resource = scope.root || flag(map, "x-kubernetes-embedded-resource");
        let mut rules = check_rules(map, schema, resource, scope.uncorrelated.as_deref(), at);
        self.errors.append(&mut rules.wrong);
        if self.errors.len() == before {
            self.rule_errors.extend(rules.compile(scope.cardinality, self.costs));
        }
    }

    fn forbidden(&mut self, map: &Json, scope: &Scope, at: &Path<'_>) {
        const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
        let kind = text(map, "type").unwrap_or_default();
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.errors.push(FieldError::not_supported(&at.field("type"), &kind.into(), &TYPES));
        }
        if let (Some(reason), Some(_)) = (&scope.no_defaults, map.get("default")) {
            self.forbid(at, "default", format!("must not be set {reason}"));
        }
        for keyword in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            if map.contains_key(keyword) {
                self.forbid(at, keyword, format!("{keyword} is not supported"));
            }
        }
        if kind == "null" {
            self.forbid(at, "type", "type cannot be set to null, use nullable as an alternative".into());
        }
        if map.get("items").is_some_and(Value::is_array) {
            self.forbid(at, "items", "items must be a schema object and not an array".into());
        }
        if scope.in_metadata && flag(map, "x-kubernetes-embedded-resource") {
            let detail = "must not be used inside of resource meta".into();
            self.forbid(at, "x-kubernetes-embedded-resource", detail);
        }
        if flag(map, "uniqueItems") {
            let detail =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic".into();
            self.forbid(at, "uniqueItems", detail);
        }
        let preserve = "x-kubernetes-preserve-unknown-fields";
        if map.get(preserve) == Some(&Value::Bool(false)) {
            let error = FieldError::invalid(&at.field(preserve), &false.into(), "must be true or undefined");
            self.errors.push(error);
        }
    }

    fn forbid(&mut self, at: &Path<'_>, keyword: &str, detail: String) {
        self.errors.push(FieldError::forbidden(&at.field(keyword), detail));
    }

    fn additional(&mut self, map: &Json, schema: Option<&Schema>, scope: &Scope, at: &Path<'_>) {
        let Some(additional) = map.get("additionalProperties").filter(|value| !value.is_null()) else {
            return;
        };
        if properties(map).next().is_some() && additional != &Value::Bool(true) {
            let detail = "additionalProperties and properties are mutual exclusive".into();
            self.forbid(at, "additionalProperties", detail);
        }
        let Value::Object(values) = additional else { return };
        let mut scope = scope.clone();
        if scope.in_metadata {
            scope.no_defaults = Some("inside additionalProperties applying to object metadata".into());
        }
        let schema = schema.and_then(|schema| match &schema.additional {
            Additional::Values(values) => Some(&**values),
            _ => None,
        });
        self.node(values, schema, &scope, &at.field("additionalProperties"));
    }

    fn properties(
        &mut self,
        map: &Json,
        schema: Option<&Schema>,
        scope: &Scope,
        cardinality: Option<u64>,
        at: &Path<'_>,
    ) {
        let resource = scope.root || flag(map, "x-kubernetes-embedded-resource");
        let at = at.field("properties");
        for (name, property) in properties(map) {
            let mut inner = Scope { root: false, cardinality, ..scope.clone() };
            if resource && crate::schema::prune::is_meta(name) {
                inner.in_metadata = true;
                if scope.root {
                    inner.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            let schema = schema.and_then(|schema| schema.properties.get(name)).map(|schema| &**schema);
            self.node(property, schema, &inner, &at.key(name));
        }
    }

    fn collection_types(&mut self, map: &Json, at: &Path<'_>) {
        let kind = text(map, "type").unwrap_or_default();
        if let Some(map_type) = text(map, "x-kubernetes-map-type") {
            self.wants_type(kind, "object", "x-kubernetes-map-type", at);
            if !matches!(map_type, "atomic" | "granular") {
                let at = at.field("x-kubernetes-map-type");
                let supported = ["atomic", "granular"];
                self.errors.push(FieldError::not_supported(&at, &map_type.into(), &supported));
            }
        }
        let Some(list_type) = text(map, "x-kubernetes-list-type") else { return };
        if kind != "array" {
            self.wants_type(kind, "array", "x-kubernetes-list-type", at);
        } else if let Some(items) = object(map, "items").filter(|_| list_type == "set") {
            self.set_items(items, &at.field("items"));
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            let at = at.field("x-kubernetes-list-type");
            let supported = ["atomic", "set", "map"];
            self.errors.push(FieldError::not_supported(&at, &list_type.into(), &supported));
        }
    }

    fn wants_type(&mut self, kind: &str, wanted: &str, keyword: &str, at: &Path<'_>) {
        if kind == wanted {
            return;
        }
        let (at, detail) = (at.field("type"), format!("must be {wanted} if {keyword} is specified"));
        self.errors.push(if kind.is_empty() {
            FieldError::required(&at, detail)
        } else {
            FieldError::invalid(&at, &kind.into(), detail)
        });
    }

    fn set_items(&mut self, items: &Json, at: &Path<'_>) {
        let keyword = match text(items, "type") {
            Some("array") => "x-kubernetes-list-type",
            Some("object") => "x-kubernetes-map-type",
            _ => return,
        };
        let set = text(items, keyword);
        if set == Some("atomic") || (set.is_none() && keyword == "x-kubernetes-list-type") {
            return;
        }
        // Kubernetes shows the list type even where the map type is wrong.
        let shown = items.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        self.errors.push(FieldError::invalid(&at.field(keyword), shown, detail));
    }

    fn list_keys(&mut self, map: &Json, at: &Path<'_>) {
        let list_type = text(map, "x-kubernetes-list-type");
        let keys = array(map, "x-kubernetes-list-map-keys");
        if !keys.is_empty() && list_type != Some("map") {
            let at = at.field("x-kubernetes-list-type");
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            self.errors.push(match list_type {
                None => FieldError::required(&at, detail),
                Some(other) => FieldError::invalid(&at, &other.into(), detail),
            });
        }
        let items = object(map, "items");
        if list_type == Some("map") {
            if keys.is_empty() {
                let detail = "must not be empty if x-kubernetes-list-type is map";
                self.errors.push(FieldError::required(&at.field("x-kubernetes-list-map-keys"), detail));
            }
            match items {
                None if map.get("items").is_none() => {
                    let detail = "must have a schema if x-kubernetes-list-type is map";
                    self.errors.push(FieldError::required(&at.field("items"), detail));
                }
                None => {}
                Some(items) => self.keyed_items(items, keys, at),
            }
        }
        let Some(items) = items else { return };
        let Some(list_type @ ("set" | "map")) = list_type else { return };
        let at = at.field("items");
        if flag(items, "nullable") {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbid(&at, "nullable", detail);
        }
        if list_type == "map" {
            self.key_properties(items, keys, &at.field("properties"));
        }
    }

    fn keyed_items(&mut self, items: &Json, keys: &[Value], at: &Path<'_>) {
        let kind = text(items, "type").unwrap_or_default();
        let at_items = at.field("items");
        if kind != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.errors.push(FieldError::invalid(&at_items.field("type"), &kind.into(), detail));
            return;
        }
        let all = Value::Array(keys.to_vec());
        let at_keys = at.field("x-kubernetes-list-map-keys");
        for (index, key) in keys.iter().enumerate() {
            let name = key.as_str().unwrap_or_default();
            match property(items, name).map(|schema| text(schema, "type")) {
                None => {
                    let detail = "entries must all be names of item properties";
                    self.errors.push(FieldError::invalid(&at_keys, &all, detail));
                }
                Some(Some("array" | "object")) => {
                    let at = at_items.field("properties");
                    let at = at.key(name);
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.errors.push(FieldError::invalid(&at.field("type"), &kind.into(), detail));
                }
                Some(_) => {}
            }
            if keys[..index].contains(key) {
                let detail = "must not contain duplicate entries";
                self.errors.push(FieldError::invalid(&at_keys, &all, detail));
            }
        }
    }

    fn key_properties(&mut self, items: &Json, keys: &[Value], at: &Path<'_>) {
        for key in keys {
            let name = key.as_str().unwrap_or_default();
            let Some(schema) = property(items, name) else { continue };
            let at = at.key(name);
            if !array(items, "required").contains(key) && schema.get("default").is_none_or(Value::is_null) {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or \
                              be a required property";
                self.errors.push(FieldError::required(&at.field("default"), detail));
            }
            if flag(schema, "nullable") {
                let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbid(&at, "nullable", detail.into());
            }
        }
    }
}
