//! Rules made ready to be evaluated.

use super::check::{Checked, Complaint, check};
use super::types::Type;
use super::used::Used;
use crate::schema::Rule;
use kube_cel::cel::common::ast::{IdedExpr, SourceInfo};
use kube_cel::cel::parser::{ParseErrors, Parser};
use std::sync::Arc;

/// A rule whose expressions are parsed and checked.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(super) source: Rule,
    pub(super) program: Program,
    pub(super) message: Option<Program>,
    pub(super) uses_old_self: bool,
}

/// A checked expression with what it needs to be evaluated.
#[derive(Debug)]
pub(super) struct Program {
    pub expression: IdedExpr,
    /// The parts of `self` and `oldSelf` that are looked at; the rest need not be converted.
    pub used: Used,
    pub used_old: Used,
    /// Whether lists must keep the order they have.
    pub ordered: bool,
}

/// Why a rule is refused, worded as Kubernetes does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RuleError {
    /// The rule itself.
    Rule(String),
    /// Its `messageExpression`.
    Message(String),
    /// Values at its place cannot be seen by rules.
    Hidden,
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RuleError::Rule(text) | RuleError::Message(text) => text,
            RuleError::Hidden => "failed to convert to declType for CEL validation rules",
        })
    }
}

impl CompiledRule {
    /// Compiles a rule on values of type `self_type`.
    pub(super) fn compile(rule: &Rule, self_type: &Type<'_>) -> Result<Self, RuleError> {
        let old_type =
            if rule.optional_old_self { Type::optional(self_type.clone()) } else { self_type.clone() };
        let (program, checked) = program(&rule.rule, self_type, &old_type)
            .map_err(|error| RuleError::Rule(format!("compilation failed: {error}")))?;
        if !matches!(checked.gives, Type::Bool) {
            return Err(RuleError::Rule("cel expression must evaluate to a bool".to_owned()));
        }
        let message = match &rule.message_expression {
            None => None,
            Some(text) => Some(message_program(text, self_type, &old_type)?),
        };
        Ok(CompiledRule { source: rule.clone(), program, message, uses_old_self: checked.uses_old_self })
    }

    /// Whether the rule compares with the value before.
    pub(crate) const fn uses_old_self(&self) -> bool {
        self.uses_old_self
    }
}

fn message_program(text: &str, self_type: &Type<'_>, old_type: &Type<'_>) -> Result<Program, RuleError> {
    let (program, checked) = program(text, self_type, old_type)
        .map_err(|error| RuleError::Message(format!("messageExpression compilation failed: {error}")))?;
    if matches!(checked.gives, Type::String) {
        Ok(program)
    } else {
        Err(RuleError::Message("messageExpression must evaluate to a string".to_owned()))
    }
}

fn program<'s>(
    text: &str,
    self_type: &Type<'s>,
    old_type: &Type<'s>,
) -> Result<(Program, Checked<'s>), String> {
    let mut expression = parse(text).map_err(|errors| render_syntax(text, &errors))?;
    let checked = check(&mut expression, self_type, old_type).map_err(|errors| render(text, errors))?;
    let used = Used::of("self", &expression);
    let used_old = Used::of("oldSelf", &expression);
    Ok((Program { expression, used, used_old, ordered: checked.ordered }, checked))
}

fn parse(text: &str) -> Result<IdedExpr, ParseErrors> {
    Parser::new().enable_optional_syntax(true).parse(text)
}

fn render_syntax(text: &str, errors: &ParseErrors) -> String {
    let lines: Vec<String> = errors
        .errors
        .iter()
        .map(|error| {
            let line = usize::try_from(error.pos.0).unwrap_or(1);
            let column = usize::try_from(error.pos.1).unwrap_or(1);
            located(text, line, column, &error.msg)
        })
        .collect();
    lines.join("\n")
}

fn render(text: &str, complaints: Vec<Complaint>) -> String {
    let source = source_info(text);
    let mut placed: Vec<(usize, usize, String)> = complaints
        .into_iter()
        .map(|complaint| {
            let (line, column) = position(text, source.as_deref(), complaint.id);
            (line, column, complaint.text)
        })
        .collect();
    placed.sort();
    let lines: Vec<String> =
        placed.iter().map(|(line, column, message)| located(text, *line, *column, message)).collect();
    lines.join("\n")
}

fn located(text: &str, line: usize, column: usize, message: &str) -> String {
    let snippet = text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let dots = ".".repeat(column.saturating_sub(1));
    format!("ERROR: <input>:{line}:{column}: {message}\n | {snippet}\n | {dots}^")
}

/// Where the parts of an expression stand. The parser tells this only with its errors, so the text is
/// parsed once more as the first item of a list whose second is wrong: places and ids are shifted by one.
fn source_info(text: &str) -> Option<Arc<SourceInfo>> {
    let errors = parse(&format!("[{text}\n,has(0)]")).err()?;
    errors.errors.into_iter().next()?.source_info
}

fn position(text: &str, source: Option<&SourceInfo>, id: u64) -> (usize, usize) {
    let start = source.and_then(|source| source.offset_for(id + 1)).map_or(0, |(start, _)| start);
    let start = usize::try_from(start).unwrap_or(0).saturating_sub(1);
    let before: String = text.chars().take(start).collect();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
