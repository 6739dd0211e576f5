//! Strategic merge patch: lists of built-in kinds are merged by key instead of replaced.
//!
//! Directives: `$patch: replace|delete` in objects and list items, `$retainKeys`,
//! `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`. Kinds without built-in types have no
//! strategies; the caller refuses such patches for them before calling.

mod complaints;
mod lists;

use super::{PatchError, check_object};
use crate::schema::{PatchStrategy, Schema, SchemaRef, Type};
use complaints::{malformed, unexpected, unknown_directive};
use lists::{apply_orders, merge_list};
use serde_json::{Map, Value};
use std::collections::HashSet;

type Object = Map<String, Value>;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// Applies a strategic merge patch to an object of a built-in kind.
pub(crate) fn apply(target: Value, patch: Value, kind: &SchemaRef) -> Result<Value, PatchError> {
    check_object(&patch, "")?;
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            merge_object(target, patch, Shape::of(kind)).map(Value::Object)
        }
        (target, _) => Ok(target),
    }
}

/// What is known of the type at hand; unknown below fields that no type declares.
#[derive(Clone, Copy)]
struct Shape<'a> {
    schema: &'a Schema,
    name: &'a str,
}

impl<'a> Shape<'a> {
    fn of(schema: &'a SchemaRef) -> Self {
        let name = match schema {
            SchemaRef::Builtin(definition) => definition.name.rsplit('.').next().unwrap_or_default(),
            SchemaRef::Owned(_) => "",
        };
        Shape { schema, name }
    }

    fn field(self, name: &str) -> Result<(Shape<'a>, Strategy<'a>), PatchError> {
        if self.schema.properties.is_empty() {
            return Err(unexpected("merging an object in json but data type is not struct, instead is: map"));
        }
        let Some(schema) = self.schema.properties.get(name) else {
            let (owner, field) = (self.name, crate::field::go_quote(name));
            return Err(unexpected(format!(
                "unable to find api field in struct {owner} for the json field {field}"
            )));
        };
        let member = self.schema.members.as_ref().and_then(|members| members.get(name));
        // The only object in all built-in kinds that is declared to be replaced.
        let replaces = self.name == "PodDisruptionBudgetSpec" && name == "selector";
        Ok((Shape::of(schema), Strategy { declared: member.map(|member| &member.patch), replaces }))
    }

    fn items(self) -> Shape<'a> {
        self.schema.items.as_ref().map_or(self, Shape::of)
    }

    /// What Go calls this kind of type.
    fn go_kind(self) -> &'static str {
        match self.schema.kind {
            Some(Type::String) => "string",
            Some(Type::Integer) => "int32",
            Some(Type::Number) => "float64",
            Some(Type::Boolean) => "bool",
            Some(Type::Array) => "slice",
            Some(Type::Object) | None if self.schema.properties.is_empty() => "map",
            _ => "struct",
        }
    }
}

/// How a field is patched; fields without a strategy are replaced if lists, merged if objects.
#[derive(Clone, Copy)]
struct Strategy<'a> {
    declared: Option<&'a PatchStrategy>,
    replaces: bool,
}

impl<'a> Strategy<'a> {
    fn merges(self) -> bool {
        self.declared.is_some_and(|strategy| strategy.merge)
    }

    fn merge_key(self) -> Option<&'a str> {
        self.declared.and_then(|strategy| strategy.merge_key.as_deref())
    }
}

fn merge_object(mut target: Object, mut patch: Object, shape: Shape<'_>) -> Result<Object, PatchError> {
    match patch.get(DIRECTIVE) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Object::new()),
        Some(other) => return Err(unknown_directive(other, &Value::Object(patch.clone()))),
    }
    retain_keys(&mut target, &mut patch)?;
    apply_orders(&mut target, &mut patch, shape)?;
    for (key, value) in patch {
        let deletes = key.starts_with(DELETE_FROM);
        let key = if deletes { directed_field(&key, DELETE_FROM)?.to_owned() } else { key };
        merge_field(&mut target, key, value, deletes, shape)?;
    }
    Ok(target)
}

fn merge_field(
    target: &mut Object,
    key: String,
    value: Value,
    deletes: bool,
    shape: Shape<'_>,
) -> Result<(), PatchError> {
    if value.is_null() {
        target.remove(&key);
        return Ok(());
    }
    match (target.get_mut(&key), value) {
        (Some(Value::Object(current)), Value::Object(patch)) => {
            let (field, strategy) = shape.field(&key)?;
            *current =
                if strategy.replaces { patch } else { merge_object(std::mem::take(current), patch, field)? };
        }
        (Some(Value::Array(current)), Value::Array(patch)) => {
            let (field, strategy) = shape.field(&key)?;
            *current = merge_list(std::mem::take(current), patch, field.items(), strategy, deletes)?;
        }
        // There is nothing to delete from.
        _ if deletes => {}
        (_, mut value) => {
            drop_nulls(&mut value);
            match without_directives(value) {
                Some(value) => drop(target.insert(key, value)),
                None => drop(target.remove(&key)),
            }
        }
    }
    Ok(())
}

/// `$prefix/field` → `field`.
fn directed_field<'a>(key: &'a str, prefix: &str) -> Result<&'a str, PatchError> {
    key.split_once('/').filter(|(before, _)| *before == prefix).map(|(_, field)| field).ok_or_else(|| {
        malformed(if prefix == DELETE_FROM {
            "invalid patch format of primitive list"
        } else {
            "invalid patch format of setElementOrder list"
        })
    })
}

fn retain_keys(target: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let bad = || malformed("invalid patch format of retainKeys");
    let retained = retained.as_array().ok_or_else(bad)?;
    let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let directive = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER);
    let strays = |(key, value): (&String, &Value)| {
        !value.is_null() && !directive(key) && !retained.contains(key.as_str())
    };
    if patch.iter().any(strays) {
        return Err(bad());
    }
    target.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}

/// Members of `null` in a value that is new to the object mean nothing.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The value without objects that carry a directive; none if it is one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let members = map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(members.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}
