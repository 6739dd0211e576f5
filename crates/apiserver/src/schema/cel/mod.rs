//! `x-kubernetes-validations`: rules in CEL.
//!
//! Rules are compiled once per schema, into a tree that follows the schema and leaves out what has no
//! rules. A rule that does not compile fails every object: nothing is let through unchecked.
//!
//! Costs are limited as in Kubernetes: those of one evaluation by [`EXPRESSION_COST_MAX`], those of all
//! rules on one object by [`OBJECT_COST_MAX`].

mod compile;
mod convert;
mod declare;
mod evaluate;
mod field_path;
mod types;

pub(crate) use compile::{CompiledRule, RuleError};
pub(crate) use field_path::valid_field_path;

use super::correlate::Old;
use super::{Additional, Rule, Schema};
use crate::field::{FieldError, Path};
pub(crate) use declare::declare;
use declare::is_declared;
use evaluate::Evaluation;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// What one evaluation of an expression may cost.
pub(crate) const EXPRESSION_COST_MAX: u64 = 1_000_000;

/// What all rules on one object may cost together.
const OBJECT_COST_MAX: u64 = 10_000_000;

/// The compiled rules of a schema.
#[derive(Debug)]
pub(crate) struct Rules {
    root: Node,
}

/// The rules of one schema node and of those below it.
#[derive(Debug, Default)]
struct Node {
    /// Whether the values are resources.
    resource: bool,
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
    let declared = if rules.is_empty() { None } else { declare(schema, resource) };
    let compile = |rule: &Rule| match &declared {
        Some(declared) => CompiledRule::compile(rule, declared),
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
    /// unchanged part fails are added to `warnings`. `at` is where the object stands. When `cancelled`
    /// becomes true, evaluation ends and the result says nothing.
    pub(super) fn check(
        &self,
        new: &Value,
        old: Option<&Value>,
        schema: &Schema,
        at: &Path<'_>,
        warnings: &mut Vec<String>,
        cancelled: &AtomicBool,
    ) -> Vec<FieldError> {
        let mut evaluation = Evaluation::new(OBJECT_COST_MAX, warnings, cancelled);
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
        let mut node = Node { resource, ..Node::default() };
        if let Some(checks) = &schema.checks {
            node.rules = compile_rules(schema, &checks.rules, resource);
        }
        let below = |schema: &Schema| Node::compile(schema, schema.embedded_resource);
        for (name, property) in &schema.properties {
            // What rules cannot see is left out altogether.
            if has_rules(property)
                && is_declared(property)
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
