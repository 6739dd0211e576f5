//! `matchConditions`: CEL expressions that must all hold for a webhook to be asked.
//!
//! An expression sees `object`, `oldObject`, `request`, and `namespaceObject` (always null here, as in
//! kube-apiserver). One that is false excludes the webhook whatever the others do; otherwise an expression
//! that fails refuses the request or excludes the webhook, by failure policy.
//!
//! Compiled expressions are kept, up to a bound.

use super::hook::FailurePolicy;
use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, MapExpr, StructExpr, operators,
};
use kube_cel::cel::objects::{Key, Map as CelMap};
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, ExecutionError, Value as Cel};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many compiled expressions are kept.
const COMPILED_MAX: usize = 1000;

/// Why conditions cannot be decided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConditionError {
    /// The expression asks about permissions, which nobody here keeps.
    #[error("the variable `authorizer` in matchConditions")]
    Authorizer,
    /// The expressions that failed, as one sentence.
    #[error("{0}")]
    Failed(String),
}

/// What expressions may look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inputs<'a> {
    pub object: Option<&'a Value>,
    pub old: Option<&'a Value>,
    pub request: &'a Value,
}

#[derive(Debug)]
struct Compiled {
    expression: IdedExpr,
    /// Which variables it mentions: the others need no conversion.
    mentions: [bool; 3],
    /// What fields are selected from, inner ones first, to find the one that a failure is about.
    selections: Vec<(IdedExpr, String)>,
}

const VARIABLES: [&str; 3] = ["object", "oldObject", "request"];

/// Compiled conditions.
#[derive(Default)]
pub(super) struct Conditions {
    compiled: Mutex<HashMap<String, Arc<Result<Compiled, ConditionError>>>>,
}

/// Checks an expression before it is stored.
pub(crate) fn check_match_condition(expression: &str) -> Result<(), ConditionError> {
    compile(expression).map(drop)
}

impl Conditions {
    /// Whether all conditions hold.
    pub(super) fn hold(
        &self,
        conditions: &[Value],
        policy: FailurePolicy,
        inputs: Inputs<'_>,
    ) -> Result<bool, ConditionError> {
        let mut failures: Vec<String> = Vec::new();
        for condition in conditions {
            let text = condition.get("expression").and_then(Value::as_str).unwrap_or_default();
            match &*self.compiled(text) {
                Err(ConditionError::Authorizer) => return Err(ConditionError::Authorizer),
                Err(ConditionError::Failed(why)) => failures.push(format!("compilation error: {why}")),
                Ok(compiled) => match evaluate(compiled, inputs) {
                    Ok(true) => {}
                    Ok(false) => return Ok(false),
                    Err(why) => failures.push(format!("expression '{text}' resulted in error: {why}")),
                },
            }
        }
        match (policy, failures.as_slice()) {
            (_, []) => Ok(true),
            (FailurePolicy::Ignore, _) => Ok(false),
            (FailurePolicy::Fail, [one]) => Err(ConditionError::Failed(one.clone())),
            (FailurePolicy::Fail, many) => Err(ConditionError::Failed(format!("[{}]", many.join(", ")))),
        }
    }

    fn compiled(&self, text: &str) -> Arc<Result<Compiled, ConditionError>> {
        let mut known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = known.get(text) {
            return compiled.clone();
        }
        if known.len() >= COMPILED_MAX {
            known.clear();
        }
        let compiled = Arc::new(compile(text));
        known.insert(text.to_owned(), compiled.clone());
        compiled
    }
}

fn compile(text: &str) -> Result<Compiled, ConditionError> {
    let parser = Parser::default().enable_optional_syntax(true);
    let parsed = parser.parse(text);
    let mut expression = parsed.map_err(|errors| {
        // The quoted lines are set off by one space more than the parser does.
        let errors = errors.to_string().replace("\n|", "\n |");
        ConditionError::Failed(format!("compilation failed: {errors}"))
    })?;
    let references = expression.references();
    if references.has_variable("authorizer") {
        return Err(ConditionError::Authorizer);
    }
    let mentions = VARIABLES.map(|name| references.has_variable(name));
    let mut selections = Vec::new();
    select_by_index(&mut expression, &mut selections);
    Ok(Compiled { expression, mentions, selections })
}

fn evaluate(compiled: &Compiled, inputs: Inputs<'_>) -> Result<bool, String> {
    let mut context = Context::default().with_all();
    let values = [inputs.object, inputs.old, Some(inputs.request)];
    for ((name, value), mentioned) in VARIABLES.iter().zip(values).zip(compiled.mentions) {
        if mentioned {
            context.add_variable_from_value(*name, value.map_or(Cel::Null, to_cel));
        }
    }
    context.add_variable_from_value("namespaceObject", Cel::Null);
    match context.resolve(&compiled.expression) {
        Ok(Cel::Bool(holds)) => Ok(holds),
        Ok(other) => Err(format!("must evaluate to bool but got {}", other.type_of())),
        Err(ExecutionError::NoSuchOverload) => {
            let holds_no_fields =
                |from: &IdedExpr| !matches!(context.resolve(from), Ok(Cel::Map(_)) | Err(_));
            let mut selections = compiled.selections.iter();
            let absent = selections.find(|(from, _)| holds_no_fields(from)).map(|(_, field)| field);
            Err(absent.map_or_else(|| "no such overload".to_owned(), |field| format!("no such key: {field}")))
        }
        Err(error) => Err(word(&error)),
    }
}

/// Errors in the words of cel-go.
fn word(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::UnsupportedIndex(..) => "no such overload".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::UndeclaredReference(name) => {
            format!("undeclared reference to '{name}' (in container '')")
        }
        other => other.to_string(),
    }
}

/// Writes `a.b` as `a["b"]`, and `a.?b` as `a[?"b"]`: for the evaluator the former is false where `a` is no
/// map, which must be an error, and the latter an error where `a` has no `b`, which must be none.
fn select_by_index(node: &mut IdedExpr, found: &mut Vec<(IdedExpr, String)>) {
    let mut each = |child: &mut IdedExpr| select_by_index(child, found);
    match &mut node.expr {
        Expr::Select(select) => {
            each(&mut select.operand);
            if select.test {
                return;
            }
            let operand = std::mem::take(&mut *select.operand);
            found.push((operand.clone(), select.field.clone()));
            let field = LiteralValue::String(select.field.as_str().into());
            let field = IdedExpr { id: node.id, expr: Expr::Literal(field) };
            let func_name = operators::INDEX.to_owned();
            node.expr = Expr::Call(CallExpr { func_name, target: None, args: vec![operand, field] });
        }
        Expr::Call(call) => {
            if call.func_name == operators::OPT_SELECT {
                operators::OPT_INDEX.clone_into(&mut call.func_name);
            }
            call.target.iter_mut().map(|target| &mut **target).chain(&mut call.args).for_each(each);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(each),
        Expr::Map(MapExpr { entries }) | Expr::Struct(StructExpr { entries, .. }) => {
            for entry in entries {
                match &mut entry.expr {
                    EntryExpr::StructField(field) => each(&mut field.value),
                    EntryExpr::MapEntry(entry) => {
                        [&mut entry.key, &mut entry.value].into_iter().for_each(&mut each);
                    }
                }
            }
        }
        Expr::Comprehension(parts) => {
            let parts = &mut **parts;
            [
                &mut parts.iter_range,
                &mut parts.accu_init,
                &mut parts.loop_cond,
                &mut parts.loop_step,
                &mut parts.result,
            ]
            .into_iter()
            .for_each(each);
        }
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
}

fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Cel::Int(int),
            (None, Some(uint)) => Cel::UInt(uint),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(members) => {
            let members =
                members.iter().map(|(key, value)| (Key::String(Arc::new(key.clone())), to_cel(value)));
            Cel::Map(CelMap { map: Arc::new(members.collect()) })
        }
    }
}
