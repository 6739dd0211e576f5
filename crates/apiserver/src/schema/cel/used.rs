//! Which parts of a variable an expression looks at.

use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};
use std::collections::BTreeMap;

/// The parts of a value that an expression may look at. Only these are converted for evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Used {
    /// All of it.
    All,
    /// These fields, by their names in expressions.
    Fields(BTreeMap<String, Used>),
}

impl Used {
    /// What the expression looks at in the variable called `name`.
    pub(super) fn of(name: &str, expression: &IdedExpr) -> Self {
        let mut used = Used::Fields(BTreeMap::new());
        used.visit(name, expression);
        used
    }

    fn visit(&mut self, name: &str, node: &IdedExpr) {
        if let Some(path) = path_from(name, node) {
            self.mark(&path);
            return;
        }
        match &node.expr {
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
            Expr::Select(select) => self.visit(name, &select.operand),
            Expr::Call(call) => {
                call.target.iter().for_each(|target| self.visit(name, target));
                call.args.iter().for_each(|argument| self.visit(name, argument));
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.visit(name, element)),
            Expr::Map(map) => self.visit_entries(name, map.entries.iter().map(|entry| &entry.expr)),
            Expr::Struct(value) => self.visit_entries(name, value.entries.iter().map(|entry| &entry.expr)),
            Expr::Comprehension(inner) => {
                let parts =
                    [&inner.iter_range, &inner.accu_init, &inner.loop_cond, &inner.loop_step, &inner.result];
                for part in parts {
                    self.visit(name, part);
                }
            }
        }
    }

    fn visit_entries<'e>(&mut self, name: &str, entries: impl Iterator<Item = &'e EntryExpr>) {
        for entry in entries {
            match entry {
                EntryExpr::StructField(field) => self.visit(name, &field.value),
                EntryExpr::MapEntry(entry) => {
                    self.visit(name, &entry.key);
                    self.visit(name, &entry.value);
                }
            }
        }
    }

    fn mark(&mut self, path: &[&str]) {
        match (&mut *self, path) {
            (Used::All, _) => {}
            (_, []) => *self = Used::All,
            (Used::Fields(fields), [first, rest @ ..]) => {
                fields.entry((*first).to_owned()).or_insert_with(|| Used::Fields(BTreeMap::new())).mark(rest);
            }
        }
    }
}

/// The fields selected one after another from the variable, if the expression is just that.
fn path_from<'e>(name: &str, node: &'e IdedExpr) -> Option<Vec<&'e str>> {
    match &node.expr {
        Expr::Ident(variable) => (variable == name).then(Vec::new),
        Expr::Select(select) => {
            let mut path = path_from(name, &select.operand)?;
            path.push(&select.field);
            Some(path)
        }
        // Optional selection, as the checker writes it. What is selected from an optional variable
        // (`oldSelf` may be one) is found in the value it holds.
        Expr::Call(call) if call.func_name == "_[?_]" => {
            let [operand, key] = call.args.as_slice() else { return None };
            let Expr::Literal(LiteralValue::String(field)) = &key.expr else { return None };
            let mut path = path_from(name, operand)?;
            path.push(field.inner());
            Some(path)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_cel::cel::parser::Parser;

    #[test]
    fn only_what_is_selected_is_used() {
        let parse = |text: &str| Parser::new().enable_optional_syntax(true).parse(text).unwrap();
        let leaf = || Used::Fields(BTreeMap::new());
        let used = Used::of("self", &parse("self.a.b > 1 && has(self.c)"));
        // Leaves are whole values: nothing below them was selected, so all of them is used.
        let a = Used::Fields(BTreeMap::from([("b".to_owned(), Used::All)]));
        assert_eq!(used, Used::Fields(BTreeMap::from([("a".to_owned(), a), ("c".to_owned(), Used::All)])));
        assert_eq!(Used::of("self", &parse("self.a == oldSelf && self == {}")), Used::All);
        assert_eq!(Used::of("oldSelf", &parse("self.a")), leaf());
    }
}
