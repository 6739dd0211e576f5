//! Which fields each kind can be selected by, and where they are read.

use crate::jsonpath::JsonPath;
use crate::status::ApiError;
use serde_json::Value;
use std::borrow::Cow;

/// The fields a kind can be selected by.
#[derive(Clone, Debug)]
pub(crate) enum FieldSupport {
    /// Of a built-in kind.
    Builtin(&'static KindFields),
    /// Of a custom kind: name, namespace if it has one, and its `selectableFields`.
    Custom { namespaced: bool, fields: Vec<(String, JsonPath)> },
}

impl FieldSupport {
    /// Of a built-in kind served under `group`.
    pub(crate) fn builtin(group: &str, kind: &str) -> Self {
        FieldSupport::Builtin(match (group, kind) {
            ("", "Pod") => &POD,
            ("", "Node") => &NODE,
            ("", "ReplicationController") => &REPLICATION_CONTROLLER,
            ("", "Event") => &EVENT,
            ("events.k8s.io", "Event") => &EVENTS_EVENT,
            ("", "Namespace") => &NAMESPACE,
            ("", "Secret") => &SECRET,
            ("", "Service") => &SERVICE,
            ("batch", "Job") => &JOB,
            ("certificates.k8s.io", "CertificateSigningRequest") => &SIGNING_REQUEST,
            _ => &OTHER,
        })
    }

    /// Of a custom kind with the given `selectableFields[*].jsonPath`.
    pub(crate) fn custom<'a>(namespaced: bool, paths: impl IntoIterator<Item = &'a str>) -> Self {
        let label = |path: &str| path.strip_prefix('.').unwrap_or(path).to_owned();
        let fields = paths.into_iter().filter_map(|path| Some((label(path), JsonPath::parse(path).ok()?)));
        FieldSupport::Custom { namespaced, fields: fields.collect() }
    }
}

/// The fields of one built-in kind.
#[derive(Debug)]
pub(crate) struct KindFields {
    fields: &'static [(&'static str, Source)],
    refusal: Refusal,
}

#[derive(Clone, Copy, Debug)]
enum Refusal {
    /// Kinds without fields of their own.
    Unknown,
    Unsupported,
    /// Jobs have their own sentence.
    ForJob,
}

impl KindFields {
    pub(super) fn source(&self, field: &str) -> Result<Source, ApiError> {
        if let Some((_, source)) = self.fields.iter().find(|(name, _)| *name == field) {
            return Ok(*source);
        }
        let quoted = crate::field::go_quote(field);
        Err(ApiError::bad_request(match self.refusal {
            Refusal::Unknown => {
                format!(
                    "{quoted} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            }
            Refusal::Unsupported => format!("field label not supported: {field}"),
            Refusal::ForJob => format!("field label {quoted} not supported for Job"),
        }))
    }
}

/// Where a selectable field is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// The first of these that is a text and not empty.
    Text(&'static [&'static [&'static str]]),
    Flag(&'static [&'static str]),
    Count(&'static [&'static str]),
    /// Accepted, but never has a value.
    Nothing,
}

impl Source {
    pub(super) const NAME: Source = Source::Text(&[&["metadata", "name"]]);
    pub(super) const NAMESPACE: Source = Source::Text(&[&["metadata", "namespace"]]);

    pub(super) fn read<'a>(&self, object: &'a Value) -> Cow<'a, str> {
        match self {
            Source::Text(paths) => {
                let mut found = paths.iter().filter_map(|path| at(object, path)?.as_str());
                Cow::Borrowed(found.find(|text| !text.is_empty()).unwrap_or_default())
            }
            Source::Flag(path) => match at(object, path) {
                Some(Value::Bool(true)) => Cow::Borrowed("true"),
                _ => Cow::Borrowed("false"),
            },
            Source::Count(path) => {
                let count = at(object, path).and_then(Value::as_i64).unwrap_or_default();
                Cow::Owned(count.to_string())
            }
            Source::Nothing => Cow::Borrowed(""),
        }
    }
}

fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(*name))
}

const NAME: (&str, Source) = ("metadata.name", Source::NAME);
const IN_NAMESPACE: (&str, Source) = ("metadata.namespace", Source::NAMESPACE);
const PLAIN: &[(&str, Source)] = &[NAME, IN_NAMESPACE];

static OTHER: KindFields = KindFields { fields: PLAIN, refusal: Refusal::Unknown };

static POD: KindFields = KindFields {
    fields: &[
        NAME,
        IN_NAMESPACE,
        ("spec.nodeName", Source::Text(&[&["spec", "nodeName"]])),
        ("spec.host", Source::Text(&[&["spec", "nodeName"]])),
        ("spec.restartPolicy", Source::Text(&[&["spec", "restartPolicy"]])),
        ("spec.schedulerName", Source::Text(&[&["spec", "schedulerName"]])),
        ("spec.serviceAccountName", Source::Text(&[&["spec", "serviceAccountName"]])),
        ("spec.hostNetwork", Source::Flag(&["spec", "hostNetwork"])),
        ("status.phase", Source::Text(&[&["status", "phase"]])),
        ("status.podIP", Source::Text(&[&["status", "podIP"]])),
        ("status.podIPs", Source::Nothing),
        ("status.nominatedNodeName", Source::Text(&[&["status", "nominatedNodeName"]])),
    ],
    refusal: Refusal::Unsupported,
};

static NODE: KindFields = KindFields {
    fields: &[NAME, ("spec.unschedulable", Source::Flag(&["spec", "unschedulable"]))],
    refusal: Refusal::Unsupported,
};

static REPLICATION_CONTROLLER: KindFields = KindFields {
    fields: &[NAME, IN_NAMESPACE, ("status.replicas", Source::Count(&["status", "replicas"]))],
    refusal: Refusal::Unsupported,
};

static NAMESPACE: KindFields = KindFields {
    fields: &[NAME, ("status.phase", Source::Text(&[&["status", "phase"]]))],
    refusal: Refusal::Unsupported,
};

static SECRET: KindFields = KindFields {
    fields: &[NAME, IN_NAMESPACE, ("type", Source::Text(&[&["type"]]))],
    refusal: Refusal::Unsupported,
};

static SERVICE: KindFields = KindFields {
    fields: &[
        NAME,
        IN_NAMESPACE,
        ("spec.clusterIP", Source::Text(&[&["spec", "clusterIP"]])),
        ("spec.type", Source::Text(&[&["spec", "type"]])),
    ],
    refusal: Refusal::Unsupported,
};

static JOB: KindFields = KindFields {
    fields: &[NAME, IN_NAMESPACE, ("status.successful", Source::Count(&["status", "succeeded"]))],
    refusal: Refusal::ForJob,
};

static SIGNING_REQUEST: KindFields = KindFields {
    fields: &[NAME, ("spec.signerName", Source::Text(&[&["spec", "signerName"]]))],
    refusal: Refusal::Unsupported,
};

// An Event is one object served in two groups; each names the object it is about differently, so both
// names are read whichever form the object has.
macro_rules! about {
    ($field:literal) => {
        Source::Text(&[&["involvedObject", $field], &["regarding", $field]])
    };
}
const REASON: (&str, Source) = ("reason", Source::Text(&[&["reason"]]));
const TYPE: (&str, Source) = ("type", Source::Text(&[&["type"]]));
const REPORTER: Source = Source::Text(&[&["reportingComponent"], &["reportingController"]]);

static EVENT: KindFields = KindFields {
    fields: &[
        NAME,
        IN_NAMESPACE,
        ("involvedObject.kind", about!("kind")),
        ("involvedObject.namespace", about!("namespace")),
        ("involvedObject.name", about!("name")),
        ("involvedObject.uid", about!("uid")),
        ("involvedObject.apiVersion", about!("apiVersion")),
        ("involvedObject.resourceVersion", about!("resourceVersion")),
        ("involvedObject.fieldPath", about!("fieldPath")),
        REASON,
        ("reportingComponent", REPORTER),
        (
            "source",
            Source::Text(&[
                &["source", "component"],
                &["deprecatedSource", "component"],
                &["reportingComponent"],
                &["reportingController"],
            ]),
        ),
        TYPE,
    ],
    refusal: Refusal::Unsupported,
};

static EVENTS_EVENT: KindFields = KindFields {
    fields: &[
        NAME,
        IN_NAMESPACE,
        ("regarding.kind", about!("kind")),
        ("regarding.namespace", about!("namespace")),
        ("regarding.name", about!("name")),
        ("regarding.uid", about!("uid")),
        ("regarding.apiVersion", about!("apiVersion")),
        ("regarding.resourceVersion", about!("resourceVersion")),
        ("regarding.fieldPath", about!("fieldPath")),
        REASON,
        ("reportingController", REPORTER),
        TYPE,
    ],
    refusal: Refusal::Unsupported,
};
