//! Formats whose text and arguments are written in the expression.

use super::Checked;
use crate::ast::{Expr, ExprKind, Id};
use crate::format::{Clause, Part, next_part, read_clause};
use crate::types::Type;

/// Complains of a call of `.format` that would fail.
pub(super) fn check(checked: &Checked, call: &Expr, mut format: &str, args: &[Expr]) -> Option<(Id, String)> {
    let mut count = 0;
    while let Some((part, rest)) = next_part(format) {
        format = rest;
        let Part::Percent(text) = part else { continue };
        if text.is_empty() {
            return Some((call.id, "unexpected end of string".to_owned()));
        }
        let Some(argument) = args.get(count) else {
            return Some((call.id, format!("index {count} out of range")));
        };
        let (clause, rest) = match read_clause(text) {
            Ok((clause, _, rest)) => (clause, rest),
            Err(why) => return Some((call.id, why)),
        };
        if let Some(wrong) = unfit(checked, clause, argument) {
            let why = clause.refusal(&runtime_name(checked.type_of(wrong)));
            return Some((wrong, format!("error during formatting: {why}")));
        }
        (format, count) = (rest, count + 1);
    }
    let why =
        || format!("too many arguments supplied to string.format (expected {count}, got {})", args.len());
    (args.len() > count).then(|| (call.id, why()))
}

/// The part of an argument that the clause cannot show.
fn unfit(checked: &Checked, clause: Clause, argument: &Expr) -> Option<Id> {
    let of = checked.type_of(argument.id);
    let fits = match clause {
        _ if *of == Type::Dyn => true,
        Clause::Text => !matches!(of, Type::Opaque(_) | Type::Object(_) | Type::Optional(_)),
        Clause::Decimal | Clause::Octal => matches!(of, Type::Int | Type::Uint),
        Clause::Fixed | Clause::Scientific => matches!(of, Type::Double | Type::String),
        Clause::Binary => matches!(of, Type::Int | Type::Uint | Type::Bool),
        Clause::Hex { .. } => matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes),
    };
    if !fits {
        return Some(argument.id);
    }
    match (&argument.kind, clause) {
        (ExprKind::List { elements, .. }, Clause::Text) => {
            elements.iter().find_map(|element| unfit(checked, clause, element))
        }
        (ExprKind::Map(entries), Clause::Text) => entries.iter().find_map(|entry| {
            unfit(checked, clause, &entry.key).or_else(|| unfit(checked, clause, &entry.value))
        }),
        _ => None,
    }
}

/// The name that a value of the type has when the expression is evaluated.
fn runtime_name(of: &Type) -> String {
    match of {
        Type::Null => "null_type".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::List(_) => "list".to_owned(),
        Type::Map(..) => "map".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Type(_) => "type".to_owned(),
        other => other.to_string(),
    }
}
