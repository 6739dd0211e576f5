use super::*;
use mainstay_streams::config::StreamClassConfig;
use mainstay_streams::kinds::{BackfillRequest, StreamClass, StreamingJobTemplate};
use serde_json::Value;

fn documents<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
    serde_saphyr::from_multiple(text).unwrap()
}

#[test]
fn the_class_is_about_the_kind_that_the_definition_defines() {
    let definition: Value = serde_saphyr::from_str(CRD).unwrap();
    let class: StreamClass = documents(PLUGIN[0]).remove(0);
    let config = StreamClassConfig::from(&class.spec);
    assert_eq!(definition["spec"]["group"], config.api_group_ref);
    assert_eq!(definition["spec"]["names"]["kind"], config.kind_ref);
    assert_eq!(definition["spec"]["names"]["plural"], config.plural_name);
    assert_eq!(definition["spec"]["versions"][0]["name"], config.api_version);
    let fields =
        &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    assert!(config.secret_refs.iter().all(|field| fields[field].is_object()));
}

#[test]
fn feeds_name_templates_and_secrets_that_are_there() {
    let templates: Vec<StreamingJobTemplate> = documents(PLUGIN[1]);
    let objects: Vec<Value> = documents(FEEDS[0]);
    let is_there = |kind: &str, name: &Value| match kind {
        "Secret" => {
            objects.iter().any(|object| object["kind"] == "Secret" && object["metadata"]["name"] == *name)
        }
        _ => templates.iter().any(|template| template.metadata.name.as_deref() == name.as_str()),
    };
    for feed in objects.iter().filter(|object| object["kind"] == "Feed") {
        for (field, kind) in [
            ("jobTemplateRef", "Template"),
            ("backfillJobTemplateRef", "Template"),
            ("sinkSecretRef", "Secret"),
        ] {
            let name = &feed["spec"][field]["name"];
            assert!(name.is_null() || is_there(kind, name), "{feed}: {field}");
        }
    }
    let request: BackfillRequest = documents(FEEDS[1]).remove(0);
    assert!(objects.iter().any(|object| object["metadata"]["name"] == request.spec.stream_id));
}

#[test]
fn permissions_are_about_the_kind() {
    let definition: Value = serde_saphyr::from_str(CRD).unwrap();
    let role: Value = documents(RBAC).remove(0);
    for rule in role["rules"].as_array().unwrap() {
        assert_eq!(rule["apiGroups"][0], definition["spec"]["group"]);
    }
}
