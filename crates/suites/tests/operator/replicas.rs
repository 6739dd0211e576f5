//! Several replicas of one operator: who writes, who stands by, and how the work passes from one to the other.
//!
//! Every replica writes its name into the children, and all of its requests are seen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::plan::Waiting;
use mainstay::replicas::Replicas;
use mainstay::{Controller, Key, Kind, Operator, Scope, SyncRequest, SyncResponse};
use mainstay_testkit::{Cluster, RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::kinds::{config_map, config_maps, define_shop, shop, shop_kind};
use crate::operator::seam::{Seam, Sent, now};

/// Long enough that no test sees it run out.
const ENDLESS: Duration = Duration::from_hours(1);
const SHORT: Duration = Duration::from_secs(4);
const RETRY: Duration = Duration::from_millis(200);

struct Replica {
    seam: Seam,
    running: RunningOperator,
}

impl Replica {
    fn start(cluster: &Cluster, name: &'static str, replicas: Replicas) -> Self {
        Self::with(cluster, name, replicas, [])
    }

    fn with(
        cluster: &Cluster,
        name: &'static str,
        replicas: Replicas,
        more: impl IntoIterator<Item = Controller>,
    ) -> Self {
        let seam = Seam::new(cluster);
        let sync = move |request: &SyncRequest| {
            let round = request.parent_json()["spec"]["round"].to_string();
            let child = config_map(request.name(), json!({"by": name, "round": round}));
            SyncResponse::new().with_child(child)
        };
        let controller = Controller::for_kind(shop_kind()).owns::<ConfigMap>().sync(sync);
        let mut builder = seam
            .builder("shops")
            .replicas(replicas.identity(name).retry_interval(RETRY))
            .controller(controller);
        for controller in more {
            builder = builder.controller(controller);
        }
        Self { seam, running: RunningOperator::start(builder.build().unwrap()) }
    }

    fn operator(&self) -> &Operator {
        self.running.operator()
    }

    /// Waits until all of its caches are filled.
    async fn warm(&self) {
        eventually("caches to be filled", async || {
            let reports = self.operator().caches();
            (!reports.is_empty() && reports.iter().all(|report| report.synced)).then_some(())
        })
        .await;
    }

    /// The shards whose leases it holds.
    fn held(&self) -> BTreeSet<String> {
        let metrics = self.operator().metrics();
        let held = metrics.lines().filter_map(|line| {
            let shard = line.strip_prefix("mainstay_lease_held{shard=\"")?;
            shard.strip_suffix("\"} 1").map(str::to_owned)
        });
        held.collect()
    }
}

/// The requests of a replica that change objects, not its leases.
fn changes(seam: &Seam) -> Vec<Sent> {
    seam.writes().into_iter().filter(|sent| !sent.is_about_leases()).collect()
}

async fn set_round(cluster: &Cluster, name: &str, round: u32) {
    cluster.patch(&shop_kind(), name, json!({"spec": {"round": round}})).await;
}

/// Who wrote the child of a shop for this round.
async fn writer_of(cluster: &Cluster, name: &str, round: u32) -> String {
    let round = round.to_string();
    let what = format!("a child of {name} in round {round}");
    eventually(&what, async || {
        let found = cluster.find(&config_maps(), name).await?;
        (found["data"]["round"].as_str() == Some(&round))
            .then(|| found["data"]["by"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

async fn written_by(cluster: &Cluster, name: &str, writer: &str) {
    eventually(&format!("{writer} to write the child of {name}"), async || {
        let found = cluster.find(&config_maps(), name).await?;
        (found["data"]["by"] == writer).then_some(())
    })
    .await;
}

async fn lease(cluster: &Cluster) -> Value {
    cluster.find(&Kind::of::<Lease>(), "shops").await.expect("a lease")
}

/// A leader that has written, and a standby whose caches are filled.
async fn pair(cluster: &Cluster, duration: Duration) -> (Replica, Replica) {
    define_shop(cluster).await;
    cluster.create(shop("paint", json!({"round": 1}))).await;
    let terms = || Replicas::leader(cluster.namespace()).lease_duration(duration);
    let first = Replica::start(cluster, "first", terms());
    assert_eq!(writer_of(cluster, "paint", 1).await, "first");
    let second = Replica::start(cluster, "second", terms());
    second.warm().await;
    (first, second)
}

#[tokio::test]
async fn only_the_leader_writes_and_the_standby_has_full_caches() {
    for_each_cluster(async |cluster| {
        let (_first, second) = pair(&cluster, ENDLESS).await;
        let key = Key::namespaced(cluster.namespace(), "paint");
        set_round(&cluster, "paint", 2).await;
        assert_eq!(writer_of(&cluster, "paint", 2).await, "first");
        eventually("the standby to see what the leader wrote", async || {
            let plan = second.operator().plan(&shop_kind(), &key).await.ok()?;
            assert!(plan.waiting.contains(&Waiting::OtherReplica), "it does not say why it rests: {plan}");
            // All it would change is the name in the child.
            plan.to_string().contains("first").then_some(())
        })
        .await;
        assert_eq!(second.operator().caches().iter().map(|report| report.objects).min(), Some(1));
        assert_eq!(changes(&second.seam).len(), 0, "the standby wrote");
        assert!(lease(&cluster).await["spec"]["holderIdentity"].as_str().unwrap().starts_with("first_"));
    })
    .await;
}

#[tokio::test]
async fn killed_leader_is_succeeded_when_its_lease_has_run_out() {
    for_each_cluster(async |cluster| {
        let (first, second) = pair(&cluster, SHORT).await;
        let lists = |replica: &Replica| {
            replica.operator().caches().iter().map(|report| report.lists).collect::<Vec<_>>()
        };
        let before = lists(&second);
        first.running.kill().await;
        assert!(lease(&cluster).await["spec"]["holderIdentity"].as_str().unwrap().starts_with("first_"));
        written_by(&cluster, "paint", "second").await;
        assert_eq!(lists(&second), before, "a warm standby lists nothing again");
        let lease = lease(&cluster).await;
        assert_eq!(lease["spec"]["leaseTransitions"], 1);
        assert!(lease["spec"]["holderIdentity"].as_str().unwrap().starts_with("second_"));
    })
    .await;
}

#[tokio::test]
async fn leader_that_stops_hands_over_at_once() {
    for_each_cluster(async |cluster| {
        // The lease would not run out in the time that the test waits.
        let (first, _second) = pair(&cluster, ENDLESS).await;
        first.running.stop().await;
        written_by(&cluster, "paint", "second").await;
    })
    .await;
}

#[tokio::test]
async fn leader_that_cannot_renew_its_lease_stops_writing_before_another_begins() {
    for_each_cluster(async |cluster| {
        let (first, second) = pair(&cluster, SHORT).await;
        // Only its leases are out of reach: it could go on writing.
        first.seam.lose("/leases");
        let mut round = 1;
        eventually("the second to write", async || {
            round += 1;
            set_round(&cluster, "paint", round).await;
            (changes(&second.seam).len() >= 3).then_some(())
        })
        .await;
        let ended = |sent: &Sent| sent.answer.map_or(sent.began, |(at, _)| at);
        let last = changes(&first.seam).iter().map(ended).max().expect("the first wrote");
        let begun = changes(&second.seam).iter().map(|sent| sent.began).min().expect("the second wrote");
        assert!(last < begun, "both wrote at once");

        // When it can reach its lease again, it stands by.
        let cured = now();
        first.seam.allow();
        eventually("the first to look at the leases", async || {
            let looks = |sent: &&Sent| sent.began > cured && sent.is_about_leases() && sent.answer.is_some();
            (first.seam.sent().iter().filter(looks).count() >= 2).then_some(())
        })
        .await;
        set_round(&cluster, "paint", round + 1).await;
        assert_eq!(writer_of(&cluster, "paint", round + 1).await, "second");
        assert!(changes(&first.seam).iter().all(|sent| sent.began < begun));
    })
    .await;
}

const SHOPS: usize = 12;
const SHARDS: u32 = 6;

/// Waits until the replicas hold the shards between them, each as many as the others.
async fn shared_evenly(replicas: &[&Replica]) {
    eventually("shards to be spread evenly", async || {
        let held: Vec<_> = replicas.iter().map(|replica| replica.held()).collect();
        let all: BTreeSet<_> = held.iter().flatten().collect();
        let even = held.iter().all(|held| held.len() == SHARDS as usize / replicas.len());
        (even && all.len() == SHARDS as usize).then_some(())
    })
    .await;
}

/// Changes all shops, and checks that each has its child changed by one replica, and each replica changes some.
async fn check_round(cluster: &Cluster, round: u32, replicas: &[&Replica]) {
    let begun = now();
    for index in 0..SHOPS {
        set_round(cluster, &format!("shop-{index}"), round).await;
    }
    for index in 0..SHOPS {
        writer_of(cluster, &format!("shop-{index}"), round).await;
    }
    let mut writers: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (index, replica) in replicas.iter().enumerate() {
        for sent in changes(&replica.seam).iter().filter(|sent| sent.began > begun) {
            writers.entry(sent.object().to_owned()).or_default().insert(index);
        }
    }
    assert_eq!(writers.len(), SHOPS, "round {round}: {writers:?}");
    assert!(writers.values().all(|writers| writers.len() == 1), "round {round}: {writers:?}");
}

/// No child is ever being written by two replicas at once.
fn check_alone(replicas: &[&Seam]) {
    let mut writes: BTreeMap<String, Vec<(usize, usize, usize)>> = BTreeMap::new();
    for (index, seam) in replicas.iter().enumerate() {
        for sent in changes(seam) {
            let end = sent.answer.map_or(sent.began, |(at, _)| at);
            writes.entry(sent.object().to_owned()).or_default().push((sent.began, end, index));
        }
    }
    for (child, mut writes) in writes {
        writes.sort_unstable();
        for pair in writes.windows(2) {
            let ((_, end, one), (begin, _, other)) = (pair[0], pair[1]);
            assert!(one == other || end < begin, "{child} is written by {one} and {other} at once");
        }
    }
}

#[tokio::test]
async fn sharded_replicas_sync_every_parent_once_and_rebalance_when_one_goes_and_one_comes() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        for index in 0..SHOPS {
            cluster.create(shop(&format!("shop-{index}"), json!({"round": 0}))).await;
        }
        let terms = || Replicas::sharded(cluster.namespace(), SHARDS).lease_duration(SHORT);
        let [first, second, third] =
            ["first", "second", "third"].map(|name| Replica::start(&cluster, name, terms()));
        shared_evenly(&[&first, &second, &third]).await;
        check_round(&cluster, 1, &[&first, &second, &third]).await;

        let gone = third.seam.clone();
        third.running.kill().await;
        shared_evenly(&[&first, &second]).await;
        check_round(&cluster, 2, &[&first, &second]).await;

        let fourth = Replica::start(&cluster, "fourth", terms());
        shared_evenly(&[&first, &second, &fourth]).await;
        check_round(&cluster, 3, &[&first, &second, &fourth]).await;
        check_alone(&[&first.seam, &second.seam, &gone, &fourth.seam]);
    })
    .await;
}

#[tokio::test]
async fn kind_that_is_missing_does_not_keep_the_others_from_being_led() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        cluster.create(shop("paint", json!({"round": 1}))).await;
        let missing = Kind::new("test.mainstay.dev/v1", "Phantom", "phantoms", Scope::Namespaced);
        let phantoms = Controller::for_kind(missing).sync(|_: &SyncRequest| Ok(SyncResponse::new()));
        let terms = Replicas::leader(cluster.namespace()).lease_duration(ENDLESS);
        let _replica = Replica::with(&cluster, "first", terms, [phantoms]);
        written_by(&cluster, "paint", "first").await;
    })
    .await;
}
