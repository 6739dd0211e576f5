//! Checks types and resolves names and overloads.
//!
//! The rules and the texts of errors are those of cel-go in the environment of Kubernetes: items of a list
//! literal have one type, numbers of different types can be compared, fields of objects must be declared.

mod formats;
mod literals;
mod unify;

#[cfg(test)]
mod tests;

use crate::ast::{Ast, Comprehension, Entry, Expr, ExprKind, Id, Literal, operators};
use crate::errors::CompileError;
use crate::functions::declarations::{named_type, overloads};
use crate::types::Type;
use unify::{Mapping, most_general};

/// The variables of an expression and their types.
pub type Variables<'v> = [(&'v str, Type)];

/// What the checker found out about one node.
#[derive(Clone, Debug, PartialEq)]
pub enum Reference {
    /// The node is a variable.
    Variable,
    /// The node stands for a type.
    Type(Type),
    /// Ids of the overloads that may be called. Which one is known at evaluation if there are several.
    Overloads(Vec<&'static str>),
}

/// An expression whose types are checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The tree. Calls of functions with a namespace have it in their names and no target.
    pub ast: Ast,
    /// Types of the nodes, by id. Parts that are not typed, like entries of maps, have `dyn`.
    pub types: Vec<Type>,
    /// Names of the variables, as they were declared.
    pub variables: Vec<String>,
    /// References of the nodes, by id.
    pub references: Vec<Option<Reference>>,
}

impl Checked {
    /// The type of the whole expression.
    pub fn gives(&self) -> &Type {
        self.type_of(self.ast.root.id)
    }

    /// The type of a node.
    pub fn type_of(&self, id: Id) -> &Type {
        usize::try_from(id).ok().and_then(|id| self.types.get(id)).unwrap_or(&Type::Dyn)
    }

    /// What a node refers to.
    pub fn reference(&self, id: Id) -> Option<&Reference> {
        usize::try_from(id).ok().and_then(|id| self.references.get(id))?.as_ref()
    }
}

/// Checks an expression that may use the given variables.
pub fn check(mut ast: Ast, variables: &Variables<'_>) -> Result<Checked, CompileError> {
    let count = ast.id_count();
    let mut checker = Checker {
        scope: variables.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect(),
        types: vec![None; count],
        references: vec![None; count],
        issues: Vec::new(),
        mapping: Mapping::default(),
    };
    let mut root = std::mem::replace(&mut ast.root, Expr { id: 0, kind: ExprKind::Literal(Literal::Null) });
    checker.expression(&mut root);
    ast.root = root;
    let refuse = |ast: &Ast, issues: Vec<(Id, String)>| {
        let issues = issues.into_iter().map(|(id, message)| (ast.offset(id), message)).collect();
        Err(CompileError::new(&ast.source, issues))
    };
    if !checker.issues.is_empty() {
        return refuse(&ast, checker.issues);
    }
    let known = |of: &Option<Type>| match of {
        Some(of) => checker.mapping.substitute(of, true),
        None => Type::Dyn,
    };
    let types = checker.types.iter().map(known).collect();
    let variables = variables.iter().map(|(name, _)| (*name).to_owned()).collect();
    let checked = Checked { ast, types, variables, references: checker.references };
    let issues = literals::check(&checked);
    if issues.is_empty() { Ok(checked) } else { refuse(&checked.ast, issues) }
}

struct Checker {
    scope: Vec<(String, Type)>,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
    issues: Vec<(Id, String)>,
    mapping: Mapping,
}

impl Checker {
    fn complain(&mut self, id: Id, message: String) {
        self.issues.push((id, message));
    }

    fn refer(&mut self, id: Id, to: Reference) {
        if let Some(slot) = usize::try_from(id).ok().and_then(|id| self.references.get_mut(id)) {
            *slot = Some(to);
        }
    }

    fn assignable(&mut self, first: &Type, second: &Type) -> bool {
        self.mapping.assignable_all(&[(first.clone(), second.clone())])
    }

    fn fresh(&mut self) -> Type {
        Type::Param(self.mapping.fresh(1))
    }

    /// The type of a node, recorded.
    fn expression(&mut self, node: &mut Expr) -> Type {
        let id = node.id;
        let of = match &mut node.kind {
            ExprKind::Literal(literal) => literal_type(literal),
            ExprKind::Ident(_) => self.identifier(node),
            ExprKind::Select { .. } => self.select(node),
            ExprKind::Call { .. } => self.call(node),
            ExprKind::List { elements, optional } => self.list(elements, optional),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct(name) => {
                let message = format!("undeclared reference to '{name}' (in container '')");
                self.complain(id, message);
                Type::Error
            }
            ExprKind::Comprehension(parts) => self.comprehension(parts),
        };
        self.record(id, of.clone());
        of
    }

    fn record(&mut self, id: Id, of: Type) {
        if let Some(slot) = usize::try_from(id).ok().and_then(|id| self.types.get_mut(id)) {
            *slot = Some(of);
        }
    }

    /// What a name stands for.
    fn look_up(&self, name: &str) -> Option<(Type, Reference)> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, of)) = self.scope.iter().rev().find(|(bound, _)| bound == name) {
            return Some((of.clone(), Reference::Variable));
        }
        let of = named_type(name)?;
        Some((Type::Type(of.clone().into()), Reference::Type(of)))
    }

    fn identifier(&mut self, node: &mut Expr) -> Type {
        let ExprKind::Ident(name) = &mut node.kind else { return Type::Error };
        if let Some((of, reference)) = self.look_up(name) {
            *name = name.trim_start_matches('.').to_owned();
            self.refer(node.id, reference);
            return of;
        }
        let message = format!("undeclared reference to '{name}' (in container '')");
        self.complain(node.id, message);
        Type::Error
    }

    fn select(&mut self, node: &mut Expr) -> Type {
        // A name with dots may be one name.
        if let Some(name) = qualified_name(node)
            && let Some((of, reference)) = self.look_up(&name)
        {
            node.kind = ExprKind::Ident(name);
            self.refer(node.id, reference);
            return of;
        }
        let id = node.id;
        let ExprKind::Select { operand, field, test } = &mut node.kind else { return Type::Error };
        let (field, test) = (field.clone(), *test);
        let found = self.field(id, operand, &field, false);
        if test { Type::Bool } else { self.mapping.substitute(&found, false) }
    }

    fn field(&mut self, id: Id, operand: &mut Expr, field: &str, optional: bool) -> Type {
        let from = self.expression(operand);
        let from = self.mapping.substitute(&from, false);
        let (target, was_optional) = from.unwrapped();
        let found = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => {
                if let Some(found) = object.fields.get(field) {
                    found.clone()
                } else {
                    self.complain(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            }
            Type::Opaque(name) if name.starts_with("kubernetes.") => {
                self.complain(id, format!("undefined field '{field}'"));
                Type::Error
            }
            Type::Param(_) => {
                self.assignable(&Type::Dyn, target);
                Type::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.complain(id, format!("type '{other}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if was_optional || optional { Type::optional(found) } else { found }
    }

    fn call(&mut self, node: &mut Expr) -> Type {
        let id = node.id;
        let ExprKind::Call { function, target, args } = &mut node.kind else { return Type::Error };
        if function == operators::OPTIONAL_SELECT
            && let [operand, Expr { kind: ExprKind::Literal(Literal::String(field)), .. }] =
                args.as_mut_slice()
        {
            let field = field.clone();
            let found = self.field(id, operand, &field, true);
            self.refer(id, Reference::Overloads(vec!["select_optional_field"]));
            return self.mapping.substitute(&found, false);
        }
        let mut takes: Vec<Type> = args.iter_mut().map(|argument| self.expression(argument)).collect();
        let written = function.clone();
        *function = function.trim_start_matches('.').to_owned();
        if let Some(receiver) = target {
            let qualified = qualified_name(receiver).map(|prefix| format!("{prefix}.{function}"));
            if let Some(name) = qualified.filter(|name| !overloads(name).is_empty()) {
                *function = name;
                *target = None;
            } else {
                takes.insert(0, self.expression(receiver));
            }
        }
        if overloads(function).is_empty() {
            let message = format!("undeclared reference to '{written}' (in container '')");
            self.complain(id, message);
            return Type::Error;
        }
        if matches!(function.as_str(), operators::AND | operators::OR) {
            return self.logic(id, function, args, &takes);
        }
        let (function, member) = (function.clone(), target.is_some());
        self.resolve(id, &function, member, &takes)
    }

    /// `&&` and `||` complain of their operands, not of themselves.
    fn logic(&mut self, id: Id, function: &str, args: &[Expr], takes: &[Type]) -> Type {
        let mut gives = Type::Bool;
        for (argument, of) in args.iter().zip(takes) {
            if !self.assignable(of, &Type::Bool) {
                let shown = self.mapping.substitute(of, false);
                self.complain(argument.id, format!("expected type 'bool' but found '{shown}'"));
                gives = Type::Error;
            }
        }
        let overload = if function == operators::AND { "logical_and" } else { "logical_or" };
        self.refer(id, Reference::Overloads(vec![overload]));
        gives
    }

    /// Finds the overloads that fit. Several that give different types make the result dynamic.
    fn resolve(&mut self, id: Id, function: &str, member: bool, takes: &[Type]) -> Type {
        let mut result: Option<Type> = None;
        let mut found = Vec::new();
        for overload in overloads(function) {
            if overload.member != member || overload.takes.len() != takes.len() {
                continue;
            }
            let first = self.mapping.fresh(overload.params);
            let pairs: Vec<(Type, Type)> =
                takes.iter().cloned().zip(overload.takes.iter().map(|of| shift(of, first))).collect();
            if !self.mapping.assignable_all(&pairs) {
                continue;
            }
            found.push(overload.id);
            let gives = self.mapping.substitute(&shift(&overload.gives, first), false);
            result = Some(match result {
                Some(other) if other != Type::Dyn && other != gives => Type::Dyn,
                Some(other) => other,
                None => gives,
            });
        }
        if let Some(result) = result {
            self.refer(id, Reference::Overloads(found));
            return result;
        }
        let shown: Vec<String> =
            takes.iter().map(|of| self.mapping.substitute(of, true).to_string()).collect();
        let applied = match shown.as_slice() {
            [target, arguments @ ..] if member => format!("{target}.({})", arguments.join(", ")),
            arguments => format!("({})", arguments.join(", ")),
        };
        let message = format!("found no matching overload for '{function}' applied to '{applied}'");
        self.complain(id, message);
        Type::Error
    }

    fn list(&mut self, elements: &mut [Expr], optional: &[usize]) -> Type {
        let mut item: Option<Type> = None;
        for (index, element) in elements.iter_mut().enumerate() {
            let id = element.id;
            let mut found = self.expression(element);
            if optional.contains(&index) {
                found = self.unwrap_optional(id, &found);
            }
            item = Some(self.join(item, found));
        }
        let item = item.unwrap_or_else(|| self.fresh());
        Type::list(item)
    }

    fn map(&mut self, entries: &mut [Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for Entry { key, value, optional, .. } in entries {
            let found = self.expression(key);
            keys = Some(self.join(keys, found));
            let mut found = self.expression(value);
            if *optional {
                found = self.unwrap_optional(value.id, &found);
            }
            values = Some(self.join(values, found));
        }
        let keys = keys.unwrap_or_else(|| self.fresh());
        let values = values.unwrap_or_else(|| self.fresh());
        Type::map(keys, values)
    }

    fn unwrap_optional(&mut self, id: Id, found: &Type) -> Type {
        let (inner, is_optional) = found.unwrapped();
        if !is_optional && *inner != Type::Dyn {
            let wanted = Type::optional(inner.clone());
            self.complain(id, format!("expected type '{wanted}' but found '{inner}'"));
        }
        inner.clone()
    }

    /// The type of the members of one literal. That they are of one type is checked afterwards.
    fn join(&mut self, first: Option<Type>, next: Type) -> Type {
        let Some(first) = first else { return next };
        if self.assignable(&first, &next) {
            return most_general(&first, &next);
        }
        Type::Dyn
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.complain(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn comprehension(&mut self, parts: &mut Comprehension) -> Type {
        let range = self.expression(&mut parts.range);
        let start = self.expression(&mut parts.init);
        let range = self.mapping.substitute(&range, false);
        let two = parts.variable2.is_some();
        let (first, second) = match range {
            Type::List(item) if two => (Type::Int, (*item).clone()),
            Type::List(item) => ((*item).clone(), Type::Dyn),
            Type::Map(key, value) => ((*key).clone(), (*value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.complain(parts.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        let depth = self.scope.len();
        self.scope.push((parts.accumulator.clone(), start.clone()));
        self.scope.push((parts.variable.clone(), first));
        if let Some(name) = &parts.variable2 {
            self.scope.push((name.clone(), second));
        }
        let condition = self.expression(&mut parts.condition);
        if !self.assignable(&Type::Bool, &condition) {
            self.mismatch(parts.condition.id, &Type::Bool, &condition);
        }
        let step = self.expression(&mut parts.step);
        if !self.assignable(&start, &step) {
            self.mismatch(parts.step.id, &start, &step);
        }
        self.scope.truncate(depth + 1);
        let result = self.expression(&mut parts.result);
        self.scope.truncate(depth);
        self.mapping.substitute(&result, false)
    }
}

const fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// A signature's type with its parameters numbered from `first`.
fn shift(of: &Type, first: u32) -> Type {
    match of {
        Type::Param(index) => Type::Param(first.saturating_add(*index)),
        other => other.replace(&mut |inner| shift(inner, first)),
    }
}

/// `a.b.c` as one name, if the expression is just that.
fn qualified_name(node: &Expr) -> Option<String> {
    match &node.kind {
        ExprKind::Ident(name) => Some(name.clone()),
        ExprKind::Select { operand, field, test: false } => {
            Some(format!("{}.{field}", qualified_name(operand)?))
        }
        _ => None,
    }
}
