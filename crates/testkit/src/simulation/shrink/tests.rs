use std::cell::Cell;
use std::time::Duration;

use proptest::prelude::*;

use super::super::fault::{Fault, Mishap, Point};
use super::super::script::{Action, Script};
use super::*;

/// A script of so many steps, told apart by how long the user waits.
fn script(steps: u64) -> Script {
    (1..=steps).fold(Script::new(), |script, seconds| script.wait(Duration::from_secs(seconds)))
}

fn course(seed: u64, faults: &str, steps: u64) -> Course {
    Course { seed, faults: faults.parse().unwrap(), script: script(steps) }
}

fn waits(course: &Course) -> Vec<u64> {
    let wait = |action: &Action| match action {
        Action::Wait(time) => time.as_secs(),
        other => panic!("{other:?}"),
    };
    course.script.steps.iter().map(|step| wait(&step.action)).collect()
}

fn property(why: &str) -> Vec<Violation> {
    vec![Violation::Property { name: "it".to_owned(), why: why.to_owned() }]
}

fn found(why: &str) -> Found {
    (Run::default(), property(why))
}

#[test]
fn needless_faults_and_steps_and_the_seed_are_dropped() {
    let faults = "crash after write 1, hold event 3, reset before write 4, cut before event 9";
    let is_needed = |course: &Course| course.faults.to_string().contains("reset before write 4");
    let (short, (_, why), tried) = shrink(course(7, faults, 6), found("long"), |course| {
        let fails = is_needed(course) && waits(course).contains(&2) && waits(course).contains(&5);
        fails.then(|| found("short"))
    });
    assert_eq!((short.seed, short.faults.to_string()), (0, "reset before write 4".to_owned()));
    assert_eq!(waits(&short), [2, 5]);
    assert_eq!(why, property("short"), "what the short course came to is told");
    assert!(tried > 7 && tried < TRIES_MAX, "{tried}");
}

#[test]
fn what_needs_two_faults_keeps_both() {
    let faults = "crash after write 1, hold event 3, reset before write 4";
    let (short, ..) = shrink(course(0, faults, 1), found(""), |course| {
        let faults = course.faults.to_string();
        (faults.contains("crash") && faults.contains("reset")).then(|| found(""))
    });
    assert_eq!(short.faults.to_string(), "crash after write 1, reset before write 4");
    assert!(waits(&short).is_empty());
}

#[test]
fn what_only_a_seed_does_is_left_without_faults() {
    let (short, ..) = shrink(course(7, "crash after write 1", 0), found(""), |course| {
        (course.seed == 7).then(|| found(""))
    });
    assert_eq!((short.seed, short.faults), (7, Faults::default()));
}

#[test]
fn the_last_fault_is_kept_where_nothing_else_is_out_of_the_ordinary() {
    let (short, ..) = shrink(course(0, "crash after write 1", 3), found(""), |_| Some(found("")));
    assert_eq!(short, course(0, "crash after write 1", 0));
}

#[test]
fn another_kind_of_failure_is_not_taken_for_this_one() {
    let lost = || vec![Violation::Lost { what: "a".to_owned(), by: "b".to_owned() }];
    let long = course(3, "crash after write 1, hold event 3", 2);
    let (short, (_, why), _) = shrink(long.clone(), found("long"), |_| Some((Run::default(), lost())));
    assert_eq!((short, why), (long.clone(), property("long")));
    // One that is among several will do.
    let both = || Some((Run::default(), [lost(), property("")].concat()));
    let (short, ..) = shrink(long, found("long"), |_| both());
    assert_eq!((short.seed, waits(&short).len()), (0, 0));
}

#[test]
fn a_shortened_script_that_the_server_refuses_is_another_failure() {
    let refused = |why: &str| Violation::Refused { step: "patch lab".to_owned(), why: why.to_owned() };
    let fails = |course: &Course| {
        // Without its first step, which creates, the script is refused for another reason.
        let why = if waits(course).contains(&1) { "422" } else { "404" };
        Some((Run::default(), vec![refused(why)]))
    };
    let found_first = (Run::default(), vec![refused("422")]);
    let (short, (_, why), _) = shrink(course(0, "nothing", 3), found_first, fails);
    assert_eq!((waits(&short), why), (vec![1], vec![refused("422")]));
    // Nor may a refusal come along with what was found.
    let (short, ..) = shrink(course(0, "nothing", 3), found(""), |course| {
        let more = (!waits(course).contains(&1)).then(|| refused("404"));
        Some((Run::default(), property("").into_iter().chain(more).collect()))
    });
    assert_eq!(waits(&short), [1]);
}

#[test]
fn after_so_many_tries_it_stops() {
    let long = course(0, "crash after write 1", 200);
    let asked = Cell::new(0);
    let never = |_: &Course| {
        asked.set(asked.get() + 1);
        None
    };
    let (short, _, tried) = shrink(long.clone(), found(""), never);
    assert_eq!((short, tried, asked.get()), (long.clone(), TRIES_MAX, TRIES_MAX));
    asked.set(0);
    let always = |_: &Course| {
        asked.set(asked.get() + 1);
        Some(found(""))
    };
    let (short, _, tried) = shrink(long, found(""), always);
    assert_eq!((waits(&short).len(), tried, asked.get()), (200 - TRIES_MAX, TRIES_MAX, TRIES_MAX));
}

proptest! {
    /// Whatever few faults and steps a failure needs, they are what is left, in their order.
    #[test]
    fn exactly_what_is_needed_is_left(
        seed in 0..3_u64,
        writes in proptest::sample::subsequence((1..=5_usize).collect::<Vec<_>>(), 1..=3),
        steps in proptest::sample::subsequence((1..=5_u64).collect::<Vec<_>>(), 0..=3),
    ) {
        let fault = |write: usize| Fault { mishap: Mishap::Reset, point: Point::Write(write) };
        let faults: Vec<Fault> = (1..=5).map(fault).collect();
        let long = Course { seed, faults: Faults(faults), script: script(5) };
        let needed: Vec<Fault> = writes.into_iter().map(fault).collect();
        let (short, ..) = shrink(long, found(""), |course| {
            let faults = needed.iter().all(|fault| course.faults.0.contains(fault));
            let waits = waits(course);
            (faults && steps.iter().all(|step| waits.contains(step))).then(|| found(""))
        });
        prop_assert_eq!(short.seed, 0);
        prop_assert_eq!(&short.faults.0, &needed);
        prop_assert_eq!(waits(&short), steps);
    }
}
