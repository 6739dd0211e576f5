//! `x-kubernetes-validations`: rules in CEL.
//!
//! Rules are compiled once per schema, into a tree that follows the schema and leaves out what has no
//! rules. Types are checked on compilation as Kubernetes checks them; what cannot be evaluated here does
//! not compile, and a rule that does not compile fails every object: nothing is let through unchecked.
//!
//! Evaluation has no cost limits. A rule's running time is bounded by the size of the object (3 MiB) to
//! the power of the nesting of its comprehensions.

mod check;
mod compile;
mod convert;
mod costs;
mod declare;
mod errors;
mod eval;
mod field_path;
mod functions;
mod rewrite;
mod time;
mod types;
mod used;

pub(crate) use compile::{CompiledRule, RuleError};
pub(crate) use costs::rule_costs;
pub(crate) use declare::declare;
pub(crate) use field_path::valid_field_path;

use super::correlate::Old;
use super::{Additional, Rule, Schema};
use crate::field::{FieldError, Path, Problem};
use eval::{OldSelf, evaluate};
use kube_cel::cel::Value as Cel;
use serde_json::Value;
use std::collections::BTreeMap;
use types::Type;

/// Messages longer than this are not used.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// The compiled rules of a schema.
#[derive(Debug)]
pub(crate) struct Rules {
    root: Node,
}

/// The rules of one schema node and of those below it.
#[derive(Debug, Default)]
struct Node {
    rules: Vec<Result<CompiledRule, RuleError>>,
    properties: BTreeMap<String, Node>,
    values: Option<Box<Node>>,
    items: Option<Box<Node>>,
}

/// Compiles the rules that stand on one schema node.
pub(crate) fn compile_rules(
    schema: &Schema,
    rules: &[Rule],
    resource: bool,
) -> Vec<Result<CompiledRule, RuleError>> {
    let self_type = Type::of_root(schema, resource);
    let compile = |rule: &Rule| match &self_type {
        Some(self_type) => CompiledRule::compile(rule, self_type),
        None => Err(RuleError::Hidden),
    };
    rules.iter().map(compile).collect()
}

impl Rules {
    /// Compiles all rules of a schema, of a resource or of a part of one; none if it has no rules.
    pub(super) fn compile(schema: &Schema, resource: bool) -> Option<Self> {
        if !has_rules(schema) {
            return None;
        }
        Node::compile(schema, resource).map(|root| Rules { root })
    }

    /// Evaluates the rules on an object, with what it was before if it is an update. Rules that an
    /// unchanged part fails are added to `warnings`. `at` is where the object stands.
    pub(super) fn check(
        &self,
        new: &Value,
        old: Option<&Value>,
        schema: &Schema,
        at: &Path<'_>,
        warnings: &mut Vec<String>,
    ) -> Vec<FieldError> {
        let mut evaluation = Evaluation { errors: Vec::new(), warnings };
        let ratchet = Ratchet { current: old.map(|value| Old { value, schema }), ancestor: None };
        evaluation.node(&self.root, schema, new, old, ratchet, at);
        evaluation.errors
    }
}

/// Whether there are rules. In `allOf` and the like none may stand.
fn has_rules(schema: &Schema) -> bool {
    let below = |additional: &Additional| matches!(additional, Additional::Values(v) if has_rules(v));
    schema.checks.as_ref().is_some_and(|checks| !checks.rules.is_empty())
        || schema.items.as_deref().is_some_and(has_rules)
        || below(&schema.additional)
        || schema.properties.values().any(|property| has_rules(property))
}

impl Node {
    fn compile(schema: &Schema, resource: bool) -> Option<Node> {
        let mut node = Node::default();
        if let Some(checks) = &schema.checks {
            node.rules = compile_rules(schema, &checks.rules, resource);
        }
        let below = |schema: &Schema| Node::compile(schema, schema.embedded_resource);
        for (name, property) in &schema.properties {
            // What rules cannot see is left out altogether.
            if Type::of_root(property, property.embedded_resource).is_some()
                && let Some(below) = below(property)
            {
                node.properties.insert(name.clone(), below);
            }
        }
        if let Additional::Values(values) = &schema.additional {
            node.values = below(values).map(Box::new);
        }
        node.items = schema.items.as_deref().and_then(below).map(Box::new);
        let empty = node.rules.is_empty()
            && node.properties.is_empty()
            && node.values.is_none()
            && node.items.is_none();
        (!empty).then_some(node)
    }
}

/// Where a value was before: itself if it can be told, else the nearest ancestor of which it can.
#[derive(Clone, Copy, Debug)]
struct Ratchet<'a> {
    current: Option<Old<'a>>,
    ancestor: Option<(Old<'a>, &'a Value)>,
}

impl<'a> Ratchet<'a> {
    fn unchanged(&self, value: &Value) -> bool {
        match (self.current, self.ancestor) {
            (Some(old), _) => old.equals(value),
            (None, Some((old, new))) => old.equals(new),
            (None, None) => false,
        }
    }

    fn field(self, value: &'a Value, name: &str) -> Self {
        let Some(current) = self.current else { return self };
        if self.ancestor.is_none() && matches!(name, "apiVersion" | "kind") {
            return Ratchet { current: None, ancestor: None };
        }
        Ratchet { current: current.field(name), ancestor: Some((current, value)) }
    }

    fn item(self, value: &'a Value, old: Option<Old<'a>>) -> Self {
        let Some(current) = self.current else { return self };
        Ratchet { current: old, ancestor: Some((current, value)) }
    }
}

struct Evaluation<'w> {
    errors: Vec<FieldError>,
    warnings: &'w mut Vec<String>,
}

impl Evaluation<'_> {
    fn node<'a>(
        &mut self,
        node: &Node,
        schema: &'a Schema,
        value: &'a Value,
        old: Option<&'a Value>,
        ratchet: Ratchet<'a>,
        at: &Path<'_>,
    ) {
        if value.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        for rule in &node.rules {
            self.rule(rule, schema, value, old, ratchet, at);
        }
        match value {
            Value::Array(items) => {
                let (Some(node), Some(item_schema)) = (&node.items, &schema.items) else { return };
                let known = old.and_then(|value| Old { value, schema }.items());
                for (index, item) in items.iter().enumerate() {
                    let old_item = known.as_ref().and_then(|known| known.get(item));
                    let ratchet = ratchet.item(value, old_item);
                    let old_value = old_item.map(|old| old.value);
                    self.node(node, item_schema, item, old_value, ratchet, &at.index(index));
                }
            }
            Value::Object(map) => {
                for (name, field) in map {
                    let old_field = old.and_then(|old| old.get(name));
                    let ratchet = ratchet.field(value, name);
                    if let (Some(node), Some(property)) =
                        (node.properties.get(name), schema.properties.get(name))
                    {
                        self.node(node, property, field, old_field, ratchet, &at.field(name));
                    } else if let (Some(node), Additional::Values(values)) =
                        (&node.values, &schema.additional)
                    {
                        self.node(node, values, field, old_field, ratchet, &at.key(name));
                    }
                }
            }
            _ => {}
        }
    }

    fn rule<'a>(
        &mut self,
        rule: &Result<CompiledRule, RuleError>,
        schema: &Schema,
        value: &'a Value,
        old: Option<&'a Value>,
        ratchet: Ratchet<'a>,
        at: &Path<'_>,
    ) {
        let type_name = Value::from(schema.kind.map_or("", super::Type::name));
        let rule = match rule {
            Ok(rule) if rule.source.rule.trim().is_empty() => return,
            Ok(rule) => rule,
            Err(error) => {
                let detail = format!("rule compile error: {error}");
                self.errors.push(FieldError::invalid(at, &type_name, detail));
                return;
            }
        };
        let optional = rule.source.optional_old_self;
        if rule.uses_old_self && old.is_none() && !optional {
            return;
        }
        let old_self = match (optional, old) {
            (true, old) => OldSelf::Optional(old),
            (false, Some(old)) => OldSelf::Value(old),
            (false, None) => OldSelf::Absent,
        };
        match evaluate(&rule.program, value, old_self, schema) {
            Ok(Cel::Bool(true)) => {}
            Ok(_) => {
                let error = failure(rule, schema, value, old_self, at);
                if !rule.uses_old_self && ratchet.unchanged(value) {
                    self.warnings.push(error.to_string());
                } else {
                    self.errors.push(error);
                }
            }
            Err(error) => {
                let shown = shown_rule(&rule.source);
                let detail = if error.starts_with("no such overload") {
                    format!(
                        "'{error}': call arguments did not match a supported operator, function or macro \
                         signature for rule: {shown}"
                    )
                } else {
                    format!("{error} evaluating rule: {shown}")
                };
                self.errors.push(FieldError::invalid(at, &type_name, detail));
            }
        }
    }
}

/// The error of a rule that evaluated to false.
fn failure(
    rule: &CompiledRule,
    schema: &Schema,
    value: &Value,
    old: OldSelf<'_>,
    at: &Path<'_>,
) -> FieldError {
    let source = &rule.source;
    let detail = rule
        .message
        .as_ref()
        .and_then(|program| evaluate(program, value, old, schema).ok())
        .and_then(usable_message)
        .unwrap_or_else(|| match &source.message {
            Some(message) => message.trim().to_owned(),
            None => format!("failed rule: {}", source.rule.trim()),
        });
    let mut error = match source.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(at, detail),
        Some("FieldValueRequired") => FieldError::required(at, detail),
        Some("FieldValueDuplicate") => FieldError::duplicate(at, value),
        _ => FieldError::invalid(at, value, detail),
    };
    // Whole objects and lists are not repeated in the message.
    let whole = matches!(schema.kind, Some(super::Type::Object | super::Type::Array));
    if whole && matches!(error.problem, Problem::Invalid | Problem::Duplicate) {
        error.value = None;
    }
    if let Some(path) = source.field_path.as_deref().and_then(|path| valid_field_path(path, schema)) {
        error.field = if at.is_root() { path } else { format!("{at}.{path}") };
    }
    error
}

fn usable_message(value: Cel) -> Option<String> {
    let Cel::String(text) = value else { return None };
    let text = text.trim();
    let usable = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
    usable.then(|| text.to_owned())
}

fn shown_rule(rule: &Rule) -> &str {
    rule.message.as_deref().unwrap_or(&rule.rule).trim()
}
