//! Literals that would fail whenever they are evaluated, and lists and maps of mixed types.

use super::{Checked, formats};
use crate::ast::{Entry, Expr, ExprKind, Id, Literal};
use crate::types::Type;
use crate::{go_regex, time};

/// The seconds that a timestamp can have: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Complains of what can be seen to be wrong.
pub(super) fn check(checked: &Checked) -> Vec<(Id, String)> {
    let mut walk = Walk { checked, issues: Vec::new() };
    walk.node(&checked.ast.root, false);
    walk.issues
}

struct Walk<'c> {
    checked: &'c Checked,
    issues: Vec<(Id, String)>,
}

impl<'c> Walk<'c> {
    /// Arguments of `.format` may have any type, at any depth.
    fn node(&mut self, node: &Expr, in_format: bool) {
        match &node.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) | ExprKind::Struct(_) => {}
            ExprKind::Select { operand, .. } => self.node(operand, in_format),
            ExprKind::Call { function, target, args } => {
                self.call(node, function, target.as_deref(), args);
                let in_format = in_format || function == "format";
                for part in target.as_deref().into_iter().chain(args) {
                    self.node(part, in_format);
                }
            }
            ExprKind::List { elements, optional } => {
                if !in_format {
                    self.list(elements, optional);
                }
                for element in elements {
                    self.node(element, in_format);
                }
            }
            ExprKind::Map(entries) => {
                if !in_format {
                    self.map(entries);
                }
                for entry in entries {
                    self.node(&entry.key, in_format);
                    self.node(&entry.value, in_format);
                }
            }
            ExprKind::Comprehension(parts) => {
                for part in [&parts.range, &parts.init, &parts.condition, &parts.step, &parts.result] {
                    self.node(part, in_format);
                }
            }
        }
    }

    fn call(&mut self, node: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) {
        if let [Expr { id, kind: ExprKind::Literal(literal) }, ..] = args
            && is_wrong(function, literal)
        {
            self.issues.push((*id, format!("invalid {function} argument")));
        }
        if let ("format", Some(target), [list]) = (function, target, args)
            && let ExprKind::Literal(Literal::String(text)) = &target.kind
            && let ExprKind::List { elements, .. } = &list.kind
        {
            self.issues.extend(formats::check(self.checked, node, text, elements));
        }
    }

    fn list(&mut self, elements: &[Expr], optional: &[usize]) {
        let mut first: Option<&Type> = None;
        for (index, element) in elements.iter().enumerate() {
            let of = self.member(element, optional.contains(&index));
            if let Some(first) = first
                && first != of
            {
                // One complaint for each list.
                return self.mismatch(element.id, first, of);
            }
            first = first.or(Some(of));
        }
    }

    fn map(&mut self, entries: &[Entry]) {
        let Some((first, others)) = entries.split_first() else { return };
        let (key, value) = (self.member(&first.key, false), self.member(&first.value, first.optional));
        for entry in others {
            let (other_key, other_value) =
                (self.member(&entry.key, false), self.member(&entry.value, entry.optional));
            if key != other_key {
                self.mismatch(entry.key.id, key, other_key);
            }
            if value != other_value {
                self.mismatch(entry.value.id, value, other_value);
            }
        }
    }

    fn member(&self, expr: &Expr, optional: bool) -> &'c Type {
        let of = self.checked.type_of(expr.id);
        if optional { of.unwrapped().0 } else { of }
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.issues.push((id, format!("expected type '{expected}' but found '{found}'")));
    }
}

fn is_wrong(function: &str, literal: &Literal) -> bool {
    match (function, literal) {
        ("matches", Literal::String(text)) => go_regex::compile(text).is_err(),
        ("duration", Literal::String(text)) => time::parse_duration(text).is_none(),
        ("timestamp", Literal::String(text)) => time::parse_timestamp(text).is_none(),
        ("timestamp", Literal::Int(seconds)) => !SECONDS.contains(seconds),
        // Kubernetes declares the conversion, and cannot do it.
        ("duration", Literal::Int(_)) | ("duration" | "timestamp", Literal::Null) => true,
        _ => false,
    }
}
