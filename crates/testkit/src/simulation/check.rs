//! What authors write: which program, which script, what goes wrong, what must be true.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mainstay::Kind;
use serde_json::Value;

use super::family::Family;
use super::fault::Faults;
use super::normal::Ignored;
use super::oracle::Rules;
use super::program::Program;
use super::property::Property;
use super::report::{Progress, Report};
use super::script::Script;
use super::state::{MAIN, State, resource_of};
use super::trace::Trace;
use super::webhooks::Answers;
use super::world::Setup;

/// When nothing has changed for so long, a world has settled.
const QUIET: Duration = Duration::from_mins(2);
/// When it has not settled after so long, it never will.
const LIMIT: Duration = Duration::from_hours(1);

type Tell = Arc<dyn Fn(&Progress) + Send + Sync>;

/// A check of a program, in the making. Nothing happens before [`run`](Check::run) or [`report`](Check::report).
#[must_use]
#[derive(Clone)]
pub struct Check {
    pub(super) setup: Setup,
    pub(super) script: Script,
    pub(super) rules: Rules,
    pub(super) families: BTreeSet<Family>,
    /// Families that are left out, whatever else is said.
    pub(super) without: BTreeSet<Family>,
    pub(super) seeds: u64,
    pub(super) first_seed: u64,
    pub(super) walk: Option<(Value, usize)>,
    pub(super) same_end_as: Option<Script>,
    pub(super) replay: Option<(u64, Faults)>,
    pub(super) threads: usize,
    pub(super) progress: Option<Tell>,
}

/// A check of this program. With nothing added it is started in an empty cluster, and has to come to rest there.
pub fn check(program: Program) -> Check {
    let setup = Setup {
        subject: program,
        beside: Vec::new(),
        clusters: vec![MAIN.to_owned()],
        given: Vec::new(),
        properties: Arc::new([]),
        webhooks: Arc::default(),
        quiet: QUIET,
        limit: LIMIT,
        silent: false,
        patient: false,
    };
    Check {
        setup,
        script: Script::new(),
        rules: Rules::default(),
        families: BTreeSet::new(),
        without: BTreeSet::new(),
        seeds: 0,
        first_seed: 1,
        walk: None,
        same_end_as: None,
        replay: None,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        progress: None,
    }
}

/// The world.
impl Check {
    /// Something that is there before any program starts: a definition of a kind, mostly.
    pub fn given(self, object: Value) -> Self {
        self.given_in(MAIN, object)
    }

    /// The same in another cluster.
    pub fn given_in(mut self, cluster: &str, object: Value) -> Self {
        self.setup.given.push((cluster.to_owned(), object));
        self
    }

    /// A further cluster, with an API server of its own.
    pub fn cluster(mut self, name: &str) -> Self {
        self.setup.clusters.push(name.to_owned());
        self
    }

    /// A program that runs beside the one under test, and for which nothing goes wrong:
    /// [`pods`](super::pods()), say.
    pub fn beside(mut self, program: Program) -> Self {
        self.setup.beside.push(program);
        self
    }

    /// A webhook: what it answers, as the `response` of a review, to the `request` of one. A configuration that is
    /// [given](Self::given) or created names it by this URL.
    pub fn webhook(mut self, url: &str, answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let mut answers = Answers::clone(&self.setup.webhooks);
        answers.0.insert(url.to_owned(), Arc::new(answer));
        self.setup.webhooks = Arc::new(answers);
        self
    }

    /// What the user does.
    pub fn script(mut self, script: Script) -> Self {
        self.script = script;
        self
    }

    /// The user waits after each step until everything has happened, also what was held back.
    pub fn patient(mut self) -> Self {
        self.setup.patient = true;
        self
    }

    /// For how long nothing must have changed until the world counts as settled: two minutes unless said otherwise. A
    /// program that waits longer than that before it tries again needs more.
    pub fn quiet(mut self, time: Duration) -> Self {
        self.setup.quiet = time;
        self
    }

    /// After how long a world that has not settled never will: an hour unless said otherwise.
    pub fn limit(mut self, time: Duration) -> Self {
        self.setup.limit = time;
        self
    }
}

/// What must be true.
impl Check {
    /// Something that must be true of every state that the world is ever in: asked after every change of anything but
    /// leases and events, from the start of the programs on. An assertion in it that fails is an answer too.
    pub fn always(
        mut self,
        name: &str,
        holds: impl Fn(&State) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let property = Property { name: name.to_owned(), holds: Arc::new(holds) };
        self.setup.properties = self.setup.properties.iter().cloned().chain([property]).collect();
        self
    }

    /// Objects of this kind hold data: as claims and Secrets, and as all that the user made, none may be removed that is
    /// not removed without faults too.
    pub fn keeps(mut self, kind: &Kind) -> Self {
        self.rules.kept.push(resource_of(kind.group(), kind.plural()));
        self
    }

    /// The program may remove what the user made of this kind, because it has expired, say. Otherwise it loses it, with faults or
    /// without.
    pub fn may_remove(mut self, kind: &Kind) -> Self {
        self.rules.removable.push(resource_of(kind.group(), kind.plural()));
        self
    }

    /// A field that may differ from run to run, as a JSON pointer in which `*` is any step: `/status/history/*/message`.
    ///
    /// # Panics
    /// If it is no pointer.
    pub fn ignoring(mut self, pointer: &str) -> Self {
        self.rules.ignored.push(Ignored::everywhere(pointer).unwrap_or_else(|error| panic!("{error}")));
        self
    }

    /// The same for objects of one kind.
    ///
    /// # Panics
    /// If it is no pointer.
    pub fn ignoring_in(mut self, kind: &Kind, pointer: &str) -> Self {
        let ignored = Ignored::of(&resource_of(kind.group(), kind.plural()), pointer);
        self.rules.ignored.push(ignored.unwrap_or_else(|error| panic!("{error}")));
        self
    }

    /// A further pass may not even send a write that would change nothing.
    pub fn silent(mut self) -> Self {
        self.setup.silent = true;
        self
    }
}

/// What goes wrong.
impl Check {
    /// The operator dies before and after each of its writes.
    pub fn every_crash_point(self) -> Self {
        self.every(Family::CrashPoints)
    }

    /// Each request is refused with 409, 429, 500 or 503, is lost, or its answer is.
    pub fn every_failed_request(self) -> Self {
        self.every(Family::Requests)
    }

    /// Each event comes late or twice, or is lost with its watch.
    pub fn every_lost_event(self) -> Self {
        self.every(Family::Watches)
    }

    /// The operator is started again on an API server that lags behind.
    pub fn every_time_travel(self) -> Self {
        self.every(Family::TimeTravel)
    }

    /// A second instance takes over at each write.
    pub fn every_second_leader(self) -> Self {
        self.every(Family::TwoLeaders)
    }

    /// The operator's clock is wrong by an hour from each write on.
    pub fn every_clock_jump(self) -> Self {
        self.every(Family::ClockJumps)
    }

    /// Webhooks are down from each write on for a while.
    pub fn every_webhook_outage(self) -> Self {
        self.every(Family::WebhooksDown)
    }

    /// One family of faults, at every place.
    pub fn every(mut self, family: Family) -> Self {
        self.families.insert(family);
        self
    }

    /// All families, each at every place.
    pub fn every_fault(mut self) -> Self {
        self.families.extend(Family::ALL);
        self
    }

    /// Never this family, neither alone nor in combinations: an operator without leases, say, that changes something outside of the cluster
    /// cannot be safe from a second one.
    pub fn but(mut self, family: Family) -> Self {
        self.without.insert(family);
        self
    }

    /// So many runs in which several things go wrong, and all that happens at once happens in an order that a seed decides.
    pub fn seeds(mut self, count: u64) -> Self {
        self.seeds = count;
        self
    }

    /// The first of the [seeds](Self::seeds); the others follow it. It is 1 unless said otherwise.
    pub fn first_seed(mut self, seed: u64) -> Self {
        self.first_seed = seed;
        self
    }

    /// Changes each property of the spec of the first object in the script whose kind this defines: alone, back again,
    /// and in as many sequences. The end state may depend on the last spec only.
    pub fn every_spec_change(mut self, definition: Value, sequences: usize) -> Self {
        self.walk = Some((definition, sequences));
        self
    }

    /// Only whether this script ends as another does, as a report on changes of the spec says.
    pub fn same_end_as(mut self, other: Script) -> Self {
        self.same_end_as = Some(other);
        self
    }

    /// Only this: `.replay(0, "crash after write 7")`, as a report says.
    ///
    /// # Panics
    /// If the text does not name faults.
    pub fn replay(mut self, seed: u64, faults: &str) -> Self {
        let faults = faults.parse().unwrap_or_else(|error| panic!("{error}"));
        self.replay = Some((seed, faults));
        self
    }

    /// On so many threads; on as many as there are cores unless said otherwise. What comes of it is the same.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Tells how far it is.
    pub fn progress(mut self, tell: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(tell));
        self
    }

    /// Runs it, for a test. How much is tried is up to the test run: with `MAINSTAY_SIMULATION=crash-points` only these,
    /// with `campaign` ten times the seeds. Seeds count from `MAINSTAY_SEED`, or from 1.
    ///
    /// # Panics
    /// When something is found; the message tells the story of it.
    pub fn run(self) {
        let report = super::effort::adapt(self, super::effort::of_this_run()).report();
        assert!(report.failures.is_empty(), "{report}");
        println!("{report}");
    }

    /// What happens without faults, or in what is to be [replayed](Self::replay), judged by nobody.
    pub fn trace(&self) -> Trace {
        let (seed, faults) = self.replay.clone().unwrap_or_default();
        super::campaign::look(self, seed, faults).remains.trace
    }

    /// Runs everything and tells what came of it.
    pub fn report(&self) -> Report {
        super::campaign::run(self)
    }
}
