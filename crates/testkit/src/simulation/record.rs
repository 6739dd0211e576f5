//! What a world remembers: the state as it is, everything that happened, and what the author's properties said to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::account::{Account, Removal};
use super::ask::{Ask, is_aside};
use super::describe::describe;
use super::fault::{Fault, Faults, Mishap, Point};
use super::life::Life;
use super::lock;
use super::property::Property;
use super::state::{MAIN, Place, State};
use super::trace::{Actor, Answer, Entry, Trace, What};
use super::violation::Violation;

/// A point that the operator under test has passed, and what the world was like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) point: Point,
    pub(super) verb: &'static str,
    /// Method, path and query of a request.
    pub(super) asked: String,
    pub(super) place: Place,
    /// How many steps of the script had begun.
    pub(super) step: usize,
    /// How many changes there were before it.
    pub(super) changes_before: usize,
    /// And after it.
    pub(super) changes_after: usize,
    /// A list that may be old.
    pub(super) takes_old: bool,
    /// An event that shows what was there already when the watch began.
    pub(super) initial: bool,
}

#[derive(Debug)]
struct Inner {
    zero: Instant,
    faults: Faults,
    /// Those of them that came about.
    reached: BTreeSet<Fault>,
    properties: Arc<[Property]>,
    /// Programs run: before that, nothing happens that is worth telling.
    has_begun: bool,
    entries: Vec<Entry>,
    state: State,
    serving: Option<Arc<Life>>,
    counts: Counts,
    passed: Vec<Passed>,
    /// The main cluster's revision after each change that counts.
    revisions: Vec<u64>,
    last_change: Instant,
    account: Account,
    watches: BTreeMap<(Actor, Place), u64>,
    step: usize,
    /// How many steps the user has waited after.
    stage: usize,
    /// The step during which things began to be hidden.
    blind_since: Option<usize>,
    violations: Vec<Violation>,
}

#[derive(Debug, Default)]
struct Counts {
    writes: usize,
    reads: usize,
    events: usize,
    changes: usize,
    by_subject: Vec<String>,
    sent_by_subject: Vec<String>,
    /// What it has sent since the last change that counts, renewals of leases left out.
    in_vain: usize,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Record(Mutex<Inner>);

/// What is left of a world when it has ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Remains {
    pub(super) trace: Trace,
    pub(super) passed: Vec<Passed>,
    pub(super) removals: Vec<Removal>,
    pub(super) violations: Vec<Violation>,
    /// Faults that never came about.
    pub(super) unreached: Vec<Fault>,
}

impl Record {
    pub(super) fn new(faults: Faults, properties: Arc<[Property]>) -> Self {
        let now = Instant::now();
        Self(Mutex::new(Inner {
            zero: now,
            faults,
            reached: BTreeSet::new(),
            properties,
            has_begun: false,
            entries: Vec::new(),
            state: State::default(),
            serving: None,
            counts: Counts::default(),
            passed: Vec::new(),
            revisions: Vec::new(),
            last_change: now,
            account: Account::default(),
            watches: BTreeMap::new(),
            step: 0,
            stage: 0,
            blind_since: None,
            violations: Vec::new(),
        }))
    }

    /// The point of the next request or event of the operator under test.
    pub(super) fn next(&self, kind: fn(usize) -> Point) -> Point {
        let counts = &mut lock(&self.0).counts;
        let count = match kind(0) {
            Point::Write(_) => &mut counts.writes,
            Point::Read(_) => &mut counts.reads,
            Point::Event(_) => &mut counts.events,
        };
        *count += 1;
        kind(*count)
    }

    /// What goes wrong at a point.
    pub(super) fn mishaps(&self, point: Option<Point>) -> Vec<(Mishap, Point)> {
        let Some(point) = point else { return Vec::new() };
        let inner = &mut *lock(&self.0);
        let found: Vec<_> = inner.faults.at(point).map(|mishap| (mishap, point)).collect();
        inner.reached.extend(found.iter().map(|(mishap, point)| Fault { mishap: *mishap, point: *point }));
        found
    }

    pub(super) fn note(&self, actor: &Actor, what: What) {
        lock(&self.0).note(actor, what);
    }

    /// The world is made, and programs start.
    pub(super) fn begin(&self) {
        lock(&self.0).has_begun = true;
    }

    /// A request is about to be carried out.
    pub(super) fn asked(&self, actor: &Actor, ask: &Ask, point: Option<Point>) -> usize {
        let inner = &mut *lock(&self.0);
        if let Some(point) = point {
            let passed = inner.pass(point, ask.verb, &ask.place);
            passed.asked.clone_from(&ask.text);
            passed.takes_old = ask.takes_old;
            if matches!(point, Point::Write(_)) {
                inner.counts.in_vain += 1;
                inner.counts.sent_by_subject.push(format!("{} {}", ask.verb, ask.place));
            }
        }
        let (place, part) = (ask.place.clone(), ask.part.clone());
        inner.note(actor, What::Asked { point, verb: ask.verb, place, part, answer: Answer::None });
        inner.entries.len().saturating_sub(1)
    }

    /// It was answered.
    pub(super) fn answered(&self, entry: usize, told: Answer) {
        let inner = &mut *lock(&self.0);
        let changes = inner.counts.changes;
        if let Some(Entry { what: What::Asked { answer, point, .. }, .. }) = inner.entries.get_mut(entry) {
            *answer = told;
            let passed = inner.passed.iter_mut().rev().find(|passed| Some(passed.point) == *point);
            if let Some(passed) = passed {
                passed.changes_after = changes;
            }
        }
    }

    /// An event was delivered or not.
    pub(super) fn told(&self, actor: &Actor, what: What, initial: bool) {
        let inner = &mut *lock(&self.0);
        if let What::Told { point: Some(point), event, place, .. } = &what {
            inner.pass(*point, event, place).initial = initial;
        }
        inner.note(actor, what);
    }

    /// A watch begins at this revision.
    pub(super) fn watching(&self, actor: &Actor, collection: &Place, revision: u64) {
        let place = Place { namespace: "".into(), name: "".into(), ..collection.clone() };
        lock(&self.0).watches.insert((actor.clone(), place), revision);
    }

    /// Whether an event shows what was there already when the watch began.
    pub(super) fn is_initial(&self, actor: &Actor, place: &Place, revision: u64) -> bool {
        let place = Place { namespace: "".into(), name: "".into(), ..place.clone() };
        lock(&self.0).watches.get(&(actor.clone(), place)).is_some_and(|began| revision <= *began)
    }

    /// Changes from now on are this one's doing.
    pub(super) fn serving(&self, life: Option<&Arc<Life>>) {
        lock(&self.0).serving = life.map(Arc::clone);
    }

    /// The main cluster's revision before the last so many changes.
    pub(super) fn revision_before(&self, changes: usize) -> u64 {
        let inner = lock(&self.0);
        let first = inner.revisions.first().map_or(0, |first| first.saturating_sub(1));
        let kept = inner.revisions.len().saturating_sub(changes);
        kept.checked_sub(1).and_then(|last| inner.revisions.get(last)).copied().unwrap_or(first)
    }

    /// A cluster's object is this now, or gone.
    pub(super) fn committed(&self, place: Place, after: Option<Value>, revision: u64) {
        let inner = &mut *lock(&self.0);
        let after = after.map(Arc::new);
        let before = match &after {
            Some(after) => inner.state.objects.insert(place.clone(), Arc::clone(after)),
            None => inner.state.objects.remove(&place),
        };
        if &*place.cluster == MAIN && !is_aside(&place.resource) {
            inner.revisions.push(revision);
        }
        inner.changed(place, before.as_deref(), after.as_deref());
    }

    pub(super) fn external(&self, name: &str) -> Option<Value> {
        lock(&self.0).state.external.get(name).cloned()
    }

    pub(super) fn set_external(&self, name: &str, value: Option<&Value>) {
        let inner = &mut *lock(&self.0);
        let before = match value {
            Some(value) => inner.state.external.insert(name.to_owned(), value.clone()),
            None => inner.state.external.remove(name),
        };
        // As with objects, what is written as it is already is not changed.
        if before.as_ref() != value {
            inner.changed(Place::new("external", "", name), before.as_ref(), value);
        }
    }

    /// The user takes a step, after having waited so often before.
    pub(super) fn begin_step(&self, text: String, user: &Actor, stage: usize) {
        let inner = &mut *lock(&self.0);
        inner.step += 1;
        inner.stage = stage;
        inner.last_change = Instant::now();
        let number = inner.step;
        inner.note(user, What::Step { number, text });
    }

    pub(super) fn go_blind(&self) {
        let inner = &mut *lock(&self.0);
        inner.blind_since.get_or_insert(inner.step);
    }

    pub(super) fn is_blind(&self) -> bool {
        lock(&self.0).blind_since.is_some()
    }

    /// Whether things were hidden before the step that goes on now.
    pub(super) fn is_blind_since_before(&self) -> bool {
        let inner = lock(&self.0);
        inner.blind_since.is_some_and(|since| since < inner.step)
    }

    pub(super) fn see(&self) {
        let inner = &mut *lock(&self.0);
        inner.blind_since = None;
        inner.last_change = Instant::now();
    }

    /// For how long nothing has changed.
    pub(super) fn quiet_for(&self) -> Duration {
        lock(&self.0).last_change.elapsed()
    }

    /// How many writes the operator under test has sent since anything changed.
    pub(super) fn sent_in_vain(&self) -> usize {
        lock(&self.0).counts.in_vain
    }

    /// Waiting for quiet begins anew.
    pub(super) fn stir(&self) {
        lock(&self.0).last_change = Instant::now();
    }

    pub(super) fn state(&self) -> State {
        lock(&self.0).state.clone()
    }

    pub(super) fn violate(&self, violation: Violation) {
        lock(&self.0).violations.push(violation);
    }

    pub(super) fn is_violated(&self) -> bool {
        !lock(&self.0).violations.is_empty()
    }

    /// What the operator under test has changed, and what it has sent, since this was asked last.
    pub(super) fn take_done_by_subject(&self) -> (Vec<String>, Vec<String>) {
        let counts = &mut lock(&self.0).counts;
        (std::mem::take(&mut counts.by_subject), std::mem::take(&mut counts.sent_by_subject))
    }

    /// Whether something has gone wrong since the second pass began.
    pub(super) fn is_second_pass_disturbed(&self) -> bool {
        let inner = lock(&self.0);
        let mut since = inner.entries.iter().rev().take_while(|entry| entry.what != What::SecondPass);
        since.any(|entry| matches!(entry.what, What::Mishap { .. }))
    }

    /// Who made the last change, for when there is no end to it.
    pub(super) fn last_change(&self) -> String {
        let inner = lock(&self.0);
        let last = inner.entries.iter().rev().find(|entry| match &entry.what {
            What::Changed { place, .. } => !is_aside(&place.resource),
            _ => false,
        });
        last.map_or_else(
            || "nothing".to_owned(),
            |entry| format!("{}: {}", entry.actor, entry.what.to_string().trim()),
        )
    }

    /// Everything, when the world has ended.
    pub(super) fn take(&self) -> Remains {
        let inner = &mut *lock(&self.0);
        let faults = inner.faults.0.iter().copied();
        let unreached = faults.filter(|fault| !inner.reached.contains(fault)).collect();
        Remains {
            trace: Trace(std::mem::take(&mut inner.entries)),
            passed: std::mem::take(&mut inner.passed),
            removals: inner.account.take(),
            violations: std::mem::take(&mut inner.violations),
            unreached,
        }
    }
}

impl Inner {
    /// The operator under test passes a point.
    fn pass(&mut self, point: Point, verb: &'static str, place: &Place) -> &mut Passed {
        let changes = self.counts.changes;
        self.passed.push_mut(Passed {
            point,
            verb,
            asked: String::new(),
            place: place.clone(),
            step: self.step,
            changes_before: changes,
            changes_after: changes,
            takes_old: false,
            initial: false,
        })
    }

    fn note(&mut self, actor: &Actor, what: What) {
        if !self.has_begun {
            return;
        }
        self.entries.push(Entry { at: self.zero.elapsed(), actor: actor.clone(), what });
    }

    /// An object or something outside is another now.
    fn changed(&mut self, place: Place, before: Option<&Value>, after: Option<&Value>) {
        let aside = is_aside(&place.resource);
        let secret = &*place.resource == "secrets";
        let change = describe(before, after, !secret, aside);
        let life = self.serving.clone();
        let actor = life.as_ref().map_or_else(server, |life| life.actor.clone());
        let is_subject = life.as_ref().is_some_and(|life| life.is_subject);
        // Nobody counts on what an instance makes in whose place there is another.
        if before.is_none() && life.is_some_and(|life| life.is_replaced()) {
            self.account.expect_nothing_of(&place);
        }
        self.account.keep(&self.state, self.stage, &place, &actor, before, after);
        if !aside {
            self.counts.changes += 1;
            self.counts.in_vain = 0;
            self.last_change = Instant::now();
            if is_subject {
                self.counts.by_subject.push(format!("{place}: {change}"));
            }
        }
        self.note(&actor, What::Changed { place, change });
        if aside || !self.has_begun {
            return;
        }
        for property in self.properties.clone().iter() {
            let known = |violation: &Violation| matches!(violation, Violation::Property { name, .. } if *name == property.name);
            if !self.violations.iter().any(known)
                && let Err(why) = property.judge(&self.state)
            {
                self.violations.push(Violation::Property { name: property.name.clone(), why });
            }
        }
    }
}

/// The server itself: garbage collection, namespaces.
pub(super) fn server() -> Actor {
    Actor { name: "server".into(), incarnation: 0 }
}
