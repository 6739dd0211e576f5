//! Desired children: what is compared, what is removed, what is left to others, and what is no answer at all.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use mainstay::{ChildKind, Kind, SyncRequest, SyncResponse};
use mainstay_testkit::cluster::unique_name;
use mainstay_testkit::{Cluster, OperatorTest, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::fixtures::key;
use crate::operator::kinds::{
    config_map, config_maps, define_shop, is_well, obedient, secrets, shop, shop_kind, shops, step_through,
    told, version, writes,
};
use crate::operator::seam::Seam;
use crate::webhooks::hooks::{Answer, Hooks};

/// Steps through shops that say what they want, with one shop that wants these children.
async fn with_children(cluster: &Cluster, kinds: &[Kind], children: &[Value]) -> OperatorTest {
    let test = step_through(cluster, obedient(kinds.iter().cloned())).await;
    test.create(shop("paint", json!({"children": children}))).await;
    test.settle().await;
    test
}

/// Has the shop want other children.
async fn want(test: &OperatorTest, children: &[Value]) {
    test.patch(&shop_kind(), "paint", json!({"spec": {"children": children}})).await;
    test.settle().await;
}

async fn data_of(test: &OperatorTest, name: &str) -> Value {
    test.get(&config_maps(), name).await.expect("the child is there")["data"].clone()
}

#[tokio::test]
async fn only_named_fields_are_compared() {
    for_each_cluster(async |cluster| {
        let child = config_map("one", json!({"a": "1"}));
        let test = with_children(&cluster, &[config_maps()], &[child]).await;
        let theirs = json!({"metadata": {"labels": {"team": "red"}}, "data": {"b": "2"}});
        test.patch(&config_maps(), "one", theirs).await;
        let before = version(&cluster, &config_maps(), "one").await;
        assert_eq!(writes(&test.settle().await), 0);
        assert_eq!(version(&cluster, &config_maps(), "one").await, before);
        assert_eq!(data_of(&test, "one").await, json!({"a": "1", "b": "2"}));
    })
    .await;
}

#[tokio::test]
async fn what_somebody_changes_of_a_named_field_is_put_right() {
    for_each_cluster(async |cluster| {
        let child = config_map("one", json!({"a": "1"}));
        let test = with_children(&cluster, &[config_maps()], &[child]).await;
        test.patch(&config_maps(), "one", json!({"data": {"a": "9"}})).await;
        let steps = test.settle().await;
        let plan = steps[0].sync.as_ref().expect("it wrote").plan.to_string();
        assert!(plan.contains(r#"data.a: "9" → "1""#), "{plan}");
        assert_eq!(data_of(&test, "one").await, json!({"a": "1"}));
        // The whole child, too.
        test.delete(&config_maps(), "one").await;
        test.settle().await;
        assert_eq!(data_of(&test, "one").await, json!({"a": "1"}));
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn dropped_map_keys_and_fields_are_removed() {
    for_each_cluster(async |cluster| {
        let mut child = config_map("one", json!({"a": "1", "b": "2"}));
        child["metadata"]["labels"] = json!({"x": "1", "y": "2"});
        child["immutable"] = json!(false);
        let test = with_children(&cluster, &[config_maps()], &[child]).await;
        test.patch(&config_maps(), "one", json!({"data": {"theirs": "3"}})).await;
        let mut child = config_map("one", json!({"a": "1"}));
        child["metadata"]["labels"] = json!({"y": "2"});
        want(&test, &[child]).await;
        let made = test.get(&config_maps(), "one").await.unwrap();
        assert_eq!(made["data"], json!({"a": "1", "theirs": "3"}));
        assert_eq!(made["metadata"]["labels"], json!({"y": "2"}));
        assert_eq!(made.get("immutable"), None);
        // All of the map at once.
        want(&test, &[json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "labels": {"y": "2"}}})])
            .await;
        assert_eq!(data_of(&test, "one").await, json!({"theirs": "3"}));
        test.assert_settled().await;
    })
    .await;
}

fn deployment(containers: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
        },
    })
}

fn container(env: &[(&str, &str)]) -> Value {
    let env: Vec<_> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!({"name": "main", "image": "web:1", "env": env})
}

async fn containers_of(test: &OperatorTest) -> Value {
    let web = test.get(&Kind::of::<Deployment>(), "web").await.expect("the child is there");
    web.pointer("/spec/template/spec/containers").cloned().unwrap_or_default()
}

#[tokio::test]
async fn dropped_list_items_are_removed() {
    for_each_cluster(async |cluster| {
        let kinds = [Kind::of::<Deployment>()];
        let full = deployment(&json!([container(&[("A", "1"), ("B", "2")])]));
        let test = with_children(&cluster, &kinds, &[full]).await;
        want(&test, &[deployment(&json!([container(&[("A", "1")])]))]).await;
        assert_eq!(containers_of(&test).await[0]["env"], json!([{"name": "A", "value": "1"}]));
        want(&test, &[deployment(&json!([container(&[])]))]).await;
        assert_eq!(containers_of(&test).await[0].get("env"), None, "a desired [] has no items");
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn item_that_somebody_adds_to_a_keyed_list_stays() {
    for_each_cluster(async |cluster| {
        let kinds = [Kind::of::<Deployment>()];
        let test = with_children(&cluster, &kinds, &[deployment(&json!([container(&[("A", "1")])]))]).await;
        let injected = json!([
            {"name": "sidecar", "image": "proxy:1"},
            {"name": "main", "image": "web:1", "env": [{"name": "PROXY", "value": "yes"}, {"name": "A", "value": "1"}]},
        ]);
        let patch = json!({"spec": {"template": {"spec": {"containers": injected}}}});
        test.patch(&kinds[0], "web", patch).await;
        let before = version(&cluster, &kinds[0], "web").await;
        assert_eq!(writes(&test.settle().await), 0, "nothing of ours was changed");
        assert_eq!(version(&cluster, &kinds[0], "web").await, before);
        want(&test, &[deployment(&json!([container(&[("A", "2")])]))]).await;
        let containers = containers_of(&test).await;
        let names: Vec<_> = containers.as_array().unwrap().iter().map(|item| item["name"].clone()).collect();
        assert!(names.contains(&json!("sidecar")), "{containers}");
        let main = containers.as_array().unwrap().iter().find(|item| item["name"] == "main").unwrap();
        let env = main["env"].as_array().unwrap();
        assert!(env.contains(&json!({"name": "PROXY", "value": "yes"})), "{main}");
        assert!(env.contains(&json!({"name": "A", "value": "2"})), "{main}");
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn child_that_is_no_longer_desired_is_deleted() {
    for_each_cluster(async |cluster| {
        let children = [config_map("one", json!({})), config_map("two", json!({}))];
        let test = with_children(&cluster, &[config_maps(), secrets()], &children).await;
        want(&test, &children[1..]).await;
        assert!(!test.exists(&config_maps(), "one").await);
        assert!(test.exists(&config_maps(), "two").await);
        want(&test, &[]).await;
        assert!(!test.exists(&config_maps(), "two").await);
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn child_that_only_names_itself_is_kept_as_it_is() {
    for_each_cluster(async |cluster| {
        let full = config_map("one", json!({"a": "1"}));
        let test = with_children(&cluster, &[config_maps()], &[full]).await;
        let bare = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}});
        let before = version(&cluster, &config_maps(), "one").await;
        want(&test, std::slice::from_ref(&bare)).await;
        assert_eq!(version(&cluster, &config_maps(), "one").await, before);
        assert_eq!(data_of(&test, "one").await, json!({"a": "1"}));
        // And made if it is not there.
        test.delete(&config_maps(), "one").await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "one").await);
        test.assert_settled().await;
    })
    .await;
}

/// All that no answer can be: what is wrong with a child, and what is said of it.
fn bad_children(namespace: &str) -> Vec<(Value, String)> {
    let named = |kind: &str, metadata: Value| json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
    let mut with_status = config_map("one", json!({}));
    with_status["status"] = json!({"a": 1});
    vec![
        (
            with_status,
            "children[1], ConfigMap one: status: a child's status is set by its own controller".into(),
        ),
        (
            named("ConfigMap", json!({"name": "one", "namespace": "elsewhere"})),
            format!("metadata.namespace: it is in elsewhere, but its parent is in {namespace}"),
        ),
        (named("Namespace", json!({"name": "one"})), "a namespaced parent cannot own it".into()),
        (
            named("Service", json!({"name": "one"})),
            "v1 Service is not a child kind of this controller".into(),
        ),
        (
            named("ConfigMap", json!({"generateName": "one-"})),
            "metadata.generateName: children need a name".into(),
        ),
        (named("ConfigMap", json!({})), "metadata.name is missing".into()),
        (config_map("fine", json!({"a": "2"})), "children[1], ConfigMap fine: it is there twice".into()),
        (json!({"kind": "ConfigMap", "metadata": {"name": "one"}}), "apiVersion is missing".into()),
        (
            named(
                "ConfigMap",
                json!({"name": "one", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b", "controller": true},
                ]}),
            ),
            "metadata.ownerReferences: another controller is named".into(),
        ),
    ]
}

#[tokio::test]
async fn answer_with_a_child_that_cannot_be_is_refused_as_a_whole_and_says_why() {
    for_each_cluster(async |cluster| {
        let kinds = [config_maps(), Kind::of::<k8s_openapi::api::core::v1::Namespace>()];
        let test = with_children(&cluster, &kinds, &[config_map("old", json!({}))]).await;
        for (bad, expected) in bad_children(cluster.namespace()) {
            want(&test, &[config_map("fine", json!({"a": "1"})), bad]).await;
            let (status, reason, message) = told(&cluster, "paint").await;
            assert_eq!((status.as_str(), reason.as_str()), ("False", "BadAnswer"));
            assert!(message.contains(&expected), "{message}");
            assert!(test.exists(&config_maps(), "old").await, "nothing is deleted");
            assert!(!test.exists(&config_maps(), "fine").await, "nothing is made");
        }
        want(&test, &[config_map("fine", json!({}))]).await;
        assert!(is_well(&cluster, "paint").await);
        assert!(test.exists(&config_maps(), "fine").await);
    })
    .await;
}

#[tokio::test]
async fn handler_may_return_what_it_read() {
    for_each_cluster(async |cluster| {
        let controller = shops([ChildKind::of::<ConfigMap>()]).sync(|request: &SyncRequest| {
            let maps = config_maps();
            let mut child = request
                .children_of(&maps)
                .get("one")
                .map_or_else(|| config_map("one", json!({"a": "1"})), |child| child.json());
            child["data"]["b"] = request.parent_json()["spec"]["b"].clone();
            SyncResponse::new().with_child(child)
        });
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({"b": "1"}))).await;
        test.settle().await;
        test.assert_settled().await;
        test.patch(&shop_kind(), "paint", json!({"spec": {"b": "2"}})).await;
        test.settle().await;
        assert_eq!(data_of(&test, "one").await, json!({"a": "1", "b": "2"}));
        test.assert_settled().await;
    })
    .await;
}

/// A webhook that makes all text in config maps of a namespace loud.
async fn make_loud(cluster: &Cluster, hooks: &Hooks) -> String {
    hooks.on("/loud", |review| match review.pointer("/request/object/data/text").and_then(Value::as_str) {
        Some(text) => {
            Answer::Patch(json!([{"op": "replace", "path": "/data/text", "value": text.to_uppercase()}]))
        }
        None => Answer::yes(),
    });
    let name = unique_name("loud");
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"],
    });
    cluster
        .create(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "loud.test.mainstay.dev", "clientConfig": hooks.at("/loud"), "rules": [rule],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace()}},
                "sideEffects": "None", "admissionReviewVersions": ["v1"],
            }],
        }))
        .await;
    eventually("the webhook to be in force", async || {
        let probe = cluster.create(config_map(&unique_name("probe"), json!({"text": "a"}))).await;
        (probe["data"]["text"] == "A").then_some(())
    })
    .await;
    name
}

#[tokio::test]
async fn what_a_webhook_makes_of_a_child_is_not_fought_even_after_a_restart() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let (hooks, seam) = (Hooks::start().await, Seam::new(&cluster));
        let configuration = make_loud(&cluster, &hooks).await;
        let start = || seam.stepping(&cluster, "shops", obedient([config_maps()]));
        let test = start();
        test.create(shop("paint", json!({"children": [config_map("one", json!({"text": "small"}))]}))).await;
        assert_eq!(writes(&test.settle().await), 1);
        assert_eq!(data_of(&test, "one").await, json!({"text": "SMALL"}));
        test.assert_settled().await;
        drop(test);
        seam.take_writes();
        let test = start();
        test.assert_settled().await;
        assert_eq!(seam.take_writes(), Vec::<String>::new());
        // And yet what a user makes of it is put right, and a new wish is fulfilled.
        test.patch(&config_maps(), "one", json!({"data": {"text": "theirs"}})).await;
        test.settle().await;
        assert_eq!(data_of(&test, "one").await, json!({"text": "SMALL"}));
        want(&test, &[config_map("one", json!({"text": "large"}))]).await;
        assert_eq!(data_of(&test, "one").await, json!({"text": "LARGE"}));
        test.assert_settled().await;
        let configurations = Kind::of::<MutatingWebhookConfiguration>();
        cluster.delete(&configurations, &configuration).await;
    })
    .await;
}

/// What the server rewrites: quantities, defaults, values in lists, a Secret's `stringData`, an empty list.
pub(crate) fn rewritten() -> Vec<Value> {
    let resources = json!({
        "requests": {"cpu": "0.5", "memory": "1024Mi"},
        "limits": {"cpu": "1000m", "memory": "2048Mi"},
    });
    let containers = json!([{
        "name": "main", "image": "web:1", "resources": resources, "command": [], "args": [],
        "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
    }]);
    vec![
        deployment(&containers),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"a": "b"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "annotations": {}, "labels": {}}, "data": {}}),
    ]
}

#[tokio::test]
async fn what_the_server_rewrites_is_not_fought_even_after_a_restart() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let kinds = [Kind::of::<Deployment>(), Kind::of::<Service>(), secrets(), config_maps()];
        let children = rewritten();
        let test = seam.stepping(&cluster, "shops", obedient(kinds.clone()));
        test.create(shop("paint", json!({"children": children, "status": {"empty": [], "open": true}})))
            .await;
        test.settle().await;
        assert_eq!(seam.take_writes().len(), 5, "one create per child, and the status");
        test.assert_settled().await;
        drop(test);
        let test = seam.stepping(&cluster, "shops", obedient(kinds.clone()));
        test.catch_up().await;
        let plan = test.operator().plan(&shop_kind(), &key(&cluster, "paint")).await.unwrap();
        assert!(plan.is_settled(), "a plan asks as a sync does: {plan}");
        test.assert_settled().await;
        assert_eq!(seam.take_writes(), Vec::<String>::new());
        // And yet a change by somebody is seen at once.
        test.patch(&kinds[0], "web", json!({"spec": {"replicas": 2}})).await;
        test.settle().await;
        let web = test.get(&kinds[0], "web").await.unwrap();
        assert_eq!(web["spec"]["replicas"], 0);
    })
    .await;
}
