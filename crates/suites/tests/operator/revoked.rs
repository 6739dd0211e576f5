//! Permissions that are taken from an operator while it runs.

use mainstay::{Kind, Scope};
use mainstay_testkit::cluster::unique_name;
use mainstay_testkit::{Cluster, ClusterKind, RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::fixtures::{key, maps, maps_of, shops, until, until_gone};
use crate::operator::kinds::{config_maps, define_shop, shop, shop_kind, short_backoff};
use crate::operator::permissions::client_of;
use crate::operator::seam::Seam;

/// Gives the roles these rules, each its own by its place.
async fn set_rules(cluster: &Cluster, roles: &[Value], rules: impl Fn(&Value) -> Value) {
    for role in roles {
        let (kind, plural, scope) = match role["kind"].as_str() {
            Some("Role") => ("Role", "roles", Scope::Namespaced),
            _ => ("ClusterRole", "clusterroles", Scope::Cluster),
        };
        let kind = Kind::new("rbac.authorization.k8s.io/v1", kind, plural, scope);
        let name = role["metadata"]["name"].as_str().unwrap();
        cluster.patch(&kind, name, json!({"rules": rules(role)})).await;
    }
}

/// On the real cluster roles are emptied; the embedded one lets everybody do everything, so there requests are refused on their way.
async fn revoke(cluster: &Cluster, seam: &Seam, roles: &[Value]) {
    if cluster.kind() == ClusterKind::Real {
        set_rules(cluster, roles, |_| json!([])).await;
    } else {
        seam.refuse("/namespaces/", 403);
    }
    // The server takes a moment to know of it.
    let (client, path) = (seam.client(), config_maps().collection_path(Some(cluster.namespace())));
    eventually("the permissions to be gone", async || {
        let request = http::Request::get(&path).body(Vec::new()).unwrap();
        let refused = client.request::<Value>(request).await;
        matches!(refused, Err(kube::Error::Api(status)) if status.code == 403).then_some(())
    })
    .await;
}

async fn restore(cluster: &Cluster, seam: &Seam, roles: &[Value]) {
    seam.allow();
    if cluster.kind() == ClusterKind::Real {
        set_rules(cluster, roles, |role| role["rules"].clone()).await;
    }
}

#[tokio::test]
async fn an_operator_that_may_do_nothing_any_more_says_so_and_goes_on_when_it_may_again() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let name = unique_name("shops");
        let controller = || shops().backoff(short_backoff()).sync(maps_of);
        let build = |seam: &Seam| seam.builder(&name).controller(controller()).build().unwrap();
        let roles = build(&Seam::new(&cluster)).rbac().roles();
        let seam = Seam::over(&cluster, client_of(&cluster, &name, &roles).await);
        let running = RunningOperator::start(build(&seam));
        cluster.create(shop("paint", json!({"maps": {"a": {"key": "1"}, "b": {}}}))).await;
        until(&cluster, &config_maps(), "b", |_| true).await;

        revoke(&cluster, &seam, &roles).await;
        cluster.patch(&shop_kind(), "paint", maps(json!({"a": {"key": "2"}, "b": null}))).await;
        let error = || running.operator().explain(&shop_kind(), &key(&cluster, "paint"))?.error;
        // Neither a condition nor an event can be written: what is missing is in the log and in what the operator can be asked.
        let missing = [
            format!("the operator may not patch configmaps in namespace {}", cluster.namespace()),
            format!("the operator may not get shops.test.mainstay.dev in namespace {}", cluster.namespace()),
        ];
        eventually("what is missing to be said", async || {
            let report = running.operator().explain(&shop_kind(), &key(&cluster, "paint"))?;
            let last = report.history.last()?.to_string();
            (report.error.is_some() && missing.iter().all(|missing| last.contains(missing))).then_some(())
        })
        .await;
        // Watches that end cannot begin again. What they showed before is no reason to delete anything.
        seam.cut_watches();
        eventually("a watch to be refused", async || {
            let reports = running.operator().caches();
            reports.iter().any(|report| report.state.name() == "Forbidden").then_some(())
        })
        .await;
        let found = cluster.find(&config_maps(), "a").await.expect("nothing is deleted");
        assert_eq!(found["data"]["key"], "1");
        assert!(cluster.find(&config_maps(), "b").await.is_some(), "nothing is deleted");

        restore(&cluster, &seam, &roles).await;
        until(&cluster, &config_maps(), "a", |map| map["data"]["key"] == "2").await;
        until_gone(&cluster, &config_maps(), "b").await;
        eventually("the error to be over", async || error().is_none().then_some(())).await;
        running.stop().await;
    })
    .await;
}
