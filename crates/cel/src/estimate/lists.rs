//! What calls of the library of lists and of the library of sets can cost.

use super::calls::{Estimate, TRAVERSAL, size};
use super::{Argument, Range};
use crate::ast::{ExprKind, Literal};

/// The cost of a call, and of the list that it makes.
const CALL: Range = Range::fixed(1);
const MAKE_LIST: Range = Range::fixed(10);

/// None for overloads of other libraries.
pub(super) fn estimate(
    overload: &str,
    target: Option<&Argument<'_>>,
    args: &[Argument<'_>],
) -> Option<Estimate> {
    Some(match (overload, target, args) {
        ("list_slice", Some(list), [start, end]) => {
            let end = int_or(end, size(list).max);
            made(1.0, Range::fixed(end.wrapping_sub(int_or(start, 0))))
        }
        ("lists_range", None, [count]) => made(1.0, Range::fixed(int_or(count, u64::MAX))),
        ("list_reverse" | "list_flatten", Some(list), []) => made(1.0, size(list)),
        ("list_flatten_int", Some(list), [depth]) => made(factor(int_or(depth, u64::MAX)), size(list)),
        ("list_distinct", Some(list), []) => made(2.0, squared(list)),
        ("list_sets_contains_list" | "list_sets_intersects_list", _, [one, other]) => {
            (size(one).times(size(other)).scaled(1.0).plus(CALL), None)
        }
        ("list_sets_equivalent_list", _, [one, other]) => {
            (size(one).times(size(other)).scaled(2.0).plus(CALL), None)
        }
        (_, Some(list), []) if overload.ends_with("_sort") => made(compared(overload), squared(list)),
        (_, Some(_), [keys]) if overload.ends_with("_sortByAssociatedKeys") => {
            made(compared(overload), squared(keys))
        }
        _ => return None,
    })
}

/// A list whose making reads this many items, and whose size Kubernetes takes to be the same.
fn made(factor: f64, items: Range) -> Estimate {
    (items.scaled(factor).plus(CALL).plus(MAKE_LIST), Some(items))
}

fn squared(list: &Argument<'_>) -> Range {
    size(list).times(size(list))
}

/// Sorting compares each item with each other, and texts are read for it.
fn compared(overload: &str) -> f64 {
    let reads = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
    if reads { 2.0 + TRAVERSAL } else { 2.0 }
}

/// A number that is written in the expression; a negative one counts as 0.
fn int_or(argument: &Argument<'_>, otherwise: u64) -> u64 {
    match argument.expr.kind {
        ExprKind::Literal(Literal::Int(value)) => u64::try_from(value).unwrap_or(0),
        _ => otherwise,
    }
}

#[expect(clippy::cast_precision_loss)]
fn factor(depth: u64) -> f64 {
    depth as f64
}
