//! What happens to an object of a kind when it is written: defaults, what the server keeps, checks.
//!
//! Built-in kinds bring their [`Rules`](crate::builtin::rules::Rules); all custom kinds share the rules
//! written here, which follow from their definition.

use crate::apply::FieldSet;
use crate::builtin::rules::names::object_meta::validate_standard_finalizers;
use crate::builtin::rules::names::{
    path_segment_name, validate_object_meta, validate_object_meta_update, validate_object_names,
};
use crate::builtin::rules::objects::{self, crd, event, namespace};
use crate::builtin::rules::pod::ephemeral;
use crate::builtin::rules::{Env, Rules, names};
use crate::field::FieldError;
use crate::kind::{Kind, Nature};
use crate::offload::{self, offload};
use crate::replicas;
use crate::schema::{self, TooManyDefaults};
use crate::server::Call;
use crate::status::ApiError;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

/// Which part of an object a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but what subresources own.
    Main,
    Status,
    /// Another subresource of the same kind, by its name.
    Other(&'static str),
}

impl Part {
    /// As field managers record it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Part::Main => "",
            Part::Status => "status",
            Part::Other(name) => name,
        }
    }
}

/// The rules of events look at the form of the core group, in which both groups' events are stored.
fn in_stored_form<R>(kind: &Kind, object: &mut Value, with: impl FnOnce(&mut Value) -> R) -> R {
    if kind.group != "events.k8s.io" || kind.builtin().is_none() {
        return with(object);
    }
    event::to_core(object);
    let result = with(object);
    event::from_core(object);
    result
}

/// Fills in what a client left out.
pub(crate) fn default(kind: &Kind, object: &mut Value) -> Result<(), TooManyDefaults> {
    match &kind.nature {
        Nature::Builtin(builtin) => {
            in_stored_form(kind, object, builtin.rules.default);
            Ok(())
        }
        Nature::Custom(_) => fill(object, |object| schema::apply_defaults(object, kind.schema())),
    }
}

/// Fills in what is left out of the outcome of a server-side apply.
pub(crate) fn default_applied(kind: &Kind, object: &mut Value) -> Result<(), TooManyDefaults> {
    match &kind.nature {
        Nature::Builtin(_) => default(kind, object),
        Nature::Custom(_) => fill(object, |object| schema::apply_defaults_to_applied(object, kind.schema())),
    }
}

/// Fills in defaults. An object that is being deleted stays without them if they are too many: its finalizers must come
/// off, whatever its CRD has become.
fn fill(
    object: &mut Value,
    apply: impl FnOnce(&mut Value) -> Result<(), TooManyDefaults>,
) -> Result<(), TooManyDefaults> {
    let is_deleting = object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
    let as_sent = is_deleting.then(|| object.clone());
    apply(object).or_else(|error| {
        *object = as_sent.ok_or(error)?;
        Ok(())
    })
}

/// Drops what a creator may not say and sets what the server says.
pub(crate) fn prepare_create(kind: &Kind, object: &mut Value, env: &Env<'_>) {
    match &kind.nature {
        Nature::Builtin(builtin) => in_stored_form(kind, object, |o| (builtin.rules.prepare_create)(o, env)),
        Nature::Custom(custom) => {
            if let (true, Value::Object(fields)) = (custom.status, &mut *object) {
                fields.remove("status");
            }
            object["metadata"]["generation"] = 1.into();
        }
    }
}

/// Puts back what a write may not change, and counts generations.
pub(crate) fn prepare_update(kind: &Kind, part: Part, new: &mut Value, old: &Value, env: &Env<'_>) {
    match (&kind.nature, part) {
        (Nature::Builtin(builtin), Part::Status) => (builtin.rules.prepare_status)(new, old, env),
        (Nature::Builtin(_), Part::Other("ephemeralcontainers")) => ephemeral::prepare(new, old),
        (Nature::Builtin(_), Part::Other("finalize")) => namespace::prepare_finalize(new, old),
        // The binding says all that changes.
        (Nature::Builtin(_), Part::Other("binding")) => {}
        (Nature::Builtin(builtin), _) => {
            let mut old = Cow::Borrowed(old);
            if kind.group == "events.k8s.io" {
                event::to_core(old.to_mut());
            }
            in_stored_form(kind, new, |new| (builtin.rules.prepare_update)(new, &old, env));
        }
        (Nature::Custom(_), Part::Status) => prepare_custom_status(new, old),
        (Nature::Custom(custom), _) => {
            if custom.status {
                copy_field(new, old, "status");
            }
            if spec_differs(new, old, custom.status) {
                let generation = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
                new["metadata"]["generation"] = (generation + 1).into();
            }
        }
    }
}

/// Everything is as it was but for the status and the record of who manages what.
fn prepare_custom_status(new: &mut Value, old: &Value) {
    let status = new.get_mut("status").map(Value::take);
    let managed = new.pointer_mut("/metadata/managedFields").map(Value::take);
    *new = old.clone();
    if let Value::Object(fields) = new {
        match status {
            Some(status) => fields.insert("status".into(), status),
            None => fields.remove("status"),
        };
    }
    if let Some(Value::Object(metadata)) = new.get_mut("metadata") {
        match managed {
            Some(managed) => metadata.insert("managedFields".into(), managed),
            None => metadata.remove("managedFields"),
        };
    }
}

fn copy_field(new: &mut Value, old: &Value, field: &str) {
    if let Value::Object(fields) = new {
        match old.get(field) {
            Some(value) => fields.insert(field.into(), value.clone()),
            None => fields.remove(field),
        };
    }
}

/// Whether two custom objects differ in anything that makes a new generation.
fn spec_differs(new: &Value, old: &Value, has_status: bool) -> bool {
    let (Value::Object(new), Value::Object(old)) = (new, old) else { return true };
    let counts = |key: &&String| *key != "metadata" && !(has_status && *key == "status");
    new.keys().filter(counts).count() != old.keys().filter(counts).count()
        || new.iter().any(|(key, value)| counts(&key) && old.get(key) != Some(value))
}

fn stored_form<'a>(kind: &Kind, object: &'a Value) -> Cow<'a, Value> {
    let mut object = Cow::Borrowed(object);
    if kind.group == "events.k8s.io" && kind.builtin().is_some() {
        event::to_core(object.to_mut());
    }
    object
}

/// What the embedder lets pass that Kubernetes refuses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leniency {
    /// Endpoints at 127.x.y.z, but for the machine's own 127.0.0.x.
    pub loopback_endpoints: bool,
}

impl Leniency {
    fn forgive(self, kind: &Kind, errors: &mut Vec<FieldError>) {
        if self.loopback_endpoints && matches!(kind.kind.as_str(), "Endpoints" | "EndpointSlice") {
            errors.retain(|error| !objects::service::is_loopback_endpoint(error));
        }
    }
}

/// Everything wrong with a new object.
pub(crate) async fn check_create(
    kind: &Kind,
    object: &Value,
    call: &Call,
    leniency: Leniency,
) -> Result<(), ApiError> {
    let stored = stored_form(kind, object);
    let object = &*stored;
    let mut errors = Vec::new();
    let own = kind.builtin().is_some() && objects::checks_own_metadata(&kind.group, &kind.kind);
    match &kind.nature {
        Nature::Builtin(builtin) => {
            if !own {
                validate_object_meta(object, kind.namespaced, builtin.rules.name, &mut errors);
                if objects::wants_standard_finalizers(&kind.group, &kind.kind) {
                    validate_standard_finalizers(object, &mut errors);
                }
            }
            check_apart(kind, object, None, builtin.rules, &mut errors).await;
            leniency.forgive(kind, &mut errors);
        }
        Nature::Custom(custom) => {
            validate_object_meta(object, kind.namespaced, names::dns1123_subdomain, &mut errors);
            let scaled = replicas::check(object, custom.scale.as_ref());
            take(judge(&custom.schema, object, None, scaled, false).await, call, &mut errors);
        }
    }
    refuse(kind, object, &errors)?;
    if own {
        validate_object_meta(object, kind.namespaced, path_segment_name, &mut errors);
    } else {
        // The rest of the metadata has just been checked.
        validate_object_names(object, path_segment_name, &mut errors);
    }
    refuse(kind, object, &errors)
}

/// Everything wrong with a change.
pub(crate) async fn check_update(
    kind: &Kind,
    part: Part,
    new: &Value,
    old: &Value,
    call: &Call,
    leniency: Leniency,
) -> Result<(), ApiError> {
    let (stored_new, stored_old) = (stored_form(kind, new), stored_form(kind, old));
    let (new, old) = (&*stored_new, &*stored_old);
    let mut errors = Vec::new();
    validate_object_meta(new, kind.namespaced, path_segment_name, &mut errors);
    validate_object_meta_update(new, old, &mut errors);
    if kind.builtin().is_some() && objects::wants_standard_finalizers(&kind.group, &kind.kind) {
        validate_standard_finalizers(new, &mut errors);
    }
    match (&kind.nature, part) {
        (Nature::Builtin(builtin), Part::Status) => (builtin.rules.validate_status)(new, old, &mut errors),
        (Nature::Builtin(_), Part::Other("ephemeralcontainers")) => {
            ephemeral::validate(new, old, &mut errors);
        }
        (Nature::Builtin(_), Part::Other("finalize")) => namespace::validate_finalize(new, old, &mut errors),
        (Nature::Builtin(_), Part::Other("binding")) => {}
        (Nature::Builtin(builtin), _) => {
            check_apart(kind, new, Some(old), builtin.rules, &mut errors).await;
            leniency.forgive(kind, &mut errors);
        }
        (Nature::Custom(custom), Part::Status) => {
            let scaled = replicas::check_status(new, custom.scale.as_ref());
            take(judge(&custom.schema, new, Some(old), scaled, true).await, call, &mut errors);
        }
        (Nature::Custom(custom), _) => {
            let scaled = replicas::check(new, custom.scale.as_ref());
            take(judge(&custom.schema, new, Some(old), scaled, false).await, call, &mut errors);
        }
    }
    refuse(kind, new, &errors)
}

/// Checks a built-in object. Those that bring CEL with them are checked where that holds up nobody.
async fn check_apart(
    kind: &Kind,
    new: &Value,
    old: Option<&Value>,
    rules: &'static Rules,
    errors: &mut Vec<FieldError>,
) {
    let check = |new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>| match old {
        Some(old) => (rules.validate_update)(new, old, errors),
        None => (rules.validate)(new, errors),
    };
    let brings_cel = matches!(
        kind.kind.as_str(),
        "CustomResourceDefinition" | "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration"
    );
    if !brings_cel || offload::is_in_place() {
        return check(new, old, errors);
    }
    let (new, old) = (new.clone(), old.cloned());
    let work = move |_: &AtomicBool| {
        let mut errors = Vec::new();
        check(&new, old.as_ref(), &mut errors);
        errors
    };
    errors.extend(Box::pin(offload(work)).await);
}

/// Checks a custom object, or a write to its status. Rules are evaluated where that holds up nobody.
async fn judge(
    schema: &Arc<schema::CompiledSchema>,
    new: &Value,
    old: Option<&Value>,
    more: Vec<FieldError>,
    status: bool,
) -> schema::Verdict {
    let check = move |schema: &schema::CompiledSchema,
                      new: &Value,
                      old: Option<&Value>,
                      cancelled: &AtomicBool| match old {
        Some(old) if status => schema::validate_status(new, old, schema, more, cancelled),
        old => schema::validate(new, old, schema, more, cancelled),
    };
    if !schema.has_rules() || offload::is_in_place() {
        return check(schema, new, old, &AtomicBool::new(false));
    }
    let (schema, new, old) = (schema.clone(), new.clone(), old.cloned());
    Box::pin(offload(move |cancelled: &AtomicBool| check(&schema, &new, old.as_ref(), cancelled))).await
}

fn take(verdict: schema::Verdict, call: &Call, errors: &mut Vec<FieldError>) {
    errors.extend(verdict.errors);
    verdict.warnings.into_iter().for_each(|warning| call.warn(warning));
}

fn refuse(kind: &Kind, object: &Value, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        if kind.kind == "CustomResourceDefinition" && kind.builtin().is_some() {
            return crd::refuse_webhook_conversion(object);
        }
        return Ok(());
    }
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let mut subject = kind.subject();
    if subject.group == "events.k8s.io" {
        subject.group = "";
    }
    Err(ApiError::invalid(&subject, name, errors))
}

/// The fields that a write of a part cannot change, whatever it says of them; so it does not own them.
pub(crate) fn reset_fields(kind: &Kind, part: Part) -> &'static FieldSet {
    static NONE: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[]));
    static STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["status"]]));
    static SPEC: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["spec"]]));
    static SPEC_AND_METADATA: LazyLock<FieldSet> =
        LazyLock::new(|| FieldSet::of_fields(&[&["spec"], &["metadata"]]));
    static POD_STATUS: LazyLock<FieldSet> = LazyLock::new(|| {
        FieldSet::of_fields(&[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ])
    });
    static DEPLOYMENT_STATUS: LazyLock<FieldSet> =
        LazyLock::new(|| FieldSet::of_fields(&[&["spec"], &["metadata", "labels"]]));
    let builtin = kind.builtin().is_some();
    match (part, kind.kind.as_str()) {
        (Part::Main | Part::Other("finalize"), _) if kind.has_status() => &STATUS,
        (Part::Status, "Pod") if builtin => &POD_STATUS,
        (Part::Status, "Deployment") if builtin => &DEPLOYMENT_STATUS,
        (Part::Status, _) if builtin => &SPEC,
        (Part::Status, _) => &SPEC_AND_METADATA,
        _ => &NONE,
    }
}
