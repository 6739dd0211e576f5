use super::*;
use proptest::prelude::*;

/// The verbs of a built-in kind that has all of them, in discovery's order.
const BUILTIN_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The verbs of a custom kind, in discovery's order.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// The verbs of `status` and `scale`.
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

fn texts(texts: &[&'static str]) -> Vec<Text> {
    texts.iter().map(|text| Cow::Borrowed(*text)).collect()
}

pub(crate) fn deployments() -> Resource {
    let scale = Subresource {
        name: "scale".into(),
        kind: "Scale".into(),
        group_version: Some(("autoscaling".into(), "v1".into())),
        verbs: texts(&SUBRESOURCE_VERBS),
        definition: Some("io.k8s.api.autoscaling.v1.Scale".into()),
    };
    let status = Subresource {
        name: "status".into(),
        kind: "Deployment".into(),
        group_version: None,
        verbs: texts(&SUBRESOURCE_VERBS),
        definition: None,
    };
    Resource {
        group: "apps".into(),
        version: "v1".into(),
        plural: "deployments".into(),
        singular: "deployment".into(),
        kind: "Deployment".into(),
        namespaced: true,
        verbs: texts(&BUILTIN_VERBS),
        short_names: texts(&["deploy"]),
        categories: texts(&["all"]),
        subresources: vec![scale, status],
        storage_version_hash: Some(storage_version_hash("apps", "v1", "Deployment").into()),
        definition: "io.k8s.api.apps.v1.Deployment".into(),
        custom: false,
    }
}

pub(crate) fn nodes() -> Resource {
    Resource {
        group: "".into(),
        plural: "nodes".into(),
        singular: "node".into(),
        kind: "Node".into(),
        namespaced: false,
        short_names: texts(&["no"]),
        categories: Vec::new(),
        subresources: Vec::new(),
        storage_version_hash: Some(storage_version_hash("", "v1", "Node").into()),
        definition: "io.k8s.api.core.v1.Node".into(),
        ..deployments()
    }
}

pub(crate) fn widgets(group: &'static str, version: &'static str) -> Resource {
    Resource {
        group: group.into(),
        version: version.into(),
        plural: "widgets".into(),
        singular: "widget".into(),
        kind: "Widget".into(),
        verbs: texts(&CUSTOM_VERBS),
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: deployments().subresources.into_iter().filter(|s| s.name == "scale").collect(),
        storage_version_hash: None,
        definition: "test.apply.v1.Widget".into(),
        custom: true,
        ..deployments()
    }
}

#[test]
fn legacy_documents_are_those_of_kube_apiserver() {
    let (deployments, nodes) = (deployments(), nodes());
    let catalog = Catalog::new([&deployments, &nodes]);
    assert_eq!(
        catalog.api_versions("127.0.0.1:1"),
        json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:1"}],
        })
    );
    let version = json!({"groupVersion": "apps/v1", "version": "v1"});
    let group = json!({"name": "apps", "versions": [version], "preferredVersion": version});
    assert_eq!(catalog.group_list(), json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}));
    assert_eq!(catalog.group("apps").unwrap()["kind"], "APIGroup");
    assert_eq!(catalog.group(""), None);
    assert_eq!(catalog.resource_list("apps", "v2"), None);
    assert_eq!(
        catalog.resource_list("apps", "v1").unwrap(),
        json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": "apps/v1",
            "resources": [
                {
                    "name": "deployments", "singularName": "deployment", "namespaced": true,
                    "kind": "Deployment", "verbs": BUILTIN_VERBS, "shortNames": ["deploy"],
                    "categories": ["all"], "storageVersionHash": "8aSe+NMegvE=",
                },
                {
                    "name": "deployments/scale", "singularName": "", "namespaced": true,
                    "group": "autoscaling", "version": "v1", "kind": "Scale",
                    "verbs": ["get", "patch", "update"],
                },
                {
                    "name": "deployments/status", "singularName": "", "namespaced": true,
                    "kind": "Deployment", "verbs": ["get", "patch", "update"],
                },
            ],
        })
    );
    let core = catalog.resource_list("", "v1").unwrap();
    assert_eq!((core.get("apiVersion"), &core["groupVersion"]), (None, &json!("v1")));
    assert_eq!(core["resources"][0]["storageVersionHash"], "XwShjMxG9Fs=");
}

#[test]
fn aggregated_documents_are_those_of_kube_apiserver() {
    let (deployments, nodes, widgets) = (deployments(), nodes(), widgets("apply.test", "v1"));
    let catalog = Catalog::new([&widgets, &deployments, &nodes]);
    let core = catalog.aggregated(true);
    assert_eq!(core["items"][0]["metadata"], json!({}));
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
    let named = catalog.aggregated(false);
    assert_eq!(named["items"][0]["metadata"], json!({"name": "apps"}));
    assert_eq!(
        named["items"][0]["versions"][0]["resources"][0],
        json!({
            "resource": "deployments",
            "responseKind": {"group": "", "version": "", "kind": "Deployment"},
            "scope": "Namespaced", "singularResource": "deployment", "verbs": BUILTIN_VERBS,
            "shortNames": ["deploy"], "categories": ["all"],
            "subresources": [
                {
                    "subresource": "scale",
                    "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                    "verbs": ["get", "patch", "update"],
                },
                {
                    "subresource": "status",
                    "responseKind": {"group": "", "version": "", "kind": "Deployment"},
                    "verbs": ["get", "patch", "update"],
                },
            ],
        })
    );
    let custom = &named["items"][1]["versions"][0];
    assert_eq!(custom["freshness"], "Current");
    assert_eq!(
        custom["resources"][0]["responseKind"],
        json!({"group": "apply.test", "version": "v1", "kind": "Widget"})
    );
}

#[test]
fn groups_and_versions_stand_in_order() {
    let resources: Vec<Resource> = [
        ("schema.lab", "v1"),
        ("apply.test", "v1"),
        ("apply.test", "v2"),
        ("apply.test", "v1beta1"),
        ("apply.test", "v10alpha3"),
        ("apply.test", "zebra"),
        ("apply.test", "ant"),
        ("apps", "v1"),
        ("apiextensions.k8s.io", "v1"),
        ("admissionregistration.k8s.io", "v1"),
        ("autoscaling", "v1"),
        ("autoscaling", "v2"),
        ("", "v1"),
        ("events.k8s.io", "v1"),
    ]
    .into_iter()
    .map(|(group, version)| widgets(group, version))
    .collect();
    let catalog = Catalog::new(&resources);
    let order: Vec<String> =
        catalog.group_versions().map(|(group, version, _)| group_version(group, version)).collect();
    assert_eq!(
        order,
        [
            "v1",
            "apps/v1",
            "events.k8s.io/v1",
            "autoscaling/v2",
            "autoscaling/v1",
            "admissionregistration.k8s.io/v1",
            "apiextensions.k8s.io/v1",
            "apply.test/v2",
            "apply.test/v1",
            "apply.test/v1beta1",
            "apply.test/v10alpha3",
            "apply.test/ant",
            "apply.test/zebra",
            "schema.lab/v1",
        ]
    );
}

#[test]
fn equal_documents_have_equal_tags() {
    assert_eq!(etag(b"a"), etag(b"a"));
    assert_ne!(etag(b"a"), etag(b"b"));
    assert_eq!(etag(b"").len(), 130);
}

proptest! {
    #[test]
    fn version_order_is_total(versions in prop::collection::vec("v?[0-9]{0,2}(alpha|beta)?[0-9]{0,22}", 3)) {
        let [a, b, c] = versions.as_slice() else { unreachable!() };
        prop_assert_eq!(compare_versions(a, b), compare_versions(b, a).reverse());
        if compare_versions(a, b).is_le() && compare_versions(b, c).is_le() {
            prop_assert!(compare_versions(a, c).is_le());
        }
    }
}
