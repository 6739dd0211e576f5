//! The permissions that an operator prints are those that it needs: all of them, and no more.
//!
//! The real cluster refuses whatever is not granted. The embedded one lets everybody do everything; there, as on the
//! real one, every request is held against the printed roles.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::config::{KubeConfigOptions, Kubeconfig};
use mainstay::queue::Backoff;
use mainstay::replicas::Replicas;
use mainstay::{
    ChildKind, Controller, Error, Finalized, Key, Kind, Operator, Rolling, Scope, Strategy, SyncRequest,
    SyncResponse,
};
use mainstay_testkit::cluster::unique_name;
use mainstay_testkit::{Cluster, ClusterKind, RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::kinds::{config_map, config_maps, define_shop, secrets, shop, shop_kind};
use crate::own_kinds::{define_own, kind_of_ones_own, object, remove_own};
use crate::wire::{Fate, Sent, Wire};

/// A verb on a resource of a group.
type Permission = (String, String, String);

fn granted(roles: &[Value]) -> BTreeSet<Permission> {
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut granted = BTreeSet::new();
    for rule in roles.iter().flat_map(|role| role["rules"].as_array().unwrap()) {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let verbs = texts(&rule["verbs"]).into_iter();
                granted.extend(verbs.map(|verb| (group.clone(), resource.clone(), verb)));
            }
        }
    }
    granted
}

/// The permissions that a request takes, as the server sees it.
fn needed(sent: &Sent) -> Vec<Permission> {
    let (path, query) = sent.path.split_once('?').unwrap_or((&sent.path, ""));
    let mut parts: Vec<_> = path.trim_matches('/').split('/').collect();
    let group = match parts.first() {
        Some(&"api") => "",
        Some(&"apis") if parts.len() > 1 => parts.remove(1),
        _ => return Vec::new(),
    };
    let mut rest = parts.get(2..).unwrap_or_default();
    if rest.first() == Some(&"namespaces") && rest.len() > 2 {
        rest = &rest[2..];
    }
    let (resource, name, part) = match rest {
        [] => return Vec::new(),
        [resource] => ((*resource).to_owned(), None, ""),
        [resource, name] => ((*resource).to_owned(), Some(*name), ""),
        [resource, name, part, ..] => (format!("{resource}/{part}"), Some(*name), *part),
    };
    let verb = match (&sent.method, name) {
        (&Method::GET, _) if query.contains("watch=true") => "watch",
        (&Method::GET, None) => "list",
        (&Method::GET, Some(_)) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, _) => "delete",
        other => panic!("{other:?}"),
    };
    let permission = |verb: &str| (group.to_owned(), resource.clone(), verb.to_owned());
    // An apply that creates is asked for both.
    let created = part.is_empty() && verb == "patch" && matches!(sent.answer, Some((_, 201)));
    [permission(verb)].into_iter().chain(created.then(|| permission("create"))).collect()
}

/// A client that may do what the roles say and nothing else. On the embedded cluster, one that may do everything.
async fn client_of(cluster: &Cluster, name: &str, roles: &[Value]) -> kube::Client {
    if cluster.kind() == ClusterKind::Embedded {
        return cluster.client();
    }
    cluster.create(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})).await;
    for role in roles {
        cluster.create(role.clone()).await;
        cluster.create(binding(cluster, name, role)).await;
    }
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/{name}/token", cluster.namespace());
    let answer = post(&cluster.client(), &path, &json!({"spec": {}})).await.expect("a token");
    let mut kubeconfig = Kubeconfig::read_from(cluster.kubeconfig().await).unwrap();
    for user in &mut kubeconfig.auth_infos {
        let token = json!({"token": answer["status"]["token"]});
        user.auth_info = Some(serde_json::from_value(token).unwrap());
    }
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = kube::Client::try_from(config.unwrap()).unwrap();
    // The server takes a moment to know of new roles.
    for (group, resource, verb) in granted(roles).into_iter().filter(|(_, _, verb)| verb == "list") {
        let wanted =
            json!({"namespace": cluster.namespace(), "verb": verb, "group": group, "resource": resource});
        let review = json!({"spec": {"resourceAttributes": wanted}});
        eventually(&format!("{name} to be allowed to list {resource}"), async || {
            let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
            let answer = post(&client, path, &review).await?;
            (answer["status"]["allowed"] == true).then_some(())
        })
        .await;
    }
    client
}

fn binding(cluster: &Cluster, account: &str, role: &Value) -> Value {
    let kind = format!("{}Binding", role["kind"].as_str().unwrap());
    json!({
        "apiVersion": role["apiVersion"], "kind": kind, "metadata": role["metadata"],
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": cluster.namespace()}],
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": role["metadata"]["name"],
        },
    })
}

async fn post(client: &kube::Client, path: &str, body: &Value) -> Option<Value> {
    let request = http::Request::post(path).header("content-type", "application/json");
    client.request(request.body(body.to_string().into_bytes()).unwrap()).await.ok()
}

/// Removes the roles that are in no namespace.
async fn remove_roles(cluster: &Cluster, roles: &[Value]) {
    for role in roles.iter().filter(|role| role["kind"] == "ClusterRole") {
        for (kind, plural) in [("ClusterRole", "clusterroles"), ("ClusterRoleBinding", "clusterrolebindings")]
        {
            let kind = Kind::new("rbac.authorization.k8s.io/v1", kind, plural, Scope::Cluster);
            if cluster.kind() == ClusterKind::Real {
                cluster.delete(&kind, role["metadata"]["name"].as_str().unwrap()).await;
            }
        }
    }
}

/// Nothing was refused, and nothing was asked for that the roles do not name.
fn check_allowed(wire: &Wire, granted: &BTreeSet<Permission>) {
    for sent in wire.sent() {
        assert_ne!(sent.answer.map(|(_, code)| code), Some(403), "refused: {sent:?}");
        for permission in needed(&sent) {
            assert!(granted.contains(&permission), "{permission:?} is not in the roles: {sent:?}");
        }
    }
}

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
async fn live_through(cluster: &Cluster, operator: &Operator, wire: &Wire) {
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
        let counted = |sent: &Sent| sent.method == Method::PATCH && sent.path.contains("/events/");
        wire.sent().iter().any(counted).then_some(())
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

#[tokio::test]
async fn printed_roles_suffice_for_everything_and_hold_nothing_else() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let name = unique_name("shops");
        let build = |client| {
            Operator::builder(&name, client)
                .namespace(cluster.namespace())
                .replicas(
                    Replicas::sharded(cluster.namespace(), 2).retry_interval(Duration::from_millis(200)),
                )
                .controller(controller(&cluster))
                .build()
                .unwrap()
        };
        let roles = build(cluster.client()).rbac().roles();
        let granted = granted(&roles);
        let wire = Wire::new(client_of(&cluster, &name, &roles).await);
        // Somebody made one of its leases, without its labels.
        cluster
            .create(json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": format!("{name}-0")}, "spec": {},
            }))
            .await;
        cluster.create(shop("paint", json!({"colour": "red"}))).await;
        let running = RunningOperator::start(build(wire.client()));
        live_through(&cluster, running.operator(), &wire).await;
        for report in running.operator().caches() {
            assert_eq!(report.state, mainstay::cache::KindState::Live, "{}", report.kind);
        }
        running.stop().await;

        check_allowed(&wire, &granted);
        let used: BTreeSet<_> = wire.sent().iter().flat_map(needed).collect();
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
        let stalls = kind_of_ones_own(Scope::Cluster);
        define_own(&cluster, &stalls).await;
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
            let wire = Wire::new(client_of(&cluster, &name, &roles).await);
            let running = RunningOperator::start(build(wire.client()));
            let parent = cluster.create(object(&stalls, &name, &json!({}))).await;
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
            check_allowed(&wire, &granted(&roles));
            remove_roles(&cluster, &roles).await;
            cluster.delete(&stalls, &name).await;
        }
        remove_own(&cluster, &stalls).await;
    })
    .await;
}

#[tokio::test]
async fn forbidden_write_is_named_in_the_condition_and_the_rest_is_done() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let wire = Wire::new(cluster.client());
        wire.decide(|sent| {
            let secret = sent.is_write() && sent.path.contains("/secrets/");
            if secret { Fate::Refused } else { Fate::Answered }
        });
        cluster.create(shop("paint", json!({"colour": "red"}))).await;
        let sync = |request: &SyncRequest| {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name()}, "type": "Opaque"});
            SyncResponse::new().with_child(secret)?.with_child(config_map(request.name(), json!({"a": "1"})))
        };
        let controller = Controller::for_kind(shop_kind()).owns::<Secret>().owns::<ConfigMap>().sync(sync);
        let operator = Operator::builder("shops", wire.client()).namespace(cluster.namespace());
        let running = RunningOperator::start(operator.controller(controller).build().unwrap());
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
        wire.decide(|_| Fate::Answered);
        eventually("the child, once it is allowed", async || cluster.find(&secrets(), "paint").await).await;
        running.stop().await;
    })
    .await;
}
