//! Ownership of fields and server-side apply, as kube-apiserver has them.
//!
//! Every write records in `metadata.managedFields` who set which fields. Creates, replaces and patches do
//! so after the fact ([`track_update`]); an apply also says what the object becomes ([`apply`]). What the
//! API server itself adds later in a write (admission, allocation, and after an apply the defaults)
//! belongs to nobody.
//!
//! ```text
//! create, replace, patch:  decode ─▶ default ─▶ track_update ─▶ admission ─▶ keep_times ─▶ validate, store
//! apply:                   decode ─▶ apply ─▶ default ─────────▶ admission ─▶ keep_times ─▶ validate, store
//! ```
//!
//! Guarantees: pure functions; applying the same configuration again gives the live object unchanged,
//! times included; a manager never comes to own a field by apply that another owns with a different value,
//! unless forced.
//!
//! | module | holds |
//! |---|---|
//! | `path`, `set` | steps to fields, sets of fields and their `fieldsV1` form |
//! | `node` | what the schema says of ownership at one place |
//! | `validate`, `compare`, `merge`, `fields` | walks over values with their schema |
//! | `ownership`, `prune` | who owns what after a change, and what an apply removes |
//! | `managers` | the entries of `managedFields` |
//! | `conflict`, `checks`, `name` | refusals, entries written by others, names of managers |
//! | `last_applied`, `scale` | taking over from client-side apply, the scale subresource |

mod checks;
mod compare;
mod conflict;
mod fields;
mod last_applied;
mod managers;
mod merge;
mod name;
mod node;
mod ownership;
mod path;
mod prune;
mod scale;
mod set;
#[cfg(test)]
mod tests;
mod validate;

pub(crate) use checks::{undo_unreadable, validate_managed_fields};
pub(crate) use name::{manager_name, validate_manager_name};
pub(crate) use scale::{managers_of_scale, managers_of_scaled};
pub(crate) use set::FieldSet;

use crate::builtin::conform;
use crate::schema::{Schema, SchemaRef};
use crate::status::ApiError;
use conflict::Conflicts;
use jiff::Timestamp;
use managers::{Identity, Manager, Managers, Operation};
use node::Node;
use ownership::Applied;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use validate::{Duplicates, Mismatch, validate};

/// Who writes, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    /// The field manager, from [`manager_name`].
    pub name: &'a str,
    /// The subresource written to, empty for the object itself. Its entries are separate.
    pub subresource: &'a str,
    /// The time of the write.
    pub time: Timestamp,
}

/// Gives an object in another version of its kind, with that version's schema; none if it is not served.
pub(crate) type Convert<'a> = dyn Fn(&Value, &str) -> Option<(Value, SchemaRef)> + 'a;

/// What is written.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    /// The version of the request, in which the objects given are: `apps/v1`.
    pub api_version: &'a str,
    pub kind: &'a str,
    pub schema: &'a Schema,
    /// The fields that a write to this endpoint does not change, whatever it says: `status`, or at
    /// `/status` everything else. Nobody comes to own them.
    pub reset: &'a FieldSet,
    /// Whether `reset` holds for entries in other versions too. So it is for built-in kinds and at the
    /// status of custom ones, but not for custom objects themselves, where kube-apiserver has it for the
    /// version of the request only.
    pub reset_elsewhere: bool,
    /// For entries in other versions.
    pub convert: &'a Convert<'a>,
}

/// Why a configuration was not applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("conflict")]
    Conflicts(Conflicts),
    #[error("invalid object type: {0}")]
    Type(String),
    #[error("metadata.managedFields must be nil")]
    ManagedFields,
    #[error("failed to create typed patch object ({object}): {wrong}")]
    Applied { object: String, wrong: Mismatch },
    #[error("failed to create typed live object ({object}): {wrong}")]
    Live { object: String, wrong: Mismatch },
    #[error("failed to create manager for existing fields: {0}")]
    BeforeFirstApply(Mismatch),
    #[error("failed to decode managed fields: {0}")]
    Managers(String),
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> ApiError {
        match error {
            ApplyError::Conflicts(conflicts) => conflicts.to_api_error(),
            ApplyError::Type(_) | ApplyError::ManagedFields => ApiError::bad_request(error.to_string()),
            // kube-apiserver gives these no reason.
            _ => ApiError::plain(500, "", error.to_string()),
        }
    }
}

/// What nobody owns: names and what the server keeps in metadata.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Writes `new.metadata.managedFields` for a create (`live` is none), replace or patch.
///
/// Both objects are in the version of the target; `new` is defaulted. Entries that the request carries
/// count, except at a subresource; a request that carries `[]` or `[{}]` clears them, and an object whose
/// entries are cleared is tracked again only from the next apply on. Never fails: entries or objects that
/// cannot be understood leave the object without entries, as in kube-apiserver.
pub(crate) fn track_update(live: Option<&Value>, new: &mut Value, by: &Writer<'_>, target: &Target<'_>) {
    let sent = new.get_mut("metadata").and_then(Value::as_object_mut).and_then(|m| m.remove("managedFields"));
    let managers = managers_before(live, sent.as_ref(), by, target);
    let exists = live.is_some_and(|live| live.pointer("/metadata/uid").is_some_and(|uid| uid != ""));
    if managers.list.is_empty() && exists {
        return;
    }
    let zero = if live.is_none() {
        if target.schema.go.is_some() { conform::zero(target.schema) } else { Value::Object(Map::new()) }
    } else {
        Value::Null
    };
    if let Ok(managers) = record(live.unwrap_or(&zero), new, managers, by, target) {
        set_managed_fields(new, managers.encode());
    }
}

/// The entries that an update begins with.
fn managers_before(
    live: Option<&Value>,
    sent: Option<&Value>,
    by: &Writer<'_>,
    target: &Target<'_>,
) -> Managers {
    let of_live = || Managers::decode(live.and_then(managed_fields)).unwrap_or_default();
    if !by.subresource.is_empty() {
        return of_live();
    }
    let cleared = match sent.and_then(Value::as_array).map(Vec::as_slice) {
        // Metadata of custom kinds loses empty lists before anyone looks at it.
        Some([]) => target.schema.members.is_some(),
        Some([Value::Object(entry)]) => entry.is_empty(),
        _ => false,
    };
    if cleared {
        return Managers::default();
    }
    Managers::decode(sent).ok().filter(|sent| !sent.list.is_empty()).unwrap_or_else(of_live)
}

/// Gives the writer what changes between `live` and `new`, and folds old entries.
fn record(
    live: &Value,
    new: &Value,
    mut managers: Managers,
    by: &Writer<'_>,
    target: &Target<'_>,
) -> Result<Managers, Mismatch> {
    let root = Node::root(target.schema);
    validate(new, root, Duplicates::Allowed)?;
    validate(live, root, Duplicates::Allowed)?;
    let fields = ownership::update(live, new, &mut managers, target).difference(&UNOWNED);
    if !fields.is_empty() {
        let identity = Identity::new(by.name, Operation::Update, target.api_version, by.subresource);
        let before = managers.take(&identity).map(|manager| manager.fields).unwrap_or_default();
        managers.put(Manager {
            identity,
            api_version: target.api_version.to_owned(),
            fields: fields.union(before),
            time: Some(by.time),
        });
    }
    managers.cap_updates();
    Ok(managers)
}

/// Lays a configuration over the live object, or makes a new object of it if there is none, and gives the
/// result with its `managedFields`.
///
/// Both are in the version of the target. The result is not defaulted; it is the live object if nothing
/// changes. That the configuration has the name and namespace of the request, and that a manager is named,
/// is for the caller to check.
pub(crate) fn apply(
    live: Option<&Value>,
    applied: &Value,
    by: &Writer<'_>,
    force: bool,
    target: &Target<'_>,
) -> Result<Value, ApplyError> {
    check_type(applied, target)?;
    let nothing = Value::Object(Map::new());
    let live = live.unwrap_or(&nothing);
    let managers = Managers::decode(managed_fields(live)).map_err(ApplyError::Managers)?;
    let managers = if managers.list.is_empty() && live != &nothing {
        let before = Writer { name: "before-first-apply", ..*by };
        let zero =
            if target.schema.go.is_some() { conform::zero(target.schema) } else { Value::Object(Map::new()) };
        record(&zero, live, managers, &before, target).map_err(ApplyError::BeforeFirstApply)?
    } else {
        managers
    };
    check_objects(live, applied, target)?;
    let own = Identity::new(by.name, Operation::Apply, target.api_version, by.subresource);
    let Applied { object, mut managers } = if by.name == last_applied::KUBECTL && !force {
        match ownership::apply(live, applied, managers.clone(), &own, target, false) {
            Err(conflicts) => {
                let allowed = last_applied::owned_by_annotation(live, target).unwrap_or_default();
                if let Some(conflicts) = conflicts.outside(&allowed) {
                    return Err(ApplyError::Conflicts(conflicts));
                }
                ownership::apply(live, applied, managers, &own, target, true)
            }
            merged => merged,
        }
    } else {
        ownership::apply(live, applied, managers, &own, target, force)
    }
    .map_err(ApplyError::Conflicts)?;

    if let Some(mut manager) = managers.take(&own) {
        manager.fields = manager.fields.difference(&UNOWNED);
        if object.is_some() {
            manager.time = Some(by.time);
        }
        if !manager.fields.is_empty() {
            managers.put(manager);
        }
    }
    let mut object = object.unwrap_or_else(|| live.clone());
    if by.name == last_applied::KUBECTL {
        last_applied::refresh_annotation(&mut object, applied);
    }
    set_managed_fields(&mut object, managers.encode());
    Ok(object)
}

fn check_type(applied: &Value, target: &Target<'_>) -> Result<(), ApplyError> {
    let text = |name: &str| applied.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion") != target.api_version || text("kind") != target.kind {
        return Err(ApplyError::Type(type_text(text("apiVersion"), text("kind"))));
    }
    Ok(())
}

fn check_objects(live: &Value, applied: &Value, target: &Target<'_>) -> Result<(), ApplyError> {
    if managed_fields(applied).is_some_and(Value::is_array) {
        return Err(ApplyError::ManagedFields);
    }
    let root = Node::root(target.schema);
    let describe = |object: &Value| {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = type_text(target.api_version, target.kind);
        format!("{}/{}; {kind}", text("/metadata/namespace"), text("/metadata/name"))
    };
    validate(applied, root, Duplicates::Refused)
        .map_err(|wrong| ApplyError::Applied { object: describe(applied), wrong })?;
    validate(live, root, Duplicates::Allowed)
        .map_err(|wrong| ApplyError::Live { object: describe(live), wrong })
}

/// A type as Kubernetes prints it: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`.
fn type_text(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Gives entries their old times back if the object is otherwise the live one, so that a write that
/// changes nothing is seen to change nothing. For after defaulting and admission.
pub(crate) fn keep_times(live: &Value, new: &mut Value) {
    let (Some(Value::Array(old)), Some(Value::Array(entries))) = (managed_fields(live), managed_fields(new))
    else {
        return;
    };
    let same_entries = old.len() == entries.len()
        && old.iter().zip(entries).all(|(a, b)| same_beside(a, b, "time").is_some());
    if !same_entries || old == entries {
        return;
    }
    let same =
        same_beside(live, new, "metadata").is_some_and(|(a, b)| same_beside(a, b, "managedFields").is_some());
    if same {
        set_managed_fields(new, Some(Value::Array(old.clone())));
    }
}

/// The field `name` of two objects that are equal but for it; none if they differ elsewhere.
fn same_beside<'a>(a: &'a Value, b: &'a Value, name: &str) -> Option<(&'a Value, &'a Value)> {
    let (a, b) = (a.as_object()?, b.as_object()?);
    let others = |map: &'a Map<String, Value>| map.iter().filter(move |(key, _)| *key != name);
    let field = |map: &'a Map<String, Value>| map.get(name).unwrap_or(&Value::Null);
    others(a).eq(others(b)).then(|| (field(a), field(b)))
}

fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

fn set_managed_fields(object: &mut Value, entries: Option<Value>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    match entries {
        Some(entries) => metadata.insert("managedFields".to_owned(), entries),
        None => metadata.remove("managedFields"),
    };
}
