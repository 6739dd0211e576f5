//! Rewrites checked expressions where the evaluator's reading of them differs from Kubernetes'.
//!
//! The evaluator knows no static types; the checker does, so it writes into the expression what follows
//! from them. Functions that start with `@` are in [`super::eval`] and cannot be named by rules.

use super::types::{Order, Type, escape};
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, ListExpr, LiteralValue};

/// A string literal.
pub(super) fn text_literal(text: &str) -> Expr {
    Expr::Literal(LiteralValue::String(text.into()))
}

/// Selection from an optional, or of a field that may be absent.
pub(super) fn rewrite_optional_select(operand: IdedExpr, field: &str) -> Expr {
    call("_[?_]", vec![operand, node(text_literal(field))])
}

/// Rewrites a call of `name` with arguments of the given types.
pub(super) fn rewrite_call(name: &str, expression: &mut IdedExpr, takes: &[Type<'_>]) {
    let Expr::Call(original) = &mut expression.expr else { return };
    match (name, takes) {
        ("string", [Type::Bool]) => {
            "_?_:_".clone_into(&mut original.func_name);
            original.args.extend(["true", "false"].map(|text| node(text_literal(text))));
        }
        ("string", [Type::Double]) => "@double_to_string".clone_into(&mut original.func_name),
        ("string", [Type::Timestamp | Type::Duration]) => {
            "@time_to_string".clone_into(&mut original.func_name);
        }
        // The evaluator gives the format, or null.
        ("format.named", _) => {
            let inner = std::mem::take(expression);
            expression.id = inner.id;
            expression.expr = Expr::Call(CallExpr {
                func_name: "ofNonZeroValue".to_owned(),
                target: Some(Box::new(node(Expr::Ident("optional".to_owned())))),
                args: vec![inner],
            });
        }
        ("_==_" | "_!=_" | "_+_", [Type::List(_, order), _]) => {
            let Some(keys) = keys_of(*order) else { return };
            let mut args = std::mem::take(&mut original.args);
            args.push(keys);
            expression.expr = match name {
                "_+_" => call("@merge", args),
                "_==_" => call("@equal", args),
                _ => call("!_", vec![node(call("@equal", args))]),
            };
        }
        _ => {}
    }
}

/// The keys of a keyed list as a literal, empty for a set; none for lists that are neither.
fn keys_of(order: Order<'_>) -> Option<IdedExpr> {
    let keys = match order {
        Order::Listed => return None,
        Order::Set => &[],
        Order::Keyed(keys) => keys,
    };
    let escaped = keys.iter().filter_map(|key| escape(key));
    let elements = escaped.map(|key| node(text_literal(&key))).collect();
    Some(node(Expr::List(ListExpr::new(elements))))
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn call(name: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args })
}
