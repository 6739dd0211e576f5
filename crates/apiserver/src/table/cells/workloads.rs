//! What runs pods.

use super::{AGE, Builtin, CONTAINERS, Column, IMAGES, NAME, Row, SELECTOR, integer, text, text_of};
use crate::table::age::{human_duration, since, time};
use serde_json::Value;

const TEMPLATE_CONTAINERS: &str = "spec.template.spec.containers";

pub(super) static POD_TEMPLATE: Builtin =
    Builtin::new(&[NAME, text("Containers"), text("Images"), text("Pod Labels")], |row| {
        let [names, images] = row.containers("template.spec.containers");
        vec![row.name().into(), names, images, row.labels("template.metadata.labels")]
    });

const REPLICAS: &[Column] =
    &[NAME, integer("Desired"), integer("Current"), integer("Ready"), AGE, CONTAINERS, IMAGES, SELECTOR];

fn replicas(row: &Row<'_>, selector: Value) -> Vec<Value> {
    let [names, images] = row.containers(TEMPLATE_CONTAINERS);
    vec![
        row.name().into(),
        row.count("spec.replicas").into(),
        row.count("status.replicas").into(),
        row.count("status.readyReplicas").into(),
        row.age(),
        names,
        images,
        selector,
    ]
}

pub(super) static REPLICATION_CONTROLLER: Builtin =
    Builtin::new(REPLICAS, |row| replicas(row, row.labels("spec.selector")));

pub(super) static REPLICA_SET: Builtin =
    Builtin::new(REPLICAS, |row| replicas(row, row.selector("spec.selector", "<none>", "<error>")));

fn ready(row: &Row<'_>) -> Value {
    format!("{}/{}", row.count("status.readyReplicas"), row.count("spec.replicas")).into()
}

pub(super) static DEPLOYMENT: Builtin = Builtin::new(
    &[NAME, text("Ready"), text("Up-to-date"), text("Available"), AGE, CONTAINERS, IMAGES, SELECTOR],
    |row| {
        let [names, images] = row.containers(TEMPLATE_CONTAINERS);
        vec![
            row.name().into(),
            ready(row),
            row.count("status.updatedReplicas").into(),
            row.count("status.availableReplicas").into(),
            row.age(),
            names,
            images,
            row.selector("spec.selector", "", "<invalid>"),
        ]
    },
);

pub(super) static STATEFUL_SET: Builtin =
    Builtin::new(&[NAME, text("Ready"), AGE, CONTAINERS, IMAGES], |row| {
        let [names, images] = row.containers(TEMPLATE_CONTAINERS);
        vec![row.name().into(), ready(row), row.age(), names, images]
    });

pub(super) static DAEMON_SET: Builtin = Builtin::new(
    &[
        NAME,
        integer("Desired"),
        integer("Current"),
        integer("Ready"),
        integer("Up-to-date"),
        integer("Available"),
        text("Node Selector"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |row| {
        let [names, images] = row.containers(TEMPLATE_CONTAINERS);
        vec![
            row.name().into(),
            row.count("status.desiredNumberScheduled").into(),
            row.count("status.currentNumberScheduled").into(),
            row.count("status.numberReady").into(),
            row.count("status.updatedNumberScheduled").into(),
            row.count("status.numberAvailable").into(),
            row.labels("spec.template.spec.nodeSelector"),
            row.age(),
            names,
            images,
            row.selector("spec.selector", "<none>", "<error>"),
        ]
    },
);

pub(super) static CONTROLLER_REVISION: Builtin =
    Builtin::new(&[NAME, text("Controller"), text("Revision"), AGE], |row| {
        let owners = row.list("metadata.ownerReferences").iter();
        let mut controllers = owners.filter(|owner| owner.get("controller") == Some(&Value::Bool(true)));
        let controller = controllers.next().map_or_else(
            || "<none>".to_owned(),
            |owner| {
                let kind = text_of(owner, "kind").to_lowercase();
                let name = text_of(owner, "name");
                match text_of(owner, "apiVersion").split_once('/') {
                    Some((group, _)) => format!("{kind}.{}/{name}", group.to_lowercase()),
                    None => format!("{kind}/{name}"),
                }
            },
        );
        vec![row.name().into(), controller.into(), row.count("revision").into(), row.age()]
    });

pub(super) static JOB: Builtin = Builtin::new(
    &[NAME, text("Status"), text("Completions"), text("Duration"), AGE, CONTAINERS, IMAGES, SELECTOR],
    job,
);

fn job(row: &Row<'_>) -> Vec<Value> {
    let succeeded = row.count("status.succeeded");
    let completions = match row.at("spec.completions").and_then(Value::as_i64) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None => match row.count("spec.parallelism") {
            parallelism if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
            _ => format!("{succeeded}/1"),
        },
    };
    let end = time(row.at("status.completionTime")).unwrap_or(row.now);
    let duration = time(row.at("status.startTime"))
        .map_or_else(String::new, |start| human_duration(end.duration_since(start)));
    let has = |kind: &str| row.condition("status.conditions", kind);
    let status = if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if row.is_deleted() {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    let [names, images] = row.containers(TEMPLATE_CONTAINERS);
    vec![
        row.name().into(),
        status.into(),
        completions.into(),
        duration.into(),
        row.age(),
        names,
        images,
        row.selector("spec.selector", "<none>", "<error>"),
    ]
}

pub(super) static CRON_JOB: Builtin = Builtin::new(
    &[
        NAME,
        text("Schedule"),
        text("Timezone"),
        Column("Suspend", "boolean", "", 0),
        integer("Active"),
        text("Last Schedule"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |row| {
        let [names, images] = row.containers("spec.jobTemplate.spec.template.spec.containers");
        let suspend = match row.at("spec.suspend").and_then(Value::as_bool) {
            None => "<unset>",
            Some(true) => "True",
            Some(false) => "False",
        };
        let last = time(row.at("status.lastScheduleTime"));
        let last = last.map_or_else(|| "<none>".to_owned(), |last| since(Some(last), row.now));
        vec![
            row.name().into(),
            row.text("spec.schedule").into(),
            row.at("spec.timeZone").and_then(Value::as_str).unwrap_or("<none>").into(),
            suspend.into(),
            row.list("status.active").len().into(),
            last.into(),
            row.age(),
            names,
            images,
            row.selector("spec.jobTemplate.spec.selector", "<none>", "<error>"),
        ]
    },
);
