//! Budgets, autoscalers and scale.

use super::{AGE, Builtin, NAME, Row, at, integer, text, text_of};
use crate::jsonpath;
use serde_json::Value;

pub(super) static DISRUPTION_BUDGET: Builtin = Builtin::new(
    &[NAME, text("Min Available"), text("Max Unavailable"), integer("Allowed Disruptions"), AGE],
    |row| {
        let bound = |path: &str| row.scalar(path).unwrap_or_else(|| "N/A".to_owned());
        vec![
            row.name().into(),
            bound("spec.minAvailable").into(),
            bound("spec.maxUnavailable").into(),
            row.count("status.disruptionsAllowed").into(),
            row.age(),
        ]
    },
);

pub(super) static SCALE: Builtin =
    Builtin::new(&[text("Name"), integer("Desired"), integer("Available"), AGE], |row| {
        vec![
            row.name().into(),
            row.count("spec.replicas").into(),
            row.count("status.replicas").into(),
            row.age(),
        ]
    });

pub(super) static AUTOSCALER: Builtin = Builtin::new(
    &[NAME, text("Reference"), text("Targets"), text("MinPods"), text("MaxPods"), text("Replicas"), AGE],
    |row| {
        let target =
            format!("{}/{}", row.text("spec.scaleTargetRef.kind"), row.text("spec.scaleTargetRef.name"));
        vec![
            row.name().into(),
            target.into(),
            metrics(row).into(),
            row.scalar("spec.minReplicas").unwrap_or_else(|| "<unset>".to_owned()).into(),
            row.count("spec.maxReplicas").into(),
            row.count("status.currentReplicas").into(),
            row.age(),
        ]
    },
);

/// How many metrics a cell names before it counts the rest.
const METRICS_MAX: usize = 2;

fn metrics(row: &Row<'_>) -> String {
    let statuses = row.list("status.currentMetrics");
    let mut shown: Vec<String> = row
        .list("spec.metrics")
        .iter()
        .enumerate()
        .map(|(index, spec)| metric(spec, statuses.get(index)))
        .collect();
    // The first version of the API knows one metric, the CPU, outside the list.
    if shown.is_empty()
        && let Some(target) = row.scalar("spec.targetCPUUtilizationPercentage")
    {
        let current = row.scalar("status.currentCPUUtilizationPercentage");
        let current = current.map_or_else(|| "<unknown>".to_owned(), |current| format!("{current}%"));
        shown.push(format!("cpu: {current}/{target}%"));
    }
    let more = shown.len().saturating_sub(METRICS_MAX);
    shown.truncate(METRICS_MAX);
    match (shown.is_empty(), more) {
        (true, _) => "<none>".to_owned(),
        (_, 0) => shown.join(", "),
        _ => format!("{} + {more} more...", shown.join(", ")),
    }
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let kind = match text_of(spec, "type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let status = status.and_then(|status| status.get(kind));
    let target = |field: &str| at(spec, kind)?.get("target")?.get(field).map(jsonpath::print);
    let unknown = || "<unknown>".to_owned();
    // A status that is there but lacks the value is a zero quantity.
    let amount = |field: &str| {
        status.map_or_else(unknown, |status| {
            at(status, "current")
                .and_then(|current| current.get(field))
                .map_or_else(|| "0".to_owned(), jsonpath::print)
        })
    };
    let present = |field: &str| {
        let value = status.and_then(|status| at(status, "current")?.get(field));
        value.map_or_else(unknown, jsonpath::print)
    };
    let named = |current: String, target: String| {
        let name = at(spec, kind).map(|source| text_of(source, "name")).unwrap_or_default();
        format!("{name}: {current}/{target}")
    };
    match (kind, target("averageValue")) {
        ("external" | "object", Some(average)) => format!("{}/{average} (avg)", present("averageValue")),
        ("external" | "object", None) => {
            format!("{}/{}", amount("value"), target("value").unwrap_or_else(|| "0".to_owned()))
        }
        ("pods", average) => {
            format!("{}/{}", amount("averageValue"), average.unwrap_or_else(|| "0".to_owned()))
        }
        (_, Some(average)) => named(amount("averageValue"), average),
        (_, None) => {
            let current = match present("averageUtilization") {
                current if current == "<unknown>" => current,
                current => format!("{current}%"),
            };
            let target = target("averageUtilization");
            named(current, target.map_or_else(|| "<auto>".to_owned(), |target| format!("{target}%")))
        }
    }
}
