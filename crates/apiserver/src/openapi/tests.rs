use super::*;
use crate::discovery::tests::{deployments, nodes, widgets};

fn definition(name: &str) -> Option<Value> {
    match name {
        "io.k8s.api.apps.v1.Deployment" => Some(json!({
            "type": "object",
            "properties": {"spec": {"$ref": "#/definitions/io.k8s.api.apps.v1.DeploymentSpec"}},
            "x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Deployment", "version": "v1"}],
        })),
        "io.k8s.api.apps.v1.DeploymentSpec" => Some(json!({
            "type": "object",
            "properties": {"self": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}]}},
        })),
        _ => None,
    }
}

/// The names of the query parameters of an operation.
fn parameters(operation: &Value) -> Vec<&str> {
    let parameters = operation["parameters"].as_array().unwrap().iter();
    parameters.map(|parameter| parameter["name"].as_str().unwrap()).collect()
}

#[test]
fn kubectl_finds_field_validation_at_every_patch_of_a_kind() {
    let deployments = deployments();
    let document = document("apps", "v1", &[&deployments], definition);
    let patches: Vec<&Value> =
        document["paths"].as_object().unwrap().values().filter_map(|item| item.get("patch")).collect();
    assert_eq!(patches.len(), 3);
    for patch in patches {
        assert_eq!(parameters(patch), ["dryRun", "fieldManager", "fieldValidation", "force"]);
    }
}

#[test]
fn kubectl_explain_finds_the_schema() {
    let deployments = deployments();
    let document = document("apps", "v1", &[&deployments], definition);
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments";
    let kind = &document["paths"][path]["get"]["x-kubernetes-group-version-kind"];
    let schema = &document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(*kind, schema["x-kubernetes-group-version-kind"][0]);
    let reference = schema["properties"]["spec"]["$ref"].as_str().unwrap();
    assert_eq!(reference, "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec");
    assert!(document["components"]["schemas"].get("io.k8s.api.apps.v1.DeploymentSpec").is_some());
}

#[test]
fn every_reference_leads_somewhere() {
    let (deployments, nodes) = (deployments(), nodes());
    for (group, resource) in [("apps", &deployments), ("", &nodes)] {
        let document = document(group, "v1", &[resource], definition);
        let mut names = Vec::new();
        collect_references(&document, &mut names);
        assert!(!names.is_empty());
        for name in names {
            assert!(document["components"]["schemas"].get(&name).is_some(), "{name}");
        }
    }
}

#[test]
fn paths_and_operations_are_named_as_kubernetes_names_them() {
    let (deployments, nodes, widgets) = (deployments(), nodes(), widgets("apply.test", "v1"));
    let ids = |group: &str, resource: &Resource| -> Vec<String> {
        let document = document(group, "v1", &[resource], definition);
        let mut ids = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                if let Some(id) = operation.get("operationId") {
                    ids.push(format!("{method} {path} {}", id.as_str().unwrap()));
                }
            }
        }
        ids
    };
    assert_eq!(
        ids("apps", &deployments),
        [
            "get /apis/apps/v1/deployments listAppsV1DeploymentForAllNamespaces",
            "delete /apis/apps/v1/namespaces/{namespace}/deployments deleteAppsV1CollectionNamespacedDeployment",
            "get /apis/apps/v1/namespaces/{namespace}/deployments listAppsV1NamespacedDeployment",
            "post /apis/apps/v1/namespaces/{namespace}/deployments createAppsV1NamespacedDeployment",
            "delete /apis/apps/v1/namespaces/{namespace}/deployments/{name} deleteAppsV1NamespacedDeployment",
            "get /apis/apps/v1/namespaces/{namespace}/deployments/{name} readAppsV1NamespacedDeployment",
            "patch /apis/apps/v1/namespaces/{namespace}/deployments/{name} patchAppsV1NamespacedDeployment",
            "put /apis/apps/v1/namespaces/{namespace}/deployments/{name} replaceAppsV1NamespacedDeployment",
            "get /apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale readAppsV1NamespacedDeploymentScale",
            "patch /apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale patchAppsV1NamespacedDeploymentScale",
            "put /apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale replaceAppsV1NamespacedDeploymentScale",
            "get /apis/apps/v1/namespaces/{namespace}/deployments/{name}/status readAppsV1NamespacedDeploymentStatus",
            "patch /apis/apps/v1/namespaces/{namespace}/deployments/{name}/status patchAppsV1NamespacedDeploymentStatus",
            "put /apis/apps/v1/namespaces/{namespace}/deployments/{name}/status replaceAppsV1NamespacedDeploymentStatus",
        ]
    );
    assert!(ids("", &nodes).contains(&"get /api/v1/nodes/{name} readCoreV1Node".to_owned()));
    let widget =
        "get /apis/apply.test/v1/namespaces/{namespace}/widgets/{name} readApplyTestV1NamespacedWidget";
    assert!(ids("apply.test", &widgets).contains(&widget.to_owned()));
}

#[test]
fn custom_kinds_take_no_strategic_merge_patch() {
    let widgets = widgets("apply.test", "v1");
    let document = document("apply.test", "v1", &[&widgets], definition);
    let path = "/apis/apply.test/v1/namespaces/{namespace}/widgets/{name}";
    let content = document["paths"][path]["patch"]["requestBody"]["content"].as_object().unwrap();
    let types: Vec<&str> = content.keys().map(String::as_str).collect();
    assert_eq!(
        types,
        ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
    );
}

#[test]
fn the_index_changes_with_a_schema() {
    let widgets = widgets("apply.test", "v1");
    let hash = |revision: &str| document_hash(&[&widgets], |_| revision.to_owned());
    assert_eq!(hash("1"), hash("1"));
    assert_ne!(hash("1"), hash("2"));
    let index = index([("", "v1", "A".to_owned()), ("apps", "v1", "B".to_owned())]);
    assert_eq!(
        index,
        json!({"paths": {
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=A"},
            "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=B"},
        }})
    );
}
