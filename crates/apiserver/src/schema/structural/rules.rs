//! `x-kubernetes-validations` of one schema node.

use super::Json;
use super::costs::Costs;
use crate::field::{FieldError, Path, Problem};
use crate::gotext::go_json;
use crate::schema::cel::{RuleError, compile_rules, valid_field_path};
use crate::schema::read::{array, read_node, text};
use crate::schema::{Rule, Schema};
use serde_json::Value;

/// What is wrong with the form of rules, and what is needed to compile them.
pub(super) struct Checked<'a> {
    pub wrong: Vec<FieldError>,
    rules: &'a [Value],
    schema: Option<&'a Schema>,
    resource: bool,
    uncorrelated: Option<&'a str>,
    at: &'a Path<'a>,
}

/// Checks the form of the rules on a node.
pub(super) fn check_rules<'a>(
    map: &'a Json,
    schema: Option<&'a Schema>,
    resource: bool,
    uncorrelated: Option<&'a str>,
    at: &'a Path<'a>,
) -> Checked<'a> {
    let rules = array(map, "x-kubernetes-validations");
    let mut wrong = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let Value::Object(rule) = rule else { continue };
        let list = at.field("x-kubernetes-validations");
        check_form(rule, map, &list.index(index), &mut wrong);
    }
    Checked { wrong, rules, schema, resource, uncorrelated, at }
}

fn check_form(rule: &Json, node: &Json, at: &Path<'_>, wrong: &mut Vec<FieldError>) {
    let given = |name: &str| text(rule, name).unwrap_or_default();
    let invalid =
        |name: &str, detail: &str| FieldError::invalid(&at.field(name), &given(name).into(), detail);
    let (expression, message) = (given("rule").trim(), given("message").trim());
    if expression.is_empty() {
        wrong.push(FieldError::required(&at.field("rule"), "rule is not specified"));
    } else if message.is_empty() && !given("message").is_empty() {
        wrong.push(invalid("message", "must be non-empty if specified"));
    } else if has_line_break(message) {
        wrong.push(invalid("message", "must not contain line breaks"));
    } else if has_line_break(expression) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        wrong.push(FieldError::required(&at.field("message"), detail));
    }
    if !given("messageExpression").is_empty() && given("messageExpression").trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        wrong.push(FieldError::required(&at.field("messageExpression"), detail));
    }
    if let Some(reason) = rule.get("reason").filter(|reason| !reason.is_null()) {
        const REASONS: [&str; 4] =
            ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        if !reason.as_str().is_some_and(|reason| REASONS.contains(&reason)) {
            wrong.push(FieldError::not_supported(&at.field("reason"), reason, &REASONS));
        }
    }
    let path = given("fieldPath");
    if path.is_empty() {
        return;
    }
    if path.trim().is_empty() {
        wrong.push(invalid("fieldPath", "must be non-empty if specified"));
    }
    if has_line_break(path) {
        wrong.push(invalid("fieldPath", "must not contain line breaks"));
    }
    let schema = read_node(&Value::Object(node.clone()), 0);
    if valid_field_path(path, &schema).is_none() {
        wrong.push(invalid("fieldPath", "must be a valid path"));
    }
}

impl Checked<'_> {
    /// Compiles the rules and reports those that don't, and those that cost too much. An object can have
    /// `cardinality` values that the rules are about.
    pub(super) fn compile(&self, cardinality: Option<u64>, costs: &mut Costs) -> Vec<FieldError> {
        let (Some(schema), false) = (self.schema, self.rules.is_empty()) else { return Vec::new() };
        let list = self.at.field("x-kubernetes-validations");
        let parsed: &[Rule] = schema.checks.as_ref().map_or(&[], |checks| &checks.rules);
        let compiled = compile_rules(schema, parsed, self.resource);
        let mut errors = Vec::new();
        for ((index, raw), result) in self.rules.iter().enumerate().zip(compiled) {
            let at = list.index(index);
            let failure = |field: &str, detail: String| {
                let mut error = FieldError::invalid(&at.field(field), &Value::Null, detail);
                error.value = Some(shown(raw));
                error
            };
            match result {
                Err(RuleError::Hidden) => {
                    let detail = "internal error: failed to construct type information for \
                                  x-kubernetes-validations rules: unable to convert structural schema to \
                                  CEL declarations";
                    let mut error = FieldError::forbidden(&list, detail);
                    error.problem = Problem::Internal;
                    errors.push(error);
                    break;
                }
                Err(RuleError::Rule(detail)) => errors.push(failure("rule", detail)),
                Err(RuleError::Message(detail)) => errors.push(failure("messageExpression", detail)),
                Ok(rule) => {
                    let highest = rule.costs();
                    let often = cardinality.unwrap_or(highest.cardinality_max);
                    let cost = highest.rule.saturating_mul(often);
                    errors.extend(costs.add("estimated rule cost", cost, &at.field("rule")));
                    if let Some(cost) = highest.message {
                        let what = "estimated messageExpression cost";
                        errors.extend(costs.add(what, cost, &at.field("messageExpression")));
                    }
                    self.check_old_self(raw, rule.uses_old_self(), &at, &mut errors);
                }
            }
        }
        errors
    }

    fn check_old_self(&self, raw: &Value, uses: bool, at: &Path<'_>, errors: &mut Vec<FieldError>) {
        if let (true, Some(list)) = (uses, self.uncorrelated) {
            let detail =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
            errors.push(FieldError::invalid(&at.field("rule"), &raw["rule"], detail));
        }
        if let (false, Some(optional)) = (uses, raw.get("optionalOldSelf").filter(|set| !set.is_null())) {
            let detail = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(&at.field("optionalOldSelf"), optional, detail));
        }
    }
}

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// A rule as Kubernetes prints it: its internal type, all fields in order.
fn shown(rule: &Value) -> String {
    let text = |name: &str| go_json(&Value::from(rule[name].as_str().unwrap_or_default()));
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        go_json(&rule["reason"]),
        text("fieldPath"),
        go_json(&rule["optionalOldSelf"]),
    )
}
