//! The `scale` subresource: how many, of anything that has a number of replicas.
//!
//! A `Scale` is a view of the scaled object. Reading makes one; writing one changes the object's number of
//! replicas. Who manages that number is recorded in terms of the scale and carried over to the object.

use crate::admit::Sent;
use crate::apply::{self, FieldSet, Target, Writer};
use crate::builtin::rules::workloads::scale::selector_string;
use crate::builtin::tables;
use crate::field::{FieldError, Path};
use crate::incoming::{self, PatchForm};
use crate::kind::{Kind, Nature};
use crate::options::WriteOptions;
use crate::patch::{json_patch, merge_patch, strategic};
use crate::read;
use crate::respond::{self, Reply};
use crate::schema::SchemaRef;
use crate::server::{Call, Server};
use crate::status::{ApiError, Subject};
use crate::strategy::Part;
use crate::write::{self, Change, View};
use http::Method;
use serde_json::{Value, json};

const SCALE: &str = "autoscaling/v1";

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

/// How a client wants a scale changed.
enum Wish {
    Replace(Value),
    Patch(PatchForm, Value),
    Apply(Value, bool),
}

/// Answers a request for an object's scale.
pub(crate) async fn answer(server: &Server, call: &Call, method: &Method) -> Result<Reply, ApiError> {
    let Some(paths) = paths(&call.kind) else { return Err(ApiError::no_such_resource()) };
    let (wish, options) = match *method {
        Method::GET => {
            let object = read::find(server, call)?;
            let tree = call.kind.tree(&object)?;
            refuse_scaleless(&call.kind, &tree, &paths)?;
            let scale = scale_of(&tree, &paths);
            return respond::tree(call, 200, &scale, server.clock.now());
        }
        Method::PUT => {
            let options = WriteOptions::read(&call.query, "UpdateOptions", false)?;
            let scale = incoming::other_kind(call, "autoscaling", "v1", "Scale")?;
            incoming::check_name(call, &scale)?;
            (Wish::Replace(scale), options)
        }
        Method::PATCH => {
            let form = PatchForm::of(call)?;
            let options = WriteOptions::read(&call.query, "PatchOptions", form == PatchForm::Apply)?;
            let wish = if form == PatchForm::Apply {
                Wish::Apply(incoming::read_applied(call)?.value, options.force.unwrap_or(false))
            } else {
                Wish::Patch(form, incoming::read_patch(call, form)?.value)
            };
            (wish, options)
        }
        _ => return Err(ApiError::no_such_resource()),
    };
    let schema = tables::schema_of("autoscaling", "v1", "Scale").ok_or_else(ApiError::no_such_resource)?;
    let rescale = Rescale { server, call, options: &options, wish: &wish, paths: &paths, schema: &schema };
    let (written, _) =
        write::update(server, call, &options, Part::Other("scale"), Change::Viewed(&rescale), false).await?;
    let scale = scale_of(&written.tree(&call.kind)?, &paths);
    respond::tree(call, 200, &scale, server.clock.now())
}

/// A change of an object's scale.
struct Rescale<'a> {
    server: &'a Server,
    call: &'a Call,
    options: &'a WriteOptions,
    wish: &'a Wish,
    paths: &'a Paths,
    schema: &'a SchemaRef,
}

impl Rescale<'_> {
    /// Runs `with` on where the number of replicas is, in the version of the request.
    fn with_replicas_paths<R>(&self, with: impl FnOnce(&[(&str, &[&str])]) -> R) -> R {
        let steps: Vec<&str> = self.paths.spec.split('/').filter(|step| !step.is_empty()).collect();
        with(&[(self.call.kind.api_version.as_str(), steps.as_slice())])
    }
}

impl View for Rescale<'_> {
    fn sent(&self) -> Sent {
        Sent::Scale
    }

    fn of(&self, object: &Value) -> Value {
        scale_of(object, self.paths)
    }

    fn propose(&self, live: &Value) -> Result<(Value, Value), ApiError> {
        let mut before = scale_of(live, self.paths);
        let managed = live.pointer("/metadata/managedFields");
        let managers = self.with_replicas_paths(|paths| apply::managers_of_scale(managed, paths));
        if let Some(managers) = managers {
            before["metadata"]["managedFields"] = managers;
        }
        let wanted = changed(self.server, self.call, self.options, &before, self.wish, self.schema)?;
        Ok((before, wanted))
    }

    fn merge(&self, live: &Value, scale: &Value) -> Result<Value, ApiError> {
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        refuse_negative(self.call, replicas)?;
        let mut new = live.clone();
        set(&mut new, &self.paths.spec, replicas.into());
        let managed = live.pointer("/metadata/managedFields");
        let of_scale = scale.pointer("/metadata/managedFields");
        let managers = self.with_replicas_paths(|paths| {
            apply::managers_of_scaled(managed, of_scale, paths, &self.call.kind.api_version)
        });
        if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
            match managers {
                Some(managers) => metadata.insert("managedFields".into(), managers),
                None => metadata.remove("managedFields"),
            };
            for field in ["uid", "resourceVersion"] {
                if let Some(value) = scale["metadata"].get(field).filter(|value| *value != "") {
                    metadata.insert(field.into(), value.clone());
                }
            }
        }
        Ok(new)
    }
}

fn refuse_negative(call: &Call, replicas: i64) -> Result<(), ApiError> {
    if replicas >= 0 {
        return Ok(());
    }
    let (path, why, subject);
    let spec = Path::of("spec");
    if let Some(scale) = call.kind.custom().and_then(|custom| custom.scale.as_ref()) {
        path = Path::of(&scale.spec);
        (why, subject) = ("should be a non-negative integer", call.kind.subject());
    } else {
        path = spec.field("replicas");
        why = "must be greater than or equal to 0";
        subject = Subject { group: "autoscaling", kind: "Scale" };
    }
    Err(ApiError::invalid(&subject, call.name(), &[FieldError::invalid(&path, &replicas.into(), why)]))
}

/// A custom object without the field that its definition names has no scale.
fn refuse_scaleless(kind: &Kind, object: &Value, paths: &Paths) -> Result<(), ApiError> {
    match kind.custom().and_then(|custom| custom.scale.as_ref()) {
        Some(scale) if object.pointer(&paths.spec).is_none() => {
            Err(ApiError::internal(format!("the spec replicas field {:?} does not exist", scale.spec)))
        }
        _ => Ok(()),
    }
}

/// The scale that results, with its managers recorded.
fn changed(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    before: &Value,
    wish: &Wish,
    schema: &SchemaRef,
) -> Result<Value, ApiError> {
    let name = write::manager_name(call, options);
    let by = Writer { name: &name, subresource: "scale", time: server.clock.now() };
    let nothing = FieldSet::of_fields(&[]);
    let target = Target {
        api_version: SCALE,
        kind: "Scale",
        schema,
        reset: &nothing,
        reset_elsewhere: true,
        convert: &|_, _| None,
    };
    let mut scale = match wish {
        Wish::Apply(wanted, force) => return Ok(apply::apply(Some(before), wanted, &by, *force, &target)?),
        Wish::Replace(scale) => scale.clone(),
        Wish::Patch(PatchForm::Json, patch) => json_patch::apply(before.clone(), patch, true)?,
        Wish::Patch(PatchForm::Strategic, patch) => strategic::apply(before.clone(), patch.clone(), schema)?,
        Wish::Patch(PatchForm::Merge | PatchForm::Apply, patch) => {
            merge_patch::apply(before.clone(), patch.clone(), true)?
        }
    };
    incoming::fit_other(&mut scale, schema).map_err(ApiError::bad_request)?;
    incoming::check_patched_name(call, &scale)?;
    apply::track_update(Some(before), &mut scale, &by, &target);
    Ok(scale)
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
fn scale_of(object: &Value, paths: &Paths) -> Value {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let mut shown = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            shown[field] = value.clone();
        }
    }
    let mut status = json!({"replicas": number(&paths.status)});
    let selector = paths.selector.as_deref().and_then(|pointer| object.pointer(pointer));
    let selector = match selector {
        Some(Value::String(text)) => text.clone(),
        Some(labels @ Value::Object(_)) => selector_string(labels),
        _ => String::new(),
    };
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let mut spec = json!({});
    if number(&paths.spec) != 0 {
        spec["replicas"] = number(&paths.spec).into();
    }
    json!({"kind": "Scale", "apiVersion": SCALE, "metadata": shown, "spec": spec, "status": status})
}
