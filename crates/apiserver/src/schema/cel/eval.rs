//! Evaluates compiled expressions.

use super::check::TYPE_MARK;
use super::compile::Program;
use super::convert::convert;
use super::errors::error_text;
use crate::schema::{Schema, regexes};
use kube_cel::KubeCelExt as _;
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::{Key, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value as Cel, functions};
use regex::Regex;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// What `oldSelf` is.
#[derive(Clone, Copy, Debug)]
pub(super) enum OldSelf<'a> {
    /// Not defined: the rule does not use it.
    Absent,
    /// A value.
    Value(&'a Value),
    /// An optional that may hold a value.
    Optional(Option<&'a Value>),
}

/// Evaluates an expression on a value of the given schema; the error is worded as Kubernetes does.
pub(super) fn evaluate(
    program: &Program,
    value: &Value,
    old: OldSelf<'_>,
    schema: &Schema,
) -> Result<Cel, String> {
    let mut scope = FUNCTIONS.new_inner_scope();
    scope.add_variable_from_value("self", convert(value, schema, &program.used, program.ordered));
    let convert_old = |old: &Value| convert(old, schema, &program.used_old, program.ordered);
    match old {
        OldSelf::Absent => {}
        OldSelf::Value(old) => scope.add_variable_from_value("oldSelf", convert_old(old)),
        OldSelf::Optional(old) => {
            let optional = old.map_or_else(OptionalValue::none, |old| OptionalValue::of(convert_old(old)));
            scope.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(optional)));
        }
    }
    scope.resolve(&program.expression).map_err(|error| error_text(&error))
}

/// The evaluator's functions, with those replaced that differ from Kubernetes'.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    context.add_function("size", size);
    context.add_function("matches", matches);
    context.add_function("type", type_of);
    context.add_function("dyn", |This(this): This<Cel>| -> Result<Cel, ExecutionError> { Ok(this) });
    context.add_function("bool", to_bool);
    context.add_function("int", to_int);
    context.add_function("@double_to_string", |double: f64| crate::gotext::go_float(double));
    context.add_function("@time_to_string", time_to_string);
    context.add_function("@equal", |left: Cel, right: Cel, keys: Cel| unordered_equal(&left, &right, &keys));
    context.add_function("@merge", |left: Cel, right: Cel, keys: Cel| merge(&left, &right, &keys));
    context
});

/// Characters of a string, not bytes.
fn size(context: &FunctionContext<'_, '_>, This(this): This<Cel>) -> Result<i64, ExecutionError> {
    let size = match &this {
        Cel::String(text) => text.chars().count(),
        Cel::Bytes(bytes) => bytes.len(),
        Cel::List(items) => items.len(),
        Cel::Map(map) => map.map.len(),
        _ => return Err(context.error("no such overload")),
    };
    Ok(i64::try_from(size).unwrap_or(i64::MAX))
}

#[expect(clippy::needless_pass_by_value, reason = "the evaluator hands arguments over so")]
fn matches(
    context: &FunctionContext<'_, '_>,
    This(this): This<Arc<String>>,
    pattern: Arc<String>,
) -> Result<bool, ExecutionError> {
    match cached_regex(&pattern) {
        Ok(regex) => Ok(regex.is_match(&this)),
        Err(error) => Err(context.error(error)),
    }
}

/// Rules apply the same few patterns over and over; compiling one costs more than all else in a rule.
fn cached_regex(pattern: &str) -> Result<Regex, String> {
    const MANY: usize = 1024;
    static CACHE: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(regex) = cache.get(pattern) {
        return Ok(regex.clone());
    }
    let regex = regexes::compile(pattern)?;
    // Patterns can come out of objects, so the number of them has no bound but this.
    if cache.len() >= MANY {
        cache.clear();
    }
    cache.insert(pattern.to_owned(), regex.clone());
    Ok(regex)
}

fn type_of(This(this): This<Cel>) -> String {
    let name = match this {
        Cel::Bool(_) => "bool",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        Cel::Null => "null_type",
        _ => "object",
    };
    format!("{TYPE_MARK}{name}")
}

fn to_bool(context: &FunctionContext<'_, '_>, This(this): This<Cel>) -> Result<bool, ExecutionError> {
    match &this {
        Cel::Bool(flag) => Ok(*flag),
        Cel::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            _ => Err(context.error(format!("type conversion error from 'string' to 'bool': {text}"))),
        },
        _ => Err(context.error("no such overload")),
    }
}

fn to_int(context: &FunctionContext<'_, '_>, This(this): This<Cel>) -> Result<Cel, ExecutionError> {
    match &this {
        Cel::Timestamp(time) => Ok(Cel::Int(time.timestamp())),
        _ => functions::int(context, This(this)),
    }
}

fn time_to_string(context: &FunctionContext<'_, '_>, This(time): This<Cel>) -> Result<Cel, ExecutionError> {
    match &time {
        Cel::Timestamp(time) => {
            let nanoseconds = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or(0);
            let time = jiff::Timestamp::new(time.timestamp(), nanoseconds);
            let text = time.map(|time| time.to_string()).map_err(|_| context.error("timestamp overflow"))?;
            Ok(Cel::String(Arc::new(text)))
        }
        Cel::Duration(duration) => {
            let nanoseconds = duration.num_nanoseconds().ok_or_else(|| context.error("duration overflow"))?;
            #[expect(clippy::cast_precision_loss, reason = "as Go does it")]
            let seconds = nanoseconds as f64 / 1e9;
            Ok(Cel::String(Arc::new(format!("{seconds}s"))))
        }
        _ => Err(context.error("no such overload")),
    }
}

/// What tells an item of a set or keyed list apart: itself, or the values of its keys.
fn identity<'v>(item: &'v Cel, keys: &Cel) -> Vec<Option<&'v Cel>> {
    let Cel::List(keys) = keys else { return Vec::new() };
    if keys.is_empty() {
        return vec![Some(item)];
    }
    let of_key = |key: &Cel| match (item, key) {
        (Cel::Map(map), Cel::String(key)) => map.map.get(&Key::String(key.clone())),
        _ => None,
    };
    keys.iter().map(of_key).collect()
}

/// Whether two lists have the same items in any order.
fn unordered_equal(left: &Cel, right: &Cel, keys: &Cel) -> bool {
    let (Cel::List(left), Cel::List(right)) = (left, right) else { return false };
    left.len() == right.len()
        && right.iter().all(|item| {
            let wanted = identity(item, keys);
            left.iter().find(|other| identity(other, keys) == wanted) == Some(item)
        })
}

/// The first list with the items of the second in place of those they equal, the others at its end.
fn merge(left: &Cel, right: &Cel, keys: &Cel) -> Result<Cel, ExecutionError> {
    let (Cel::List(left), Cel::List(right)) = (left, right) else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let mut merged: Vec<Cel> = left.to_vec();
    for item in right.iter() {
        let wanted = identity(item, keys);
        match merged.iter().position(|other| identity(other, keys) == wanted) {
            Some(place) => merged[place] = item.clone(),
            None => merged.push(item.clone()),
        }
    }
    Ok(Cel::List(Arc::new(merged)))
}
