//! What a trace file says. Unknown keys are refused, so that a typing mistake never makes a trace weaker.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// One file: requests that are sent one after the other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trace {
    /// The file's path below the folder of traces, without its ending.
    #[serde(skip)]
    pub(crate) name: String,
    /// Custom kinds that exist before the first step.
    #[serde(default)]
    pub(crate) kinds: Vec<CustomKind>,
    /// The requests whose answers are compared.
    pub(crate) steps: Vec<Step>,
}

impl Trace {
    /// What waits for controllers starts first, and before definitions come and go: each makes the real garbage
    /// collector pause and look again at what there is.
    pub(crate) fn urgency(&self) -> (bool, bool) {
        (!self.kinds.is_empty(), self.steps.iter().all(|step| step.until.is_none()))
    }
}

/// A `CustomResourceDefinition` in short. Its plural is the lower-case kind with an s, its group `{group}`, which no other
/// run of any trace has; `{<plural>}` stands for the path of its objects in this trace's namespace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CustomKind {
    pub(crate) kind: String,
    /// The properties beside apiVersion, kind and metadata.
    #[serde(default)]
    properties: Map<String, Value>,
    /// Merged into the root of the schema.
    #[serde(default)]
    schema: Map<String, Value>,
    /// Merged into the version: subresources, selectableFields, additionalPrinterColumns…
    #[serde(default)]
    version: Map<String, Value>,
    /// Merged into the spec.
    #[serde(default)]
    spec: Map<String, Value>,
}

impl CustomKind {
    pub(crate) fn plural(&self) -> String {
        format!("{}s", self.kind.to_lowercase())
    }

    pub(crate) fn is_cluster_scoped(&self) -> bool {
        self.spec.get("scope").is_some_and(|scope| scope == "Cluster")
    }

    /// The whole definition, with `{group}` still to be filled in.
    pub(crate) fn definition(&self) -> Value {
        let plural = self.plural();
        let mut schema = json!({"type": "object", "properties": self.properties});
        merge(&mut schema, &self.schema);
        let mut version =
            json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        merge(&mut version, &self.version);
        let mut spec = json!({
            "group": "{group}",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": self.kind, "listKind": format!("{}List", self.kind)},
            "versions": [version],
        });
        merge(&mut spec, &self.spec);
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{{group}}")},
            "spec": spec,
        })
    }
}

fn merge(into: &mut Value, from: &Map<String, Value>) {
    for (key, value) in from {
        into[key] = value.clone();
    }
}

/// One request. Every text in it may hold `{ns}`, `{run}`, `{group}` and `{name}` for each captured name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    #[serde(rename = "GET")]
    get: Option<String>,
    #[serde(rename = "POST")]
    post: Option<String>,
    #[serde(rename = "PUT")]
    put: Option<String>,
    #[serde(rename = "PATCH")]
    patch: Option<String>,
    #[serde(rename = "DELETE")]
    delete: Option<String>,
    #[serde(rename = "OPTIONS")]
    options: Option<String>,

    /// A PATCH's content type in short: json, merge, strategic, apply.
    #[serde(rename = "type")]
    patch_type: Option<PatchType>,
    /// Asks for a form: `Table`, `PartialObjectMetadata`, `PartialObjectMetadataList`.
    #[serde(rename = "as")]
    form: Option<String>,
    headers: BTreeMap<String, String>,

    /// Sent as JSON.
    pub(crate) body: Option<Value>,
    /// Sent as it stands; `{pad:N}` stands for N letters.
    pub(crate) raw: Option<String>,
    /// Sent decoded.
    pub(crate) base64: Option<String>,

    /// Names for values of the answer, by pointer into its body.
    pub(crate) capture: BTreeMap<String, String>,
    /// Sends the request again until this is so, for a bounded time.
    pub(crate) until: Option<Until>,
    /// The answer is a stream of events; this many are read. Bookmarks count only if they end the initial events.
    pub(crate) watch: Option<usize>,
    /// As `watch`, but reads until the server ends the stream.
    pub(crate) watch_to_end: bool,

    /// Only these parts of the body are compared.
    pub(crate) only: Vec<String>,
    /// These parts of the body are not compared.
    pub(crate) ignore: Vec<String>,
    /// The order of these lists in the body is not compared.
    pub(crate) unordered: Vec<String>,
    /// The answer is a Status whose causes come in any order, in its message too.
    pub(crate) unordered_causes: bool,
    /// The answer is not compared at all.
    pub(crate) uncompared: bool,
    /// Differences that DIFFERENCES.md lists, by id, with the places in the answer where they show.
    pub(crate) accept: BTreeMap<String, Vec<String>>,
}

/// The four kinds of patch.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// When a repeated request has settled.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Until {
    /// The answer has this code.
    Status(u16),
    /// The body has these values at these pointers; null stands for absence.
    Body(BTreeMap<String, Value>),
}

impl Step {
    /// The method and the path with its query.
    pub(crate) fn target(&self) -> (&'static str, &str) {
        let all = [
            ("GET", &self.get),
            ("POST", &self.post),
            ("PUT", &self.put),
            ("PATCH", &self.patch),
            ("DELETE", &self.delete),
            ("OPTIONS", &self.options),
        ];
        let mut named = all.into_iter().filter_map(|(method, path)| Some((method, path.as_deref()?)));
        match (named.next(), named.next()) {
            (Some(target), None) => target,
            _ => panic!("a step needs exactly one of GET, POST, PUT, PATCH, DELETE, OPTIONS: {self:?}"),
        }
    }

    /// The headers to send; what the trace says goes before the defaults.
    pub(crate) fn headers(&self) -> BTreeMap<String, String> {
        let mut headers = BTreeMap::from([("user-agent".to_string(), "trace/1".to_string())]);
        let accept = match &self.form {
            Some(form) => format!("application/json;as={form};g=meta.k8s.io;v=v1"),
            None => "application/json".to_string(),
        };
        headers.insert("accept".into(), accept);
        if self.body.is_some() || self.raw.is_some() || self.base64.is_some() {
            let content_type = self.patch_type.map_or("application/json", PatchType::content_type);
            headers.insert("content-type".into(), content_type.into());
        }
        for (name, value) in &self.headers {
            headers.insert(name.to_lowercase(), value.clone());
        }
        headers.retain(|_, value| value != "none");
        headers
    }

    /// One line that names the request.
    pub(crate) fn summary(&self) -> String {
        let (method, path) = self.target();
        match self.patch_type {
            Some(kind) => format!("{method} {path} ({})", format!("{kind:?}").to_lowercase()),
            None => format!("{method} {path}"),
        }
    }
}

/// Every trace below a folder, in the order of their names.
pub(crate) fn load_all(folder: &Path) -> Vec<Trace> {
    let mut traces = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(current) = folders.pop() {
        let entries = fs::read_dir(&current).unwrap_or_else(|error| panic!("{}: {error}", current.display()));
        for path in entries.map(|entry| entry.expect("a readable folder").path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            assert!(path.extension().is_some_and(|ending| ending == "yaml"), "no trace: {}", path.display());
            let text =
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let mut trace: Trace =
                serde_saphyr::from_str_with_options(&text, serde_saphyr::options! { strict_booleans: true })
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let relative = path.strip_prefix(folder).expect("found below the folder").with_extension("");
            trace.name = relative.display().to_string();
            for step in &trace.steps {
                step.target();
            }
            traces.push(trace);
        }
    }
    traces.sort_by(|a, b| a.name.cmp(&b.name));
    traces
}
