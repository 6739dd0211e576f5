//! Webhooks need exactly the permissions that they say they need. On the real cluster only: the embedded one lets everybody
//! do everything.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use mainstay::webhook::{Hook, Pending, Serving, WebhookPermissions, WebhookState, Webhooks};
use mainstay_testkit::{Cluster, ClusterKind, for_each_cluster};
use serde_json::{Value, json};

use crate::operator_webhooks::{Running, clear, here, secret};

async fn create(cluster: &Cluster, kind: &str, plural: &str, namespace: Option<&str>, object: Value) {
    let gvk = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, &resource),
        None => Api::all_with(cluster.client(), &resource),
    };
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Lets a user do what is needed, and nothing else.
async fn permit(cluster: &Cluster, user: &str, permissions: &WebhookPermissions) {
    let version = "rbac.authorization.k8s.io/v1";
    let subjects = json!([{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]);
    let binding = |kind: &str, role: &str| {
        json!({
            "apiVersion": version, "kind": kind, "metadata": {"name": user}, "subjects": subjects,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": user},
        })
    };
    let role = json!({
        "apiVersion": version, "kind": "ClusterRole", "metadata": {"name": user}, "rules": permissions.cluster,
    });
    create(cluster, "ClusterRole", "clusterroles", None, role).await;
    let bound = binding("ClusterRoleBinding", "ClusterRole");
    create(cluster, "ClusterRoleBinding", "clusterrolebindings", None, bound).await;
    let namespace = Some(cluster.namespace());
    let rules = permissions.namespaced.iter().map(|(of, rule)| {
        assert_eq!(of.as_deref(), namespace);
        rule
    });
    let rules: Vec<_> = rules.collect();
    let role = json!({"apiVersion": version, "kind": "Role", "metadata": {"name": user}, "rules": rules});
    create(cluster, "Role", "roles", namespace, role).await;
    create(cluster, "RoleBinding", "rolebindings", namespace, binding("RoleBinding", "Role")).await;
}

async fn client_as(cluster: &Cluster, user: &str) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig().await).unwrap();
    let mut config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.auth_info.impersonate = Some(user.to_owned());
    kube::Client::try_from(config).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_permissions_that_are_asked_for_suffice() {
    for_each_cluster(async |cluster| {
        if cluster.kind() == ClusterKind::Embedded {
            return;
        }
        let user = cluster.namespace();
        let hook = || here(&cluster, Hook::validate::<ConfigMap>(|_| Ok(())));
        let webhooks = || Webhooks::new(user).with(hook());
        let serving = || Serving::on_loopback().certificate_secret(secret(&cluster));
        let client = client_as(&cluster, user).await;

        let mut running = Running::with(client.clone(), webhooks(), serving()).await;
        let forbidden = |state: &WebhookState| {
            matches!(state.pending.as_slice(), [Pending::Certificate { problem }] if problem.contains("cannot get resource \"secrets\""))
        };
        running.state.wait_for(forbidden).await.unwrap();
        running.end().await;

        permit(&cluster, user, &webhooks().permissions(&serving())).await;
        let mut running = Running::with(client.clone(), webhooks(), serving()).await;
        running.ready().await;
        running.end().await;
        // Another version with other hooks changes what is there.
        let next = Webhooks::new(user).with(here(&cluster, Hook::mutate::<ConfigMap>(|_, _| Ok(()))));
        let mut running = Running::with(client, next, serving()).await;
        running.ready().await;
        running.end().await;
        clear(&cluster).await;
        for (kind, plural) in [("ClusterRole", "clusterroles"), ("ClusterRoleBinding", "clusterrolebindings")] {
            let gvk = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
            let api: Api<DynamicObject> = Api::all_with(cluster.client(), &resource);
            api.delete(user, &DeleteParams::default()).await.unwrap();
        }
    })
    .await;
}
