//! Literals that would fail whenever they are evaluated.

use crate::ast::{Expr, ExprKind, Id, Literal};
use crate::{go_regex, time};

/// Complains of arguments that can be seen to be wrong.
pub(super) fn check(node: &Expr, issues: &mut Vec<(Id, String)>) {
    match &node.kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) | ExprKind::Struct(_) => {}
        ExprKind::Select { operand, .. } => check(operand, issues),
        ExprKind::Call { function, target, args } => {
            target.iter().for_each(|target| check(target, issues));
            args.iter().for_each(|argument| check(argument, issues));
            if let Some(Expr { id, kind: ExprKind::Literal(Literal::String(text)) }) = args.last()
                && is_wrong(function, text)
            {
                issues.push((*id, format!("invalid {function} argument")));
            }
        }
        ExprKind::List { elements, .. } => elements.iter().for_each(|element| check(element, issues)),
        ExprKind::Map(entries) => entries.iter().for_each(|entry| {
            check(&entry.key, issues);
            check(&entry.value, issues);
        }),
        ExprKind::Comprehension(parts) => {
            for part in [&parts.range, &parts.init, &parts.condition, &parts.step, &parts.result] {
                check(part, issues);
            }
        }
    }
}

fn is_wrong(function: &str, text: &str) -> bool {
    match function {
        "matches" => go_regex::compile(text).is_err(),
        "duration" => time::parse_duration(text).is_none(),
        "timestamp" => time::parse_timestamp(text).is_none(),
        _ => false,
    }
}
