//! The shelf's laws against a model: a server with a history, and a world that delays, repeats, drops and cuts.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::kind::{Kind, Scope};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// What happens next. Numbers choose among what is possible.
#[derive(Debug, Clone)]
enum Step {
    /// Someone else creates, changes or deletes.
    Foreign(usize, bool),
    /// We create, change or delete; the answer is on its way.
    Own(usize, bool),
    /// One of the answers arrives.
    Answer(usize),
    /// The watch delivers its next event.
    Deliver,
    /// The watch is cut and goes on from so many events before.
    Rewind(usize),
    /// The watch tells how far it is.
    Bookmark,
    /// The next event is lost. Only a list can repair that.
    Lose,
    /// A list begins that shows the server as it was so many events ago.
    List(usize),
    /// The list goes on by an item, or ends.
    ListOn,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3_usize, prop::bool::weighted(0.35)).prop_map(|(name, delete)| Step::Foreign(name, delete)),
        (0..3_usize, prop::bool::weighted(0.35)).prop_map(|(name, delete)| Step::Own(name, delete)),
        (0..4_usize).prop_map(Step::Answer),
        (0..4_usize).prop_map(Step::Answer),
        Just(Step::Deliver),
        Just(Step::Deliver),
        (0..6_usize).prop_map(Step::Rewind),
        Just(Step::Bookmark),
        Just(Step::Lose),
        (0..6_usize).prop_map(Step::List),
        Just(Step::ListOn),
        Just(Step::ListOn),
    ];
    prop::collection::vec(step, 0..60)
}

/// One entry of the server's history. Its index is its revision less one.
#[derive(Debug, Clone)]
struct Entry {
    name: usize,
    uid: u64,
    deleted: bool,
}

#[derive(Debug, Clone)]
enum Answer {
    Written(usize),
    Deleted { name: usize, uid: u64, known: u64 },
}

#[derive(Default)]
struct World {
    shelf: Shelf,
    history: Vec<Entry>,
    /// How much of the history the watch has delivered.
    delivered: usize,
    answers: Vec<Answer>,
    list: Option<(Vec<usize>, u64)>,
    /// Events were lost since the last list that showed them.
    lost: Option<usize>,
    deleted_by_us: BTreeSet<u64>,
    /// The newest of our writes of which we had the answer, by uid.
    ours: BTreeMap<u64, u64>,
}

thread_local! {
    static KIND: Kind = Kind::new("v1", "Thing", "things", Scope::Namespaced);
}

fn object(entry: &Entry, revision: usize) -> Object {
    let (name, uid) = (NAMES[entry.name], entry.uid);
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"n","uid":"{uid}","resourceVersion":"{revision}"}}}}"#
    );
    KIND.with(|kind| Object::read(kind, json.as_bytes())).unwrap()
}

impl World {
    /// What exists after so many entries: the index of each name's newest entry.
    fn state_at(&self, length: usize) -> BTreeMap<usize, usize> {
        let mut state = BTreeMap::new();
        for (index, entry) in self.history[..length].iter().enumerate() {
            if entry.deleted {
                state.remove(&entry.name);
            } else {
                state.insert(entry.name, index);
            }
        }
        state
    }

    fn object_at(&self, index: usize) -> Object {
        object(&self.history[index], index + 1)
    }

    /// Creates, changes or deletes on the server. Returns the entry and the one before of the same name.
    fn write(&mut self, name: usize, delete: bool) -> Option<(usize, Option<usize>)> {
        let before = self.state_at(self.history.len()).get(&name).copied();
        let uid = match before {
            Some(index) => self.history[index].uid,
            None if delete => return None,
            None => self.history.len() as u64 + 1,
        };
        self.history.push(Entry { name, uid, deleted: delete });
        Some((self.history.len() - 1, before))
    }

    /// A list that was cut short is begun again before anything else is heard.
    fn follows(&self) -> bool {
        self.shelf.listing.is_none()
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Foreign(name, delete) => drop(self.write(name, delete)),
            Step::Own(name, false) => {
                if let Some((index, _)) = self.write(name, false) {
                    self.answers.push(Answer::Written(index));
                }
            }
            Step::Own(name, true) => self.own_delete(name),
            Step::Answer(choice) if !self.answers.is_empty() => {
                let answer = self.answers.remove(choice % self.answers.len());
                self.answer(&answer);
            }
            Step::Deliver if self.follows() => self.deliver(),
            Step::Rewind(back) => {
                self.delivered = self.delivered.saturating_sub(back);
                self.list = None;
            }
            Step::Bookmark if self.follows() => {
                self.shelf.apply_event(Event::Bookmark(self.delivered as u64));
            }
            Step::Lose if self.follows() && self.delivered < self.history.len() => {
                self.delivered += 1;
                self.lost = Some(self.delivered);
            }
            Step::List(back) => self.begin_list(back),
            Step::ListOn => self.list_on(),
            Step::Answer(_) | Step::Deliver | Step::Bookmark | Step::Lose => {}
        }
    }

    /// We delete only what we see, by its uid.
    fn own_delete(&mut self, name: usize) {
        let Some(held) = self.shelf.get(&Key::namespaced("n", NAMES[name])).cloned() else { return };
        let uid: u64 = held.uid().parse().unwrap();
        let exists = self.state_at(self.history.len()).get(&name).copied();
        if exists.is_some_and(|index| self.history[index].uid == uid) {
            self.write(name, true);
            self.answers.push(Answer::Deleted { name, uid, known: held.revision() });
        }
    }

    fn answer(&mut self, answer: &Answer) {
        match *answer {
            Answer::Written(index) => {
                let uid = self.history[index].uid;
                self.shelf.own_write(self.object_at(index));
                let newest = self.ours.entry(uid).or_default();
                *newest = (*newest).max(index as u64 + 1);
            }
            Answer::Deleted { name, uid, known } => {
                self.shelf.own_delete(&Key::namespaced("n", NAMES[name]), &uid.to_string(), known);
                self.deleted_by_us.insert(uid);
            }
        }
    }

    fn deliver(&mut self) {
        if let Some(entry) = self.history.get(self.delivered) {
            self.delivered += 1;
            let object = object(entry, self.delivered);
            let event = if entry.deleted { Event::Gone(object) } else { Event::Seen(object) };
            self.shelf.apply_event(event);
        }
    }

    fn begin_list(&mut self, back: usize) {
        let length = self.history.len().saturating_sub(back);
        if length == 0 {
            return;
        }
        self.shelf.begin_relist(Relist::CatchUp);
        let items = self.state_at(length).into_values().rev().collect();
        self.list = Some((items, length as u64));
    }

    fn list_on(&mut self) {
        let Some((items, revision)) = &mut self.list else { return };
        let revision = *revision;
        if let Some(index) = items.pop() {
            self.shelf.item(self.object_at(index));
            return;
        }
        let progress = self.shelf.progress();
        self.shelf.end_relist(revision);
        self.list = None;
        // As the watch does: from the list on, but never back.
        self.delivered = usize::try_from(self.shelf.progress()).unwrap();
        if self.lost.is_some_and(|lost| lost as u64 <= revision && progress <= revision) {
            self.lost = None;
        }
    }

    /// What must be true at all times.
    fn check(&self) {
        for object in self.shelf.list(None, &Selector::everything()) {
            let uid: u64 = object.uid().parse().unwrap();
            assert!(!self.deleted_by_us.contains(&uid), "{object:?} was deleted by us");
            if let Some(ours) = self.ours.get(&uid) {
                assert!(object.revision() >= *ours, "{object:?} is older than our write {ours}");
            }
        }
    }

    /// Everything is delivered; a list is read only if something was lost for good or one was cut short.
    fn settle(&mut self) {
        while let Some(answer) = self.answers.pop() {
            self.answer(&answer);
            self.check();
        }
        if self.lost.is_some() || self.shelf.listing.is_some() {
            self.begin_list(0);
            while self.list.is_some() {
                self.list_on();
                self.check();
            }
        }
        while self.delivered < self.history.len() {
            self.deliver();
            self.check();
        }
        let expected: Vec<String> = self
            .state_at(self.history.len())
            .into_values()
            .map(|index| format!("{:?}", self.object_at(index)))
            .collect();
        let held = self.shelf.list(None, &Selector::everything());
        let held: Vec<String> = held.iter().map(|object| format!("{object:?}")).collect();
        assert_eq!(held, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn own_writes_are_seen_deletions_stay_and_everything_arrives(steps in steps()) {
        let mut world = World::default();
        for step in &steps {
            world.step(step);
            world.check();
        }
        world.settle();
    }

    #[test]
    fn a_fresh_list_makes_graves_needless(steps in steps()) {
        let mut world = World::default();
        for step in &steps {
            world.step(step);
        }
        world.settle();
        world.begin_list(0);
        while world.list.is_some() {
            world.list_on();
        }
        prop_assert!(world.shelf.graves.is_empty());
        let everything = world.shelf.list(None, &Selector::everything());
        prop_assert_eq!(world.shelf.len(), everything.len());
        prop_assert_eq!(world.shelf.json_bytes(), everything.iter().map(|object| object.json().len()).sum::<usize>());
    }
}
