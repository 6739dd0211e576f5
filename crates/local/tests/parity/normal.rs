//! What is the same in two clusters: objects as lines of text, without what differs from run to run.
//!
//! Uids, versions, times, addresses and the letters of generated names and hashes go. What is left is compared word for word, so
//! that a field which only one side sets is seen.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// Fields that say nothing about what a controller did: the server's own, and what the node writes, which is ours on both sides.
const DROPPED: [&str; 9] = [
    "metadata.creationTimestamp",
    "metadata.managedFields",
    "metadata.namespace",
    "metadata.resourceVersion",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.deletionTimestamp",
    "apiVersion",
    "kind",
];

/// Fields of pods that the API server fills in, the same on both sides, and that would hide the others.
const DEFAULTS: [&str; 17] = [
    "dnsPolicy",
    "enableServiceLinks",
    "imagePullPolicy",
    "nodeName",
    "preemptionPolicy",
    "priority",
    "resources",
    "restartPolicy",
    "schedulerName",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "volumeMounts",
    "progressDeadlineSeconds",
];

/// All objects of a namespace as text, in an order that names do not decide.
pub(crate) fn render(objects: &[Value], namespace: &str) -> String {
    let names = Names::of(objects, namespace);
    let mut texts: Vec<String> = objects.iter().map(|object| render_object(object, &names)).collect();
    texts.sort();
    // Equal ones are counted: ten pods of a set are one story.
    let mut counted: Vec<(String, usize)> = Vec::new();
    for text in texts {
        match counted.last_mut() {
            Some((last, count)) if *last == text => *count += 1,
            _ => counted.push((text, 1)),
        }
    }
    let mut out = String::new();
    for (text, count) in counted {
        let (head, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
        let _ = writeln!(out, "{head}{times}\n{rest}");
    }
    out.trim_end().to_owned()
}

/// What stands for names and hashes that differ from run to run.
struct Names(BTreeMap<String, String>);

impl Names {
    fn of(objects: &[Value], namespace: &str) -> Self {
        let mut names = BTreeMap::from([(namespace.to_owned(), "<namespace>".to_owned())]);
        for object in objects {
            let metadata = &object["metadata"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let labels = &metadata["labels"];
            let revision = text(&metadata["annotations"]["deployment.kubernetes.io/revision"]);
            let hash = text(&labels["pod-template-hash"]);
            if object["kind"] == "ReplicaSet" && !hash.is_empty() {
                names.insert(hash, format!("<hash {revision}>"));
            }
            if object["kind"] == "ControllerRevision" {
                let name = text(&metadata["name"]);
                let hash = name.rsplit('-').next().unwrap_or_default().to_owned();
                names.insert(hash, format!("<hash {}>", object["revision"]));
            }
            let (name, stem) = (text(&metadata["name"]), text(&metadata["generateName"]));
            if !stem.is_empty() && name.starts_with(&stem) && name != stem {
                names.insert(name[stem.len()..].to_owned(), "*".into());
            }
        }
        names.remove("");
        Self(names)
    }

    fn replace(&self, text: &str) -> String {
        // Long ones first: the short might be parts of them.
        let mut known: Vec<_> = self.0.iter().collect();
        known.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        known.into_iter().fold(text.to_owned(), |text, (name, stands)| text.replace(name.as_str(), stands))
    }
}

fn render_object(object: &Value, names: &Names) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let mut lines = Vec::new();
    flatten("", object, &mut lines);
    let told = lines.iter().filter(|(path, _)| is_told(kind, path));
    let mut told: Vec<String> =
        told.map(|(path, value)| format!("\n  {}: {}", names.replace(path), names.replace(value))).collect();
    // Endpoints are in the order of their addresses, which differ.
    told.sort();
    format!("{kind} {}{}", names.replace(name), told.concat())
}

fn is_told(kind: &str, path: &str) -> bool {
    let below = |field: &str| {
        path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    if DROPPED.iter().any(|field| below(field)) || path.contains("mainstay.dev/applied") {
        return false;
    }
    // How often a rollout takes a step, and how often endpoints are written, depends on how soon pods are seen to be ready.
    if matches!(kind, "ReplicaSet" | "EndpointSlice")
        && (below("metadata.generation") || below("status.observedGeneration"))
    {
        return false;
    }
    // Ours are owned by their Service, and say nothing of when they were last changed.
    if kind == "Endpoints" && below("metadata.ownerReferences") || path.contains("last-change-trigger-time") {
        return false;
    }
    // What is in the template is in the manifest.
    if matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet" | "CronJob") && below("spec") {
        return false;
    }
    if kind == "Pod" && below("status") && !below("status.phase") {
        return false;
    }
    // How many names of pods are used up, which only ours record (L29).
    if path.contains("mainstay.dev/pod-numbers-used") {
        return false;
    }
    // That a pod is simulated (L11).
    if path.contains("mainstay.dev/simulated") {
        return false;
    }
    // A token that the server mounts.
    if path.contains("kube-api-access") {
        return false;
    }
    let last = |field: &str| path.split(['.', '[']).any(|part| part == field);
    !(matches!(kind, "Pod" | "ReplicaSet" | "Job" | "ControllerRevision")
        && DEFAULTS.iter().any(|field| last(field)))
}

/// Every value that is not a map or a list of maps, by its path.
fn flatten(path: &str, value: &Value, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let name = if name.contains(['.', '/']) { format!("[{name}]") } else { name.clone() };
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                flatten(&path, value, lines);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                let key = [&item["name"], &item["type"], &item["key"], &item["targetRef"]["name"]];
                let key = key.into_iter().find_map(Value::as_str);
                let key = key.map_or_else(|| index.to_string(), str::to_owned);
                flatten(&format!("{path}[{key}]"), item, lines);
            }
        }
        // Whoever reads a status cannot tell whether it is there.
        Value::Object(_) => {}
        Value::Array(items) if items.iter().any(Value::is_string) => {
            let texts: Vec<String> =
                items.iter().map(|item| stands_for(item.as_str().unwrap_or_default())).collect();
            lines.push((path.to_owned(), format!("{texts:?}")));
        }
        Value::String(text) => lines.push((path.to_owned(), format!("{:?}", stands_for(text)))),
        other => lines.push((path.to_owned(), other.to_string())),
    }
}

/// A text, or what stands for it where it differs from run to run.
fn stands_for(text: &str) -> String {
    let is_uid = text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    if is_time(text) {
        "<time>".into()
    } else if text.parse::<std::net::IpAddr>().is_ok() {
        "<address>".into()
    } else if is_uid {
        "<uid>".into()
    } else {
        text.to_owned()
    }
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[4] == b'-' && text.as_bytes()[10] == b'T'
}
