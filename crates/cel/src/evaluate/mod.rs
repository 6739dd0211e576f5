//! Evaluates checked expressions.
//!
//! A [`Program`] is an expression made ready: names are places, functions are found, constants are computed.
//! Evaluation counts costs as cel-go's cost tracker does with the estimator of Kubernetes. The cost of a step
//! is charged before the step is taken, so an expression whose budget ends has not allocated what it could
//! not pay for. Because some costs of Kubernetes do not see the size of a result (`replace`), evaluation also
//! bounds the memory and the work of one evaluation; both bounds are reported as the cost limit is.

mod cost;
mod machine;
mod plan;
mod run;

#[cfg(test)]
mod tests;

pub(crate) use machine::{Machine, Outcome};
pub use plan::PlanError;

use crate::check::Checked;
use crate::value::Value;
use std::sync::atomic::AtomicBool;

/// An expression that is ready to be evaluated.
#[derive(Debug)]
pub struct Program {
    root: plan::Node,
    /// Names of the variables, in the order in which values are given.
    variables: Vec<String>,
    slots: usize,
}

/// What an evaluation may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// The highest cost.
    pub cost_max: u64,
    /// When this becomes true, evaluation ends soon with [`EvaluateError::Cancelled`].
    pub cancelled: Option<&'a AtomicBool>,
}

impl Limits<'_> {
    /// A limit on the cost alone.
    pub const fn cost(cost_max: u64) -> Self {
        Limits { cost_max, cancelled: None }
    }
}

/// Why an evaluation gave no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// The expression failed, in the words of cel-go.
    #[error("{0}")]
    Failed(String),
    /// The cost limit was reached.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostExceeded,
    /// Nobody waits for the value any more.
    #[error("operation interrupted")]
    Cancelled,
}

impl EvaluateError {
    /// Whether the whole evaluation ends, whatever the expression says about errors.
    pub(crate) const fn is_final(&self) -> bool {
        matches!(self, EvaluateError::CostExceeded | EvaluateError::Cancelled)
    }

    pub(crate) fn no_such_overload() -> Self {
        EvaluateError::Failed("no such overload".to_owned())
    }
}

/// What an evaluation came to.
#[derive(Debug)]
pub struct Evaluation {
    /// The value, or why there is none.
    pub result: Result<Value, EvaluateError>,
    /// What was spent, at most one step above the limit.
    pub cost: u64,
}

impl Program {
    /// Makes an expression ready.
    pub fn new(checked: &Checked) -> Result<Self, PlanError> {
        let (root, slots) = plan::plan(checked)?;
        Ok(Program { root, variables: checked.variables.clone(), slots })
    }

    /// Whether the expression uses a variable at all.
    pub fn uses(&self, variable: &str) -> bool {
        let slot = self.variables.iter().position(|name| name == variable);
        slot.is_some_and(|slot| self.root.mentions(slot))
    }

    /// Evaluates the expression. Values are given in the order in which variables were declared; one that is
    /// missing is null.
    pub fn evaluate(&self, values: &[Value], limits: Limits<'_>) -> Evaluation {
        let mut machine = Machine::new(self.slots.max(self.variables.len()), limits);
        machine.set_all(values);
        let result = machine.run(&self.root);
        Evaluation { result, cost: machine.cost }
    }
}
