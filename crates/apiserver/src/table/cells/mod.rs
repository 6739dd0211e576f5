//! Columns and cells of built-in kinds.

mod cluster;
mod config;
mod network;
mod pod;
mod scaling;
mod storage;
mod workloads;

use super::Column;
use super::age::{since, time};
use crate::jsonpath;
use crate::selectors::LabelSelector;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// The Table form of a built-in kind.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub(super) columns: &'static [Column],
    pub(super) cells: fn(&Row<'_>) -> Vec<Value>,
    /// A condition of the row as a whole, if the kind has one.
    pub(super) condition: Option<fn(&Row<'_>) -> Option<Value>>,
}

impl Builtin {
    const fn new(columns: &'static [Column], cells: fn(&Row<'_>) -> Vec<Value>) -> Self {
        Builtin { columns, cells, condition: None }
    }
}

pub(super) const NAME: Column = Column("Name", "string", "name", 0);
const AGE: Column = text("Age");
const CONTAINERS: Column = wide("Containers");
const IMAGES: Column = wide("Images");
const SELECTOR: Column = wide("Selector");

const fn text(name: &'static str) -> Column {
    Column(name, "string", "", 0)
}

const fn wide(name: &'static str) -> Column {
    Column(name, "string", "", 1)
}

const fn integer(name: &'static str) -> Column {
    Column(name, "integer", "", 0)
}

/// The printer of a kind; kinds without their own show name and creation time.
pub(super) fn builtin(group: &str, kind: &str) -> &'static Builtin {
    match (group, kind) {
        ("", "Namespace") => &cluster::NAMESPACE,
        ("", "Node") => &cluster::NODE,
        ("" | "events.k8s.io", "Event") => &cluster::EVENT,
        ("coordination.k8s.io", "Lease") => &cluster::LEASE,
        ("scheduling.k8s.io", "PriorityClass") => &cluster::PRIORITY_CLASS,
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => &cluster::WEBHOOKS,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => &cluster::ROLE_BINDING,
        ("", "ConfigMap") => &config::CONFIG_MAP,
        ("", "Secret") => &config::SECRET,
        ("", "ServiceAccount") => &config::SERVICE_ACCOUNT,
        ("", "ResourceQuota") => &config::RESOURCE_QUOTA,
        ("", "Service") => &network::SERVICE,
        ("", "Endpoints") => &network::ENDPOINTS,
        ("discovery.k8s.io", "EndpointSlice") => &network::ENDPOINT_SLICE,
        ("networking.k8s.io", "NetworkPolicy") => &network::NETWORK_POLICY,
        ("networking.k8s.io", "Ingress") => &network::INGRESS,
        ("networking.k8s.io", "IngressClass") => &network::INGRESS_CLASS,
        ("", "Pod") => &pod::POD,
        ("policy", "PodDisruptionBudget") => &scaling::DISRUPTION_BUDGET,
        ("autoscaling", "HorizontalPodAutoscaler") => &scaling::AUTOSCALER,
        ("autoscaling", "Scale") => &scaling::SCALE,
        ("", "PersistentVolume") => &storage::VOLUME,
        ("", "PersistentVolumeClaim") => &storage::CLAIM,
        ("storage.k8s.io", "StorageClass") => &storage::CLASS,
        ("", "PodTemplate") => &workloads::POD_TEMPLATE,
        ("", "ReplicationController") => &workloads::REPLICATION_CONTROLLER,
        ("apps", "Deployment") => &workloads::DEPLOYMENT,
        ("apps", "ReplicaSet") => &workloads::REPLICA_SET,
        ("apps", "StatefulSet") => &workloads::STATEFUL_SET,
        ("apps", "DaemonSet") => &workloads::DAEMON_SET,
        ("apps", "ControllerRevision") => &workloads::CONTROLLER_REVISION,
        ("batch", "Job") => &workloads::JOB,
        ("batch", "CronJob") => &workloads::CRON_JOB,
        _ => &PLAIN,
    }
}

static PLAIN: Builtin = Builtin::new(&[NAME, Column("Created At", "date", "", 0)], |row| {
    let created = row.text("metadata.creationTimestamp");
    let created = if created.is_empty() { "0001-01-01T00:00:00Z" } else { created };
    vec![row.name().into(), created.into()]
});

/// An object on its way to become cells.
pub(crate) struct Row<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> Row<'a> {
    /// The value at a path of plain field names.
    fn at(&self, path: &str) -> Option<&'a Value> {
        at(self.object, path)
    }

    fn text(&self, path: &str) -> &'a str {
        text_of(self.object, path)
    }

    fn text_or(&self, path: &str, fallback: &'static str) -> &'a str {
        match self.text(path) {
            "" => fallback,
            text => text,
        }
    }

    fn count(&self, path: &str) -> i64 {
        self.at(path).and_then(Value::as_i64).unwrap_or_default()
    }

    fn flag(&self, path: &str) -> bool {
        self.at(path).and_then(Value::as_bool).unwrap_or_default()
    }

    fn list(&self, path: &str) -> &'a [Value] {
        list_of(self.object, path)
    }

    fn map(&self, path: &str) -> Option<&'a Map<String, Value>> {
        self.at(path).and_then(Value::as_object)
    }

    /// A quantity or an int-or-string as text; none if absent.
    fn scalar(&self, path: &str) -> Option<String> {
        self.at(path).map(jsonpath::print)
    }

    pub(super) fn name(&self) -> &'a str {
        self.text("metadata.name")
    }

    fn annotation(&self, name: &str) -> Option<&'a str> {
        self.map("metadata.annotations")?.get(name)?.as_str()
    }

    fn is_deleted(&self) -> bool {
        self.at("metadata.deletionTimestamp").is_some()
    }

    fn since(&self, path: &str) -> String {
        since(time(self.at(path)), self.now)
    }

    fn age(&self) -> Value {
        self.since("metadata.creationTimestamp").into()
    }

    /// Whether the first condition of this type in a list is true.
    fn condition(&self, path: &str, kind: &str) -> bool {
        let first = self.list(path).iter().find(|condition| text_of(condition, "type") == kind);
        first.is_some_and(|condition| text_of(condition, "status") == "True")
    }

    /// Names and images of containers.
    fn containers(&self, path: &str) -> [Value; 2] {
        ["name", "image"].map(|field| {
            let texts: Vec<&str> = self.list(path).iter().map(|item| text_of(item, field)).collect();
            texts.join(",").into()
        })
    }

    /// Labels as `a=b,c=d`, `<none>` without any.
    fn labels(&self, path: &str) -> Value {
        let pairs = self.map(path).into_iter().flatten();
        let pairs: Vec<String> =
            pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
        if pairs.is_empty() { "<none>".into() } else { pairs.join(",").into() }
    }

    /// A label selector object as text, or what to show if it is empty or wrong.
    fn selector(&self, path: &str, empty: &'static str, wrong: &'static str) -> Value {
        match LabelSelector::from_object(self.at(path).unwrap_or(&Value::Null)) {
            Err(_) => wrong.into(),
            Ok(None) => empty.into(),
            Ok(Some(selector)) if selector.is_everything() => empty.into(),
            Ok(Some(selector)) => selector.to_string().into(),
        }
    }
}

/// The value at a path of plain field names; `null` is the same as absent.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name)).filter(|value| !value.is_null())
}

fn text_of<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

fn count_of(value: &Value, path: &str) -> i64 {
    at(value, path).and_then(Value::as_i64).unwrap_or_default()
}

fn list_of<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
