//! A cluster with replicas, the network between them, and a vigil over who may write.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, ListParams};
use mainstay_apiserver::ApiServer;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::clock::{Clock, TokioClock};
use crate::replicas::{Fence, Replicas, Shard, Turn};

pub(super) const SECOND: Duration = Duration::from_secs(1);
/// The timeout of writes.
pub(super) const WRITE: Duration = Duration::from_secs(3);

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Fine,
    /// Carried out, but the answer never comes.
    LostAnswer,
    /// Answered with this status, and not carried out.
    Refused(u16),
    /// So many milliseconds until it arrives, and as many until the answer does. Who sent it may have given up by then.
    Slow(u64, u64),
    /// Never arrives, and nobody says so.
    Swallowed,
}

/// The network between one replica and the server.
#[derive(Default)]
pub(super) struct Link {
    /// The fates of the next writes.
    pub(super) writes: Mutex<VecDeque<Fate>>,
    /// The fate of everything else.
    pub(super) usual: Mutex<Option<Box<dyn FnMut() -> Fate + Send>>>,
    pub(super) requests: Mutex<u32>,
}

impl Link {
    pub(super) fn always(&self, fate: Fate) {
        self.vary(move || fate);
    }

    pub(super) fn vary(&self, fate: impl FnMut() -> Fate + Send + 'static) {
        *self.usual.lock().unwrap() = Some(Box::new(fate));
    }

    fn fate(&self, is_write: bool) -> Fate {
        *self.requests.lock().unwrap() += 1;
        let scripted = if is_write { self.writes.lock().unwrap().pop_front() } else { None };
        scripted.unwrap_or_else(|| self.usual.lock().unwrap().as_mut().map_or(Fate::Fine, |fate| fate()))
    }

    async fn carry(
        self: Arc<Self>,
        server: ApiServer,
        request: http::Request<kube::client::Body>,
    ) -> http::Response<mainstay_apiserver::Body> {
        match self.fate(request.method() != "GET") {
            Fate::Fine => server.handle(request).await,
            Fate::LostAnswer => {
                server.handle(request).await;
                std::future::pending().await
            }
            Fate::Refused(code) => {
                let faults = mainstay_apiserver::FaultLayer::new(Always(code));
                tower::ServiceExt::oneshot(faults.around(server), request).await.unwrap()
            }
            Fate::Slow(there, back) => {
                // In a task of its own, because it goes on when the sender gives up.
                let task = tokio::spawn(async move {
                    sleep(Duration::from_millis(there)).await;
                    let response = server.handle(request).await;
                    sleep(Duration::from_millis(back)).await;
                    response
                });
                task.await.unwrap()
            }
            Fate::Swallowed => std::future::pending().await,
        }
    }
}

struct Always(u16);

impl mainstay_apiserver::Faults for Always {
    fn decide(&self, _: &http::request::Parts) -> mainstay_apiserver::Fault {
        mainstay_apiserver::Fault::Refuse(self.0)
    }
}

/// A wall clock that is wrong by so many seconds, which may change.
#[derive(Debug)]
pub(super) struct WrongClock {
    right: TokioClock,
    pub(super) seconds: Mutex<i64>,
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        self.right.now() + jiff::SignedDuration::from_secs(*self.seconds.lock().unwrap())
    }
}

/// One replica.
pub(super) struct Replica {
    pub(super) fence: Fence,
    pub(super) link: Arc<Link>,
    pub(super) clock: Arc<WrongClock>,
    /// What it is working on, and when its present write ends.
    work: BTreeMap<String, (Turn, Instant)>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Replica {
    pub(super) fn holds(&self) -> Vec<u32> {
        let shards =
            self.fence.standing().borrow().held.keys().map(|shard| shard.index()).collect::<Vec<_>>();
        shards.into_iter().filter(|shard| self.may_write(*shard)).collect()
    }

    pub(super) fn may_write(&self, shard: u32) -> bool {
        self.fence.permit(Shard::new(shard), Duration::ZERO).is_ok()
    }

    /// Asks it to stop, without waiting.
    pub(super) fn begin_to_stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.task.is_finished()
    }
}

/// Everything.
pub(super) struct World {
    pub(super) server: ApiServer,
    right: TokioClock,
    pub(super) replicas: BTreeMap<&'static str, Replica>,
    /// Until when each parent may be being written, and by whom.
    writing: BTreeMap<String, (&'static str, Instant)>,
    /// The longest time that writes take.
    pub(super) longest: Duration,
    rng: fastrand::Rng,
    seed: u64,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let clock = mainstay_apiserver::TokioClock::starting_at("2001-01-01T00:00:00Z".parse().unwrap());
        let identities = mainstay_apiserver::SeededIdentities::new(seed);
        let server = ApiServer::builder().clock(clock).identities(identities).build().unwrap();
        let right = TokioClock::starting_at("2001-01-01T00:00:00Z".parse().unwrap());
        // Enough parents that every shard of the tests has some.
        let uids = (0..16).map(|parent| (format!("uid-{parent}"), ("", Instant::now()))).collect();
        Self {
            server,
            right,
            replicas: BTreeMap::new(),
            writing: uids,
            longest: SECOND / 5,
            rng: fastrand::Rng::with_seed(seed),
            seed,
        }
    }

    pub(super) fn leases(&self) -> Api<Lease> {
        Api::namespaced(Client::new(self.server.clone(), "default"), "default")
    }

    pub(super) async fn lease(&self, name: &str) -> Lease {
        self.leases().get(name).await.unwrap()
    }

    pub(super) async fn holder(&self, name: &str) -> String {
        let lease = self.leases().get_opt(name).await.unwrap();
        let holder = lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default();
        holder.split('_').next().unwrap_or_default().to_owned()
    }

    pub(super) async fn names(&self) -> Vec<String> {
        let list = self.leases().list(&ListParams::default()).await.unwrap();
        list.items.into_iter().filter_map(|lease| lease.metadata.name).collect()
    }

    pub(super) fn start(&mut self, name: &'static str, replicas: Replicas) {
        self.start_with_clock(name, replicas, 0);
    }

    pub(super) fn start_with_clock(&mut self, name: &'static str, replicas: Replicas, wrong_by: i64) {
        let link = Arc::new(Link::default());
        let clock = Arc::new(WrongClock { right: self.right, seconds: Mutex::new(wrong_by) });
        let (server, carrier) = (self.server.clone(), link.clone());
        let service = tower::service_fn(move |request| {
            let (server, carrier) = (server.clone(), carrier.clone());
            async move { Ok::<_, std::convert::Infallible>(carrier.carry(server, request).await) }
        });
        self.seed += 1;
        let rng = fastrand::Rng::with_seed(self.seed);
        let client = Client::new(service, "default");
        let (fence, keeper) = replicas.identity(name).join("echo", client, clock.clone(), rng).unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(keeper.unwrap().run(async { stopped.await.unwrap_or_default() }));
        self.replicas
            .insert(name, Replica { fence, link, clock, work: BTreeMap::new(), stop: Some(stop), task });
    }

    /// Ends a replica without a word.
    pub(super) fn kill(&mut self, name: &str) {
        let replica = self.replicas.remove(name).unwrap();
        // Its last writes may still be under way.
        replica.task.abort();
    }

    pub(super) fn replica(&self, name: &str) -> &Replica {
        &self.replicas[name]
    }

    pub(super) fn holds(&self, name: &str) -> Vec<u32> {
        self.replica(name).holds()
    }

    /// How many shards each replica holds.
    pub(super) fn counts(&self) -> Vec<(&'static str, usize)> {
        self.replicas.iter().map(|(name, replica)| (*name, replica.holds().len())).collect()
    }

    /// Lets time pass, and checks at every step that no parent has two writers.
    pub(super) async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            sleep(SECOND / 10).await;
            self.check();
        }
    }

    /// Lets time pass until something is so, and says how long that took.
    pub(super) async fn until(&mut self, limit: Duration, is_so: impl Fn(&Self) -> bool) -> Duration {
        let begin = Instant::now();
        while !is_so(self) {
            assert!(
                begin.elapsed() < limit,
                "not within {limit:?}: {:?} (seed {})",
                self.counts(),
                self.seed
            );
            self.pass(SECOND / 10).await;
        }
        begin.elapsed()
    }

    /// Every replica works on every parent that it may, writing all the time. No two write one parent at once.
    fn check(&mut self) {
        let now = Instant::now();
        for (name, replica) in &mut self.replicas {
            for (uid, (writer, until)) in &mut self.writing {
                if replica.work.get(uid).is_some_and(|(_, end)| now < *end) {
                    continue;
                }
                // A turn is one write or several.
                let turn = replica.work.remove(uid).map(|(turn, _)| turn).filter(|_| self.rng.bool());
                let turn = turn.map_or_else(|| replica.fence.begin(uid), Ok);
                let Ok((turn, permit)) =
                    turn.and_then(|turn| turn.permit(WRITE).map(|permit| (turn, permit)))
                else {
                    continue;
                };
                assert!(writer == name || *until <= now, "{name} may write {uid} while {writer} does");
                let end = permit.deadline().min(now + self.longest.mul_f64(self.rng.f64()));
                (*writer, *until) = (*name, end);
                replica.work.insert(uid.clone(), (turn, end));
            }
        }
    }
}
