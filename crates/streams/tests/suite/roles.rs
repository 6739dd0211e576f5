//! The plugin of the example where the operator may do what its own roles and those of the plugin say, and nothing else.

use k8s_openapi::api::batch::v1::CronJob;
use kube::config::{KubeConfigOptions, Kubeconfig};
use mainstay::{Kind, Scope};
use mainstay_testkit::Cluster;
use mainstay_testkit::cluster::ClusterKind;
use serde_json::{Value, json};

use crate::suite::fixtures::{Plugin, World, condition, in_each_world, operator};

/// The account to which the plugin's own manifest grants its role.
fn account(granted: &[Value]) -> Value {
    let binding = granted.iter().find(|object| object["kind"] == "ClusterRoleBinding").unwrap();
    binding["subjects"][0].clone()
}

/// A client that is this account. The embedded cluster asks nobody who they are.
async fn client_as(cluster: &Cluster, account: &Value) -> kube::Client {
    if cluster.kind() == ClusterKind::Embedded {
        return cluster.client();
    }
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig().await).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.unwrap();
    let part = |field: &str| account[field].as_str().unwrap().to_owned();
    let name = format!("system:serviceaccount:{}:{}", part("namespace"), part("name"));
    config.auth_info.impersonate = Some(name);
    kube::Client::try_from(config).unwrap()
}

/// Grants the operator what it says that it needs for itself.
async fn grant_own_roles(world: &World, account: &Value) {
    for role in operator(world.cluster.client()).rbac().roles() {
        let binding = json!({
            "apiVersion": role["apiVersion"], "kind": format!("{}Binding", role["kind"].as_str().unwrap()),
            "metadata": role["metadata"], "subjects": [account],
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": role["metadata"]["name"],
            },
        });
        world.cluster.create(role).await;
        world.cluster.create(binding).await;
    }
}

async fn create_all(world: &World, objects: &[Value]) {
    for object in objects {
        world.cluster.create(object.clone()).await;
    }
}

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// The templates, with programs that run until they are stopped.
fn templates() -> Vec<Value> {
    let mut templates = documents(feed_plugin::PLUGIN[1]);
    for template in &mut templates {
        let pod = &mut template["spec"]["template"]["spec"]["template"];
        pod["metadata"] = json!({"annotations": {"mainstay.dev/ends-after": "never"}});
    }
    templates
}

/// Without its role the class says what the operator may not do.
async fn a_permission_is_missed(world: &World) {
    let class = world.until_class("feeds", "Failed").await;
    assert_eq!(condition(&class, "Permitted"), ("False".into(), "Forbidden".into()));
    assert_eq!(condition(&class, "Ready"), ("False".into(), "Forbidden".into()));
    let told = class["status"]["conditions"].to_string();
    assert!(told.contains("the operator may not watch feeds at cluster scope"), "{told}");
}

/// What the operator was refused for want of a permission, as its metrics tell.
fn refused(world: &World) -> Vec<String> {
    let metrics = world.streams().metrics();
    let is_refused =
        |line: &&str| line.starts_with("mainstay_api_requests_total{") && line.contains("code=\"403\"");
    metrics.lines().filter(is_refused).map(str::to_owned).collect()
}

/// All that can become of a stream, a Secret and a schedule included.
async fn feeds_live(feeds: &Plugin<'_>) {
    feeds.until_phase("invoices", "Running").await;
    let job = feeds.job("invoices").await;
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["envFrom"], json!([{"secretRef": {"name": "invoices-sink"}}]));
    feeds.until("report", "a CronJob", |feed| feed["status"]["phase"] == "Scheduled").await;
    let schedules = feeds.world.list(&Kind::of::<CronJob>()).await;
    assert_eq!(schedules.len(), 1);

    feeds.patch("invoices", json!({"suspended": true})).await;
    feeds.until_phase("invoices", "Suspended").await;
    feeds.patch("invoices", json!({"suspended": false})).await;
    feeds.until_run("invoices", 2, "Running").await;
    feeds.world.cluster.delete(&feeds.kind, "invoices").await;
    feeds.world.until_gone(&feeds.kind, "invoices").await;
}

#[tokio::test]
async fn a_plugin_brings_the_permissions_that_its_streams_need() {
    in_each_world(async |world| {
        let granted = documents(feed_plugin::RBAC);
        let account = account(&granted);
        grant_own_roles(world, &account).await;
        world.kill().await;
        world.start_as(client_as(&world.cluster, &account).await);

        world.cluster.define(serde_saphyr::from_str(feed_plugin::CRD).unwrap()).await;
        create_all(world, &documents(feed_plugin::PLUGIN[0])).await;
        create_all(world, &templates()).await;
        create_all(world, &documents(feed_plugin::FEEDS[0])).await;
        if world.cluster.kind() == ClusterKind::Real {
            a_permission_is_missed(world).await;
        }
        create_all(world, &granted).await;
        let class = world.until_class("feeds", "Ready").await;
        assert_eq!(condition(&class, "Permitted").0, "True");
        let before = refused(world);
        let kind = Kind::new("feeds.examples.mainstay.dev/v1", "Feed", "feeds", Scope::Namespaced);
        feeds_live(&Plugin { world, kind }).await;
        assert_eq!(refused(world), before);
    })
    .await;
}
