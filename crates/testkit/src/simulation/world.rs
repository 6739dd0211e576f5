//! One run: a world is made, programs start, the user follows the script, things go wrong, all comes to rest.
//!
//! Everything happens on the calling thread under virtual time. Waiting costs nothing, and the same seed, script and
//! faults give the same trace.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use mainstay_apiserver::{ApiServer, SeededIdentities};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::clock::WorldClock;
use super::deliveries::Deliveries;
use super::external::External;
use super::fault::Faults;
use super::life::Life;
use super::lock;
use super::panics::{note_panics, text_of};
use super::program::{Program, Seat};
use super::property::Property;
use super::record::{Record, Remains};
use super::script::{Action, Script, Step};
use super::sequence::Sequence;
use super::stage::{Stage, Wish};
use super::state::State;
use super::trace::{Actor, What};
use super::user::User;
use super::violation::Violation;
use super::webhooks::{Answers, Webhooks};
use super::wire::Wire;
use super::witness::Witness;

/// How long a program takes to be started again.
const RESTART: Duration = Duration::from_secs(1);
/// How long a user who does not know that something is held back waits before the next step.
const IMPATIENCE: Duration = Duration::from_secs(5);

/// Who has sent more writes than this while nothing changed at all goes round in circles.
const SENT_IN_VAIN_MAX: usize = 200;

/// What is the same in all runs of a check.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) subject: Program,
    pub(super) beside: Vec<Program>,
    pub(super) clusters: Vec<String>,
    /// What is there before any program starts, with its cluster.
    pub(super) given: Vec<(String, Value)>,
    pub(super) properties: Arc<[Property]>,
    pub(super) webhooks: Arc<Answers>,
    /// When nothing has changed for so long, the world has settled.
    pub(super) quiet: Duration,
    /// When it has not settled after so long, it never will.
    pub(super) limit: Duration,
    /// A second pass may not even send a write that changes nothing.
    pub(super) silent: bool,
    /// The user waits for everything, also for what is held back.
    pub(super) patient: bool,
}

/// What is different in each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Course {
    pub(super) seed: u64,
    pub(super) faults: Faults,
    pub(super) script: Script,
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub(super) remains: Remains,
    /// Everything, when the script had ended and all had come to rest.
    pub(super) end: State,
}

impl Run {
    /// The faults that never came about, if there are any.
    pub(super) fn unreached(&self) -> Option<Violation> {
        let faults = Faults(self.remains.unreached.clone());
        // A run that was cut short had no time for them.
        (!faults.0.is_empty() && self.remains.violations.is_empty())
            .then(|| Violation::Unreached { faults: faults.to_string() })
    }
}

/// Runs a world from its beginning to its end.
pub(super) fn play(setup: &Setup, course: &Course) -> Run {
    // Libraries that programs use take their chance from here: kube's waits before a watch is tried again, for one.
    fastrand::seed(course.seed);
    let (mut run, panics) = note_panics(|| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        // Without the drivers of sockets and files, which know no virtual time.
        let runtime = runtime.enable_time().start_paused(true).build();
        let runtime = runtime.unwrap_or_else(|error| panic!("a tokio runtime: {error}"));
        runtime.block_on(async { World::make(setup, course).await.run(course).await })
    });
    for how in panics {
        let known = |violation: &Violation| violation.to_string().contains(&how);
        if !run.remains.violations.iter().any(known) {
            let names = setup.beside.iter().map(Program::name).chain([setup.subject.name()]);
            let program = format!("a task of {}", names.collect::<Vec<_>>().join(" or "));
            run.remains.violations.push(Violation::Ended { program, how: format!("it panicked: {how}") });
        }
    }
    run
}

struct World {
    ground: Arc<Ground>,
    user: User,
}

/// What programs are started from.
struct Ground {
    setup: Setup,
    seed: u64,
    stage: Arc<Stage>,
    servers: BTreeMap<String, ApiServer>,
    clock: WorldClock,
    incarnations: Mutex<BTreeMap<Arc<str>, u32>>,
}

impl World {
    async fn make(setup: &Setup, course: &Course) -> Self {
        let clock = WorldClock::new();
        let (wish, mut wishes) = mpsc::unbounded_channel();
        let record = Record::new(course.faults.clone(), Arc::clone(&setup.properties));
        let stage = Arc::new(Stage::new(record, Sequence::new(course.seed), wish));
        let mut servers = BTreeMap::new();
        for (index, cluster) in setup.clusters.iter().enumerate() {
            let server = build_server(cluster, course.seed.wrapping_add(index as u64), &clock, &stage, setup);
            server.start().await;
            servers.insert(cluster.clone(), server);
        }
        lock(&stage.servers).clone_from(&servers);
        let sequence = Arc::clone(&stage);
        tokio::spawn(async move { sequence.sequence.run().await });
        let ground = Arc::new(Ground {
            setup: setup.clone(),
            seed: course.seed,
            stage,
            servers,
            clock,
            incarnations: Mutex::default(),
        });
        let second = Arc::clone(&ground);
        tokio::spawn(async move {
            while let Some(Wish::Second) = wishes.recv().await {
                let subject = second.setup.subject.clone();
                tokio::spawn(Arc::clone(&second).keep_running(subject, true));
            }
        });
        let user = User::new(ground.wires(&ground.life("user", false, None)), &ground.servers);
        Self { ground, user }
    }

    async fn run(self, course: &Course) -> Run {
        let (ground, record) = (&self.ground, &self.ground.stage.record);
        for (cluster, object) in &ground.setup.given {
            if let Err(why) = self.user.give(cluster, object).await {
                let step = format!("given {} {}", object["kind"], object["metadata"]["name"]);
                record.violate(Violation::Refused { step, why });
                return self.end(State::default());
            }
        }
        record.begin();
        for program in ground.setup.beside.clone() {
            tokio::spawn(Arc::clone(ground).keep_running(program, false));
        }
        tokio::spawn(Arc::clone(ground).keep_running(ground.setup.subject.clone(), true));
        let steps = &course.script.steps;
        let mut settled = self.settle(!steps.is_empty()).await;
        for (index, step) in steps.iter().enumerate() {
            if !settled {
                return self.end(record.state());
            }
            let stage = steps[..index].iter().filter(|step| step.settles).count();
            record.begin_step(step.to_string(), self.user.actor(), stage);
            if let Action::Wait(time) = &step.action {
                sleep(*time).await;
            } else if let Err(why) = self.act(step).await {
                record.violate(Violation::Refused { step: step.to_string(), why });
                return self.end(record.state());
            }
            let last = index + 1 == steps.len();
            settled = if step.settles || last { self.settle(!last).await } else { true };
        }
        let end = record.state();
        if settled {
            self.pass_again().await;
        }
        self.end(end)
    }

    /// Takes a step. A user who is refused may have come too early, before what was held back or went wrong is over: so
    /// waits for that, and tries once more.
    async fn act(&self, step: &Step) -> Result<(), String> {
        match self.user.act(step).await {
            Err(_) if self.settle(false).await => self.user.act(step).await,
            done => done,
        }
    }

    /// Starts the operator once more: on what it has made it has nothing to do.
    async fn pass_again(&self) {
        let record = &self.ground.stage.record;
        record.note(self.user.actor(), What::SecondPass);
        let _ = record.take_done_by_subject();
        for life in self.ground.stage.subjects() {
            life.die();
        }
        record.stir();
        if !self.settle(false).await {
            return;
        }
        let (changed, sent) = record.take_done_by_subject();
        // Who cannot read a schema, say, may have to write to be sure, as long as that changes nothing.
        let silent = self.ground.setup.silent && !record.is_second_pass_disturbed();
        let writes = if silent { sent } else { changed };
        if !writes.is_empty() {
            record.violate(Violation::SecondPass { writes });
        }
    }

    /// Waits until nothing changes any more; tells whether that came. What is held back is released when the user has gone
    /// one step further, or has nothing more to do.
    async fn settle(&self, more: bool) -> bool {
        let (stage, setup) = (&self.ground.stage, &self.ground.setup);
        let deadline = Instant::now() + setup.limit;
        loop {
            if stage.record.is_violated() {
                return false;
            }
            let blind = stage.record.is_blind();
            let window = if blind { IMPATIENCE } else { setup.quiet };
            let quiet = stage.record.quiet_for();
            if quiet < window {
                // In small pieces: something may be held back meanwhile.
                sleep(window.saturating_sub(quiet).min(IMPATIENCE)).await;
            } else if blind && more && !setup.patient && !stage.record.is_blind_since_before() {
                return true;
            } else if blind {
                stage.release();
            } else if stage.record.sent_in_vain() > SENT_IN_VAIN_MAX {
                let last = format!("{} writes that changed nothing", stage.record.sent_in_vain());
                stage.record.violate(Violation::Unsettled { last });
                return false;
            } else {
                stage.record.note(self.user.actor(), What::Settled);
                return true;
            }
            if Instant::now() > deadline {
                stage.record.violate(Violation::Unsettled { last: stage.record.last_change() });
                return false;
            }
        }
    }

    fn end(&self, end: State) -> Run {
        Run { remains: self.ground.stage.record.take(), end }
    }
}

fn build_server(
    cluster: &str,
    seed: u64,
    clock: &WorldClock,
    stage: &Arc<Stage>,
    setup: &Setup,
) -> ApiServer {
    let stage: Weak<Stage> = Arc::downgrade(stage);
    let built = ApiServer::builder()
        .clock(clock.another())
        .identities(SeededIdentities::new(seed))
        .watch_delivery(Deliveries { cluster: cluster.into(), stage: stage.clone() })
        .observer(Witness { cluster: cluster.into(), stage: stage.clone() })
        .webhook_transport(Webhooks { answers: Arc::clone(&setup.webhooks), stage })
        .build();
    built.unwrap_or_else(|error| panic!("a server in memory: {error}"))
}

impl Ground {
    /// A new incarnation.
    fn life(&self, name: &str, is_subject: bool, lag: Option<u64>) -> Arc<Life> {
        let mut incarnations = lock(&self.incarnations);
        let incarnation = incarnations.entry(name.into()).or_default();
        *incarnation += 1;
        let actor = Actor { name: name.into(), incarnation: *incarnation };
        let life = Arc::new(Life::new(actor, is_subject, self.clock.another(), lag));
        self.stage.enter(&life);
        life
    }

    fn wires(&self, life: &Arc<Life>) -> BTreeMap<String, Wire> {
        let wire = |cluster: &String, server: &ApiServer| Wire {
            cluster: cluster.as_str().into(),
            server: server.clone(),
            life: Arc::clone(life),
            stage: Arc::clone(&self.stage),
        };
        self.servers.iter().map(|(cluster, server)| (cluster.clone(), wire(cluster, server))).collect()
    }

    fn seat(&self, life: &Arc<Life>) -> Seat {
        let wires = self.wires(life).into_iter();
        Seat {
            clients: wires.map(|(cluster, wire)| (cluster, kube::Client::new(wire, "default"))).collect(),
            clock: life.clock.clone(),
            seed: self.seed.wrapping_add(u64::from(life.actor.incarnation)),
            external: External { life: Arc::clone(life), stage: Arc::clone(&self.stage) },
        }
    }

    /// Starts a program, and again whenever it has died.
    async fn keep_running(self: Arc<Self>, program: Program, is_subject: bool) {
        loop {
            let lag = if is_subject { self.stage.take_lag() } else { None };
            let life = self.life(program.name(), is_subject, lag);
            self.stage.record.note(&life.actor, What::Started);
            let (starting, seat) = (program.clone(), self.seat(&life));
            let mut task = tokio::spawn(async move { starting.start(seat).await });
            let ended = tokio::select! {
                biased;
                () = life.died.notified() => None,
                ended = &mut task => Some(ended),
            };
            task.abort();
            if let Some(ended) = ended {
                let how = match ended {
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => format!("it panicked: {}", text_of(&*panic)),
                        Err(_) => "it was stopped".to_owned(),
                    },
                    Ok(()) => "it returned".to_owned(),
                };
                life.die();
                self.stage.record.note(&life.actor, What::Ended { how: how.clone() });
                self.stage.record.violate(Violation::Ended { program: program.name().to_owned(), how });
                return;
            }
            if life.is_replaced() {
                return;
            }
            sleep(RESTART).await;
        }
    }
}

#[cfg(test)]
mod tests;
