//! The permissions that an operator prints are those that it needs: all of them, and no more.
//!
//! The real cluster refuses whatever is not granted. The embedded one lets everybody do everything; there, as on the
//! real one, every request is held against the printed roles.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::api::DeleteParams;
use mainstay::queue::Backoff;
use mainstay::replicas::Replicas;
use mainstay::{
    ChildKind, Controller, Effect, Error, Finalized, Key, Kind, Operator, Rolling, Scope, Strategy,
    SyncRequest, SyncResponse,
};
use mainstay_testkit::cluster::unique_name;
use mainstay_testkit::{Cluster, ClusterKind, RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::fixtures::until_gone;
use crate::operator::kinds::{config_map, config_maps, define_shop, secrets, shop, shop_kind};
use crate::operator::own_kinds::{object, own_kind, undefine};
use crate::operator::permissions::{Permission, check_allowed, client_of, granted, needed, remove_roles};
use crate::operator::seam::Seam;

/// What an operator seldom needs, so that no test sees it.
fn is_seldom_needed((_, resource, verb): &Permission) -> bool {
    match verb.as_str() {
        // Asked for by an admission plugin that few clusters have turned on.
        "update" => resource.ends_with("/finalizers"),
        // Lists are streamed by the watch, where the server can; where it cannot, they are read in pages.
        "list" => resource != "leases",
        _ => false,
    }
}

/// Calls of the handler, in which others meddle with what it decides about.
#[derive(Clone)]
struct Meddler {
    cluster: Cluster,
    calls: Arc<AtomicUsize>,
}

impl Meddler {
    /// Whoever decided now finds the world changed.
    async fn meddle(&self, name: &str) {
        let touched = json!({"metadata": {"annotations": {"touched": "yes"}}});
        self.cluster.patch(&shop_kind(), name, touched.clone()).await;
        if self.cluster.find(&secrets(), name).await.is_some() {
            self.cluster.patch(&secrets(), name, touched).await;
        }
        let revisions = Kind::of::<ControllerRevision>();
        let (_, list) = self.cluster.get(&revisions.collection_path(Some(self.cluster.namespace()))).await;
        for revision in list["items"].as_array().into_iter().flatten() {
            self.cluster.delete(&revisions, revision["metadata"]["name"].as_str().unwrap()).await;
        }
    }

    async fn sync(self, request: SyncRequest) -> Result<SyncResponse, Error> {
        let spec = &request.parent_json()["spec"];
        if let Some(why) = spec["fail"].as_str() {
            return Err(Error::new(why.to_owned()));
        }
        request.get::<ServiceAccount>("default")?;
        // At the first call there is no finalizer yet.
        let first = self.calls.fetch_add(1, Ordering::SeqCst) == 0;
        let changed = spec["colour"] == "green" && self.calls.fetch_max(1000, Ordering::SeqCst) < 1000;
        if first || changed {
            self.meddle(request.name()).await;
        }
        let mut response = SyncResponse::from_status(json!({"colour": spec["colour"]}))?;
        let extra = format!("{}-extra", request.name());
        let names = [Some(request.name()), (spec["extra"] == true).then_some(extra.as_str())];
        for name in names.into_iter().flatten() {
            response.add_child(config_map(name, json!({"colour": spec["colour"]})))?;
            response.add_child(json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
                "stringData": {"colour": spec["colour"]},
            }))?;
        }
        Ok(response)
    }
}

fn controller(cluster: &Cluster) -> Controller {
    let meddler = Meddler { cluster: cluster.clone(), calls: Arc::default() };
    let pause = Duration::from_millis(20);
    Controller::for_kind(shop_kind())
        .child(ChildKind::of::<ConfigMap>().strategy(Strategy::Rolling(Rolling::at_most(1).revisions(1))))
        .child(ChildKind::of::<Secret>().strategy(Strategy::Replace))
        .reads::<ServiceAccount>()
        .backoff(Backoff { initial: pause, max: pause, ..Backoff::default() })
        .finalize(|_: &SyncRequest| Ok(Finalized::Done))
        .sync_async(move |request| meddler.clone().sync(request))
}

async fn coloured(cluster: &Cluster, name: &str, colour: &str) {
    eventually(&format!("{name} to be {colour}"), async || {
        let map = cluster.find(&config_maps(), name).await?;
        let shop = cluster.find(&shop_kind(), "paint").await?;
        let secret = cluster.find(&secrets(), name).await?;
        let told = shop["status"]["colour"] == colour && secret["data"].get("colour").is_some();
        (map["data"]["colour"] == colour && told).then_some(())
    })
    .await;
}

/// Everything that a shop and its operator can go through.
async fn live_through(cluster: &Cluster, operator: &Operator, seam: &Seam) {
    let spec = async |spec: Value| cluster.patch(&shop_kind(), "paint", json!({"spec": spec})).await;
    coloured(cluster, "paint", "red").await;
    spec(json!({"colour": "blue", "extra": true})).await;
    coloured(cluster, "paint", "blue").await;
    coloured(cluster, "paint-extra", "blue").await;
    spec(json!({"colour": "green", "extra": false})).await;
    coloured(cluster, "paint", "green").await;
    eventually("what is no longer desired to go", async || {
        let map = cluster.find(&config_maps(), "paint-extra").await;
        (map.is_none() && cluster.find(&secrets(), "paint-extra").await.is_none()).then_some(())
    })
    .await;
    cluster.patch(&config_maps(), "paint", json!({"data": {"colour": "mud"}})).await;
    coloured(cluster, "paint", "green").await;
    spec(json!({"fail": "no paint left"})).await;
    eventually("the event to be counted", async || {
        (!seam.requests("PATCH /events/").is_empty()).then_some(())
    })
    .await;
    spec(json!({"fail": null})).await;
    let key = Key::namespaced(cluster.namespace(), "paint");
    eventually("the failure to be over", async || {
        operator.explain(&shop_kind(), &key)?.error.is_none().then_some(())
    })
    .await;
    cluster.delete(&shop_kind(), "paint").await;
    eventually("the shop to be gone", async || {
        cluster.find(&shop_kind(), "paint").await.is_none().then_some(())
    })
    .await;
}

/// The operator of these tests: two shards, so that there are members' leases too.
fn sharded(cluster: &Cluster, name: &str, client: kube::Client) -> Operator {
    Operator::builder(name, client)
        .namespace(cluster.namespace())
        .replicas(Replicas::sharded(cluster.namespace(), 2).retry_interval(Duration::from_millis(200)))
        .controller(controller(cluster))
        .build()
        .unwrap()
}

/// A shop, and a lease of the operator's that somebody made without its labels.
async fn set_scene(cluster: &Cluster, name: &str) {
    let lease = format!("{name}-0");
    cluster
        .create(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": lease}, "spec": {},
        }))
        .await;
    cluster.create(shop("paint", json!({"colour": "red"}))).await;
}

/// The roles without one permission.
fn without(roles: &[Value], (group, resource, verb): &Permission) -> Vec<Value> {
    let mut roles = roles.to_vec();
    for role in &mut roles {
        let mut rules = Vec::new();
        for rule in role["rules"].as_array().unwrap() {
            for named in rule["resources"].as_array().unwrap() {
                let mut one =
                    json!({"apiGroups": rule["apiGroups"], "resources": [named], "verbs": rule["verbs"]});
                if rule["apiGroups"][0] == *group && named == resource {
                    one["verbs"].as_array_mut().unwrap().retain(|known| known != verb);
                }
                if one["verbs"] != json!([]) {
                    rules.push(one);
                }
            }
        }
        role["rules"] = json!(rules);
    }
    roles
}

/// Lives through everything without one permission, until something is refused.
async fn miss(cluster: &Cluster, permission: &Permission) {
    let cluster = cluster.again().await;
    let name = unique_name("shops");
    let roles = without(&sharded(&cluster, &name, cluster.client()).rbac().roles(), permission);
    let seam = Seam::over(&cluster, client_of(&cluster, &name, &roles).await);
    set_scene(&cluster, &name).await;
    let running = RunningOperator::start(sharded(&cluster, &name, seam.client()));
    let operator = running.operator().clone();
    let life = async {
        live_through(&cluster, &operator, &seam).await;
        running.stop().await;
    };
    let is_refused = || seam.sent().iter().any(|sent| matches!(sent.answer, Some((_, 403))));
    let what = format!("a refusal without {permission:?}");
    let refused = eventually(&what, async || is_refused().then_some(()));
    tokio::select! {
        () = refused => {}
        () = life => assert!(is_refused(), "nothing is refused without {permission:?}"),
    }
}

/// On the real cluster only: the embedded one refuses nobody.
#[tokio::test]
async fn every_permission_is_missed_when_it_is_taken_away() {
    for_each_cluster(async |cluster| {
        if cluster.kind() == ClusterKind::Embedded {
            return;
        }
        define_shop(&cluster).await;
        let granted = granted(&sharded(&cluster, "shops", cluster.client()).rbac().roles());
        let needed = granted.iter().filter(|permission| !is_seldom_needed(permission));
        futures::stream::iter(needed)
            .for_each_concurrent(6, async |permission| miss(&cluster, permission).await)
            .await;
    })
    .await;
}

#[tokio::test]
async fn printed_roles_suffice_for_everything_and_hold_nothing_else() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let name = unique_name("shops");
        let build = |client| sharded(&cluster, &name, client);
        let roles = build(cluster.client()).rbac().roles();
        let granted = granted(&roles);
        let seam = Seam::over(&cluster, client_of(&cluster, &name, &roles).await);
        set_scene(&cluster, &name).await;
        let running = RunningOperator::start(build(seam.client()));
        live_through(&cluster, running.operator(), &seam).await;
        for report in running.operator().caches() {
            assert_eq!(report.state, mainstay::cache::KindState::Live, "{}", report.kind);
        }
        running.stop().await;

        check_allowed(&seam, &granted);
        let used: BTreeSet<_> = seam.sent().iter().flat_map(needed).collect();
        let idle: Vec<_> =
            granted.difference(&used).filter(|permission| !is_seldom_needed(permission)).collect();
        assert!(idle.is_empty(), "never needed: {idle:?}");
        remove_roles(&cluster, &roles).await;
    })
    .await;
}

#[tokio::test]
async fn printed_roles_suffice_for_kinds_in_no_namespace() {
    for_each_cluster(async |cluster| {
        let (stalls, definition) = own_kind("Stall", Scope::Cluster);
        cluster.define(definition).await;
        for only_here in [true, false] {
            let name = unique_name("stalls");
            let build = |client| {
                let namespace = cluster.namespace().to_owned();
                let sync = move |request: &SyncRequest| {
                    if request.parent_json()["spec"]["fail"] == true {
                        return Err(Error::terminal("no paint left"));
                    }
                    let mut child = config_map(request.name(), json!({"a": "1"}));
                    child["metadata"]["namespace"] = json!(namespace);
                    SyncResponse::from_status(json!({"done": true}))?.with_child(child)
                };
                let controller = Controller::for_kind(stalls.clone()).owns::<ConfigMap>().sync(sync);
                let operator = Operator::builder(&name, client).controller(controller);
                let operator = if only_here { operator.namespace(cluster.namespace()) } else { operator };
                operator.build().unwrap()
            };
            let roles = build(cluster.client()).rbac().roles();
            // Whatever else it sees in all namespaces is not its own.
            let client = client_of(&cluster.unrestricted().await, &name, &roles).await;
            let seam = Seam::over(&cluster, client);
            let running = RunningOperator::start(build(seam.client()));
            let parent = cluster.create(object(&stalls, &name, json!({}))).await;
            eventually("the child", async || cluster.find(&config_maps(), &name).await).await;
            eventually("the status", async || {
                (cluster.find(&stalls, &name).await?["status"]["done"] == true).then_some(())
            })
            .await;
            cluster.patch(&stalls, &name, json!({"spec": {"fail": true}})).await;
            let uid = parent["metadata"]["uid"].as_str().unwrap();
            eventually("the event", async || {
                let of =
                    format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid%3D{uid}");
                cluster.get(&of).await.1["items"].as_array()?.first().map(|_| ())
            })
            .await;
            running.stop().await;
            check_allowed(&seam, &granted(&roles));
            remove_roles(&cluster, &roles).await;
            cluster.delete(&stalls, &name).await;
        }
        undefine(&cluster, &stalls).await;
    })
    .await;
}

#[tokio::test]
async fn forbidden_write_is_named_in_the_condition_and_the_rest_is_done() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        seam.refuse("PATCH /secrets/", 403);
        cluster.create(shop("paint", json!({"colour": "red"}))).await;
        let sync = |request: &SyncRequest| {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name()}, "type": "Opaque"});
            SyncResponse::new().with_child(secret)?.with_child(config_map(request.name(), json!({"a": "1"})))
        };
        let controller = Controller::for_kind(shop_kind()).owns::<Secret>().owns::<ConfigMap>().sync(sync);
        let running = seam.running("shops", controller);
        let condition = eventually("a condition", async || {
            let shop = cluster.find(&shop_kind(), "paint").await?;
            let mut all = shop["status"]["conditions"].as_array()?.clone().into_iter();
            all.find(|condition| condition["type"] == "Reconciled" && condition["status"] == "False")
        })
        .await;
        let message = condition["message"].as_str().unwrap();
        assert_eq!(condition["reason"], "Forbidden", "{message}");
        for word in ["create", "secrets", cluster.namespace()] {
            assert!(message.contains(word), "{word} is not in: {message}");
        }
        eventually("the other child", async || cluster.find(&config_maps(), "paint").await).await;
        seam.allow();
        eventually("the child, once it is allowed", async || cluster.find(&secrets(), "paint").await).await;
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn printed_roles_suffice_for_an_effect_that_deletes_what_is_not_owned() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let name = unique_name("shops");
        let build = |client: kube::Client| {
            let deletes = client.clone();
            let sync = move |request: &SyncRequest| {
                let namespace = request.namespace().unwrap_or_default();
                let maps: kube::Api<ConfigMap> = kube::Api::namespaced(deletes.clone(), namespace);
                let effect = Effect::new("take the sign down", move || {
                    let maps = maps.clone();
                    async move {
                        match maps.delete("sign", &DeleteParams::default()).await {
                            Err(kube::Error::Api(status)) if !status.is_not_found() => {
                                Err(Error::new(status.message))
                            }
                            _ => Ok(Vec::new()),
                        }
                    }
                });
                Ok(SyncResponse::new().with_effect(effect))
            };
            let controller = Controller::for_kind(shop_kind()).deletes::<ConfigMap>().sync(sync);
            let operator = Operator::builder(&name, client).namespace(cluster.namespace());
            operator.controller(controller).build().unwrap()
        };
        let roles = build(cluster.client()).rbac().roles();
        let granted = granted(&roles);
        let of_maps: Vec<_> = granted.iter().filter(|(_, resource, _)| resource == "configmaps").collect();
        assert!(matches!(&of_maps[..], [(_, _, verb)] if verb == "delete"), "{of_maps:?}");
        cluster.create(config_map("sign", json!({}))).await;
        let seam = Seam::over(&cluster, client_of(&cluster, &name, &roles).await);
        let running = RunningOperator::start(build(seam.client()));
        cluster.create(shop("paint", json!({}))).await;
        until_gone(&cluster, &config_maps(), "sign").await;
        running.stop().await;
        check_allowed(&seam, &granted);
        remove_roles(&cluster, &roles).await;
    })
    .await;
}
