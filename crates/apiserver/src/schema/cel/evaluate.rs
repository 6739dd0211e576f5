//! Evaluates the rules on an object.

use super::convert::convert;
use super::{CompiledRule, EXPRESSION_COST_MAX, Node, Ratchet, RuleError, valid_field_path};
use crate::field::{FieldError, Path, Problem, go_quote};
use crate::schema::correlate::Old;
use crate::schema::{Additional, Rule, Schema, Type};
use mainstay_cel::{EvaluateError, Evaluation as Evaluated, Limits, Program, Value as Cel};
use serde_json::Value;
use std::sync::atomic::AtomicBool;

/// Messages longer than this are not used.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Nothing more is evaluated: the budget is used up, or nobody waits.
struct Stop;

/// One walk over an object.
pub(super) struct Evaluation<'w> {
    pub errors: Vec<FieldError>,
    warnings: &'w mut Vec<String>,
    /// What is left to spend. None if an evaluation has gone beyond it.
    budget: Option<u64>,
    cancelled: &'w AtomicBool,
}

/// A part of the object with all that its rules may look at.
struct Part<'a> {
    schema: &'a Schema,
    value: &'a Value,
    old: Option<&'a Value>,
    /// `self` and `oldSelf`, the latter null if there is none.
    values: [Cel; 2],
    ratchet: Ratchet<'a>,
}

impl<'w> Evaluation<'w> {
    pub(super) fn new(budget: u64, warnings: &'w mut Vec<String>, cancelled: &'w AtomicBool) -> Self {
        Evaluation { errors: Vec::new(), warnings, budget: Some(budget), cancelled }
    }

    pub(super) fn node<'a>(
        &mut self,
        node: &Node,
        schema: &'a Schema,
        value: &'a Value,
        old: Option<&'a Value>,
        ratchet: Ratchet<'a>,
        at: &Path<'_>,
    ) {
        if value.is_null() || self.budget.is_none() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        if self.rules(node, schema, value, old, ratchet, at).is_err() {
            self.budget = None;
            return;
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

    fn rules<'a>(
        &mut self,
        node: &Node,
        schema: &'a Schema,
        value: &'a Value,
        old: Option<&'a Value>,
        ratchet: Ratchet<'a>,
        at: &Path<'_>,
    ) -> Result<(), Stop> {
        if node.rules.is_empty() {
            return Ok(());
        }
        if self.budget == Some(0) {
            return self.stop(at, schema, OUT_OF_BUDGET.to_owned());
        }
        let uses_old = node.rules.iter().flatten().any(CompiledRule::uses_old_self);
        let convert = |value: &Value| convert(value, schema, node.resource);
        let old_value = old.filter(|_| uses_old).map_or(Cel::Null, convert);
        let part = Part { schema, value, old, values: [convert(value), old_value], ratchet };
        for rule in &node.rules {
            match rule {
                Ok(rule) => self.rule(rule, &part, at)?,
                Err(error) => self.compile_error(error, &part, at),
            }
        }
        Ok(())
    }

    fn compile_error(&mut self, error: &RuleError, part: &Part<'_>, at: &Path<'_>) {
        let detail = format!("rule compile error: {error}");
        self.errors.push(FieldError::invalid(at, &type_name(part.schema), detail));
    }

    fn rule(&mut self, rule: &CompiledRule, part: &Part<'_>, at: &Path<'_>) -> Result<(), Stop> {
        let Some(program) = &rule.program else { return Ok(()) };
        let optional = rule.source.optional_old_self;
        if rule.uses_old_self && part.old.is_none() && !optional {
            return Ok(());
        }
        let [new, old] = part.values.clone();
        let old = match (optional, part.old) {
            (true, Some(_)) => Cel::some(old),
            (true, None) => Cel::Optional(None),
            (false, _) => old,
        };
        let values = [new, old];
        let evaluated = self.evaluate(program, &values);
        if !self.spend(evaluated.cost) {
            return self.stop(at, part.schema, OUT_OF_BUDGET.to_owned());
        }
        let shown = shown_rule(&rule.source);
        match evaluated.result {
            Ok(Cel::Bool(true)) => Ok(()),
            Ok(_) => self.failure(rule, part, &values, at),
            Err(EvaluateError::Cancelled) => Err(Stop),
            Err(error @ EvaluateError::CostExceeded) => {
                let detail = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for \
                     rule: {shown}"
                );
                self.stop(at, part.schema, detail)
            }
            Err(EvaluateError::Failed(error)) => {
                let detail = if error.starts_with("no such overload") {
                    format!(
                        "'{error}': call arguments did not match a supported operator, function or macro \
                         signature for rule: {shown}"
                    )
                } else {
                    format!("{error} evaluating rule: {shown}")
                };
                self.errors.push(FieldError::invalid(at, &type_name(part.schema), detail));
                Ok(())
            }
        }
    }

    fn evaluate(&self, program: &Program, values: &[Cel]) -> Evaluated {
        let limits = Limits { cost_max: EXPRESSION_COST_MAX, cancelled: Some(self.cancelled) };
        program.evaluate(values, limits)
    }

    /// Takes a cost off the budget; false if that is too small.
    fn spend(&mut self, cost: u64) -> bool {
        self.budget = self.budget.and_then(|budget| budget.checked_sub(cost));
        self.budget.is_some()
    }

    fn stop(&mut self, at: &Path<'_>, schema: &Schema, detail: String) -> Result<(), Stop> {
        self.errors.push(FieldError::invalid(at, &type_name(schema), detail));
        Err(Stop)
    }

    /// Reports a rule that evaluated to false.
    fn failure(
        &mut self,
        rule: &CompiledRule,
        part: &Part<'_>,
        values: &[Cel],
        at: &Path<'_>,
    ) -> Result<(), Stop> {
        let source = &rule.source;
        let message = match &rule.message {
            Some(program) => self.message(program, source, values),
            None => Ok(None),
        };
        let (mut error, stop) = match message {
            Ok(message) => {
                let detail = message.unwrap_or_else(|| match &source.message {
                    Some(message) => message.trim().to_owned(),
                    None => format!("failed rule: {}", source.rule.trim()),
                });
                (worded(source, part, at, detail), false)
            }
            Err(None) => return Err(Stop),
            Err(Some(detail)) => (FieldError::invalid(at, &type_name(part.schema), detail), true),
        };
        let path = source.field_path.as_deref().and_then(|path| valid_field_path(path, part.schema));
        if let Some(path) = path {
            error.field = if at.is_root() { path } else { format!("{at}.{path}") };
        }
        if !rule.uses_old_self && part.ratchet.unchanged(part.value) {
            self.warnings.push(error.to_string());
        } else {
            self.errors.push(error);
        }
        if stop { Err(Stop) } else { Ok(()) }
    }

    /// What the `messageExpression` says; none if it cannot be used. The error is why nothing more is
    /// evaluated, if somebody waits to hear it.
    fn message(
        &mut self,
        program: &Program,
        source: &Rule,
        values: &[Cel],
    ) -> Result<Option<String>, Option<String>> {
        let evaluated = self.evaluate(program, values);
        if !self.spend(evaluated.cost) {
            return Err(Some(
                "messageExpression evaluation failed due to running out of cost budget, no further \
                 validation rules will be run"
                    .to_owned(),
            ));
        }
        match evaluated.result {
            Ok(Cel::String(text)) => {
                let text = text.trim();
                let usable =
                    !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains(['\n', '\r']);
                Ok(usable.then(|| text.to_owned()))
            }
            Ok(_) | Err(EvaluateError::Failed(_)) => Ok(None),
            Err(EvaluateError::Cancelled) => Err(None),
            Err(EvaluateError::CostExceeded) => {
                let text = go_quote(source.message_expression.as_deref().unwrap_or_default());
                Err(Some(format!(
                    "no further validation rules will be run due to call cost exceeds limit for \
                     messageExpression: {text}"
                )))
            }
        }
    }
}

/// The error of a rule with its reason.
fn worded(source: &Rule, part: &Part<'_>, at: &Path<'_>, detail: String) -> FieldError {
    let mut error = match source.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(at, detail),
        Some("FieldValueRequired") => FieldError::required(at, detail),
        Some("FieldValueDuplicate") => FieldError::duplicate(at, part.value),
        _ => FieldError::invalid(at, part.value, detail),
    };
    // Whole objects and lists are not repeated in the message.
    let whole = matches!(part.schema.kind, Some(Type::Object | Type::Array));
    if whole && matches!(error.problem, Problem::Invalid | Problem::Duplicate) {
        error.value = None;
    }
    error
}

fn type_name(schema: &Schema) -> Value {
    Value::from(schema.kind.map_or("", Type::name))
}

fn shown_rule(rule: &Rule) -> &str {
    rule.message.as_deref().unwrap_or(&rule.rule).trim()
}
