//! Namespaces, nodes, events, leases and what else concerns the cluster as a whole.

use super::{AGE, Builtin, Column, NAME, Row, integer, text, text_of, wide};
use crate::table::age::{since, time};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) static NAMESPACE: Builtin = Builtin::new(&[NAME, text("Status"), AGE], |row| {
    vec![row.name().into(), row.text("status.phase").into(), row.age()]
});

pub(super) static NODE: Builtin = Builtin::new(
    &[
        NAME,
        text("Status"),
        text("Roles"),
        AGE,
        text("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ],
    node,
);

fn node(row: &Row<'_>) -> Vec<Value> {
    let conditions = row.list("status.conditions");
    let ready = conditions.iter().rfind(|condition| text_of(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| text_of(condition, "status")) {
        None => "Unknown".to_owned(),
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
    };
    if row.flag("spec.unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles = BTreeSet::new();
    for (key, value) in row.map("metadata.labels").into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => drop(roles.insert(role)),
            None if key == "kubernetes.io/role" && !value.is_empty() => drop(roles.insert(value)),
            _ => {}
        }
    }
    let roles: Vec<&str> = roles.into_iter().collect();
    let roles = if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") };
    let address = |kind: &str| {
        let found = row.list("status.addresses").iter().find(|address| text_of(address, "type") == kind);
        found.map_or("<none>", |address| text_of(address, "address"))
    };
    let mut kernel = row.text_or("status.nodeInfo.kernelVersion", "<unknown>").to_owned();
    let architecture = row.text("status.nodeInfo.architecture");
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        row.name().into(),
        status.into(),
        roles.into(),
        row.age(),
        row.text("status.nodeInfo.kubeletVersion").into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        row.text_or("status.nodeInfo.osImage", "<unknown>").into(),
        kernel.into(),
        row.text_or("status.nodeInfo.containerRuntimeVersion", "<unknown>").into(),
    ]
}

pub(super) static EVENT: Builtin = Builtin::new(
    &[
        text("Last Seen"),
        text("Type"),
        text("Reason"),
        text("Object"),
        wide("Subobject"),
        wide("Source"),
        text("Message"),
        wide("First Seen"),
        wide("Count"),
        Column("Name", "string", "name", 1),
    ],
    event,
);

/// Events have other field names in `events.k8s.io`; both are understood.
fn event(row: &Row<'_>) -> Vec<Value> {
    let either = |old: &str, new: &str| match row.text(old) {
        "" => row.text(new).to_owned(),
        text => text.to_owned(),
    };
    let moment = |old: &str, new: &str| time(row.at(old)).or_else(|| time(row.at(new)));
    let first = moment("firstTimestamp", "deprecatedFirstTimestamp").or_else(|| time(row.at("eventTime")));
    let mut last = moment("lastTimestamp", "deprecatedLastTimestamp").or(first);
    let mut count = row.count("count").max(row.count("deprecatedCount"));
    if row.map("series").is_some() {
        last = time(row.at("series.lastObservedTime"));
        count = row.count("series.count");
    } else if count == 0 {
        count = 1;
    }
    let mut target = either("involvedObject.kind", "regarding.kind").to_lowercase();
    let name = either("involvedObject.name", "regarding.name");
    if !name.is_empty() {
        target = format!("{target}/{name}");
    }
    let first_of = |paths: [&str; 3]| {
        let mut texts = paths.iter().map(|path| row.text(path));
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    };
    let component = first_of(["source.component", "deprecatedSource.component", "reportingComponent"]);
    let component = if component.is_empty() { row.text("reportingController") } else { component };
    let instance = first_of(["source.host", "deprecatedSource.host", "reportingInstance"]);
    let source = if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") };
    vec![
        since(last, row.now).into(),
        row.text("type").into(),
        row.text("reason").into(),
        target.into(),
        either("involvedObject.fieldPath", "regarding.fieldPath").into(),
        source.into(),
        either("message", "note").trim().into(),
        since(first, row.now).into(),
        count.into(),
        row.name().into(),
    ]
}

pub(super) static LEASE: Builtin = Builtin::new(&[NAME, text("Holder"), AGE], |row| {
    vec![row.name().into(), row.text("spec.holderIdentity").into(), row.age()]
});

pub(super) static PRIORITY_CLASS: Builtin = Builtin::new(
    &[NAME, integer("Value"), Column("Global-Default", "boolean", "", 0), AGE, text("PreemptionPolicy")],
    |row| {
        vec![
            row.name().into(),
            row.count("value").into(),
            row.flag("globalDefault").into(),
            row.age(),
            row.text("preemptionPolicy").into(),
        ]
    },
);

pub(super) static WEBHOOKS: Builtin = Builtin::new(&[NAME, integer("Webhooks"), AGE], |row| {
    vec![row.name().into(), row.list("webhooks").len().into(), row.age()]
});

pub(super) static ROLE_BINDING: Builtin =
    Builtin::new(&[NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")], |row| {
        let role = format!("{}/{}", row.text("roleRef.kind"), row.text("roleRef.name"));
        let subjects = |kind: &str| -> Value {
            let matching = row.list("subjects").iter().filter(|subject| text_of(subject, "kind") == kind);
            let names = matching.map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", text_of(subject, "namespace"), text_of(subject, "name")),
                _ => text_of(subject, "name").to_owned(),
            });
            names.collect::<Vec<_>>().join(", ").into()
        };
        vec![
            row.name().into(),
            role.into(),
            row.age(),
            subjects("User"),
            subjects("Group"),
            subjects("ServiceAccount"),
        ]
    });
