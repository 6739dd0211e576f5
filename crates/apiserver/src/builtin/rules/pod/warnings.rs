//! What is allowed in a pod spec but most likely not meant.

use super::super::json::{generation, inside, int, list, set, text};
use super::super::names;
use super::defaults::CONTAINERS;
use super::overlaps;
use crate::builtin::quantity::Quantity;
use crate::field::Path;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// Kinds of volumes that no longer work: field, how the warning names it, and since when.
const DEAD_VOLUMES: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const DEAD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Labels of nodes that have other names now.
const RENAMED_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// Warnings about a new Pod; updates give none.
pub(super) fn for_pod(new: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let name = new.get("metadata").map_or("", |m| text(m, "name"));
    let wrong = names::dns1123_label(name);
    let mut warnings = Vec::new();
    if !wrong.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a \
             DNS label is recommended: [{}]",
            wrong.join(" ")
        ));
    }
    warnings.extend(for_template(Some(new), None, &Path::ROOT));
    warnings
}

/// Warnings about a kind with a template at `spec.template`: for a new object those of `about_new` first,
/// for an update only if its spec changed.
pub(crate) fn for_workload(
    new: &Value,
    old: Option<&Value>,
    about_new: fn(&Value) -> Vec<String>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    match old {
        None => warnings = about_new(new),
        Some(old) if generation(old) == generation(new) => return warnings,
        Some(_) => {}
    }
    let spec = Path::of("spec");
    let template = "/spec/template";
    warnings.extend(for_template(
        inside(new, template),
        old.and_then(|o| inside(o, template)),
        &spec.field("template"),
    ));
    warnings
}

/// Warnings about the template at this path, or about a whole Pod at the root.
pub(crate) fn for_template(template: Option<&Value>, _old: Option<&Value>, path: &Path<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(template) = template else { return warnings };
    let nothing = Value::Null;
    let spec = template.get("spec").unwrap_or(&nothing);
    let spec_path = path.field("spec");
    warn_placement(spec, &spec_path, &mut warnings);
    let metadata = path.field("metadata");
    let annotations = metadata.field("annotations");
    for (key, why) in DEAD_ANNOTATIONS {
        if inside(template, "/metadata/annotations").is_some_and(|a| a.get(key).is_some()) {
            warnings.push(format!("{}: {why}", annotations.key(key)));
        }
    }
    let volumes = spec_path.field("volumes");
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        for (field, shown, why) in DEAD_VOLUMES {
            if set(volume, field).is_some() {
                let at = volumes.index(index);
                warnings.push(format!("{}: {why}", at.field(shown)));
            }
        }
    }
    warnings.extend(overlaps::warnings(spec));
    warn_repeated(spec, "hostAliases", "ip", &spec_path, &mut warnings);
    warn_repeated(spec, "imagePullSecrets", "name", &spec_path, &mut warnings);
    warn_empty_secrets(spec, &spec_path, &mut warnings);
    warn_fractions(spec.get("overhead"), &spec_path.field("overhead"), &mut warnings);
    each_container(spec, &spec_path, |container, at| warn_container(container, at, &mut warnings));
    warn_ports(spec, &spec_path, &mut warnings);
    if int(spec, "terminationGracePeriodSeconds").is_some_and(|s| s < 0) {
        warnings.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            spec_path.field("terminationGracePeriodSeconds")
        ));
    }
    warn_affinity(spec, &spec_path, &mut warnings);
    warnings
}

fn each_container(spec: &Value, path: &Path<'_>, mut visit: impl FnMut(&Value, &Path<'_>)) {
    for field in CONTAINERS {
        let list_path = path.field(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            visit(container, &list_path.index(index));
        }
    }
}

fn renamed(label: &str) -> Option<&'static str> {
    RENAMED_LABELS.iter().find(|(key, _)| *key == label).map(|(_, why)| *why)
}

fn warn_placement(spec: &Value, path: &Path<'_>, warnings: &mut Vec<String>) {
    let selector = spec.get("nodeSelector").and_then(Value::as_object);
    for key in selector.into_iter().flatten().map(|(key, _)| key) {
        if let Some(why) = renamed(key) {
            warnings.push(format!("{}: {why}", path.field("nodeSelector").key(key)));
        }
    }
    let spread = path.field("topologySpreadConstraints");
    for (index, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let at = spread.index(index);
        let key = text(constraint, "topologyKey");
        if let Some(why) = renamed(key) {
            warnings.push(format!("{}: {key} is {why}", at.field("topologyKey")));
        }
        if set(constraint, "labelSelector").is_none() {
            warnings.push(format!("{}: {NULL_SELECTOR}", at.field("labelSelector")));
        }
    }
}

fn warn_repeated(spec: &Value, field: &str, key: &str, path: &Path<'_>, warnings: &mut Vec<String>) {
    let path = path.field(field);
    let mut seen = HashSet::new();
    for (index, item) in list(spec, field).iter().enumerate() {
        if !seen.insert(text(item, key)) {
            let at = path.index(index);
            warnings.push(format!("{}: duplicate {key} {:?}", at.field(key), text(item, key)));
        }
    }
}

fn warn_empty_secrets(spec: &Value, path: &Path<'_>, warnings: &mut Vec<String>) {
    let path = path.field("imagePullSecrets");
    for (index, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(secret, "name").is_empty() {
            let at = path.index(index);
            warnings.push(format!("{}: invalid empty name \"\"", at.field("name")));
        }
    }
}

/// Bytes come whole.
fn warn_fractions(quantities: Option<&Value>, path: &Path<'_>, warnings: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        let Some(value) = quantities.and_then(|q| q.get(name)) else { continue };
        if let Some(quantity) = Quantity::read(value).filter(|q| !q.is_whole()) {
            warnings.push(format!(
                "{}: fractional byte value \"{quantity}\" is invalid, must be an integer",
                path.key(name)
            ));
        }
    }
}

fn warn_container(container: &Value, path: &Path<'_>, warnings: &mut Vec<String>) {
    let resources = path.field("resources");
    // The real server goes by resource first, then by limits and requests.
    for name in ["memory", "ephemeral-storage"] {
        for field in ["limits", "requests"] {
            let only = inside(container, &format!("/resources/{field}/{name}"));
            let only = only.map(|value| serde_json::json!({name: value}));
            warn_fractions(only.as_ref(), &resources.field(field), warnings);
        }
    }
    let env = path.field("env");
    let mut seen = HashSet::new();
    for (index, variable) in list(container, "env").iter().enumerate() {
        let name = text(variable, "name");
        if seen.insert(name) {
            continue;
        }
        // A value that builds on the previous one is fine.
        let reference = format!("$({name})");
        let value = text(variable, "value");
        let extends =
            set(variable, "valueFrom").is_none() && value != reference && value.contains(&reference);
        if !extends {
            warnings.push(format!(
                "{}: hides previous definition of {name:?}, which may be dropped when using apply",
                env.index(index)
            ));
        }
    }
}

fn warn_ports(spec: &Value, path: &Path<'_>, warnings: &mut Vec<String>) {
    let mut by_number: HashMap<(i64, &str), Vec<(String, &Value)>> = HashMap::new();
    let mut by_name: HashMap<&str, String> = HashMap::new();
    let mut about_names = Vec::new();
    for field in CONTAINERS {
        let containers = path.field(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            let at = containers.index(index);
            let ports = at.field("ports");
            for (index, port) in list(container, "ports").iter().enumerate() {
                let here = ports.index(index).to_string();
                if !text(port, "hostIP").is_empty() && int(port, "hostPort").unwrap_or(0) == 0 {
                    warnings.push(format!("{here}: hostIP set without hostPort: {}", port_text(port)));
                }
                let key = (int(port, "containerPort").unwrap_or(0), text(port, "protocol"));
                let others = by_number.entry(key).or_default();
                warnings.extend(others.iter().filter_map(|(there, other)| {
                    Some(format!("{here}: {} port definition with {there}", clash(port, other)?))
                }));
                others.push((here.clone(), port));
                let name = text(port, "name");
                if name.is_empty() {
                    continue;
                }
                if let Some(there) = by_name.get(name) {
                    let mut warning = format!("{here}: duplicate port name {name:?} with {there}, ");
                    // Writing to a String cannot fail.
                    let _ = write!(warning, "services and probes that select ports by name will use {there}");
                    about_names.push(warning);
                } else {
                    by_name.insert(name, here);
                }
            }
        }
    }
    warnings.extend(about_names);
}

/// A port as Go prints it.
fn port_text(port: &Value) -> String {
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text(port, "name"),
        int(port, "hostPort").unwrap_or(0),
        int(port, "containerPort").unwrap_or(0),
        text(port, "protocol"),
        text(port, "hostIP"),
    )
}

/// How two definitions of the same container port get in each other's way.
fn clash(port: &Value, other: &Value) -> Option<&'static str> {
    let host = |port: &Value| int(port, "hostPort").unwrap_or(0);
    let same_address = text(port, "hostIP") == text(other, "hostIP");
    if same_address && host(port) == host(other) {
        Some("duplicate")
    } else if host(port) == 0 || host(other) == 0 {
        Some("overlapping")
    } else {
        let one_open = text(port, "hostIP").is_empty() != text(other, "hostIP").is_empty();
        (host(port) == host(other) && one_open).then_some("dangerously ambiguous")
    }
}

fn warn_affinity(spec: &Value, path: &Path<'_>, warnings: &mut Vec<String>) {
    let Some(affinity) = set(spec, "affinity") else { return };
    let path = path.field("affinity");
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = set(affinity, side) else { continue };
        let at = path.field(side);
        let required = at.field("requiredDuringSchedulingIgnoredDuringExecution");
        for (index, term) in list(terms, "requiredDuringSchedulingIgnoredDuringExecution").iter().enumerate()
        {
            if set(term, "labelSelector").is_none() {
                let at = required.index(index);
                warnings.push(format!("{}: {NULL_SELECTOR}", at.field("labelSelector")));
            }
        }
        let preferred = at.field("preferredDuringSchedulingIgnoredDuringExecution");
        for (index, term) in list(terms, "preferredDuringSchedulingIgnoredDuringExecution").iter().enumerate()
        {
            if inside(term, "/podAffinityTerm/labelSelector").is_none_or(Value::is_null) {
                let at = preferred.index(index);
                let at = at.field("podAffinityTerm");
                warnings.push(format!("{}: {NULL_SELECTOR}", at.field("labelSelector")));
            }
        }
    }
}
