//! How an operator ends: told to stop it finishes and gives back, killed it does nothing more.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::replicas::Replicas;
use mainstay::{Controller, Kind, Operator, OperatorBuilder, SyncRequest, SyncResponse};
use mainstay_testkit::{Cluster, RunningOperator, eventually, for_each_cluster};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::operator::fixtures::{Count, Door, OpenAtLast, until};
use crate::operator::kinds::{config_map, config_maps, define_shop, shop, shop_kind};
use crate::operator::seam::Seam;

/// Holds handlers back until it is opened.
#[derive(Clone)]
struct Gate {
    calls: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn closed() -> Self {
        Self { calls: Arc::default(), open: Arc::new(Semaphore::new(0)) }
    }

    /// A controller whose syncs each wait at the gate.
    fn controller(&self) -> Controller {
        let gate = self.clone();
        Controller::for_kind(shop_kind()).owns::<ConfigMap>().sync_async(move |request: SyncRequest| {
            let gate = gate.clone();
            async move {
                gate.calls.fetch_add(1, Ordering::SeqCst);
                drop(gate.open.acquire().await);
                SyncResponse::new().with_child(config_map(request.name(), json!({"a": "1"})))
            }
        })
    }

    async fn reached(&self) {
        eventually("a sync to begin", async || (self.calls() == 1).then_some(())).await;
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn open(&self) {
        self.open.add_permits(1000);
    }
}

fn builder(cluster: &Cluster, client: kube::Client, gate: &Gate) -> OperatorBuilder {
    Operator::builder("shops", client).namespace(cluster.namespace()).controller(gate.controller())
}

/// How many shops the operator knows of.
fn known(operator: &Operator) -> usize {
    let reports = operator.caches();
    reports.iter().find(|report| report.kind == shop_kind()).map_or(0, |report| report.objects)
}

#[tokio::test]
async fn stopping_finishes_the_sync_that_runs_and_begins_no_other() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let gate = Gate::closed();
        let terms = Replicas::leader(cluster.namespace()).lease_duration(Duration::from_hours(1));
        let operator = builder(&cluster, cluster.client(), &gate).replicas(terms).build().unwrap();
        cluster.create(shop("paint", json!({}))).await;
        let mut running = RunningOperator::start(operator.clone());
        gate.reached().await;

        running.tell_to_stop();
        cluster.create(shop("late", json!({}))).await;
        eventually("the late shop to be seen", async || (known(&operator) == 2).then_some(())).await;
        assert!(!running.has_stopped(), "it did not wait for the sync that runs");
        let holder = |lease: &serde_json::Value| lease["spec"]["holderIdentity"].as_str().map(str::to_owned);
        let lease = cluster.find(&Kind::of::<Lease>(), "shops").await.unwrap();
        assert!(!holder(&lease).unwrap_or_default().is_empty(), "the lease was given back too early");

        gate.open();
        running.stop().await;
        assert!(cluster.find(&config_maps(), "paint").await.is_some(), "the sync was cut off");
        assert!(cluster.find(&config_maps(), "late").await.is_none(), "another sync began");
        assert_eq!(gate.calls(), 1);
        let lease = cluster.find(&Kind::of::<Lease>(), "shops").await.unwrap();
        assert_eq!(holder(&lease).unwrap_or_default(), "", "the lease was not given back");
    })
    .await;
}

#[tokio::test]
async fn run_returns_although_pages_are_served_and_connections_are_open() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let gate = Gate::closed();
        gate.open();
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let operator = builder(&cluster, cluster.client(), &gate).serve(here).build().unwrap();
        let running = RunningOperator::start(operator.clone());
        let address = eventually("an address", async || operator.address()).await;
        let idle = tokio::net::TcpStream::connect(address).await.unwrap();
        running.stop().await;
        assert_eq!(operator.address(), None);
        drop(idle);
    })
    .await;
}

#[tokio::test]
async fn killed_operator_writes_nothing_more() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let gate = Gate::closed();
        let seam = Seam::new(&cluster);
        let operator = builder(&cluster, seam.client(), &gate).build().unwrap();
        cluster.create(shop("paint", json!({}))).await;
        let running = RunningOperator::start(operator);
        gate.reached().await;
        running.kill().await;
        gate.open();
        // Whatever still ran would get its turn while these requests are on their way.
        for index in 0..20 {
            cluster.create(shop(&format!("other-{index}"), json!({}))).await;
        }
        assert_eq!(seam.writes().len(), 0, "{:?}", seam.writes());
        assert_eq!(gate.calls(), 1);
    })
    .await;
}

/// An operator whose shops want a config map of their name. Their handler is called once the door is open.
fn behind(door: &Door, entered: &Count, cluster: &Cluster) -> Operator {
    let (door, entered) = (door.clone(), entered.clone());
    let controller = Controller::for_kind(shop_kind()).owns::<ConfigMap>().deadline(Duration::from_secs(1));
    let controller = controller.sync(move |request: &SyncRequest| {
        entered.add();
        door.wait();
        SyncResponse::new().with_child(config_map(request.name(), json!({})))
    });
    // A lease this long is not taken over unless it is given back.
    let terms = Replicas::leader(cluster.namespace()).lease_duration(Duration::from_hours(1));
    let operator = Operator::builder("shops", cluster.client()).namespace(cluster.namespace());
    operator.controller(controller).replicas(terms).build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_for_ever_keeps_neither_the_operator_nor_its_shard() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let (closed, entered) = (Door::default(), Count::default());
        let _open = OpenAtLast(closed.clone());
        let first = RunningOperator::start(behind(&closed, &entered, &cluster));
        cluster.create(shop("paint", json!({}))).await;
        eventually("the handler to block", async || (entered.get() == 1).then_some(())).await;
        first.stop().await;
        let open = Door::default();
        open.open();
        let second = RunningOperator::start(behind(&open, &Count::default(), &cluster));
        until(&cluster, &config_maps(), "paint", |_| true).await;
        assert_eq!(entered.get(), 1);
        second.stop().await;
    })
    .await;
}
