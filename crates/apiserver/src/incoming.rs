//! What clients send: bodies read into trees of the kind that a URL names, and patches applied.

use crate::builtin::rules::json::text_at;
use crate::builtin::rules::names::object_meta::drop_repeated_owners;
use crate::builtin::{conform, tables};
use crate::decode::{self, Decoded, Encoding, Unreadable, Wanted};
use crate::field::{FieldError, Path, go_quote};
use crate::kind::Kind;
use crate::negotiate::content_type;
use crate::options::{FieldValidation, WriteOptions};
use crate::patch::{go_print, json_patch, merge_patch, strategic};
use crate::protobuf;
use crate::schema::{self, Malformed, Schema};
use crate::server::Call;
use crate::status::{ApiError, Subject};
use crate::strategy;
use serde_json::{Map, Value};

pub(crate) use crate::bounds::BODY_BYTES_MAX as BODY_MAX;
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The body of a create or replace, fitted to its kind and defaulted.
pub(crate) fn object(call: &Call, options: &WriteOptions) -> Result<Value, ApiError> {
    let kind = &*call.kind;
    let wanted = Wanted {
        group: &kind.group,
        version: &kind.version,
        kind: &kind.kind,
        implied: kind.builtin().is_some(),
    };
    let mut decoded = decode_body(call, &wanted)?;
    let refuse = |why: &str| decode::cannot_handle(&kind.kind, &kind.version, &kind.kind, why);
    if kind.custom().is_some() {
        check_custom_kind(kind, &decoded.value)?;
    }
    let unknown = fit(kind, &mut decoded.value, refuse)?;
    // Go's decoder says of JSON what it finds when it comes to it. All others say first what stands twice.
    let in_order = |repeated: Vec<String>| {
        let is_json = matches!(content_type(&call.headers), "" | "application/json");
        if is_json && kind.builtin().is_some() && !unknown.is_empty() {
            return decode::in_document_order(&call.body, &repeated, &unknown);
        }
        repeated.into_iter().chain(unknown.iter().cloned()).collect()
    };
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => {
            for warning in in_order(decoded.warnings) {
                call.warn(warning);
            }
        }
        FieldValidation::Strict => {
            let strict = in_order(decoded.strict_errors);
            if !strict.is_empty() {
                return Err(refuse(&format!("strict decoding error: {}", strict.join(", "))));
            }
        }
    }
    strategy::default(kind, &mut decoded.value)?;
    Ok(decoded.value)
}

/// Reads a body as the wanted kind, in whatever encoding it comes.
fn decode_body(call: &Call, wanted: &Wanted<'_>) -> Result<Decoded, ApiError> {
    match content_type(&call.headers) {
        "" | "application/json" => {
            known_kind(decode::decode_object(&call.body, Encoding::Json, wanted), wanted)
        }
        "application/yaml" => known_kind(decode::decode_object(&call.body, Encoding::Yaml, wanted), wanted),
        PROTOBUF if wanted.implied => decode_protobuf(call, wanted),
        _ => Err(unknown_format(wanted.implied)),
    }
}

/// Kinds that are built in, but are not the wanted one, are refused in other words than unknown ones.
fn known_kind(read: Result<Decoded, ApiError>, wanted: &Wanted<'_>) -> Result<Decoded, ApiError> {
    read.map_err(|mut error| {
        if let Some((kind, version)) = unregistered(&error.message) {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
            if tables::definition_of(group, version, &kind).is_some() || (group.is_empty() && kind == "List")
            {
                let package = wanted.group.split('.').next().filter(|g| !g.is_empty()).unwrap_or("core");
                let why = format!(
                    "converting ({version}.{kind}) to ({package}.{}): unknown conversion",
                    wanted.kind
                );
                error = decode::cannot_handle(&kind, version, wanted.kind, &why);
            }
        }
        error
    })
}

/// The kind and version in a refusal of a kind that is not registered.
fn unregistered(message: &str) -> Option<(String, String)> {
    let (_, rest) = message.split_once("no kind \"")?;
    let (kind, rest) = rest.split_once("\" is registered for version \"")?;
    let (version, _) = rest.split_once('"')?;
    Some((kind.to_owned(), version.to_owned()))
}

fn unknown_format(protobuf: bool) -> ApiError {
    let more = if protobuf { format!(", {PROTOBUF}") } else { String::new() };
    ApiError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: \
         application/json, application/yaml{more}"
    ))
}

fn decode_protobuf(call: &Call, wanted: &Wanted<'_>) -> Result<Decoded, ApiError> {
    let api_version = crate::discovery::group_version(wanted.group, wanted.version);
    match protobuf::decode_body(&call.body, &api_version, wanted.kind) {
        Ok(Some(value)) => {
            let (found_version, found) = (text_at(&value, "/apiVersion"), text_at(&value, "/kind"));
            if found_version != api_version || found != wanted.kind {
                let why = format!(
                    "no kind {} is registered for version {}",
                    go_quote(found),
                    go_quote(found_version)
                );
                let version = found_version.rsplit('/').next().unwrap_or_default();
                return known_kind(Err(decode::cannot_handle(found, version, wanted.kind, &why)), wanted);
            }
            Ok(Decoded { value, ..Decoded::default() })
        }
        Ok(None) => Err(decode::unrecognized(wanted.kind, "the kind is not built in", &call.body)),
        Err(error) => Err(decode::unrecognized(wanted.kind, &error.to_string(), &call.body)),
    }
}

/// Refuses an object of another custom kind than the URL's.
fn check_custom_kind(kind: &Kind, value: &Value) -> Result<(), ApiError> {
    let given = text_at(value, "/kind");
    if given == kind.kind {
        return Ok(());
    }
    let why = format!("must be {}", kind.kind);
    let error = FieldError::invalid(&Path::of("kind"), &given.into(), why);
    let subject = Subject { group: &kind.group, kind: given };
    Err(ApiError::invalid(&subject, text_at(value, "/metadata/name"), &[error]))
}

/// Gives a tree the shape of its kind. Returns what was dropped for it (`unknown field "…"`). A tree that cannot be given
/// that shape is refused by `refuse`, which is told why; one that would be too large to store, as the store does it.
pub(crate) fn fit(
    kind: &Kind,
    value: &mut Value,
    refuse: impl FnOnce(&str) -> ApiError,
) -> Result<Vec<String>, ApiError> {
    if kind.builtin().is_some() {
        let unknown = conform::conform(value, kind.schema()).map_err(|error| match error {
            conform::Unreadable::Value(why) => refuse(&why),
            conform::Unreadable::TooMany => ApiError::too_large_to_store(),
        })?;
        return Ok(unknown.iter().map(ToString::to_string).collect());
    }
    let unknown = schema::fit(value, kind.schema(), Malformed::Refuse).map_err(|why| refuse(&why))?;
    Ok(unknown.iter().map(|path| decode::unknown_field(path)).collect())
}

/// Puts an object where the URL says it is, and refuses one that says otherwise.
pub(crate) fn place(call: &Call, object: &mut Value, name: Option<&str>) -> Result<(), ApiError> {
    let Some(fields) = object.as_object_mut() else { return Ok(()) };
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return Ok(()) };
    let given = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    let namespace = call.namespace();
    if !call.kind.namespaced {
        metadata.remove("namespace");
    } else if given != namespace {
        if !given.is_empty() {
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
    let (name, namespace) = (text_at(object, "/metadata/name"), text_at(object, "/metadata/namespace"));
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name()
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

/// Refuses a patch that would rename or move the object.
pub(crate) fn check_patched_name(call: &Call, object: &Value) -> Result<(), ApiError> {
    let name = text_at(object, "/metadata/name");
    if name != call.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    Ok(())
}

/// Drops owner references that say the same twice, and warns of them.
pub(crate) fn dedup_owners(call: &Call, object: &mut Value) {
    if let Some(warning) = drop_repeated_owners(object) {
        call.warn(warning);
    }
}

/// `DeleteOptions` from a body. Typed Go clients send them with the `apiVersion` of the group they delete from, so any
/// will do.
pub(crate) fn delete_options(call: &Call) -> Result<Value, ApiError> {
    let unreadable = |error| match error {
        Unreadable::Syntax(why) | Unreadable::Value(why) => ApiError::bad_request(why),
    };
    let definition = tables::definition(tables::DELETE_OPTIONS).map(schema::SchemaRef::Builtin);
    let mut value = match content_type(&call.headers) {
        PROTOBUF => protobuf::decode_as(&call.body, "DeleteOptions", definition.as_deref())
            .map_err(|error| ApiError::bad_request(error.to_string()))?,
        "application/yaml" => decode::parse(&call.body, Encoding::Yaml).map_err(unreadable)?.value,
        "" | "application/json" => decode::parse(&call.body, Encoding::Json).map_err(unreadable)?.value,
        _ => return Err(unknown_format(true)),
    };
    let (kind, version) = (text_at(&value, "/kind"), text_at(&value, "/apiVersion"));
    if !kind.is_empty() && kind != "DeleteOptions" {
        return Err(ApiError::bad_request(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            go_quote(kind),
            go_quote(version)
        )));
    }
    if let Some(schema) = definition {
        conform::conform(&mut value, &schema).map_err(|error| ApiError::bad_request(error.to_string()))?;
    }
    Ok(value)
}

/// A body of a built-in kind other than the object's own: a `Binding`, an `Eviction`, a `Scale`.
pub(crate) fn other_kind(call: &Call, group: &str, version: &str, kind: &str) -> Result<Value, ApiError> {
    let Some(schema) = tables::schema_of(group, version, kind) else {
        return Err(ApiError::no_such_resource());
    };
    let mut value = decode_body(call, &Wanted { group, version, kind, implied: true })?.value;
    fit_other(&mut value, &schema).map_err(|why| decode::cannot_handle(kind, version, kind, &why))?;
    Ok(value)
}

/// Gives a tree of such a kind its form.
pub(crate) fn fit_other(value: &mut Value, schema: &Schema) -> Result<(), String> {
    conform::conform(value, schema).map(drop).map_err(|error| error.to_string())
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
        let builtin = call.kind.builtin().is_some();
        match content_type(&call.headers) {
            "application/json-patch+json" => Ok(PatchForm::Json),
            "application/merge-patch+json" => Ok(PatchForm::Merge),
            "application/strategic-merge-patch+json" if builtin => Ok(PatchForm::Strategic),
            "application/apply-patch+yaml" => Ok(PatchForm::Apply),
            _ if builtin => {
                let mut error = ApiError::unsupported_media_type("415: Unsupported Media Type");
                error.details = Some(Box::default());
                Err(error)
            }
            _ => Err(ApiError::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
        }
    }
}

/// A patch, read.
pub(crate) struct Patch {
    form: PatchForm,
    pub value: Value,
    strict_errors: Vec<String>,
    warnings: Vec<String>,
}

/// Reads the body of a patch request.
pub(crate) fn read_patch(call: &Call, form: PatchForm) -> Result<Patch, ApiError> {
    let decoded = decode::parse(&call.body, Encoding::Json).map_err(|error| match error {
        Unreadable::Syntax(why) | Unreadable::Value(why) => {
            let why = why.strip_prefix("couldn't get version/kind; json parse error: ").unwrap_or(&why);
            let prefix = if form == PatchForm::Strategic { "" } else { "error decoding patch: " };
            ApiError::bad_request(format!("{prefix}{why}"))
        }
    })?;
    let Decoded { value, strict_errors, warnings } = decoded;
    Ok(Patch { form, value, strict_errors, warnings })
}

/// An object with a patch applied, fitted to its kind and defaulted.
pub(crate) fn patched(
    call: &Call,
    options: &WriteOptions,
    patch: &Patch,
    live: &Value,
) -> Result<Value, ApiError> {
    let kind = &*call.kind;
    let checked = options.field_validation != FieldValidation::Ignore;
    let mut unknown = Vec::new();
    let mut new = match patch.form {
        PatchForm::Json => {
            unknown.extend(json_patch::unknown_fields(&patch.value));
            json_patch::apply(live.clone(), &patch.value, checked)?
        }
        PatchForm::Merge | PatchForm::Apply => {
            merge_patch::apply(live.clone(), patch.value.clone(), checked)?
        }
        PatchForm::Strategic => strategic::apply(live.clone(), patch.value.clone(), kind.owned_schema())?,
    };
    let before = new.to_string();
    let refuse = |why: &str| refuse_patch(patch, &before, why);
    check_patched_type(kind, &new).map_err(|why| refuse(&why))?;
    unknown.extend(fit(kind, &mut new, refuse)?);
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => {
            patch.warnings.iter().cloned().chain(unknown).for_each(|warning| call.warn(warning));
        }
        FieldValidation::Strict => {
            let strict: Vec<String> = patch.strict_errors.iter().cloned().chain(unknown).collect();
            if !strict.is_empty() {
                return Err(refuse(&format!("strict decoding error: {}", strict.join(", "))));
            }
        }
    }
    strategy::default(kind, &mut new)?;
    Ok(new)
}

/// Refuses a patch whose result is not of the kind.
fn check_patched_type(kind: &Kind, new: &Value) -> Result<(), String> {
    let (api_version, given) = (text_at(new, "/apiVersion"), text_at(new, "/kind"));
    if api_version == kind.api_version && given == kind.kind {
        return Ok(());
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    if kind.builtin().is_some() && tables::definition_of(group, version, given).is_some() {
        return Err(format!(
            "converting ({version}.{given}) to ({}.{}): unknown conversion",
            kind.internal_group(),
            kind.kind
        ));
    }
    Err(format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        go_quote(given),
        go_quote(api_version)
    ))
}

/// 422: the patch applies, but what results is not an object of the kind.
fn refuse_patch(patch: &Patch, result: &str, why: &str) -> ApiError {
    let shown = match patch.form {
        PatchForm::Strategic => go_print(&patch.value),
        _ => result.to_owned(),
    };
    let error = FieldError::invalid(&Path::of("patch"), &shown.into(), why);
    let mut refusal = ApiError::invalid(&Subject { group: "", kind: "" }, "", &[error]);
    if let Some(details) = &mut refusal.details {
        details.remove("kind");
    }
    refusal
}

/// The configuration of an apply: YAML or JSON, as sent, with unknown fields reported.
pub(crate) fn applied(call: &Call, options: &WriteOptions) -> Result<Value, ApiError> {
    let strict = options.field_validation == FieldValidation::Strict;
    let decoded = read_applied(call)?;
    if strict && !decoded.strict_errors.is_empty() {
        let list = decoded.strict_errors.join(", ");
        return Err(ApiError::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {list}"
        )));
    }
    if options.field_validation == FieldValidation::Warn {
        decoded.warnings.iter().for_each(|warning| call.warn(warning.clone()));
    }
    // Items of keyed lists are told apart by their keys' defaults too, before anything is filled in.
    if call.kind.custom().is_some() {
        strategy::default_applied(&call.kind, &mut decoded.value.clone())?;
    }
    // The merge itself refuses fields that the kind does not have.
    Ok(decoded.value)
}

/// The body of an apply, whatever it is.
pub(crate) fn read_applied(call: &Call) -> Result<Decoded, ApiError> {
    decode::parse(&call.body, Encoding::Yaml).map_err(|error| match error {
        Unreadable::Syntax(why) | Unreadable::Value(why) => {
            ApiError::bad_request(format!("error decoding YAML: error converting YAML to JSON: {why}"))
        }
    })
}
