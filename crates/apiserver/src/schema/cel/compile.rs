//! Rules made ready to be evaluated.

use crate::schema::Rule;
use mainstay_cel::estimate::{Bounds, estimate};
use mainstay_cel::{Program, Type, compile};

/// A rule whose expressions are compiled.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(super) source: Rule,
    /// None if the rule is blank.
    pub(super) program: Option<Program>,
    pub(super) message: Option<Program>,
    pub(super) uses_old_self: bool,
    costs: Costs,
}

/// What evaluation can cost at most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    /// The rule, evaluated once.
    pub rule: u64,
    /// Its `messageExpression`, if it has one.
    pub message: Option<u64>,
    /// How often values that the rule is about can stand in one object.
    pub cardinality_max: u64,
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
    /// Compiles a rule on values of a schema.
    pub(super) fn compile(rule: &Rule, (of, bounds): &(Type, Bounds)) -> Result<Self, RuleError> {
        let self_type = of.clone();
        let old_type =
            if rule.optional_old_self { Type::optional(self_type.clone()) } else { self_type.clone() };
        let variables = [("self", self_type), ("oldSelf", old_type)];
        let mut costs = Costs { cardinality_max: bounds.cardinality_max(), ..Costs::default() };
        if rule.rule.trim().is_empty() {
            let source = rule.clone();
            return Ok(CompiledRule { source, program: None, message: None, uses_old_self: false, costs });
        }
        let wrong =
            |prefix: &str, error: &dyn std::fmt::Display| RuleError::Rule(format!("{prefix}: {error}"));
        let checked = compile(&rule.rule, &variables).map_err(|error| wrong("compilation failed", &error))?;
        if *checked.gives() != Type::Bool {
            return Err(RuleError::Rule("cel expression must evaluate to a bool".to_owned()));
        }
        let program =
            Program::new(&checked).map_err(|error| wrong("program instantiation failed", &error))?;
        costs.rule = estimate(&checked, bounds).max;
        let mut message = None;
        if let Some(text) = &rule.message_expression {
            let (program, cost) = compile_message(text, &variables, bounds)?;
            costs.message = Some(cost);
            message = Some(program);
        }
        let uses_old_self = program.uses("oldSelf");
        Ok(CompiledRule { source: rule.clone(), program: Some(program), message, uses_old_self, costs })
    }

    /// Whether the rule compares with the value before.
    pub(crate) const fn uses_old_self(&self) -> bool {
        self.uses_old_self
    }

    /// What evaluation can cost at most.
    pub(crate) const fn costs(&self) -> Costs {
        self.costs
    }
}

fn compile_message(
    text: &str,
    variables: &[(&str, Type)],
    bounds: &Bounds,
) -> Result<(Program, u64), RuleError> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| {
        RuleError::Message(format!("messageExpression {what} failed: {error}"))
    };
    let checked = compile(text, variables).map_err(|error| wrong("compilation", &error))?;
    if *checked.gives() != Type::String {
        return Err(RuleError::Message("messageExpression must evaluate to a string".to_owned()));
    }
    let program = Program::new(&checked).map_err(|error| wrong("instantiation", &error))?;
    Ok((program, estimate(&checked, bounds).max))
}
