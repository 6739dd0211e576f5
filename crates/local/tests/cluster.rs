//! A whole cluster in one process, on an API server of its own. Its pods are simulated.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::core::{NamespaceResourceScope, Resource};
use kube::{Client, ResourceExt as _};
use mainstay_apiserver::ApiServer;
use mainstay_local::cluster::{LocalCluster, Settings};
use mainstay_local::node::process::LogEndpoint;
use mainstay_local::node::rules::Rules;
use mainstay_testkit::eventually;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Starts all around the API server.
async fn start(client: &Client, directory: &Path) -> LocalCluster {
    let settings = Settings {
        directory: directory.to_owned(),
        rules: Rules::default(),
        rules_from: directory.to_owned(),
        program: None,
        kubeconfig: None,
        api: None,
        version: "v1.36.3".into(),
    };
    LocalCluster::start(client.clone(), &LogEndpoint::default(), settings).await.unwrap()
}

fn server() -> Client {
    Client::new(ApiServer::builder().build().unwrap(), "default")
}

fn of<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

#[tokio::test]
async fn files_of_volumes_that_nobody_knows_are_moved_aside_at_the_start_and_never_removed() {
    let (client, directory) = (server(), tempfile::tempdir().unwrap());
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    for (name, policy) in [("there", "Delete"), ("retained", "Retain")] {
        let volume = json!({"metadata": {"name": name}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/nowhere"},
            "persistentVolumeReclaimPolicy": policy}});
        volumes.create(&PostParams::default(), &of(volume)).await.unwrap();
    }
    let data = |name: &str| directory.path().join("volumes").join(name);
    for name in ["there", "retained", "gone"] {
        std::fs::create_dir_all(data(name)).unwrap();
        std::fs::write(data(name).join("file"), name).unwrap();
    }
    let set_aside = |name: &str| {
        let file = directory.path().join("quarantine").join(name).join("file");
        std::fs::read_to_string(file).is_ok_and(|text| text == name)
    };
    let cluster = start(&client, directory.path()).await;
    assert_eq!(cluster.quarantined(), [directory.path().join("quarantine/gone")]);
    assert!(set_aside("gone"));
    assert_eq!(["there", "retained", "gone"].map(|name| data(name).exists()), [true, true, false]);
    eventually("the policy is noted", async || {
        directory.path().join("retained/retained").exists().then_some(())
    })
    .await;
    cluster.stop().await;

    for name in ["there", "retained"] {
        volumes.delete(name, &DeleteParams::default()).await.unwrap();
        eventually("the volume is gone", async || {
            volumes.get_opt(name).await.unwrap().is_none().then_some(())
        })
        .await;
    }
    start(&client, directory.path()).await.stop().await;
    assert_eq!(["there", "retained"].map(|name| data(name).exists()), [false, true]);
    assert!(set_aside("there") && set_aside("gone"));
}

#[tokio::test]
async fn files_of_pods_that_nobody_knows_are_moved_aside_at_the_start() {
    let (client, directory) = (server(), tempfile::tempdir().unwrap());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let known =
        json!({"metadata": {"name": "known"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}});
    let known = pods.create(&PostParams::default(), &of(known)).await.unwrap().uid().unwrap();
    let of_pod = |name: &str, uid: &str| directory.path().join("pods").join(format!("default_{name}_{uid}"));
    for (number, (name, uid)) in
        [("known", known.as_str()), ("newer", "uid-2"), ("empty", "uid-3")].into_iter().enumerate()
    {
        let pod = of_pod(name, uid);
        std::fs::create_dir_all(pod.join("volumes/work")).unwrap();
        let record =
            json!({"namespace": "default", "name": name, "uid": uid, "address": format!("127.9.9.{number}")});
        std::fs::write(pod.join("pod.json"), record.to_string()).unwrap();
        if name != "empty" {
            std::fs::write(pod.join("volumes/work/data"), name).unwrap();
        }
    }
    let cluster = start(&client, directory.path()).await;
    let aside = directory.path().join("quarantine/default_newer_uid-2");
    assert_eq!(cluster.quarantined(), std::slice::from_ref(&aside));
    assert_eq!(std::fs::read_to_string(aside.join("volumes/work/data")).unwrap(), "newer");
    assert!(of_pod("known", &known).join("volumes/work/data").exists());
    assert!(!of_pod("newer", "uid-2").exists() && !of_pod("empty", "uid-3").exists());
    cluster.stop().await;
}

#[tokio::test]
async fn a_pod_has_a_claim_for_an_ephemeral_volume_and_takes_it_along() {
    let (client, directory) = (server(), tempfile::tempdir().unwrap());
    let cluster = start(&client, directory.path()).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client.clone());
    let template =
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let pod = json!({"metadata": {"name": "web"}, "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "web", "image": "nginx"}],
        "volumes": [{"name": "cache", "ephemeral": {"volumeClaimTemplate": template}}]}});
    pods.create(&PostParams::default(), &of(pod.clone())).await.unwrap();
    eventually("the pod runs", async || {
        let status = pods.get("web").await.unwrap().status?;
        (status.phase.as_deref() == Some("Running")).then_some(())
    })
    .await;
    let claim = claims.get("web-cache").await.unwrap();
    assert_eq!(claim.owner_references()[0].name, "web");
    pods.delete("web", &DeleteParams::default()).await.unwrap();
    eventually("the claim is gone", async || {
        claims.get_opt("web-cache").await.unwrap().is_none().then_some(())
    })
    .await;

    // A claim of that name that is somebody's is not taken.
    let theirs = json!({"metadata": {"name": "web-cache"}, "spec": template["spec"]});
    claims.create(&PostParams::default(), &of(theirs)).await.unwrap();
    pods.create(&PostParams::default(), &of(pod)).await.unwrap();
    eventually("the pod is told to wait", async || {
        let conditions = pods.get("web").await.unwrap().status?.conditions?;
        let why = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?.message.clone()?;
        why.contains("was not created for pod default/web (pod is not owner)").then_some(())
    })
    .await;
    assert!(claims.get("web-cache").await.unwrap().owner_references().is_empty());
    cluster.stop().await;
}

/// All objects of a kind by name, as their uids and those of their controllers.
async fn owned<K>(client: &Client) -> BTreeMap<String, (String, Option<String>)>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let all = Api::<K>::default_namespaced(client.clone()).list(&ListParams::default()).await.unwrap();
    let controller = |object: &K| {
        let owners = object.owner_references().iter();
        owners.filter(|owner| owner.controller == Some(true)).map(|owner| owner.uid.clone()).next()
    };
    all.iter().map(|object| (object.name_any(), (object.uid().unwrap(), controller(object)))).collect()
}

fn uids(owned: &BTreeMap<String, (String, Option<String>)>) -> Vec<&String> {
    owned.values().map(|(uid, _)| uid).collect()
}

async fn orphan<K>(client: &Client, name: &str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let api: Api<K> = Api::default_namespaced(client.clone());
    api.delete(name, &DeleteParams::orphan()).await.unwrap();
    eventually("it is gone", async || api.get_opt(name).await.unwrap().is_none().then_some(())).await;
}

#[tokio::test]
async fn a_deployment_takes_over_what_its_predecessor_left_as_orphans() {
    let (client, directory) = (server(), tempfile::tempdir().unwrap());
    let cluster = start(&client, directory.path()).await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let web = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]}}}});
    let create = async || {
        let created = deployments.create(&PostParams::default(), &of(web.clone())).await.unwrap();
        eventually("it is available", async || {
            let status = deployments.get("web").await.unwrap().status?;
            (status.available_replicas == Some(2) && status.updated_replicas == Some(2)).then_some(())
        })
        .await;
        created.uid().unwrap()
    };
    create().await;
    let (sets, pods) = (owned::<ReplicaSet>(&client).await, owned::<Pod>(&client).await);
    assert_eq!((sets.len(), pods.len()), (1, 2));

    // The set is nobody's, and then the next Deployment's; its pods never lose it.
    orphan::<Deployment>(&client, "web").await;
    assert!(owned::<ReplicaSet>(&client).await.values().all(|(_, controller)| controller.is_none()));
    let second = create().await;
    let taken = owned::<ReplicaSet>(&client).await;
    assert_eq!(uids(&taken), uids(&sets));
    assert!(taken.values().all(|(_, controller)| controller.as_ref() == Some(&second)));
    assert_eq!(owned::<Pod>(&client).await, pods);

    // Set and pods are nobody's: the next set is a new one, with the same pods.
    orphan::<Deployment>(&client, "web").await;
    let (set, _) = taken.first_key_value().unwrap();
    orphan::<ReplicaSet>(&client, set).await;
    assert!(owned::<Pod>(&client).await.values().all(|(_, controller)| controller.is_none()));
    create().await;
    let (sets, after) = (owned::<ReplicaSet>(&client).await, owned::<Pod>(&client).await);
    assert_eq!(sets.len(), 1);
    assert_ne!(uids(&sets), uids(&taken));
    assert_eq!(uids(&after), uids(&pods));
    let (set, _) = sets.values().next().unwrap();
    assert!(after.values().all(|(_, controller)| controller.as_ref() == Some(set)));
    cluster.stop().await;
}
