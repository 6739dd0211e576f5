//! Times and durations as values of the evaluator.
//!
//! The evaluator's own types for them come from a crate that it does not hand on, so they are made by
//! calling its functions.

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use kube_cel::cel::{Context, Value as Cel};
use std::sync::LazyLock;

static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(Context::default);

/// The time that the text says, if it says one.
pub(super) fn timestamp(text: &str) -> Option<Cel> {
    call("timestamp", text)
}

/// A duration of so many nanoseconds.
pub(super) fn duration(nanoseconds: i64) -> Cel {
    call("duration", &format!("{nanoseconds}ns")).unwrap_or(Cel::Null)
}

fn call(function: &str, text: &str) -> Option<Cel> {
    let argument = IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::String(text.into())) };
    let call = CallExpr { func_name: function.to_owned(), target: None, args: vec![argument] };
    FUNCTIONS.resolve(&IdedExpr { id: 0, expr: Expr::Call(call) }).ok()
}
