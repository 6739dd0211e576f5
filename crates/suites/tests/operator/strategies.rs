//! How a difference is made good, as each child kind's strategy says.

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use mainstay::readiness::Readiness;
use mainstay::{ChildKind, Key, Kind, Rolling, Strategy};
use mainstay_testkit::{Cluster, OperatorTest, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::kinds::{
    as_spec_says, config_map, config_maps, define_shop, reconciled, shop, shop_kind, shops, step_through,
    told, version, writes,
};
use crate::operator::seam::Seam;

async fn with_strategy(cluster: &Cluster, strategy: Strategy) -> OperatorTest {
    let children = [ChildKind::of::<ConfigMap>().strategy(strategy)];
    let test = step_through(cluster, shops(children).sync(as_spec_says)).await;
    test.create(shop("paint", json!({"children": [config_map("one", json!({"a": "1"}))]}))).await;
    test.settle().await;
    test
}

async fn want(test: &OperatorTest, children: &[Value]) {
    test.patch(&shop_kind(), "paint", json!({"spec": {"children": children}})).await;
    test.settle().await;
}

async fn map(test: &OperatorTest, name: &str) -> Value {
    test.get(&config_maps(), name).await.expect("the child is there")
}

#[tokio::test]
async fn replaced_child_has_nothing_that_is_not_desired() {
    for_each_cluster(async |cluster| {
        let test = with_strategy(&cluster, Strategy::Replace).await;
        let before = map(&test, "one").await;
        let theirs = json!({"data": {"theirs": "2"}, "metadata": {"labels": {"team": "red"}}});
        test.patch(&config_maps(), "one", theirs).await;
        want(&test, &[config_map("one", json!({"a": "2"}))]).await;
        let after = map(&test, "one").await;
        assert_eq!(after["data"], json!({"a": "2"}));
        assert_eq!(after["metadata"].get("labels"), None);
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"], "it is the same object");
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn recreated_child_is_another_object() {
    for_each_cluster(async |cluster| {
        let test = with_strategy(&cluster, Strategy::Recreate).await;
        let before = map(&test, "one").await;
        want(&test, &[config_map("one", json!({"a": "2"}))]).await;
        let after = map(&test, "one").await;
        assert_eq!(after["data"], json!({"a": "2"}));
        assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn recreated_child_with_a_finalizer_is_waited_for() {
    for_each_cluster(async |cluster| {
        let test = with_strategy(&cluster, Strategy::Recreate).await;
        test.patch(&config_maps(), "one", json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
        test.settle().await;
        test.patch(
            &shop_kind(),
            "paint",
            json!({"spec": {"children": [config_map("one", json!({"a": "2"}))]}}),
        )
        .await;
        let steps = test.settle().await;
        assert_eq!(writes(&steps), 1, "it is deleted once");
        let waiting = steps.iter().filter_map(|step| step.sync.as_ref()).map(|sync| sync.plan.to_string());
        assert!(waiting.into_iter().any(|plan| plan.contains("is still being deleted")));
        assert_eq!(map(&test, "one").await["data"], json!({"a": "1"}));
        test.patch(&config_maps(), "one", json!({"metadata": {"finalizers": null}})).await;
        test.settle().await;
        assert_eq!(map(&test, "one").await["data"], json!({"a": "2"}));
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn on_delete_changes_nothing_until_somebody_deletes() {
    for_each_cluster(async |cluster| {
        let test = with_strategy(&cluster, Strategy::OnDelete).await;
        let before = version(&cluster, &config_maps(), "one").await;
        want(&test, &[config_map("one", json!({"a": "2"}))]).await;
        assert_eq!(version(&cluster, &config_maps(), "one").await, before);
        let key = Key::namespaced(cluster.namespace(), "paint");
        let plan = test.operator().plan(&shop_kind(), &key).await.unwrap().to_string();
        assert!(plan.contains("differs in data.a and is only changed when somebody deletes it"), "{plan}");
        test.delete(&config_maps(), "one").await;
        test.settle().await;
        assert_eq!(map(&test, "one").await["data"], json!({"a": "2"}));
        test.assert_settled().await;
    })
    .await;
}

fn job(image: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "paint"},
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": image, "resources": {"requests": {"cpu": "1"}}}],
        }}},
    })
}

async fn with_job(cluster: &Cluster, child: ChildKind) -> OperatorTest {
    let children = [child, ChildKind::of::<ConfigMap>()];
    let test = step_through(cluster, shops(children).sync(as_spec_says)).await;
    test.create(shop("paint", json!({"children": [job("a:1")]}))).await;
    test.settle().await;
    test
}

#[tokio::test]
async fn immutable_change_is_told_and_the_child_stays() {
    for_each_cluster(async |cluster| {
        let test = with_job(&cluster, ChildKind::of::<Job>()).await;
        let before = version(&cluster, &Kind::of::<Job>(), "paint").await;
        want(&test, &[job("a:2"), config_map("one", json!({}))]).await;
        assert_eq!(version(&cluster, &Kind::of::<Job>(), "paint").await, before);
        let (status, reason, message) = told(&cluster, "paint").await;
        assert_eq!((status.as_str(), reason.as_str()), ("False", "ChildRejected"));
        assert!(message.contains("spec.template") && message.contains("field is immutable"), "{message}");
        assert!(test.exists(&config_maps(), "one").await, "other children are looked after");
    })
    .await;
}

#[tokio::test]
async fn immutable_change_recreates_where_that_is_wanted() {
    for_each_cluster(async |cluster| {
        let test = with_job(&cluster, ChildKind::of::<Job>().recreate_when_immutable()).await;
        let before = test.get(&Kind::of::<Job>(), "paint").await.unwrap();
        want(&test, &[job("a:2")]).await;
        eventually("the new job", async || {
            test.settle().await;
            let job = test.get(&Kind::of::<Job>(), "paint").await?;
            (job["metadata"]["uid"] != before["metadata"]["uid"]).then_some(())
        })
        .await;
        let after = test.get(&Kind::of::<Job>(), "paint").await.unwrap();
        assert_eq!(after.pointer("/spec/template/spec/containers/0/image"), Some(&json!("a:2")));
        test.assert_settled().await;
        let shop = test.get(&shop_kind(), "paint").await.unwrap();
        assert_eq!(reconciled(&shop), None, "a refusal that was expected is no problem");
    })
    .await;
}

/// What the server stores otherwise than it was sent.
fn rewritten() -> Value {
    let container = json!({"name": "main", "image": "web:1", "command": [], "args": []});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    })
}

#[tokio::test]
async fn what_the_server_rewrites_is_no_difference_after_a_restart_whatever_the_strategy() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        for strategy in
            [Strategy::Replace, Strategy::Recreate, Strategy::Rolling(Rolling::at_most(1).recreate())]
        {
            let start = || {
                let children = [ChildKind::of::<Deployment>().strategy(strategy.clone())];
                seam.stepping(&cluster, "shops", shops(children).sync(as_spec_says))
            };
            let test = start();
            test.create(shop("paint", json!({"children": [rewritten()]}))).await;
            test.settle().await;
            drop(test);
            seam.take_writes();
            let test = start();
            test.assert_settled().await;
            assert_eq!(seam.take_writes(), Vec::<String>::new(), "{strategy:?}");
            // And yet what somebody changes is put right.
            test.patch(&Kind::of::<Deployment>(), "web", json!({"spec": {"replicas": 1}})).await;
            test.settle().await;
            let web = test.get(&Kind::of::<Deployment>(), "web").await.unwrap();
            assert_eq!(web["spec"]["replicas"], 0, "{strategy:?}");
            test.patch(&shop_kind(), "paint", json!({"spec": {"children": []}})).await;
            test.settle().await;
            test.delete(&shop_kind(), "paint").await;
            test.settle().await;
        }
    })
    .await;
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Ready when somebody has said so of the version that it has.
fn ready(object: &Value) -> Readiness {
    let of = object.pointer("/metadata/annotations/ready");
    if of.is_some() && of == object.pointer("/data/version") {
        Readiness::Ready
    } else {
        Readiness::NotReady("nobody said so".into())
    }
}

fn fleet(version: &str) -> Value {
    json!({"children": NAMES.map(|name| config_map(name, json!({"version": version})))})
}

async fn with_fleet(cluster: &Cluster, rolling: Rolling) -> OperatorTest {
    let children = [ChildKind::of::<ConfigMap>().strategy(Strategy::Rolling(rolling.ready_when(ready)))];
    let test = step_through(cluster, shops(children).sync(as_spec_says)).await;
    test.create(shop("paint", fleet("1"))).await;
    test.settle().await;
    for name in NAMES {
        be_ready(&test, name, "1").await;
    }
    test.assert_settled().await;
    test
}

async fn be_ready(test: &OperatorTest, name: &str, version: &str) {
    test.patch(&config_maps(), name, json!({"metadata": {"annotations": {"ready": version}}})).await;
    test.settle().await;
}

async fn versions(test: &OperatorTest) -> String {
    let mut versions = Vec::new();
    for name in NAMES {
        let data = test.get(&config_maps(), name).await.map(|map| map["data"]["version"].clone());
        versions.push(data.and_then(|version| version.as_str().map(str::to_owned)).unwrap_or("-".into()));
    }
    versions.join(" ")
}

#[tokio::test]
async fn rolling_change_has_at_most_so_many_unavailable_and_waits_for_them() {
    for_each_cluster(async |cluster| {
        let test = with_fleet(&cluster, Rolling::at_most(2)).await;
        test.patch(&shop_kind(), "paint", json!({"spec": fleet("2")})).await;
        test.settle().await;
        assert_eq!(versions(&test).await, "2 2 1 1");
        let key = Key::namespaced(cluster.namespace(), "paint");
        let plan = test.operator().plan(&shop_kind(), &key).await.unwrap().to_string();
        assert!(
            plan.contains("rolling out: 2 of ConfigMap.v1 to go, waiting for a (nobody said so), b"),
            "{plan}"
        );
        assert_eq!(writes(&test.settle().await), 0);
        be_ready(&test, "b", "2").await;
        assert_eq!(versions(&test).await, "2 2 2 1");
        be_ready(&test, "a", "2").await;
        assert_eq!(versions(&test).await, "2 2 2 2");
        be_ready(&test, "c", "2").await;
        be_ready(&test, "d", "2").await;
        test.assert_settled().await;
    })
    .await;
}

async fn revisions(cluster: &Cluster) -> Vec<(i64, Value)> {
    let path = Kind::of::<ControllerRevision>().collection_path(Some(cluster.namespace()));
    let (_, list) = cluster.get(&path).await;
    let items = list["items"].as_array().expect("a list");
    let mut found: Vec<_> = items
        .iter()
        .map(|item| {
            let version = item.pointer("/data/spec/children/0/data/version");
            (item["revision"].as_i64().unwrap_or_default(), version.cloned().unwrap_or_default())
        })
        .collect();
    found.sort_by_key(|(number, _)| *number);
    found
}

#[tokio::test]
async fn bad_revision_stops_and_is_rolled_back_by_reverting_the_parent() {
    for_each_cluster(async |cluster| {
        let test = with_fleet(&cluster, Rolling::at_most(1)).await;
        test.patch(&shop_kind(), "paint", json!({"spec": fleet("bad")})).await;
        test.settle().await;
        test.settle().await;
        assert_eq!(versions(&test).await, "bad 1 1 1", "what never becomes ready goes no further");
        assert_eq!(revisions(&cluster).await, [(1, json!("1")), (2, json!("bad"))]);
        test.patch(&shop_kind(), "paint", json!({"spec": fleet("1")})).await;
        test.settle().await;
        assert_eq!(versions(&test).await, "1 1 1 1");
        assert_eq!(
            revisions(&cluster).await,
            [(2, json!("bad")), (3, json!("1"))],
            "the old one is the newest again"
        );
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn no_more_revisions_are_kept_than_wanted() {
    for_each_cluster(async |cluster| {
        let children =
            [ChildKind::of::<ConfigMap>().strategy(Strategy::Rolling(Rolling::at_most(1).revisions(2)))];
        let test = step_through(&cluster, shops(children).sync(as_spec_says)).await;
        test.create(shop("paint", fleet("1"))).await;
        test.settle().await;
        for version in ["2", "3", "4"] {
            test.patch(&shop_kind(), "paint", json!({"spec": fleet(version)})).await;
            test.settle().await;
            assert_eq!(versions(&test).await, [version; 4].join(" "));
        }
        assert_eq!(revisions(&cluster).await, [(3, json!("3")), (4, json!("4"))]);
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn revisions_that_an_earlier_parent_left_behind_are_in_nobodys_way() {
    for_each_cluster(async |cluster| {
        let children = [ChildKind::of::<ConfigMap>().strategy(Strategy::Rolling(Rolling::at_most(1)))];
        let test = step_through(&cluster, shops(children).sync(as_spec_says)).await;
        for _ in 0..2 {
            test.create(shop("paint", json!({"children": []}))).await;
            test.settle().await;
            test.assert_settled().await;
            // As `kubectl delete --cascade=orphan` does it.
            let kind = Kind::of::<ControllerRevision>();
            let revisions: Api<ControllerRevision> = Api::namespaced(cluster.client(), cluster.namespace());
            for revision in revisions.list(&ListParams::default()).await.unwrap() {
                let name = revision.metadata.name.unwrap();
                test.patch(&kind, &name, json!({"metadata": {"ownerReferences": null}})).await;
            }
            test.delete(&shop_kind(), "paint").await;
            test.settle().await;
        }
        assert_eq!(revisions(&cluster).await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn rolling_change_can_recreate() {
    for_each_cluster(async |cluster| {
        let test = with_fleet(&cluster, Rolling::at_most(1).recreate()).await;
        let before = map(&test, "a").await;
        test.patch(&shop_kind(), "paint", json!({"spec": fleet("2")})).await;
        test.settle().await;
        assert_eq!(versions(&test).await, "2 1 1 1");
        assert_ne!(map(&test, "a").await["metadata"]["uid"], before["metadata"]["uid"]);
        for name in NAMES {
            be_ready(&test, name, "2").await;
        }
        assert_eq!(versions(&test).await, "2 2 2 2");
        test.assert_settled().await;
    })
    .await;
}
