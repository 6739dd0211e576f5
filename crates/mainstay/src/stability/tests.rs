//! What is a loop, and what only looks like one.

mod innocent;

use std::collections::BTreeMap;
use std::time::Duration;

use expect_test::expect;
use tokio::time::Instant;

use super::*;
use crate::{Key, Kind, Scope};

type TestWrite = Write<&'static str>;

fn object(kind: &str, name: &str) -> ObjectRef {
    let plural = format!("{}s", kind.to_lowercase());
    let kind = Kind::new("example.com/v1", kind, &plural, Scope::Namespaced);
    ObjectRef { kind, key: Key::namespaced("shop", name) }
}

fn parent() -> ObjectRef {
    object("Shop", "web")
}

fn field(object: &ObjectRef, path: &'static str, to: u64) -> TestWrite {
    Write { object: object.clone(), what: Wrote::Field { path, to: Fingerprint::of(&to) } }
}

fn created(object: &ObjectRef) -> TestWrite {
    Write { object: object.clone(), what: Wrote::Created }
}

fn deleted(object: &ObjectRef) -> TestWrite {
    Write { object: object.clone(), what: Wrote::Deleted }
}

/// One parent and what its passes see. A minute goes by with every pass.
struct World {
    loops: Loops<&'static str>,
    asked: u64,
    statuses: BTreeMap<ObjectRef, u64>,
    now: Instant,
}

impl World {
    fn new() -> Self {
        let loops = Loops::new(LoopSettings::default());
        Self { loops, asked: 1, statuses: BTreeMap::new(), now: Instant::now() }
    }

    fn status(&mut self, object: &ObjectRef, status: u64) {
        self.statuses.insert(object.clone(), status);
    }

    fn asked(&self) -> Fingerprint {
        Fingerprint::of(&self.asked)
    }

    fn pass(&mut self, writes: &[TestWrite]) -> Stability<&'static str> {
        self.now += Duration::from_mins(1);
        let seen = self.statuses.iter().map(|(object, status)| (object.clone(), Fingerprint::of(status)));
        let seen: Vec<_> = seen.collect();
        let pass = Pass { asked: self.asked(), seen: &seen, writes };
        self.loops.observe(&parent(), &pass, self.now)
    }

    /// Passes until one is a loop: how many it took, and the loop. At most thirty.
    fn until_loop(
        &mut self,
        mut next: impl FnMut(&mut Self, u64) -> Vec<TestWrite>,
    ) -> Option<(u64, Vec<Spot<&'static str>>)> {
        (1..=30).find_map(|round| {
            let writes = next(self, round);
            match self.pass(&writes) {
                Stability::Loop(spots) => Some((round, spots)),
                Stability::Quiet | Stability::Changing => None,
            }
        })
    }

    /// The round in which it is found, and how it is told.
    fn check(
        next: impl FnMut(&mut Self, u64) -> Vec<TestWrite>,
        round_expected: u64,
        told: &expect_test::Expect,
    ) {
        let (round, spots) = World::new().until_loop(next).expect("it should be found");
        let lines: Vec<_> = spots.iter().map(|spot| format!("{spot}\n")).collect();
        told.assert_eq(&lines.concat());
        assert_eq!(round, round_expected);
    }
}

#[test]
fn a_time_in_a_child_is_found_with_the_fifth_write() {
    let config = object("ConfigMap", "web");
    World::check(
        |_, round| vec![field(&config, "data.time", round)],
        5,
        &expect![[r#"
            ConfigMap.example.com/v1 shop/web: data.time: every sync gives another value, though nothing changed that it could depend on
        "#]],
    );
}

#[test]
fn whoever_allows_any_number_of_writes_has_no_loops() {
    let mut world = World::new();
    world.loops = Loops::new(LoopSettings { writes_max: u32::MAX, ..LoopSettings::default() });
    assert!(world.until_loop(|_, round| vec![field(&parent(), "status.time", round)]).is_none());
}

#[test]
fn a_count_of_syncs_in_the_status_is_found() {
    World::check(
        |_, round| vec![field(&parent(), "status.syncs", round), field(&parent(), "status.at", 100 + round)],
        5,
        &expect![[r#"
            Shop.example.com/v1 shop/web: status.syncs, status.at: every sync gives another value, though nothing changed that it could depend on
        "#]],
    );
}

#[test]
fn a_field_that_somebody_changes_back_is_found() {
    let deployment = object("Deployment", "web");
    let next = |world: &mut World, round| {
        world.status(&deployment, round);
        vec![field(&deployment, "spec.replicas", 3)]
    };
    World::check(
        next,
        5,
        &expect![[r#"
            Deployment.example.com/v1 shop/web: spec.replicas: somebody else changes it back each time
        "#]],
    );
}

#[test]
fn a_field_that_will_not_stay_is_told_apart_from_those_that_do() {
    let deployment = object("Deployment", "web");
    let next = |_: &mut World, round| {
        let mut writes = vec![field(&deployment, "spec.replicas", 3)];
        if round == 2 {
            writes.push(field(&deployment, "spec.paused", 1));
        }
        writes
    };
    let (_, spots) = World::new().until_loop(next).unwrap();
    assert_eq!(spots[0].paths, ["spec.replicas"]);
    assert_eq!(spots[0].cause, Cause::Fought);
}

#[test]
fn a_time_in_a_pod_template_is_found_though_its_status_changes_in_answer() {
    let deployment = object("Deployment", "web");
    let next = |world: &mut World, round| {
        world.status(&deployment, round);
        vec![field(&deployment, "spec.template.time", round)]
    };
    let (round, spots) = World::new().until_loop(next).unwrap();
    assert_eq!((round, spots[0].cause), (9, Cause::Unstable));
}

#[test]
fn children_that_echo_each_other_are_found() {
    let deployments = ["a", "b", "c"].map(|name| object("Deployment", name));
    let next = |world: &mut World, round| {
        for deployment in &deployments {
            world.status(deployment, round);
        }
        deployments.iter().map(|deployment| field(deployment, "spec.time", round)).collect()
    };
    let (round, spots) = World::new().until_loop(next).unwrap();
    assert_eq!((round, spots.len()), (9, 3));
}

#[test]
fn going_in_circles_is_found_sooner_than_going_on() {
    let deployment = object("Deployment", "web");
    let next = |world: &mut World, round| {
        world.status(&deployment, round);
        vec![field(&deployment, "spec.paused", round % 2)]
    };
    let (round, spots) = World::new().until_loop(next).unwrap();
    assert_eq!((round, spots[0].cause), (6, Cause::Unstable));
}

#[test]
fn fields_of_random_names_are_found() {
    const KEYS: [&str; 31] = {
        let mut keys = [""; 31];
        let all = "abcdefghijklmnopqrstuvwxyzABCDEFG";
        let mut at = 0;
        while at < keys.len() {
            keys[at] = all.split_at(at + 1).0.split_at(at).1;
            at += 1;
        }
        keys
    };
    let config = object("ConfigMap", "web");
    let next = |_: &mut World, round: u64| {
        let at = usize::try_from(round).unwrap();
        vec![field(&config, KEYS[at], 1), field(&config, KEYS[at - 1], 0)]
    };
    let (round, spots) = World::new().until_loop(next).unwrap();
    assert!(round <= 11, "{round}");
    assert_eq!(spots[0].paths.len(), 2);
}

#[test]
fn children_of_random_names_are_found() {
    let name = |round: u64| object("Config", &format!("web-{round}"));
    World::check(
        |_, round| vec![created(&name(round)), deleted(&name(round - 1))],
        5,
        &expect![[r#"
            the names of Config.example.com/v1 children: every sync gives another value, though nothing changed that it could depend on
        "#]],
    );
}

#[test]
fn children_of_random_names_are_found_though_they_have_a_status() {
    let name = |round: u64| object("Job", &format!("web-{round}"));
    let next = |world: &mut World, round| {
        world.statuses.clear();
        world.status(&name(round - 1), 1);
        vec![created(&name(round)), deleted(&name(round - 1))]
    };
    let (round, spots) = World::new().until_loop(next).unwrap();
    assert!(round <= 10, "{round}");
    assert!(spots.iter().any(|spot| matches!(spot.subject, Subject::Names(_))));
}

#[test]
fn a_child_that_comes_and_goes_is_found() {
    let config = object("ConfigMap", "web");
    let next = |_: &mut World, round| vec![if round % 2 == 1 { created(&config) } else { deleted(&config) }];
    let (round, spots) = World::new().until_loop(next).unwrap();
    assert_eq!((round, spots[0].cause, spots[0].paths.len()), (5, Cause::Unstable, 0));
}

#[test]
fn a_child_that_is_deleted_each_time_is_found_late() {
    let pod = object("Pod", "web");
    let (round, spots) = World::new().until_loop(|_, _| vec![created(&pod)]).unwrap();
    assert_eq!((round, spots[0].cause), (8, Cause::Fought));
}

/// Makes a loop and returns the world at its first round.
fn looping() -> (World, Subject) {
    let mut world = World::new();
    let config = object("ConfigMap", "web");
    world.until_loop(|_, round| vec![field(&config, "data.time", round)]).unwrap();
    (world, Subject::Object(config))
}

#[test]
fn a_loop_is_held_longer_each_time_up_to_ten_minutes() {
    let (mut world, subject) = looping();
    let config = object("ConfigMap", "web");
    let mut waits = Vec::new();
    for round in 0..9 {
        let asked = world.asked();
        let until = world.loops.held(&parent(), asked, &subject, world.now).unwrap().until;
        waits.push((until - world.now).as_secs());
        assert!(world.loops.held(&parent(), asked, &subject, until).is_none());
        world.now = until;
        world.pass(&[field(&config, "data.time", 100 + round)]);
    }
    assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
}

#[test]
fn other_children_of_the_parent_are_not_held() {
    let (world, _) = looping();
    let other = Subject::Object(object("ConfigMap", "other"));
    assert_eq!(world.loops.held(&parent(), world.asked(), &other, world.now), None);
    assert_eq!(world.loops.spots(&parent()).count(), 1);
}

#[test]
fn a_change_of_the_parent_ends_a_loop_at_once() {
    let (mut world, subject) = looping();
    world.asked = 2;
    assert_eq!(world.loops.held(&parent(), world.asked(), &subject, world.now), None);
    assert_eq!(world.pass(&[]), Stability::Quiet);
    assert!(world.loops.is_empty());
}

#[test]
fn a_loop_is_over_when_nothing_was_written_for_the_length_of_the_window() {
    let (mut world, _) = looping();
    world.now += Duration::from_mins(58);
    world.pass(&[]);
    assert_eq!(world.loops.spots(&parent()).count(), 1);
    world.now += Duration::from_mins(30);
    world.pass(&[]);
    assert!(world.loops.is_empty());
}

#[test]
fn a_parent_that_is_gone_is_forgotten() {
    let (mut world, _) = looping();
    world.loops.forget(&parent());
    assert_eq!(world.loops.spots(&parent()).count(), 0);
    assert!(world.loops.is_empty());
}

#[test]
fn a_parent_that_writes_nothing_costs_nothing() {
    let mut world = World::new();
    for round in 0..100 {
        world.status(&object("Pod", "web"), round);
        assert_eq!(world.pass(&[]), Stability::Quiet);
    }
    assert_eq!(world.loops.len(), 0);
}

#[test]
fn more_children_than_can_be_remembered_do_no_harm() {
    let children: Vec<_> = (0..5_000).map(|at| object("ConfigMap", &at.to_string())).collect();
    let next = |_: &mut World, round| children.iter().map(|child| field(child, "data.time", round)).collect();
    let (round, spots) = World::new().until_loop(next).unwrap();
    assert_eq!(round, 5);
    assert!(spots.len() >= 1_000);
}
