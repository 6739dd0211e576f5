//! What a rule can cost.

use crate::schema::Rule;
use mainstay_cel::estimate::{Bounds, estimate};
use mainstay_cel::{Type, compile};

/// The highest costs of evaluating a rule once, and its message if it has an expression for it. Expressions that
/// do not compile cost nothing.
pub(crate) fn rule_costs(rule: &Rule, of: &Type, bounds: &Bounds) -> (u64, Option<u64>) {
    let old = if rule.optional_old_self { Type::optional(of.clone()) } else { of.clone() };
    let variables = [("self", of.clone()), ("oldSelf", old)];
    let cost = |text: &str| Some(estimate(&compile(text, &variables).ok()?, bounds).max);
    let message = rule.message_expression.as_deref().filter(|text| !text.is_empty());
    (cost(&rule.rule).unwrap_or(0), message.and_then(cost))
}
