//! Checks the types in an expression, as a Kubernetes API server does when a definition is created.
//!
//! Checking also prepares the expression for the evaluator, see [`super::rewrite`].

use super::functions::{ORDERED, Overload, UNSUPPORTED, overloads};
use super::rewrite::{rewrite_call, rewrite_optional_select, text_literal};
use super::types::{Bindings, Type};
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
};
use std::sync::Arc;

/// What is wrong, and at which part of the expression.
#[derive(Debug)]
pub(super) struct Complaint {
    pub id: u64,
    pub text: String,
}

/// What checking found out.
#[derive(Debug)]
pub(super) struct Checked<'s> {
    pub gives: Type<'s>,
    pub uses_old_self: bool,
    /// Whether the result may depend on the order of lists.
    pub ordered: bool,
}

/// Marks strings that stand for types, so that no string of an object can be equal to one.
pub(super) const TYPE_MARK: &str = "\u{0}type ";

/// Checks and prepares an expression in which `self` and `oldSelf` have the given types.
pub(super) fn check<'s>(
    expression: &mut IdedExpr,
    self_type: &Type<'s>,
    old_self_type: &Type<'s>,
) -> Result<Checked<'s>, Vec<Complaint>> {
    let scope = vec![("self".to_owned(), self_type.clone()), ("oldSelf".to_owned(), old_self_type.clone())];
    let mut checker = Checker { scope, complaints: Vec::new(), uses_old_self: false, ordered: false };
    let gives = checker.expression(expression);
    if checker.complaints.is_empty() {
        Ok(Checked { gives, uses_old_self: checker.uses_old_self, ordered: checker.ordered })
    } else {
        Err(checker.complaints)
    }
}

struct Checker<'s> {
    scope: Vec<(String, Type<'s>)>,
    complaints: Vec<Complaint>,
    uses_old_self: bool,
    ordered: bool,
}

impl<'s> Checker<'s> {
    fn complain(&mut self, id: u64, text: String) -> Type<'s> {
        self.complaints.push(Complaint { id, text });
        Type::Free
    }

    fn expression(&mut self, node: &mut IdedExpr) -> Type<'s> {
        let id = node.id;
        match &mut node.expr {
            Expr::Unspecified => Type::Free,
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => {
                let name = name.clone();
                self.identifier(id, &name, &mut node.expr)
            }
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(value) => {
                let text = format!("undeclared reference to '{}' (in container '')", value.type_name);
                self.complain(id, text)
            }
            Expr::Select(_) => self.select(node),
            Expr::Call(_) => self.call(node),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn identifier(&mut self, id: u64, name: &str, expr: &mut Expr) -> Type<'s> {
        if let Some((_, known)) = self.scope.iter().rev().find(|(bound, _)| bound == name) {
            self.uses_old_self |= name == "oldSelf";
            return known.clone();
        }
        let types = ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];
        if types.contains(&name) {
            *expr = text_literal(&format!("{TYPE_MARK}{name}"));
            return Type::OfTypes;
        }
        self.complain(id, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn list(&mut self, list: &mut ListExpr) -> Type<'s> {
        let mut item: Option<Type<'s>> = None;
        for (index, element) in list.elements.iter_mut().enumerate() {
            let id = element.id;
            let mut found = self.expression(element);
            if list.optional_indices.contains(&index)
                && let Type::Optional(inner) = &found
            {
                found = (**inner).clone();
            }
            item = Some(self.same(id, item, found));
        }
        Type::list(item.unwrap_or(Type::Free))
    }

    fn map(&mut self, map: &mut MapExpr) -> Type<'s> {
        let (mut key, mut value) = (None, None);
        for entry in &mut map.entries {
            let EntryExpr::MapEntry(entry) = &mut entry.expr else { continue };
            let (key_id, value_id) = (entry.key.id, entry.value.id);
            let found = self.expression(&mut entry.key);
            key = Some(self.same(key_id, key, found));
            let found = self.expression(&mut entry.value);
            value = Some(self.same(value_id, value, found));
        }
        Type::Map(Arc::new(key.unwrap_or(Type::Free)), Arc::new(value.unwrap_or(Type::Free)))
    }

    /// Members of one literal must have one type.
    fn same(&mut self, id: u64, first: Option<Type<'s>>, next: Type<'s>) -> Type<'s> {
        let Some(first) = first else { return next };
        if !Bindings::default().accept(&first, &next) {
            return self.complain(id, format!("expected type '{first}' but found '{next}'"));
        }
        if matches!(first, Type::Free) { next } else { first }
    }

    fn select(&mut self, node: &mut IdedExpr) -> Type<'s> {
        let id = node.id;
        let Expr::Select(select) = &mut node.expr else { return Type::Free };
        let SelectExpr { operand, field, test } = select;
        let (field, test) = (field.clone(), *test);
        let from = self.expression(operand);
        let (inner, optional) = match &from {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let found = self.field(id, &inner, &field);
        match (optional, test) {
            (false, false) => found,
            (false, true) => Type::Bool,
            (true, false) => {
                let operand = std::mem::take(&mut **operand);
                node.expr = rewrite_optional_select(operand, &field);
                Type::optional(found)
            }
            (true, true) => self.complain(id, unsupported("has() of an optional value")),
        }
    }

    fn field(&mut self, id: u64, from: &Type<'s>, field: &str) -> Type<'s> {
        match from {
            Type::Dyn | Type::Free => Type::Dyn,
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => match object.field(field) {
                Some(found) => found,
                None => self.complain(id, format!("undefined field '{field}'")),
            },
            other => self.complain(id, format!("type '{other}' does not support field selection")),
        }
    }

    fn call(&mut self, node: &mut IdedExpr) -> Type<'s> {
        let id = node.id;
        let Expr::Call(call) = &mut node.expr else { return Type::Free };
        match call.func_name.as_str() {
            "_&&_" | "_||_" => return self.logic(call),
            "_?._" => return self.optional_select(node),
            _ => {}
        }
        let qualified = match &call.target {
            Some(target) => match &target.expr {
                Expr::Ident(space) if !self.scope.iter().any(|(name, _)| name == space) => {
                    Some(format!("{space}.{}", call.func_name)).filter(|name| overloads(name).is_some())
                }
                _ => None,
            },
            None => None,
        };
        let name = qualified.clone().unwrap_or_else(|| call.func_name.clone());
        if UNSUPPORTED.contains(&name.as_str()) || is_two_variable(call) {
            return self.complain(id, unsupported(&format!("'{name}'")));
        }
        let member = qualified.is_none() && call.target.is_some();
        let mut takes = Vec::new();
        if member && let Some(target) = &mut call.target {
            takes.push(self.expression(target));
        }
        for argument in &mut call.args {
            // The arguments of a format may be of any types.
            takes.push(match &mut argument.expr {
                Expr::List(list) if name == "format" => {
                    list.elements.iter_mut().for_each(|element| drop(self.expression(element)));
                    Type::list(Type::Dyn)
                }
                _ => self.expression(argument),
            });
        }
        let Some(ways) = overloads(&name) else {
            return self.complain(id, format!("undeclared reference to '{name}' (in container '')"));
        };
        self.ordered |= ORDERED.contains(&name.as_str());
        self.ordered |= name.starts_with("_[") && matches!(takes.first(), Some(Type::List(..) | Type::Dyn));
        let gives = self.resolve(id, &name, ways, member, &takes);
        if let Some(complaint) = bad_literal(&name, call) {
            self.complaints.push(complaint);
        }
        rewrite_call(&name, node, &takes);
        gives
    }

    /// `&&` and `||` complain of their operands, not of themselves.
    fn logic(&mut self, call: &mut CallExpr) -> Type<'s> {
        for argument in &mut call.args {
            let id = argument.id;
            let found = self.expression(argument);
            if !found.is_open() && !matches!(found, Type::Bool) {
                self.complain(id, format!("expected type 'bool' but found '{found}'"));
            }
        }
        Type::Bool
    }

    fn optional_select(&mut self, node: &mut IdedExpr) -> Type<'s> {
        let id = node.id;
        let Expr::Call(call) = &mut node.expr else { return Type::Free };
        let [operand, field] = call.args.as_mut_slice() else { return Type::Free };
        let Expr::Literal(LiteralValue::String(field)) = &field.expr else { return Type::Free };
        let field = field.inner().to_owned();
        let inner = match self.expression(operand) {
            Type::Optional(inner) => (*inner).clone(),
            other => other,
        };
        let found = self.field(id, &inner, &field);
        node.expr = rewrite_optional_select(std::mem::take(operand), &field);
        Type::optional(found)
    }

    /// Finds the overloads that fit; several that give different types make the result dynamic.
    fn resolve(
        &mut self,
        id: u64,
        name: &str,
        ways: &'static [Overload],
        member: bool,
        takes: &[Type<'s>],
    ) -> Type<'s> {
        let mut result: Option<Type<'s>> = None;
        for way in ways {
            if way.member != member || way.takes.len() != takes.len() {
                continue;
            }
            let mut bindings = Bindings::default();
            if !way.takes.iter().zip(takes).all(|(wanted, actual)| bindings.accept(wanted, actual)) {
                continue;
            }
            let gives = bindings.fill(&way.gives);
            result = Some(match result {
                Some(other) if other.to_string() != gives.to_string() => Type::Dyn,
                _ => gives,
            });
        }
        result.unwrap_or_else(|| {
            let listed =
                |types: &[Type<'s>]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let applied = match takes {
                [target, arguments @ ..] if member => format!("{target}.({})", listed(arguments)),
                arguments => format!("({})", listed(arguments)),
            };
            self.complain(id, format!("found no matching overload for '{name}' applied to '{applied}'"))
        })
    }

    fn comprehension(&mut self, node: &mut ComprehensionExpr) -> Type<'s> {
        let range_id = node.iter_range.id;
        let range = self.expression(&mut node.iter_range);
        let item = match range {
            Type::List(item, _) => (*item).clone(),
            Type::Map(key, _) => (*key).clone(),
            Type::Dyn | Type::Free => Type::Dyn,
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.complain(range_id, text)
            }
        };
        if node.iter_var2.is_some() {
            return self.complain(range_id, unsupported("a comprehension over two variables"));
        }
        // A comprehension that builds a list keeps the order of what it goes over.
        self.ordered |= matches!(node.accu_init.expr, Expr::List(_));
        let start = self.expression(&mut node.accu_init);
        let depth = self.scope.len();
        self.scope.push((node.accu_var.clone(), start.clone()));
        self.scope.push((node.iter_var.clone(), item));
        self.expression(&mut node.loop_cond);
        let step = self.expression(&mut node.loop_step);
        self.scope.truncate(depth);
        let collected = match (&start, &step) {
            (Type::List(item, _), Type::List(..)) if matches!(**item, Type::Free) => step,
            _ => start,
        };
        self.scope.push((node.accu_var.clone(), collected));
        let gives = self.expression(&mut node.result);
        self.scope.truncate(depth);
        gives
    }
}

fn literal_type<'s>(literal: &LiteralValue) -> Type<'s> {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

fn unsupported(what: &str) -> String {
    format!("{what} is not supported by this API server")
}

/// `all(i, v, …)` and the like, which arrive as plain calls because the parser does not know them.
fn is_two_variable(call: &CallExpr) -> bool {
    call.target.is_some()
        && call.args.len() == 3
        && matches!(call.func_name.as_str(), "all" | "exists" | "existsOne" | "exists_one")
}

/// Literals that would fail whenever they are evaluated.
fn bad_literal(name: &str, call: &CallExpr) -> Option<Complaint> {
    let last = call.args.last()?;
    let Expr::Literal(LiteralValue::String(text)) = &last.expr else { return None };
    let text = text.inner();
    let wrong = match name {
        "matches" => crate::schema::regexes::compile(text).is_err(),
        "duration" => crate::schema::formats::parse_go_duration(text).is_none(),
        "timestamp" => crate::schema::go_time::parse_rfc3339(text).is_err(),
        _ => false,
    };
    wrong.then(|| Complaint { id: last.id, text: format!("invalid {name} argument") })
}
