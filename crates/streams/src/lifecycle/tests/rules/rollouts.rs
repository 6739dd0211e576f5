//! Roll-outs of a changed template or Secret: who has a seat, and for how long.

use expect_test::expect;

use super::{check, running};
use crate::lifecycle::tests::world::{FATAL, World, seconds};
use crate::lifecycle::{Health, Seat};

const HELD: Seat = Seat::Held { is_failing: false };
const FAILING: Seat = Seat::Held { is_failing: true };

/// A stream that was restarted for a changed template.
fn rolled_out() -> World {
    let mut world = running();
    world.user.template = 1;
    assert_eq!(world.decide().seat, HELD);
    world.settle();
    assert_eq!(world.jobs[0].name, "s-2");
    world
}

fn pods(world: &mut World, health: &Health) {
    world.jobs.iter_mut().for_each(|job| job.health = health.clone());
}

fn stuck() -> Health {
    Health::NotYet { why: "ErrImagePull: not found".to_owned(), is_stuck: true }
}

#[test]
fn a_run_whose_pods_are_not_ready_says_why() {
    let mut world = running();
    pods(&mut world, &stuck());
    let unready = world.decide().unready;
    assert_eq!(unready.as_deref(), Some("The pods of Job s-1 are not ready: ErrImagePull: not found"));
    pods(&mut world, &Health::Ready);
    assert_eq!(world.decide().unready, None);
}

#[test]
fn a_seat_is_held_until_the_new_run_has_been_ready_for_long_enough() {
    let mut world = rolled_out();
    assert_eq!(world.decide().seat, HELD);
    pods(&mut world, &stuck());
    assert_eq!(world.decide().seat, FAILING);
    pods(&mut world, &Health::Ready);
    check(
        &world,
        expect![[r#"
        Running Running: Job s-2 runs
        s-2 attempt 0, again in 10s
    "#]],
    );
    world.step();
    world.now += seconds(9);
    assert_eq!(world.decide().seat, HELD);
    pods(&mut world, &stuck());
    world.step();
    pods(&mut world, &Health::Ready);
    world.step();
    world.now += seconds(9);
    assert_eq!(world.decide().seat, HELD, "it begins again");
    world.now += seconds(1);
    assert_eq!((world.step().seat, world.status.rollout.is_none()), (Seat::None, true));
}

#[test]
fn a_run_that_fails_keeps_its_seat_until_it_is_mended() {
    let mut world = rolled_out();
    pods(&mut world, &Health::Ready);
    world.step();
    world.fail(FATAL);
    assert_eq!(world.settle().seat, FAILING);
    assert!(world.jobs.is_empty() && world.status.rollout.is_some());
    world.user.template = 2;
    world.settle();
    assert_eq!(world.decide().seat, HELD);
    pods(&mut world, &Health::Ready);
    assert_eq!(world.settle().seat, Seat::None);
}

#[test]
fn a_stream_that_is_suspended_or_done_has_no_seat() {
    let mut world = rolled_out();
    world.user.is_suspended = true;
    assert_eq!(world.settle().seat, Seat::None);
    let mut world = rolled_out();
    world.complete();
    world.step();
    assert_eq!(world.decide().seat, Seat::None);
}

#[test]
fn a_schedule_gives_its_seat_back_at_once() {
    let mut world = World::default();
    world.user.is_scheduled = true;
    world.settle();
    world.user.template = 1;
    assert_eq!(world.decide().seat, HELD);
    assert_eq!((world.settle().seat, world.schedule.unwrap().name.as_str()), (Seat::None, "c-2"));
}

#[test]
fn a_change_that_is_not_rolled_out_takes_no_seat() {
    let mut world = running();
    (world.user.template, world.user.spec) = (1, 1);
    assert_eq!(world.decide().seat, Seat::None);
    assert_eq!(world.settle().seat, Seat::None);
}
