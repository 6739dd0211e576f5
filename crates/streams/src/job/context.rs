//! What a stream's program gets to see of its stream: environment, Secrets, and a file if the spec is too long for the environment.

use serde_json::{Map, Value, json};

use crate::hashes::canonical;
use crate::kinds::{ActiveRun, BackfillRequestSpec, Purpose};
use crate::wish::{Problem, Stream};

/// The spec is too long even for a file.
pub const SPEC_TOO_LARGE: &str = "SpecTooLarge";
/// What a request wants to be passed on is too long for the environment.
pub const PAYLOAD_TOO_LARGE: &str = "PayloadTooLarge";
/// The Job would be larger than a server stores.
pub const JOB_TOO_LARGE: &str = "JobTooLarge";

/// Linux takes 128 KiB for one variable, its name included.
const ENV_BYTES_MAX: usize = 120 * 1024;
/// A `ConfigMap` takes 1 MiB.
const FILE_BYTES_MAX: usize = 1024 * 1024;
/// etcd takes 1.5 MiB. The rest is for what the server adds: defaults, status, managed fields.
const OBJECT_BYTES_MAX: usize = 1408 * 1024;
/// What a field takes besides its name and its value, at most.
const FIELD_BYTES: usize = 8;
const FOLDER: &str = "/var/run/mainstay/stream";
/// The file's name, and the key in the `ConfigMap`.
pub(super) const FILE: &str = "spec.json";
const VOLUME: &str = "mainstay-stream-spec";

const STREAM_ID: &str = "STREAMCONTEXT__STREAM_ID";
const STREAM_KIND: &str = "STREAMCONTEXT__STREAM_KIND";
const BACKFILL: &str = "STREAMCONTEXT__BACKFILL";
const BACKFILL_ID: &str = "STREAMCONTEXT__BACKFILL_ID";
const OVERRIDE: &str = "STREAMCONTEXT__OVERRIDE";
const SPEC: &str = "STREAMCONTEXT__SPEC";
const SPEC_FILE: &str = "STREAMCONTEXT__SPEC_FILE";
/// All of them: what a template says of any does not count.
const ALL: [&str; 7] = [STREAM_ID, STREAM_KIND, BACKFILL, BACKFILL_ID, OVERRIDE, SPEC, SPEC_FILE];

/// What all containers of a run get.
pub(super) struct Context {
    env: Vec<(&'static str, String)>,
    secrets: Vec<String>,
    /// What the file holds, if there is one.
    pub(super) file: Option<String>,
}

impl Context {
    pub(super) fn new(
        stream: &Stream<'_>,
        run: &ActiveRun,
        request: Option<&BackfillRequestSpec>,
    ) -> Result<Self, Problem> {
        let is_backfill = matches!(run.purpose, Purpose::Backfill { .. });
        let mut env = vec![
            (STREAM_ID, stream.name().to_owned()),
            (STREAM_KIND, stream.class().kind_ref.clone()),
            (BACKFILL, is_backfill.to_string()),
        ];
        if let Purpose::Backfill { id, .. } = &run.purpose {
            env.push((BACKFILL_ID, id.clone()));
            if let Some(request) = request {
                env.extend(check_payload(id, request)?.map(|text| (OVERRIDE, text)));
            }
        }
        let spec = canonical(&stream.program_spec());
        let file = match spec.len() {
            0..=ENV_BYTES_MAX => {
                env.push((SPEC, spec));
                None
            }
            length if length > FILE_BYTES_MAX => {
                return Err(too_large(SPEC_TOO_LARGE, "spec".to_owned(), length, FILE_BYTES_MAX));
            }
            _ => {
                env.push((SPEC_FILE, format!("{FOLDER}/{FILE}")));
                Some(spec)
            }
        };
        let secrets = stream.secrets()?.into_iter().map(str::to_owned).collect();
        Ok(Self { env, secrets, file })
    }

    /// Gives it to all containers of a pod. The file is in this `ConfigMap`.
    pub(super) fn give_to(&self, pod: &mut Map<String, Value>, config_map: &str) {
        for list in ["initContainers", "containers"] {
            let containers = pod.get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
                self.give_to_container(container);
            }
        }
        if self.file.is_some() {
            let volume = json!({"name": VOLUME, "configMap": {"name": config_map}});
            change(pod, "volumes", |volumes| {
                volumes.retain(|theirs| theirs["name"] != VOLUME);
                volumes.push(volume);
            });
        }
    }

    fn give_to_container(&self, container: &mut Map<String, Value>) {
        change(container, "env", |env| {
            env.retain(|theirs| !ALL.iter().any(|name| theirs["name"] == **name));
            // Ours come first, so that the template's can refer to them.
            let ours = self.env.iter().map(|(name, value)| json!({"name": name, "value": literal(value)}));
            env.splice(0..0, ours);
        });
        if !self.secrets.is_empty() {
            let ours = self.secrets.iter().map(|name| json!({"secretRef": {"name": name}}));
            change(container, "envFrom", |sources| sources.extend(ours));
        }
        if self.file.is_some() {
            change(container, "volumeMounts", |mounts| {
                mounts.retain(|theirs| theirs["mountPath"] != FOLDER && theirs["name"] != VOLUME);
                mounts.push(json!({"name": VOLUME, "mountPath": FOLDER, "readOnly": true}));
            });
        }
    }
}

/// Changes the list of this name; if it is not there, an empty one.
fn change(fields: &mut Map<String, Value>, name: &str, change: impl FnOnce(&mut Vec<Value>)) {
    let mut items = match fields.remove(name) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    change(&mut items);
    fields.insert(name.to_owned(), Value::Array(items));
}

/// A value that the kubelet passes on as it is: it takes `$(NAME)` for a variable, and two dollars for one.
fn literal(value: &str) -> String {
    value.replace('$', "$$")
}

/// What a request passes on to the program.
fn passed_on(request: &BackfillRequestSpec) -> Option<String> {
    let payload = request.payload.clone().filter(|payload| !payload.is_null());
    let Some(range) = &request.range else { return payload.map(|payload| canonical(&payload)) };
    let mut fields = match payload {
        None => Map::new(),
        Some(Value::Object(fields)) => fields,
        Some(other) => Map::from_iter([("payload".to_owned(), other)]),
    };
    fields.insert("range".to_owned(), json!(range));
    Some(canonical(&Value::Object(fields)))
}

/// What a request passes on to the program, unless that is too long for the environment.
pub(super) fn check_payload(name: &str, request: &BackfillRequestSpec) -> Result<Option<String>, Problem> {
    let text = passed_on(request);
    match &text {
        Some(text) if text.len() > ENV_BYTES_MAX => {
            let path = format!("BackfillRequest {name}: spec.payload");
            Err(too_large(PAYLOAD_TOO_LARGE, path, text.len(), ENV_BYTES_MAX))
        }
        _ => Ok(text),
    }
}

/// Whether a server stores an object of this size. All containers have the environment, so many containers make it large.
pub(super) fn check_size(object: &Value) -> Result<(), Problem> {
    let bytes = stored_bytes(object);
    if bytes <= OBJECT_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "with the environment of all containers the Job takes {bytes} bytes, must not take more than {OBJECT_BYTES_MAX}"
    );
    Err(Problem { reason: JOB_TOO_LARGE, path: "spec".to_owned(), message })
}

/// About what an object takes in etcd, where nothing is escaped as it is in JSON.
fn stored_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => FIELD_BYTES,
        Value::String(text) => text.len() + FIELD_BYTES,
        Value::Array(items) => items.iter().map(stored_bytes).sum::<usize>() + FIELD_BYTES,
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + stored_bytes(value)).sum(),
    }
}

fn too_large(reason: &'static str, path: String, bytes: usize, most: usize) -> Problem {
    let message = format!("is {bytes} bytes long as JSON, must not be longer than {most}");
    Problem { reason, path, message }
}
