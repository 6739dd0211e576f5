//! What clients send: bodies read into trees of the kind that a URL names, and patches applied.

use crate::builtin::{conform, tables};
use crate::decode;
use crate::kind::Kind;
use crate::negotiate::content_type;
use crate::options::{FieldValidation, WriteOptions};
use crate::patch::{json_patch, merge_patch, strategic};
use crate::protobuf;
use crate::schema::{self, Malformed};
use crate::server::{Call, Server};
use crate::status::ApiError;
use crate::strategy;
use crate::write::text;
use serde_json::{Map, Value};

/// The largest body that is read.
pub(crate) const BODY_MAX: usize = 3 << 20;
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The body of a create or replace, fitted to its kind and defaulted.
pub(crate) fn object(_server: &Server, call: &Call, options: &WriteOptions) -> Result<Value, ApiError> {
    let kind = &*call.kind;
    let mut strict = Vec::new();
    let mut value = decode_body(call, &mut strict)?;
    check_type(kind, &mut value)?;
    strict.extend(fit(kind, &mut value)?);
    report(call, options.field_validation, &strict)?;
    strategy::default(kind, &mut value);
    Ok(value)
}

/// The tree that a body holds, of whatever kind.
fn decode_body(call: &Call, strict: &mut Vec<String>) -> Result<Value, ApiError> {
    let kind = &*call.kind;
    match content_type(&call.headers) {
        "" | "application/json" => decoded(kind, decode::json(&call.body), strict),
        "application/yaml" => decoded(kind, decode::yaml(&call.body), strict),
        PROTOBUF if kind.builtin().is_some() => decode_protobuf(&call.body, &kind.api_version, &kind.kind),
        _ => {
            let more = if kind.builtin().is_some() { format!(", {PROTOBUF}") } else { String::new() };
            Err(ApiError::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json, application/yaml{more}"
            )))
        }
    }
}

fn decode_protobuf(body: &[u8], api_version: &str, kind: &str) -> Result<Value, ApiError> {
    match protobuf::decode_body(body, api_version, kind) {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): it is of a kind that is not built in"
        ))),
        Err(error) => Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {error}"
        ))),
    }
}

fn decoded(
    kind: &Kind,
    read: Result<decode::Decoded, decode::DecodeError>,
    strict: &mut Vec<String>,
) -> Result<Value, ApiError> {
    match read {
        Ok(decoded) => {
            strict.extend(decoded.duplicates);
            Ok(decoded.value)
        }
        Err(error) => Err(ApiError::bad_request(error.for_kind(&kind.kind))),
    }
}

/// Checks what a tree says it is; one that does not say is what the URL says.
fn check_type(kind: &Kind, value: &mut Value) -> Result<(), ApiError> {
    let Value::Object(fields) = value else {
        return Err(ApiError::bad_request("the object provided is not an object"));
    };
    let given = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, name) = (given("apiVersion"), given("kind"));
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    if kind.builtin().is_some() {
        let other = (!api_version.is_empty() && api_version != kind.api_version) || (!name.is_empty() && name != kind.kind);
        if other && tables::definition_of(group, version, &name).is_some() {
            let internal = kind.group.split('.').next().filter(|g| !g.is_empty()).unwrap_or("core");
            return Err(ApiError::bad_request(format!(
                "{name} in version {version:?} cannot be handled as a {}: converting ({version}.{name}) to \
                 ({internal}.{}): unknown conversion",
                kind.kind, kind.kind
            )));
        }
        if other {
            return Err(ApiError::bad_request(format!(
                "{name} in version {version:?} cannot be handled as a {}: no kind {name:?} is registered for \
                 version {api_version:?}",
                kind.kind
            )));
        }
    } else {
        if name.is_empty() {
            return Err(ApiError::bad_request(decode::missing_kind(&kind.kind, value)));
        }
        if api_version != kind.api_version {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                kind.api_version
            )));
        }
        if name != kind.kind {
            return Err(ApiError::bad_request(format!(
                "{name} in version {version:?} cannot be handled as a {}: no kind match",
                kind.kind
            )));
        }
    }
    kind.stamp(fields);
    Ok(())
}

/// Gives a tree the shape of its kind, and tells what was dropped for it.
pub(crate) fn fit(kind: &Kind, value: &mut Value) -> Result<Vec<String>, ApiError> {
    let unknown = if kind.builtin().is_some() {
        let unknown = conform::conform(value, kind.schema()).map_err(|error| {
            ApiError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {error}",
                kind.kind, kind.version, kind.kind
            ))
        })?;
        unknown.iter().map(ToString::to_string).collect()
    } else {
        schema::fit(value, kind.schema(), Malformed::Refuse)
            .map_err(|error| decode::bad_metadata(&kind.kind, &error))?
            .iter()
            .map(|path| format!("unknown field {}", crate::field::go_quote(path)))
            .collect()
    };
    Ok(unknown)
}

/// Warns of, or refuses, what strict decoding found.
fn report(call: &Call, validation: FieldValidation, strict: &[String]) -> Result<(), ApiError> {
    match validation {
        _ if strict.is_empty() => Ok(()),
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            strict.iter().for_each(|warning| call.warn(warning.clone()));
            Ok(())
        }
        FieldValidation::Strict => {
            let kind = &*call.kind;
            let list = decode::strict_error(strict);
            Err(ApiError::bad_request(if kind.builtin().is_some() {
                format!(
                    "{} in version {:?} cannot be handled as a {}: {list}",
                    kind.kind, kind.version, kind.kind
                )
            } else {
                list
            }))
        }
    }
}

/// Puts an object where the URL says it is, and refuses one that says otherwise.
pub(crate) fn place(call: &Call, object: &mut Value, name: Option<&str>) -> Result<(), ApiError> {
    let Some(fields) = object.as_object_mut() else { return Ok(()) };
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return Ok(()) };
    let given = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    let namespace = call.namespace();
    if given != namespace {
        if !given.is_empty() && !(namespace.is_empty() && !call.kind.namespaced && given.is_empty()) {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        metadata.insert("namespace".into(), namespace.into());
    }
    if let (Some(name), None) = (name, metadata.get("name")) {
        metadata.insert("name".into(), name.into());
    }
    Ok(())
}

/// Refuses an object of another name than the URL's.
pub(crate) fn check_name(call: &Call, object: &Value) -> Result<(), ApiError> {
    let (name, namespace) = (text(object, "/metadata/name"), text(object, "/metadata/namespace"));
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if name != call.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    if !namespace.is_empty() && namespace != call.namespace() {
        return Err(ApiError::bad_request(format!(
            "the namespace of the object ({namespace}) does not match the namespace on the request ({})",
            call.namespace()
        )));
    }
    Ok(())
}

/// Drops owner references that say the same twice, and warns of them.
pub(crate) fn dedup_owners(call: &Call, object: &mut Value) {
    let Some(owners) = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) else {
        return;
    };
    let mut seen: Vec<Value> = Vec::with_capacity(owners.len());
    let before = owners.len();
    owners.retain(|owner| {
        let fresh = !seen.contains(owner);
        if fresh {
            seen.push(owner.clone());
        }
        fresh
    });
    if owners.len() < before {
        let uid = seen.last().map(|owner| text(owner, "/uid").to_owned()).unwrap_or_default();
        call.warn(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in \
             1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) \
             observed: {uid}"
        ));
    }
}

/// `DeleteOptions` from a body.
pub(crate) fn delete_options(call: &Call) -> Result<Value, ApiError> {
    let mut strict = Vec::new();
    let mut value = match content_type(&call.headers) {
        PROTOBUF => decode_protobuf(&call.body, "v1", "DeleteOptions")?,
        "application/yaml" => decoded(&call.kind, decode::yaml(&call.body), &mut strict)?,
        "" | "application/json" => decoded(&call.kind, decode::json(&call.body), &mut strict)?,
        _ => {
            return Err(ApiError::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json, application/yaml, {PROTOBUF}"
            )));
        }
    };
    let kind = text(&value, "/kind");
    if !kind.is_empty() && kind != "DeleteOptions" {
        return Err(ApiError::bad_request("decoded object cannot be converted to DeleteOptions"));
    }
    if let Some(definition) = tables::definition(tables::DELETE_OPTIONS) {
        let schema = crate::schema::SchemaRef::Builtin(definition);
        conform::conform(&mut value, &schema).map_err(|error| ApiError::bad_request(error.to_string()))?;
    }
    Ok(value)
}

/// A body of a built-in kind other than the object's own: a `Binding`, an `Eviction`, a `Scale`.
pub(crate) fn other_kind(call: &Call, group: &str, version: &str, kind: &str) -> Result<Value, ApiError> {
    let Some(schema) = tables::schema_of(group, version, kind) else { return Err(ApiError::no_such_resource()) };
    let api_version = crate::discovery::group_version(group, version);
    let read = |decoded: Result<decode::Decoded, decode::DecodeError>| {
        decoded.map(|d| d.value).map_err(|error| ApiError::bad_request(error.for_kind(kind)))
    };
    let mut value = match content_type(&call.headers) {
        PROTOBUF => decode_protobuf(&call.body, &api_version, kind)?,
        "application/yaml" => read(decode::yaml(&call.body))?,
        _ => read(decode::json(&call.body))?,
    };
    fit_other(&mut value, &schema, &api_version, kind)?;
    Ok(value)
}

/// Gives a tree of such a kind its form.
pub(crate) fn fit_other(value: &mut Value, schema: &schema::Schema, api_version: &str, kind: &str) -> Result<(), ApiError> {
    conform::conform(value, schema).map_err(|error| {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}"))
    })?;
    if let Value::Object(fields) = value {
        fields.insert("apiVersion".into(), api_version.into());
        fields.insert("kind".into(), kind.into());
    }
    Ok(())
}

/// The form a patch is sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchForm {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchForm {
    pub(crate) fn of(call: &Call) -> Result<PatchForm, ApiError> {
        match content_type(&call.headers) {
            "application/json-patch+json" => Ok(PatchForm::Json),
            "application/merge-patch+json" => Ok(PatchForm::Merge),
            "application/strategic-merge-patch+json" if call.kind.builtin().is_some() => Ok(PatchForm::Strategic),
            "application/apply-patch+yaml" => Ok(PatchForm::Apply),
            _ => {
                let mut error = ApiError::unsupported_media_type(if call.kind.builtin().is_some() {
                    "415: Unsupported Media Type".to_owned()
                } else {
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                        .to_owned()
                });
                if call.kind.builtin().is_some() {
                    error.details = Some(Box::default());
                }
                Err(error)
            }
        }
    }
}

/// A patch, read.
pub(crate) struct Patch {
    form: PatchForm,
    pub value: Value,
    duplicates: Vec<String>,
}

/// Reads the body of a patch request.
pub(crate) fn read_patch(call: &Call, form: PatchForm) -> Result<Patch, ApiError> {
    let decoded = decode::patch(&call.body).map_err(|error| ApiError::bad_request(error.for_patch(form == PatchForm::Json)))?;
    Ok(Patch { form, value: decoded.value, duplicates: decoded.duplicates })
}

/// An object with a patch applied, fitted to its kind and defaulted.
pub(crate) fn patched(
    _server: &Server,
    call: &Call,
    options: &WriteOptions,
    patch: &Patch,
    live: &Value,
) -> Result<Value, ApiError> {
    let kind = &*call.kind;
    let checked = options.field_validation != FieldValidation::Ignore;
    let mut strict = patch.duplicates.clone();
    let mut new = match patch.form {
        PatchForm::Json => {
            strict.extend(json_patch::unknown_fields(&patch.value));
            json_patch::apply(live.clone(), &patch.value, checked)?
        }
        PatchForm::Merge => merge_patch::apply(live.clone(), patch.value.clone(), checked)?,
        PatchForm::Strategic => strategic::apply(live.clone(), patch.value.clone(), &kind.schema_ref())?,
        PatchForm::Apply => patch.value.clone(),
    };
    check_type(kind, &mut new)?;
    strict.extend(fit(kind, &mut new)?);
    report(call, options.field_validation, &strict)?;
    strategy::default(kind, &mut new);
    check_name(call, &new)?;
    Ok(new)
}

/// The configuration of an apply to a subresource of another kind.
pub(crate) fn applied_other(call: &Call) -> Result<Value, ApiError> {
    let decoded = decode::yaml(&call.body)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {}", error.plain())))?;
    Ok(decoded.value)
}

/// The configuration of an apply: YAML or JSON, as sent, with unknown fields reported.
pub(crate) fn applied(_server: &Server, call: &Call, options: &WriteOptions) -> Result<Value, ApiError> {
    let kind = &*call.kind;
    let decoded = decode::yaml(&call.body)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {}", error.plain())))?;
    let mut strict = decoded.duplicates;
    let value = decoded.value;
    if kind.builtin().is_none() {
        // The merge refuses what a built-in kind does not have; custom kinds are pruned.
        let mut pruned = value.clone();
        strict.extend(fit(kind, &mut pruned)?);
        report(call, options.field_validation, &strict)?;
        return Ok(pruned);
    }
    report(call, options.field_validation, &strict)?;
    Ok(value)
}

/// Gives the result of an apply the form that reading it into its Go type would.
pub(crate) fn conform(kind: &Kind, value: &mut Value) -> Result<(), ApiError> {
    fit(kind, value).map(drop)
}
