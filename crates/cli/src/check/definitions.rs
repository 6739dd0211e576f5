//! Whether the cluster has the kinds of a system, as this version of it needs them.

use super::finding::Finding;
use crate::cluster::{Catalog, Cluster, get};
use crate::failure::Failure;
use crate::systems::System;
use mainstay::diff::{Learned, Rules, compare};
use serde_json::Value;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The findings, and whether any of the kinds is there. A system that nobody named need not be.
pub(super) async fn examine(
    cluster: &Cluster,
    system: &System,
    is_named: bool,
) -> Result<(Vec<Finding>, bool), Failure> {
    let mut findings = Vec::new();
    let mut is_there = false;
    for wanted in system.definitions()? {
        let name = wanted.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let what = format!("{}: kinds", system.name);
        let fix = system.define();
        let live = match get(&cluster.client, &format!("{PATH}/{name}")).await {
            Ok(live) => live,
            Err(kube::Error::Api(status)) if status.code == 403 => {
                findings.push(unreadable(cluster, &what, &name, system, fix).await?);
                is_there = true;
                continue;
            }
            Err(error) => {
                findings.push(Finding::failed_with(
                    &what,
                    &cluster.failed(&format!("read the definition {name}"), error),
                ));
                continue;
            }
        };
        is_there |= live.is_some();
        findings.push(match live {
            None if !is_named => Finding::noted(what, format!("{name} is not installed")).with_fix(fix),
            None => Finding::failed(what, format!("{name} is not there"), fix),
            Some(live) => match difference(&wanted, &live) {
                None => Finding::passed(what, format!("{name} is there and as it should be")),
                Some(why) => Finding::failed(what, format!("{name} {why}"), fix),
            },
        });
    }
    Ok((findings, is_there))
}

/// What can be said of kinds whose definition may not be read: whether they are served.
async fn unreadable(
    cluster: &Cluster,
    what: &str,
    name: &str,
    system: &System,
    fix: String,
) -> Result<Finding, Failure> {
    let catalog = Catalog::fetch(&cluster.client).await;
    let catalog = catalog.map_err(|error| cluster.failed("ask which kinds there are", error))?;
    let mut parents = system.parents()?.into_iter();
    if parents.all(|parent| catalog.serves(&parent.kind)) {
        let detail = format!("{name} is served; you may not read whether it is as it should be");
        return Ok(Finding::noted(what, detail));
    }
    Ok(Finding::failed(what, format!("{name} is not there"), fix))
}

/// What is wrong with a definition.
fn difference(wanted: &Value, live: &Value) -> Option<String> {
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    let is_true = |kind: &str| {
        conditions.into_iter().flatten().any(|one| one["type"] == kind && one["status"] == "True")
    };
    if live.pointer("/metadata/deletionTimestamp").is_some() {
        return Some("is being deleted".to_owned());
    }
    if !is_true("Established") {
        return Some("is not served: it is not established".to_owned());
    }
    for version in versions(wanted) {
        let name = version["name"].as_str().unwrap_or_default();
        let Some(found) = versions(live).find(|found| found["name"] == *name) else {
            return Some(format!("has no version {name}"));
        };
        if version["served"] == true && found["served"] != true {
            return Some(format!("does not serve {name}"));
        }
        let changes = compare(&version["schema"], &found["schema"], &Rules::unknown(), &Learned::nothing());
        if let Some(change) = changes.first() {
            let path = change.path.to_string();
            let path = path.strip_prefix("openAPIV3Schema.").unwrap_or(&path).to_owned();
            return Some(format!(
                "has another schema of {name}: {path} and {} more differ",
                changes.len() - 1
            ))
            .map(|text| text.replace(" and 0 more differ", " differs"));
        }
    }
    None
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition() -> Value {
        let schema =
            json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}});
        json!({
            "spec": {"versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        })
    }

    fn changed(pointer: &str, value: Value) -> Option<String> {
        let mut live = definition();
        *live.pointer_mut(pointer).unwrap() = value;
        difference(&definition(), &live)
    }

    #[test]
    fn a_definition_must_be_served_with_the_schema_of_this_version() {
        assert_eq!(difference(&definition(), &definition()), None);
        let told = |pointer: &str, value: Value| changed(pointer, value).unwrap_or_default();
        assert_eq!(told("/status/conditions", json!([])), "is not served: it is not established");
        assert_eq!(told("/spec/versions/0/name", json!("v2")), "has no version v1");
        assert_eq!(told("/spec/versions/0/served", json!(false)), "does not serve v1");
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/type";
        assert_eq!(told(schema, json!("string")), "has another schema of v1: properties.spec.type differs");
    }

    #[test]
    fn what_a_newer_version_has_besides_is_no_difference() {
        let more = json!({"spec": {"type": "object"}, "status": {"type": "object"}});
        assert_eq!(changed("/spec/versions/0/schema/openAPIV3Schema/properties", more), None);
    }
}
