//! `matchConditions`: CEL expressions that must all hold for a webhook to be asked.
//!
//! An expression sees `object`, `oldObject`, `request`, and `namespaceObject` (always null here, as in
//! kube-apiserver). One that is false excludes the webhook whatever the others do; otherwise an expression
//! that fails refuses the request or excludes the webhook, by failure policy. The costs of all conditions of
//! one webhook are limited together.
//!
//! Compiled expressions are kept, up to a bound.

use super::hook::FailurePolicy;
use crate::schema::EXPRESSION_COST_MAX;
use mainstay_cel::ast::{Expr, ExprKind};
use mainstay_cel::{EvaluateError, Key, Limits, ObjectType, Program, Type, Value as Cel};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// How many compiled expressions are kept.
const COMPILED_MAX: usize = 1000;

/// What all conditions of one webhook may cost together.
const COST_MAX: u64 = 2_500_000;

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
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    pub object: Option<Value>,
    pub old: Option<Value>,
    pub request: Value,
}

/// Compiled conditions.
#[derive(Default)]
pub(super) struct Conditions {
    compiled: Mutex<HashMap<String, Arc<Result<Program, ConditionError>>>>,
}

/// Checks an expression before it is stored.
pub(crate) fn check_match_condition(expression: &str) -> Result<(), ConditionError> {
    compile(expression).map(drop)
}

impl Conditions {
    /// Whether all conditions hold. It can take long; when `cancelled` becomes true, it ends soon.
    pub(super) fn hold(
        &self,
        conditions: &[Value],
        policy: FailurePolicy,
        inputs: &Inputs,
        cancelled: &AtomicBool,
    ) -> Result<bool, ConditionError> {
        let mut failures: Vec<String> = Vec::new();
        let mut excluded = false;
        let mut budget = COST_MAX;
        let optional = |value: &Option<Value>| value.as_ref().map_or(Cel::Null, to_cel);
        let values = [optional(&inputs.object), optional(&inputs.old), to_cel(&inputs.request), Cel::Null];
        for condition in conditions {
            let text = condition.get("expression").and_then(Value::as_str).unwrap_or_default();
            let compiled = self.compiled(text);
            let program = match &*compiled {
                Ok(program) => program,
                Err(ConditionError::Authorizer) => return Err(ConditionError::Authorizer),
                Err(ConditionError::Failed(why)) => {
                    failures.push(format!("compilation error: {why}"));
                    continue;
                }
            };
            let limits = Limits { cost_max: EXPRESSION_COST_MAX, cancelled: Some(cancelled) };
            let evaluated = program.evaluate(&values, limits);
            let Some(left) = budget.checked_sub(evaluated.cost) else {
                return out_of_budget(policy);
            };
            budget = left;
            match evaluated.result {
                Ok(Cel::Bool(true)) => {}
                Ok(Cel::Bool(false)) => excluded = true,
                Ok(other) => {
                    let of = other.type_name();
                    failures.push(format!(
                        "expression '{text}' resulted in error: must evaluate to bool but got {of}"
                    ));
                }
                // Nobody waits for the answer.
                Err(EvaluateError::Cancelled) => return Ok(false),
                Err(error) => failures.push(format!("expression '{text}' resulted in error: {error}")),
            }
        }
        if excluded {
            return Ok(false);
        }
        match (policy, failures.as_slice()) {
            (_, []) => Ok(true),
            (FailurePolicy::Ignore, _) => Ok(false),
            (FailurePolicy::Fail, [one]) => Err(ConditionError::Failed(one.clone())),
            (FailurePolicy::Fail, many) => Err(ConditionError::Failed(format!("[{}]", many.join(", ")))),
        }
    }

    fn compiled(&self, text: &str) -> Arc<Result<Program, ConditionError>> {
        if let Some(known) = self.known().get(text) {
            return known.clone();
        }
        // Nobody waits for this: two threads may compile the same.
        let compiled = Arc::new(compile(text));
        let mut known = self.known();
        if known.len() >= COMPILED_MAX {
            known.clear();
        }
        known.insert(text.to_owned(), compiled.clone());
        compiled
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Result<Program, ConditionError>>>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn out_of_budget(policy: FailurePolicy) -> Result<bool, ConditionError> {
    let why = "validation failed due to running out of cost budget, no further validation rules will be run";
    match policy {
        FailurePolicy::Fail => Err(ConditionError::Failed(why.to_owned())),
        FailurePolicy::Ignore => Ok(false),
    }
}

/// The variables of conditions and their types.
static VARIABLES: LazyLock<[(&str, Type); 4]> = LazyLock::new(|| {
    [
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("request", request_type()),
        ("namespaceObject", namespace_type()),
    ]
});

fn object<const N: usize>(name: &str, fields: [(&str, Type); N]) -> Type {
    let fields = fields.into_iter().map(|(name, of)| (name.to_owned(), of)).collect();
    Type::Object(Arc::new(ObjectType { name: name.to_owned(), fields }))
}

fn request_type() -> Type {
    let group = |name: &str, last: &'static str| {
        object(name, [("group", Type::String), ("version", Type::String), (last, Type::String)])
    };
    let kind = group("kubernetes.GroupVersionKind", "kind");
    let resource = group("kubernetes.GroupVersionResource", "resource");
    let texts = || Type::list(Type::String);
    let user = object(
        "kubernetes.UserInfo",
        [
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", texts()),
            ("extra", Type::map(Type::String, texts())),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", Type::String),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", Type::String),
            ("name", Type::String),
            ("namespace", Type::String),
            ("operation", Type::String),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

fn namespace_type() -> Type {
    let texts = || Type::list(Type::String);
    let pairs = || Type::map(Type::String, Type::String);
    let condition = object(
        "kubernetes.NamespaceCondition",
        [
            ("status", Type::String),
            ("type", Type::String),
            ("lastTransitionTime", Type::Timestamp),
            ("message", Type::String),
            ("reason", Type::String),
        ],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", Type::String),
            ("generateName", Type::String),
            ("namespace", Type::String),
            ("labels", pairs()),
            ("annotations", pairs()),
            ("UID", Type::String),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", Type::String),
            ("finalizers", texts()),
        ],
    );
    let status = [("conditions", Type::list(condition)), ("phase", Type::String)];
    object(
        "kubernetes.Namespace",
        [
            ("metadata", metadata),
            ("spec", object("kubernetes.NamespaceSpec", [("finalizers", texts())])),
            ("status", object("kubernetes.NamespaceStatus", status)),
        ],
    )
}

fn compile(text: &str) -> Result<Program, ConditionError> {
    let failed =
        |error: &dyn std::fmt::Display| ConditionError::Failed(format!("compilation failed: {error}"));
    let ast = mainstay_cel::syntax::parse(text).map_err(|error| failed(&error))?;
    if mentions_authorizer(&ast.root) {
        return Err(ConditionError::Authorizer);
    }
    let checked = mainstay_cel::check(ast, &*VARIABLES).map_err(|error| failed(&error))?;
    if *checked.gives() != Type::Bool {
        let why = format!("must evaluate to bool but got {}", checked.gives());
        return Err(ConditionError::Failed(why));
    }
    Program::new(&checked)
        .map_err(|error| ConditionError::Failed(format!("program instantiation failed: {error}")))
}

fn mentions_authorizer(node: &Expr) -> bool {
    match &node.kind {
        ExprKind::Ident(name) => name == "authorizer",
        ExprKind::Literal(_) | ExprKind::Struct(_) => false,
        ExprKind::Select { operand, .. } => mentions_authorizer(operand),
        ExprKind::Call { target, args, .. } => {
            target.as_deref().is_some_and(mentions_authorizer) || args.iter().any(mentions_authorizer)
        }
        ExprKind::List { elements, .. } => elements.iter().any(mentions_authorizer),
        ExprKind::Map(entries) => {
            entries.iter().any(|entry| mentions_authorizer(&entry.key) || mentions_authorizer(&entry.value))
        }
        ExprKind::Comprehension(parts) => {
            [&parts.range, &parts.init, &parts.condition, &parts.step, &parts.result]
                .into_iter()
                .any(mentions_authorizer)
        }
    }
}

fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Cel::Int(int),
            (None, Some(uint)) => Cel::Uint(uint),
            (None, None) => Cel::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => Cel::list(items.iter().map(to_cel).collect()),
        Value::Object(members) => {
            let members =
                members.iter().map(|(key, value)| (Key::String(key.as_str().into()), to_cel(value)));
            Cel::Map(Arc::new(members.collect()))
        }
    }
}
