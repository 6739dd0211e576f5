//! A small operator as kube-rs' users write one: a custom kind, a controller with owned children, a finalizer, events, a lease.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event as ClusterEvent;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, CustomResource, CustomResourceExt as _, Resource as _, ResourceExt as _};
use kube_runtime::controller::{Action, Controller};
use kube_runtime::events::{Event, EventType, Recorder, Reporter};
use kube_runtime::finalizer::{Event as Finalizing, finalizer};
use kube_runtime::wait::{await_condition, conditions};
use kube_runtime::watcher;
use mainstay_testkit::{Cluster, eventually, for_each_cluster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::kube_rs::{config_map, refusal};

/// Wants so many config maps.
#[derive(CustomResource, Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[kube(group = "testing.mainstay.dev", version = "v1", kind = "Shelf", plural = "shelves", namespaced)]
#[kube(
    status = "ShelfStatus",
    shortname = "sh",
    scale(spec_replicas_path = ".spec.books", status_replicas_path = ".status.books")
)]
#[kube(printcolumn(name = "Books", type_ = "integer", json_path = ".spec.books"))]
struct ShelfSpec {
    #[schemars(range(min = 0, max = 10))]
    books: u32,
    #[serde(default = "unnamed")]
    title: String,
}

fn unnamed() -> String {
    "untitled".into()
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
struct ShelfStatus {
    books: u32,
}

/// Defines the kind and waits until it is served, as kube tells. All tests define the same one.
async fn define(cluster: &Cluster) {
    cluster.define(json!(Shelf::crd())).await;
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let established = await_condition(api, "shelves.testing.mainstay.dev", conditions::is_crd_established());
    tokio::time::timeout(Duration::from_secs(30), established).await.expect("in time").unwrap();
}

/// What it does to one shelf: as many children as it wants, counted in its status.
async fn reconcile(
    shelf: Arc<Shelf>,
    client: Arc<Client>,
) -> Result<Action, kube_runtime::finalizer::Error<kube::Error>> {
    let namespace = shelf.namespace().expect("a namespaced kind");
    let shelves: Api<Shelf> = Api::namespaced((*client).clone(), &namespace);
    let books: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    finalizer(&shelves, "testing.mainstay.dev/books", shelf, async |event| {
        let shelf = match event {
            Finalizing::Apply(shelf) => shelf,
            Finalizing::Cleanup(shelf) => {
                books
                    .create(
                        &PostParams::default(),
                        &config_map(&format!("{}-cleaned", shelf.name_any()), "yes"),
                    )
                    .await?;
                return Ok(Action::await_change());
            }
        };
        for number in 0..shelf.spec.books {
            let mut book = config_map(&format!("{}-{number}", shelf.name_any()), &shelf.spec.title);
            book.metadata.owner_references =
                Some(vec![shelf.controller_owner_ref(&()).expect("stored, so it has a uid")]);
            let name = book.name_any();
            books.patch(&name, &PatchParams::apply("shelf-operator").force(), &Patch::Apply(&book)).await?;
        }
        if shelf.status.as_ref().map(|status| status.books) != Some(shelf.spec.books) {
            let status = json!({"status": {"books": shelf.spec.books}});
            shelves.patch_status(&shelf.name_any(), &PatchParams::default(), &Patch::Merge(&status)).await?;
        }
        Ok(Action::await_change())
    })
    .await
}

fn start_operator(cluster: &Cluster) -> tokio::task::JoinHandle<()> {
    let shelves: Api<Shelf> = Api::namespaced(cluster.client(), cluster.namespace());
    let books: Api<ConfigMap> = Api::namespaced(cluster.client(), cluster.namespace());
    let controller =
        Controller::new(shelves, watcher::Config::default()).owns(books, watcher::Config::default());
    let again = |_: Arc<Shelf>, _: &_, _: Arc<Client>| Action::requeue(Duration::from_millis(200));
    tokio::spawn(controller.run(reconcile, again, Arc::new(cluster.client())).for_each(async |_| ()))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_converges_repairs_and_cleans_up() {
    for_each_cluster(async |cluster| {
        define(&cluster).await;
        let operator = start_operator(&cluster);
        let shelves: Api<Shelf> = Api::namespaced(cluster.client(), cluster.namespace());
        let books: Api<ConfigMap> = Api::namespaced(cluster.client(), cluster.namespace());
        let spec = ShelfSpec { books: 3, title: "first".into() };
        shelves.create(&PostParams::default(), &Shelf::new("s", spec)).await.unwrap();
        let holds = async |number: u32| {
            let status = shelves.get("s").await.unwrap().status;
            (status == Some(ShelfStatus { books: number })).then_some(())
        };
        eventually("three books", async || holds(3).await).await;

        books.delete("s-1", &DeleteParams::default()).await.unwrap();
        eventually("the lost book comes back", async || books.get_opt("s-1").await.unwrap()).await;
        let edited = json!({"data": {"value": "scribbled"}});
        books.patch("s-2", &PatchParams::default(), &Patch::Merge(edited)).await.unwrap();
        let repaired =
            async || (books.get("s-2").await.unwrap().data == config_map("s-2", "first").data).then_some(());
        eventually("the scribbled book is repaired", repaired).await;
        let more = Patch::Merge(json!({"spec": {"books": 4}}));
        shelves.patch("s", &PatchParams::default(), &more).await.unwrap();
        eventually("four books", async || holds(4).await).await;
        assert_eq!(shelves.get("s").await.unwrap().metadata.generation, Some(2));

        let uid = shelves.get("s").await.unwrap().uid().unwrap();
        shelves.delete("s", &DeleteParams::default()).await.unwrap();
        let gone = await_condition(shelves.clone(), "s", conditions::is_deleted(&uid));
        tokio::time::timeout(Duration::from_secs(30), gone).await.expect("in time").unwrap();
        assert!(books.get_opt("s-cleaned").await.unwrap().is_some());
        eventually("its books go with it", async || {
            books.get_opt("s-0").await.unwrap().is_none().then_some(())
        })
        .await;
        operator.abort();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn derived_schemas_default_and_validate() {
    for_each_cluster(async |cluster| {
        define(&cluster).await;
        let shelves: Api<Shelf> = Api::namespaced(cluster.client(), cluster.namespace());
        let bare = json!({
            "apiVersion": "testing.mainstay.dev/v1", "kind": "Shelf", "metadata": {"name": "s"}, "spec": {"books": 1},
        });
        let created = shelves.patch("s", &PatchParams::apply("tester"), &Patch::Apply(&bare)).await.unwrap();
        assert_eq!(created.spec.title, "untitled");
        assert_eq!(shelves.get_scale("s").await.unwrap().spec.unwrap().replicas, Some(1));
        let many = Patch::Merge(json!({"spec": {"books": 11}}));
        assert_eq!(
            refusal(shelves.patch("s", &PatchParams::default(), &many).await),
            (422, "Invalid".into())
        );
        let wrong = Patch::Merge(json!({"spec": {"books": "three"}}));
        assert_eq!(
            refusal(shelves.patch("s", &PatchParams::default(), &wrong).await),
            (422, "Invalid".into())
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_recorded_and_counted() {
    for_each_cluster(async |cluster| {
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), cluster.namespace());
        let object = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
        let reporter = Reporter { controller: "tester".into(), instance: Some("tester-0".into()) };
        let recorder = Recorder::new(cluster.client(), reporter);
        let event = || Event {
            type_: EventType::Normal,
            reason: "Tested".into(),
            note: Some("a note".into()),
            action: "Testing".into(),
            secondary: None,
        };
        for _ in 0..2 {
            recorder.publish(&event(), &object.object_ref(&())).await.unwrap();
        }
        let events: Api<ClusterEvent> = Api::namespaced(cluster.client(), cluster.namespace());
        let regarding = ListParams::default().fields("regarding.name=a,reason=Tested");
        let found = events.list(&regarding).await.unwrap();
        assert_eq!(found.items.len(), 1);
        assert_eq!(found.items[0].series.as_ref().map(|series| series.count), Some(2));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_renew_a_lease_one_wins() {
    for_each_cluster(async |cluster| {
        let api: Api<Lease> = Api::namespaced(cluster.client(), cluster.namespace());
        let lease: Lease = crate::kube_rs::object(json!({
            "metadata": {"name": "leader"},
            "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2030-01-01T00:00:00.000000Z"},
        }));
        let held = api.create(&PostParams::default(), &lease).await.unwrap();
        let renewed = |holder: &str| {
            let mut lease = held.clone();
            lease.spec.as_mut().unwrap().holder_identity = Some(holder.into());
            lease
        };
        let (params, leases) = (PostParams::default(), ["b", "c", "d", "e"].map(renewed));
        let attempts = leases.iter().map(|lease| api.replace("leader", &params, lease));
        let outcomes = futures::future::join_all(attempts).await;
        let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 3));
        for outcome in lost {
            assert_eq!(refusal(outcome), (409, "Conflict".into()));
        }
        let leader = api.get("leader").await.unwrap();
        assert_eq!(Some(&leader), won[0].as_ref().ok());
        assert_eq!(leader.spec.unwrap().renew_time, held.spec.unwrap().renew_time);
    })
    .await;
}
