//! From a checked tree to a program.
//!
//! The shape follows cel-go's planner, since costs depend on it: chains of selections and indices are one
//! attribute, constants are computed once, membership in a constant list is free.

use super::{EvaluateError, Limits, Machine};
use crate::ast::{Comprehension, Entry, Expr, ExprKind, Literal, operators};
use crate::check::{Checked, Reference};
use crate::functions::{Function, function};
use crate::go_regex;
use crate::syntax::UNUSED_VARIABLE;
use crate::types::Type;
use crate::value::{Key, Value};
use std::sync::Arc;

/// Why an expression cannot be made ready although its types are right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A constant part of it fails.
    #[error("{0}")]
    Constant(EvaluateError),
    /// It calls a function that is declared and not implemented.
    #[error("function '{0}' is not supported")]
    Unsupported(String),
}

/// A step of a program.
#[derive(Debug)]
pub(super) enum Node {
    Constant(Value),
    Attribute(Box<Attribute>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Call(Box<Call>),
    /// Membership in a constant list.
    InConstant(Box<Node>, Arc<Vec<Value>>),
    /// `or` of optionals. The second is evaluated only if it is needed.
    OptionalOr(Box<[Node; 2]>),
    /// `orValue` of an optional.
    OptionalOrValue(Box<[Node; 2]>),
    List(Vec<Node>, Vec<usize>),
    Map(Vec<(Node, Node, bool)>),
    Loop(Box<Loop>),
}

/// A value and what is selected from it.
#[derive(Debug)]
pub(super) struct Attribute {
    pub base: Base,
    pub qualifiers: Vec<Qualifier>,
    /// Whether the last qualifier asks if something is there.
    pub test: bool,
}

#[derive(Debug)]
pub(super) enum Base {
    Slot(usize),
    Node(Node),
    Conditional(Box<[Node; 3]>),
}

#[derive(Debug)]
pub(super) struct Qualifier {
    pub key: Node,
    pub optional: bool,
}

#[derive(Debug)]
pub(super) struct Call {
    pub name: String,
    pub run: Function,
    /// The overload, if there is only one that fits.
    pub overload: &'static str,
    pub args: Vec<Node>,
    /// Whether arguments behind one that fails are not evaluated. In Kubernetes that is so for calls with three
    /// arguments or more, of `format`, and with a constant pattern.
    pub in_order: bool,
}

#[derive(Debug)]
pub(super) struct Loop {
    pub range: Node,
    pub init: Node,
    pub condition: Node,
    pub step: Step,
    pub result: Node,
    /// Slot of the accumulator; the variables have the next ones.
    pub slot: usize,
    pub two: bool,
    /// Whether the loop only binds a value that its result does not use.
    pub skip_init: bool,
}

/// How a loop goes on.
#[derive(Debug)]
pub(super) enum Step {
    Any(Node),
    /// Appends to the list so far, if the test holds. It is done in place: a copy for each item would take
    /// time in the square of their number.
    Append {
        test: Option<Node>,
        item: Node,
        constant: bool,
    },
}

impl Node {
    /// Whether the variable in a slot occurs.
    pub(super) fn mentions(&self, slot: usize) -> bool {
        let any = |nodes: &[Node]| nodes.iter().any(|node| node.mentions(slot));
        match self {
            Node::Constant(_) => false,
            Node::Attribute(attribute) => {
                let base = match &attribute.base {
                    Base::Slot(own) => *own == slot,
                    Base::Node(node) => node.mentions(slot),
                    Base::Conditional(parts) => any(&parts[..]),
                };
                base || attribute.qualifiers.iter().any(|qualifier| qualifier.key.mentions(slot))
            }
            Node::And(parts) | Node::Or(parts) | Node::OptionalOr(parts) | Node::OptionalOrValue(parts) => {
                any(&parts[..])
            }
            Node::Call(call) => any(&call.args),
            Node::InConstant(item, _) => item.mentions(slot),
            Node::List(items, _) => any(items),
            Node::Map(entries) => {
                entries.iter().any(|(key, value, _)| key.mentions(slot) || value.mentions(slot))
            }
            Node::Loop(parts) => {
                let step = match &parts.step {
                    Step::Any(node) => node.mentions(slot),
                    Step::Append { test, item, .. } => {
                        parts.slot == slot
                            || item.mentions(slot)
                            || test.as_ref().is_some_and(|test| test.mentions(slot))
                    }
                };
                step || [&parts.range, &parts.init, &parts.condition, &parts.result]
                    .into_iter()
                    .any(|node| node.mentions(slot))
            }
        }
    }
}

/// The program of an expression, and how many slots it needs.
pub(super) fn plan(checked: &Checked) -> Result<(Node, usize), PlanError> {
    let mut planner = Planner { checked, scope: checked.variables.clone(), slots: checked.variables.len() };
    let root = planner.node(&checked.ast.root)?;
    Ok((root, planner.slots))
}

struct Planner<'c> {
    checked: &'c Checked,
    scope: Vec<String>,
    slots: usize,
}

type Planned = Result<Node, PlanError>;

impl Planner<'_> {
    fn node(&mut self, expr: &Expr) -> Planned {
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(Node::Constant(constant(literal))),
            ExprKind::Ident(name) => Ok(self.ident(expr, name)),
            ExprKind::Select { operand, field, test } => {
                let operand = self.node(operand)?;
                Ok(qualified(operand, Node::Constant(field.as_str().into()), false, *test))
            }
            ExprKind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            ExprKind::List { elements, optional } => self.list(elements, optional),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct(name) => Err(PlanError::Unsupported(name.clone())),
            ExprKind::Comprehension(parts) => self.comprehension(parts),
        }
    }

    fn ident(&self, expr: &Expr, name: &str) -> Node {
        if let Some(Reference::Type(of)) = self.checked.reference(expr.id) {
            return Node::Constant(Value::Type(type_name(of).into()));
        }
        // The checker knows each variable, so the position is always found.
        let slot = self.scope.iter().rposition(|bound| bound == name).unwrap_or(0);
        Node::Attribute(Box::new(Attribute { base: Base::Slot(slot), qualifiers: Vec::new(), test: false }))
    }

    fn call(&mut self, expr: &Expr, name: &str, target: Option<&Expr>, args: &[Expr]) -> Planned {
        let mut nodes = Vec::with_capacity(args.len() + 1);
        for argument in target.into_iter().chain(args) {
            nodes.push(self.node(argument)?);
        }
        let overload = match self.checked.reference(expr.id) {
            Some(Reference::Overloads(ids)) => match ids.as_slice() {
                [id] => id,
                _ => "",
            },
            _ => "",
        };
        let pair = |nodes: Vec<Node>| <[Node; 2]>::try_from(nodes).map(Box::new);
        let nodes = match name {
            operators::AND => return pair(nodes).map(Node::And).map_err(|_| unsupported(name)),
            operators::OR => return pair(nodes).map(Node::Or).map_err(|_| unsupported(name)),
            operators::CONDITIONAL => {
                let parts = <[Node; 3]>::try_from(nodes).map_err(|_| unsupported(name))?;
                let base = Base::Conditional(Box::new(parts));
                return Ok(Node::Attribute(Box::new(Attribute {
                    base,
                    qualifiers: Vec::new(),
                    test: false,
                })));
            }
            operators::INDEX | operators::OPTIONAL_INDEX | operators::OPTIONAL_SELECT => {
                let [operand, key] = *pair(nodes).map_err(|_| unsupported(name))?;
                return Ok(qualified(operand, key, name != operators::INDEX, false));
            }
            "or" | "orValue" if nodes.len() == 2 => {
                let parts = pair(nodes).map_err(|_| unsupported(name))?;
                return Ok(if name == "or" { Node::OptionalOr(parts) } else { Node::OptionalOrValue(parts) });
            }
            _ => nodes,
        };
        if overload == "in_list"
            && let [_, Node::Constant(Value::List(list))] = nodes.as_slice()
        {
            if list.items.is_empty() {
                return Ok(Node::Constant(Value::Bool(false)));
            }
            if list.items.iter().all(is_primitive) {
                let items = list.items.clone();
                let item = nodes.into_iter().next().ok_or_else(|| unsupported(name))?;
                return Ok(Node::InConstant(Box::new(item), items));
            }
        }
        let run = function(name).ok_or_else(|| unsupported(name))?;
        let mut in_order = name == "format" || nodes.len() > 2;
        if let ("matches" | "find" | "findAll", [_, Node::Constant(Value::String(pattern)), ..]) =
            (name, nodes.as_slice())
        {
            in_order = true;
            let wrong = |why| PlanError::Constant(EvaluateError::Failed(why));
            go_regex::compile(pattern).map_err(wrong)?;
        }
        if is_conversion(name)
            && let [Node::Constant(value)] = nodes.as_slice()
        {
            let mut machine = Machine::new(0, Limits::cost(u64::MAX));
            let value = run(&mut machine, std::slice::from_ref(value)).map_err(PlanError::Constant)?;
            return Ok(Node::Constant(value));
        }
        Ok(Node::Call(Box::new(Call { name: name.to_owned(), run, overload, args: nodes, in_order })))
    }

    fn list(&mut self, elements: &[Expr], optional: &[usize]) -> Planned {
        let mut nodes = Vec::with_capacity(elements.len());
        for element in elements {
            nodes.push(self.node(element)?);
        }
        let fixed: Option<Vec<Value>> = nodes.iter().map(as_constant).collect();
        match fixed {
            Some(items) if optional.is_empty() => Ok(Node::Constant(Value::list(items))),
            _ => Ok(Node::List(nodes, optional.to_vec())),
        }
    }

    fn map(&mut self, entries: &[Entry]) -> Planned {
        let mut nodes = Vec::with_capacity(entries.len());
        for entry in entries {
            nodes.push((self.node(&entry.key)?, self.node(&entry.value)?, entry.optional));
        }
        let fixed: Option<Vec<(Key, Value)>> = nodes
            .iter()
            .filter(|(_, _, optional)| !optional)
            .map(|(key, value, _)| Some((as_constant(key)?.key()?, as_constant(value)?)))
            .collect();
        match fixed {
            Some(fixed) if fixed.len() == nodes.len() => {
                Ok(Node::Constant(Value::Map(Arc::new(fixed.into_iter().collect()))))
            }
            _ => Ok(Node::Map(nodes)),
        }
    }

    fn comprehension(&mut self, parts: &Comprehension) -> Planned {
        let range = self.node(&parts.range)?;
        let init = self.node(&parts.init)?;
        let slot = self.scope.len();
        self.scope.push(parts.accumulator.clone());
        self.scope.push(parts.variable.clone());
        self.scope.extend(parts.variable2.clone());
        self.slots = self.slots.max(self.scope.len());
        let condition = self.node(&parts.condition)?;
        let step = self.node(&parts.step)?;
        self.scope.truncate(slot + 1);
        let result = self.node(&parts.result)?;
        self.scope.truncate(slot);
        let step = appending(step, slot);
        let skip_init = parts.variable == UNUSED_VARIABLE && !result.mentions(slot);
        let two = parts.variable2.is_some();
        Ok(Node::Loop(Box::new(Loop { range, init, condition, step, result, slot, two, skip_init })))
    }
}

fn unsupported(name: &str) -> PlanError {
    PlanError::Unsupported(name.to_owned())
}

/// Adds a qualifier to an attribute, or makes an attribute of a node.
fn qualified(operand: Node, key: Node, optional: bool, test: bool) -> Node {
    let mut attribute = match operand {
        Node::Attribute(attribute) if !attribute.test => attribute,
        other => Box::new(Attribute { base: Base::Node(other), qualifiers: Vec::new(), test: false }),
    };
    attribute.qualifiers.push(Qualifier { key, optional });
    attribute.test = test;
    Node::Attribute(attribute)
}

/// Recognises a step that appends to the accumulator.
fn appending(step: Node, slot: usize) -> Step {
    let is_accumulator = |node: &Node| {
        matches!(node, Node::Attribute(attribute)
            if attribute.qualifiers.is_empty() && matches!(attribute.base, Base::Slot(own) if own == slot))
    };
    let is_append = |node: &Node| match node {
        Node::Call(call) if call.name == operators::ADD => match call.args.as_slice() {
            [first, Node::List(items, optional)] => {
                is_accumulator(first) && items.len() == 1 && optional.is_empty()
            }
            [first, Node::Constant(Value::List(list))] => is_accumulator(first) && list.items.len() == 1,
            _ => false,
        },
        _ => false,
    };
    let item = |node: Node| match node {
        Node::Call(call) => match call.args.into_iter().nth(1) {
            Some(Node::List(items, _)) => items.into_iter().next().map(|item| (item, false)),
            Some(Node::Constant(Value::List(list))) => {
                list.items.first().cloned().map(|item| (Node::Constant(item), true))
            }
            _ => None,
        },
        _ => None,
    };
    let nothing = || Step::Any(Node::Constant(Value::Null));
    if is_append(&step) {
        return match item(step) {
            Some((item, constant)) => Step::Append { test: None, item, constant },
            None => nothing(),
        };
    }
    match step {
        Node::Attribute(attribute) => match *attribute {
            Attribute { base: Base::Conditional(parts), qualifiers, test: false }
                if qualifiers.is_empty() && is_append(&parts[1]) && is_accumulator(&parts[2]) =>
            {
                let [test, append, _] = *parts;
                match item(append) {
                    Some((item, constant)) => Step::Append { test: Some(test), item, constant },
                    None => nothing(),
                }
            }
            other => Step::Any(Node::Attribute(Box::new(other))),
        },
        other => Step::Any(other),
    }
}

fn constant(literal: &Literal) -> Value {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(flag) => Value::Bool(*flag),
        Literal::Int(int) => Value::Int(*int),
        Literal::Uint(uint) => Value::Uint(*uint),
        Literal::Double(double) => Value::Double(*double),
        Literal::String(text) => text.as_str().into(),
        Literal::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()),
    }
}

fn as_constant(node: &Node) -> Option<Value> {
    match node {
        Node::Constant(value) => Some(value.clone()),
        _ => None,
    }
}

const fn is_primitive(value: &Value) -> bool {
    matches!(
        value,
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_)
    )
}

fn is_conversion(name: &str) -> bool {
    matches!(
        name,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}

fn type_name(of: &Type) -> &'static str {
    match of {
        Type::Bool => "bool",
        Type::Bytes => "bytes",
        Type::Double => "double",
        Type::Duration => "google.protobuf.Duration",
        Type::Int => "int",
        Type::List(_) => "list",
        Type::Map(..) | Type::Object(_) => "map",
        Type::Null => "null_type",
        Type::Opaque(name) => name,
        Type::Optional(_) => "optional_type",
        Type::String => "string",
        Type::Timestamp => "google.protobuf.Timestamp",
        Type::Uint => "uint",
        Type::Type(_) => "type",
        Type::Dyn | Type::Error | Type::Param(_) => "dyn",
    }
}
