//! Children whose change the server refuses because the field is immutable are recreated, whatever their kind. Each row provokes
//! the wording of one kind on both servers.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::api::rbac::v1::RoleBinding;
use mainstay::{ChildKind, Kind};
use mainstay_testkit::{eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::kinds::{as_spec_says, shop, shop_kind, shops, step_through};

/// A child of a kind, and how it is asked for first and then.
struct Row {
    child: ChildKind,
    kind: Kind,
    first: Value,
    then: Value,
}

fn row<T>(scope: fn(&Value) -> Value, first: &Value, then: &Value) -> Row
where
    T: k8s_openapi::Metadata<
            Scope = k8s_openapi::NamespaceResourceScope,
            Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
        >,
{
    let object = |rest: &Value| {
        let mut object = scope(rest);
        object["apiVersion"] = json!(T::API_VERSION);
        object["kind"] = json!(T::KIND);
        object["metadata"] = json!({"name": "child"});
        object
    };
    Row { child: ChildKind::of::<T>(), kind: Kind::of::<T>(), first: object(first), then: object(then) }
}

fn spec(value: &Value) -> Value {
    json!({"spec": value})
}

fn whole(value: &Value) -> Value {
    value.clone()
}

fn pod_spec(image: &str) -> Value {
    json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]})
}

fn template(app: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main", "image": "a"}]}})
}

fn workload(app: &str, service: &str) -> Value {
    json!({
        "replicas": 0, "serviceName": service, "template": template(app),
        "selector": {"matchLabels": {"app": app}},
    })
}

fn deployment(app: &str) -> Value {
    json!({"replicas": 0, "template": template(app), "selector": {"matchLabels": {"app": app}}})
}

fn claim(mode: &str) -> Value {
    json!({"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}})
}

fn role(name: &str) -> Value {
    json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}})
}

fn rows() -> Vec<Row> {
    let sealed = |value: &str| json!({"immutable": true, "data": {"key": value}});
    let mut pod = pod_spec("a");
    pod["terminationGracePeriodSeconds"] = json!(0);
    let mut other_pod = pod.clone();
    other_pod["restartPolicy"] = json!("Always");
    let mut more_containers = pod.clone();
    more_containers["containers"] = json!([{"name": "main", "image": "a"}, {"name": "other", "image": "a"}]);
    let suspended = |template: Value| json!({"suspend": true, "template": {"spec": template}});
    vec![
        row::<Job>(spec, &suspended(pod_spec("a")), &suspended(pod_spec("b"))),
        row::<Deployment>(spec, &deployment("a"), &deployment("b")),
        row::<StatefulSet>(spec, &workload("a", "a"), &workload("a", "b")),
        row::<Pod>(spec, &pod, &other_pod),
        row::<Pod>(spec, &pod, &more_containers),
        row::<PersistentVolumeClaim>(spec, &claim("ReadWriteOnce"), &claim("ReadWriteMany")),
        row::<RoleBinding>(whole, &role("a"), &role("b")),
        row::<Secret>(whole, &sealed("YQ=="), &sealed("Yg==")),
        row::<Secret>(whole, &json!({"type": "a.example.com/x"}), &json!({"type": "a.example.com/y"})),
        row::<ConfigMap>(whole, &sealed("a"), &sealed("b")),
    ]
}

#[tokio::test]
async fn a_child_whose_field_is_immutable_is_recreated_whatever_its_kind() {
    for_each_cluster(async |cluster| {
        for (number, Row { child, kind, first, then }) in rows().into_iter().enumerate() {
            let cluster = cluster.again().await;
            let controller = shops([child.recreate_when_immutable()]).sync(as_spec_says);
            let test = step_through(&cluster, controller).await;
            test.create(shop("paint", json!({"children": [first]}))).await;
            test.settle().await;
            let before = test.get(&kind, "child").await.expect("the first child");
            test.patch(&shop_kind(), "paint", json!({"spec": {"children": [then]}})).await;
            eventually(&format!("the child of row {number}, a {kind}, to be recreated"), async || {
                test.settle().await;
                // Some are held by a finalizer that no controller removes here: being deleted is enough.
                let after = test.get(&kind, "child").await;
                let recreated = after.as_ref().is_none_or(|after| {
                    after["metadata"]["uid"] != before["metadata"]["uid"]
                        || !after["metadata"]["deletionTimestamp"].is_null()
                });
                recreated.then_some(())
            })
            .await;
        }
    })
    .await;
}
