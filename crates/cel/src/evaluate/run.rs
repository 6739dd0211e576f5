//! Runs programs.

use super::cost::call_cost;
use super::plan::{Attribute, Base, Call, Loop, Node, Qualifier, Step};
use super::{EvaluateError, Machine, Outcome};
use crate::ast::operators;
use crate::value::{Key, Map, Value};
use std::sync::Arc;

/// Costs of the steps that are no calls, as in cel-go.
const SELECT: u64 = 1;
const MAKE_LIST: u64 = 10;
const MAKE_MAP: u64 = 30;
const APPEND: u64 = 1;

fn failed(message: impl Into<String>) -> EvaluateError {
    EvaluateError::Failed(message.into())
}

impl Machine<'_> {
    pub(super) fn run(&mut self, node: &Node) -> Outcome {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Attribute(attribute) => {
                // A conditional has no cost of its own, and neither has a test for presence.
                if !matches!(attribute.base, Base::Conditional(_)) && !attribute.test {
                    self.charge(SELECT)?;
                }
                self.resolve(attribute)
            }
            Node::And(terms) => self.logic(terms, false),
            Node::Or(terms) => self.logic(terms, true),
            Node::Call(call) => self.call(call),
            Node::InConstant(item, list) => {
                let item = self.run(item)?;
                self.work(u64::try_from(list.len()).unwrap_or(u64::MAX))?;
                Ok(Value::Bool(list.iter().any(|other| item.equals(other, &mut 0))))
            }
            Node::OptionalOr(parts) => match self.run(&parts[0])? {
                Value::Optional(None) => match self.run(&parts[1])? {
                    other @ Value::Optional(_) => Ok(other),
                    _ => Err(EvaluateError::no_such_overload()),
                },
                // What is no optional stays as it is.
                other => Ok(other),
            },
            Node::OptionalOrValue(parts) => match self.run(&parts[0])? {
                Value::Optional(Some(value)) => Ok((*value).clone()),
                Value::Optional(None) => self.run(&parts[1]),
                other => Ok(other),
            },
            Node::List(elements, optional) => self.list(elements, optional),
            Node::Map(entries) => self.map(entries),
            Node::Loop(parts) => self.repeat(parts),
        }
    }

    /// `&&` is false if either side is, `||` is true if either side is, whatever the other side is.
    fn logic(&mut self, terms: &[Node; 2], decisive: bool) -> Outcome {
        let mut error = None;
        for term in terms {
            match self.run(term) {
                Ok(Value::Bool(flag)) if flag == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => error = error.or_else(|| Some(EvaluateError::no_such_overload())),
                Err(fatal) if fatal.is_final() => return Err(fatal),
                Err(other) => error = error.or(Some(other)),
            }
        }
        error.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn call(&mut self, call: &Call) -> Outcome {
        if let ([argument], "not_strictly_false") = (call.args.as_slice(), call.overload) {
            let value = self.run(argument);
            self.charge(1)?;
            return match value {
                Err(error) if error.is_final() => Err(error),
                other => Ok(Value::Bool(other != Ok(Value::Bool(false)))),
            };
        }
        let mut error = None;
        let mut args = Vec::with_capacity(call.args.len());
        for (index, argument) in call.args.iter().enumerate() {
            match self.run(argument) {
                Ok(value) => args.push(value),
                Err(fatal) if fatal.is_final() => return Err(fatal),
                // Some calls do not look at arguments behind a failed one, and are free then.
                Err(other) if call.in_order && index + 1 < call.args.len() => return Err(other),
                Err(other) => {
                    error = error.or(Some(other));
                    // For the cost, a failed argument is a value without a size.
                    args.push(Value::Null);
                }
            }
        }
        self.charge(call_cost(&call.name, call.overload, &args))?;
        if let Some(error) = error {
            return Err(error);
        }
        let result = (call.run)(self, &args);
        match args.first() {
            Some(first) if result == Err(EvaluateError::no_such_overload()) && lacks(first, &call.name) => {
                Err(failed(format!("no such overload: {}", call.name)))
            }
            _ => result,
        }
    }

    /// The value of an attribute without the cost of the attribute itself.
    fn resolve(&mut self, attribute: &Attribute) -> Outcome {
        let base = match &attribute.base {
            Base::Slot(slot) => self.get(*slot)?,
            Base::Node(node) => self.run(node)?,
            Base::Conditional(parts) => {
                let [test, yes, no] = &**parts;
                let branch = match self.run(test)? {
                    Value::Bool(true) => yes,
                    Value::Bool(false) => no,
                    _ => return Err(EvaluateError::no_such_overload()),
                };
                match branch {
                    Node::Attribute(attribute) => self.resolve(attribute)?,
                    other => self.run(other)?,
                }
            }
        };
        if attribute.qualifiers.is_empty() {
            return Ok(base);
        }
        self.qualify_all(base, &attribute.qualifiers, attribute.test)
    }

    fn qualify_all(&mut self, base: Value, qualifiers: &[Qualifier], test: bool) -> Outcome {
        let (mut value, mut optional) = match base {
            Value::Optional(None) if test => return Ok(Value::Bool(false)),
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(value)) => ((*value).clone(), true),
            other => (other, false),
        };
        for (index, qualifier) in qualifiers.iter().enumerate() {
            optional |= qualifier.optional;
            let testing = test && index + 1 == qualifiers.len();
            let key = match &qualifier.key {
                Node::Attribute(attribute) => self.resolve(attribute),
                other => self.run(other),
            };
            let key = match key {
                Err(error) if !error.is_final() => {
                    if !optional {
                        self.charge(SELECT)?;
                    }
                    return Err(error);
                }
                other => other?,
            };
            if testing || !optional {
                self.charge(SELECT)?;
            }
            let found = qualify(&value, &key)?;
            if testing {
                return Ok(Value::Bool(found.is_some()));
            }
            value = match found {
                Some(found) => {
                    if optional {
                        self.charge(SELECT)?;
                    }
                    found
                }
                None if optional => return Ok(Value::Optional(None)),
                None => return Err(absent(&value, &key)),
            };
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    fn list(&mut self, elements: &[Node], optional: &[usize]) -> Outcome {
        self.charge(MAKE_LIST)?;
        self.reserve_items(elements.len())?;
        let mut items = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let value = self.run(element)?;
            if optional.contains(&index) {
                match value {
                    Value::Optional(inner) => items.extend(inner.map(|inner| (*inner).clone())),
                    _ => {
                        return Err(failed(
                            "cannot initialize optional list element from non-optional value",
                        ));
                    }
                }
            } else {
                items.push(value);
            }
        }
        Ok(Value::list(items))
    }

    fn map(&mut self, entries: &[(Node, Node, bool)]) -> Outcome {
        self.charge(MAKE_MAP)?;
        self.reserve_items(entries.len().saturating_mul(2))?;
        let mut map = Map::new();
        for (key, value, optional) in entries {
            let key = self.run(key)?.key().ok_or_else(|| failed("unsupported key type"))?;
            let value = self.run(value)?;
            if *optional {
                match value {
                    Value::Optional(None) => {}
                    Value::Optional(Some(inner)) => drop(map.insert(key, (*inner).clone())),
                    _ => return Err(failed("cannot initialize optional entry from non-optional value")),
                }
            } else {
                map.insert(key, value);
            }
        }
        Ok(Value::Map(Arc::new(map)))
    }

    fn repeat(&mut self, parts: &Loop) -> Outcome {
        if parts.skip_init {
            return self.run(&parts.result);
        }
        let range = self.run(&parts.range)?;
        let init = self.run(&parts.init);
        if let Err(error) = &init
            && error.is_final()
        {
            return init;
        }
        self.set(parts.slot, init);
        match range {
            Value::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    let first = if parts.two {
                        Value::Int(i64::try_from(index).unwrap_or(i64::MAX))
                    } else {
                        item.clone()
                    };
                    if !self.iterate(parts, first, item)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for (key, value) in map.iter() {
                    if !self.iterate(parts, key.clone().into(), value)? {
                        break;
                    }
                }
            }
            _ => return Err(EvaluateError::no_such_overload()),
        }
        self.run(&parts.result)
    }

    /// One round of a loop; false if it was the last.
    fn iterate(&mut self, parts: &Loop, first: Value, second: &Value) -> Result<bool, EvaluateError> {
        self.set(parts.slot + 1, Ok(first));
        if parts.two {
            self.set(parts.slot + 2, Ok(second.clone()));
        }
        match self.run(&parts.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(error) if error.is_final() => return Err(error),
            _ => {}
        }
        let next = match &parts.step {
            Step::Any(node) => self.run(node),
            Step::Append { test, item, constant } => self.append(parts.slot, test.as_ref(), item, *constant),
        };
        match next {
            Err(error) if error.is_final() => Err(error),
            other => {
                self.set(parts.slot, other);
                Ok(true)
            }
        }
    }

    /// What `test ? accumulator + [item] : accumulator` gives.
    fn append(&mut self, slot: usize, test: Option<&Node>, item: &Node, constant: bool) -> Outcome {
        if let Some(test) = test {
            match self.run(test)? {
                Value::Bool(true) => {}
                Value::Bool(false) => return self.take(slot),
                _ => return Err(EvaluateError::no_such_overload()),
            }
        }
        self.charge(SELECT + APPEND + if constant { 0 } else { MAKE_LIST })?;
        let item = self.run(item);
        self.reserve_items(1)?;
        let mut so_far = self.take(slot)?;
        let item = item?;
        if let Value::List(list) = &mut so_far {
            Arc::make_mut(&mut list.items).push(item);
        }
        Ok(so_far)
    }
}

/// Whether no value of this type can be the first argument of an operator.
fn lacks(value: &Value, operator: &str) -> bool {
    let is_number = matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_));
    let is_text = matches!(value, Value::Bytes(_));
    let is_time = matches!(value, Value::Duration(_) | Value::Timestamp(_));
    // These have methods of their own, which Kubernetes asks before it gives up.
    if is_time || matches!(value, Value::String(_)) {
        return false;
    }
    match operator {
        operators::ADD => !(is_number || is_text || is_time || matches!(value, Value::List(_))),
        operators::SUBTRACT => !(is_number || is_time),
        operators::MULTIPLY | operators::DIVIDE => !is_number,
        operators::MODULO => !matches!(value, Value::Int(_) | Value::Uint(_)),
        operators::NEGATE => {
            !matches!(value, Value::Int(_) | Value::Double(_) | Value::Duration(_) | Value::Bool(_))
        }
        operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS => {
            !(is_number || is_text || is_time || matches!(value, Value::Bool(_)))
        }
        "size" => !(is_text || matches!(value, Value::List(_) | Value::Map(_))),
        _ => false,
    }
}

/// What is at a key; none if nothing is.
fn qualify(value: &Value, key: &Value) -> Result<Option<Value>, EvaluateError> {
    match value {
        Value::Map(map) => Ok(key.key().and_then(|key| map.get(&key).cloned())),
        Value::List(list) => {
            let index = match key.key() {
                Some(Key::Int(index)) => usize::try_from(index).ok(),
                Some(Key::Uint(index)) => usize::try_from(index).ok(),
                _ => {
                    return Err(failed(match key {
                        Value::Double(double) => {
                            let shown = crate::functions::text::go_float(*double);
                            format!("unsupported index value {shown} in list")
                        }
                        other => format!("unsupported index type '{}' in list", other.type_name()),
                    }));
                }
            };
            Ok(index.and_then(|index| list.items.get(index).cloned()))
        }
        Value::Optional(Some(inner)) => qualify(inner, key),
        _ => Ok(None),
    }
}

fn absent(value: &Value, key: &Value) -> EvaluateError {
    let shown = match key {
        Value::String(text) => text.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Uint(uint) => uint.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Double(double) => crate::functions::text::go_float(*double),
        other => other.type_name().to_owned(),
    };
    failed(match value {
        Value::List(_) => format!("index out of bounds: {shown}"),
        _ => format!("no such key: {shown}"),
    })
}
