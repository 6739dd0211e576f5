//! `CustomResourceDefinition`, the object: defaults, stored versions, and checks of everything but the
//! schemas themselves, which the caller's [`validate::SchemaCheck`] looks at in their place among the other checks.
//!
//! The real server keeps what all versions share once, at the top of the spec, and its refusals name
//! fields there: a definition with one version has its schema at `spec.validation`. [`Shared`] says what
//! that is.

mod approval;
mod formats;
pub(crate) mod names;
mod print;
pub(crate) mod validate;
mod versions;

use validate::validate_with;

use crate::builtin::rules::json::{
    bump_generation, default_to, ensure_object, flag, keep, list, object_mut, put, same_field,
    set_generation, text,
};
use crate::builtin::rules::names::dns1123_subdomain;
use crate::builtin::rules::objects::check_meta_again;
use crate::builtin::rules::{Env, Rules};
use crate::field::{FieldError, Path};
use crate::status::ApiError;
use serde_json::{Value, json};

const SPEC: Path<'static> = Path::of("spec");
const STATUS: Path<'static> = Path::of("status");

pub(in crate::builtin::rules::objects) static RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status,
    validate: |object, errors| {
        validate_with(
            object,
            None,
            &|schema, at, status, errors| check_schema(schema, None, at, status, errors),
            errors,
        );
    },
    validate_update: |new, old, errors| {
        validate_with(
            new,
            Some(old),
            &|schema, at, status, errors| check_schema(schema, Some(old), at, status, errors),
            errors,
        );
    },
    validate_status,
    warnings: formats::warnings,
    name: dns1123_subdomain,
};

/// A rule of a schema that `old` has already is not refused for its cost: limits may have been others when it was made.
fn check_schema(
    schema: &Value,
    old: Option<&Value>,
    at: &Path<'_>,
    status: bool,
    errors: &mut Vec<FieldError>,
) {
    let has = |old: &Value| {
        list(&old["spec"], "versions").iter().any(|version| version["schema"]["openAPIV3Schema"] == *schema)
    };
    errors.extend(crate::schema::check_crd_schema(schema, at, status, old.is_some_and(has)));
}

/// Which parts of the versions are the same in all of them.
#[expect(clippy::struct_excessive_bools, reason = "four independent facts")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shared {
    /// `schema`.
    pub schema: bool,
    /// `subresources`.
    pub subresources: bool,
    /// `additionalPrinterColumns`.
    pub columns: bool,
    /// `selectableFields`.
    pub selectable: bool,
}

impl Shared {
    /// Looks at the versions of a definition.
    pub(crate) fn of(crd: &Value) -> Shared {
        let versions = list(&crd["spec"], "versions");
        let shared = |field: &str| {
            versions
                .first()
                .is_some_and(|first| versions[1..].iter().all(|version| same_field(version, first, field)))
        };
        Shared {
            schema: shared("schema"),
            subresources: shared("subresources"),
            columns: shared("additionalPrinterColumns"),
            selectable: shared("selectableFields"),
        }
    }
}

fn default(object: &mut Value) {
    let Some(spec) = ensure_object(object, "spec") else { return };
    if let Some(names) = ensure_object(spec, "names") {
        let kind = text(names, "kind").to_owned();
        if !kind.is_empty() {
            default_to(names, "singular", kind.to_lowercase());
            default_to(names, "listKind", format!("{kind}List"));
        }
    }
    default_to(spec, "conversion", json!({"strategy": "None"}));
    let service = object_mut(spec, "conversion")
        .and_then(|conversion| object_mut(conversion, "webhook"))
        .and_then(|webhook| object_mut(webhook, "clientConfig"))
        .and_then(|config| object_mut(config, "service"));
    if let Some(service) = service {
        default_to(service, "port", 443);
    }
    let storage = storage_version(object).map(str::to_owned);
    let Some(status) = ensure_object(object, "status") else { return };
    if let (true, Some(storage)) = (list(status, "storedVersions").is_empty(), storage) {
        put(status, "storedVersions", json!([storage]));
    }
}

/// The version that objects are stored in.
pub(crate) fn storage_version(crd: &Value) -> Option<&str> {
    list(&crd["spec"], "versions")
        .iter()
        .find(|version| flag(version, "storage"))
        .and_then(|version| version["name"].as_str())
}

fn prepare_create(object: &mut Value, _env: &Env<'_>) {
    let stored = storage_version(object).map_or(Value::Null, |version| json!([version]));
    let status =
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
    put(object, "status", status);
    set_generation(object, 1);
}

fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "status");
    let changed = new["spec"] != old["spec"];
    bump_generation(new, old, changed);
    let Some(storage) = storage_version(new).map(str::to_owned) else { return };
    let Some(status) = ensure_object(new, "status") else { return };
    if !list(status, "storedVersions").iter().any(|version| *version == storage) {
        let mut stored = list(status, "storedVersions").to_vec();
        stored.push(storage.into());
        put(status, "storedVersions", stored);
    }
}

fn prepare_status(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "spec");
}

fn validate_status(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    validate::validate_names(&new["status"]["acceptedNames"], &STATUS.field("acceptedNames"), errors);
}

/// Whether a condition of the definition is true.
pub(crate) fn condition_is_true(crd: &Value, kind: &str) -> bool {
    list(&crd["status"], "conditions").iter().any(|c| text(c, "type") == kind && text(c, "status") == "True")
}

/// Keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What a delete does to a definition before its objects are deleted; `now` is a timestamp as objects
/// carry it. The caller sets `deletionTimestamp`, and takes [`CLEANUP`] away when the last object is gone.
pub(crate) fn begin_deletion(crd: &mut Value, now: &str) {
    super::claim::add_finalizer(crd, CLEANUP);
    let Some(status) = ensure_object(crd, "status") else { return };
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    names::set_condition(status, "Terminating", "True", "InstanceDeletionPending", message, now);
}

/// Refuses what the real server can and this one cannot: versions that differ by more than their name.
pub(crate) fn refuse_webhook_conversion(crd: &Value) -> Result<(), ApiError> {
    if text(&crd["spec"]["conversion"], "strategy") == "Webhook" {
        return Err(ApiError::not_implemented("webhook conversion (spec.conversion.strategy: Webhook)"));
    }
    Ok(())
}
