//! Kinds of things that go wrong, and every place at which each of them can. Pure.
//!
//! Places at which the same thing would happen to the same world are tried once. An operator that dies after its third
//! write and one that dies before its fourth leave the same state behind, if nobody changed anything in between.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use super::fault::{Fault, Faults, Mishap, Point};
use super::record::Passed;

/// How far time travel goes back.
const TRAVEL_CHANGES_MAX: usize = 12;
const HOUR_SECONDS: i64 = 3600;
/// A question that is asked more often than this while nothing changes is asked by a loop.
const SAME_QUESTIONS_MAX: usize = 3;

/// What goes wrong, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Family {
    /// The operator dies before and after each write, and starts with empty caches.
    CrashPoints,
    /// Each request is refused or lost, or its answer is.
    Requests,
    /// Each event is late, repeated, or lost with its watch; what happens meanwhile goes unseen.
    Watches,
    /// The operator is started again on an API server that lags behind.
    TimeTravel,
    /// A second instance takes over while the first is stalled.
    TwoLeaders,
    /// The operator's clock is set forward and back.
    ClockJumps,
    /// Webhooks do not answer.
    WebhooksDown,
}

impl Family {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Family; 7] = [
        Family::CrashPoints,
        Family::Requests,
        Family::Watches,
        Family::TimeTravel,
        Family::TwoLeaders,
        Family::ClockJumps,
        Family::WebhooksDown,
    ];

    /// Its name as one word, for a command line: `crash-points`.
    pub const fn name(self) -> &'static str {
        match self {
            Family::CrashPoints => "crash-points",
            Family::Requests => "requests",
            Family::Watches => "watches",
            Family::TimeTravel => "time-travel",
            Family::TwoLeaders => "two-leaders",
            Family::ClockJumps => "clock-jumps",
            Family::WebhooksDown => "webhooks-down",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name().replace('-', " "))
    }
}

/// The text does not name a family of faults.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no family of faults; they are {all}", all = Family::ALL.map(Family::name).join(", "))]
pub struct NoFamily(String);

impl FromStr for Family {
    type Err = NoFamily;

    fn from_str(text: &str) -> Result<Self, NoFamily> {
        let found = Family::ALL.into_iter().find(|family| family.name() == text);
        found.ok_or_else(|| NoFamily(text.to_owned()))
    }
}

/// Every place of a family, as far as the places differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) faults: Vec<Fault>,
    /// How many more there are that come to the same.
    pub(super) pruned: usize,
}

/// What makes two places the same, besides the mishap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Same<'a> {
    /// The state of the world and the place in the script.
    World(usize, usize),
    /// Those, and what is asked, for the how many-th time.
    Asked(usize, usize, &'a str, usize),
    /// What is shown of a collection at the beginning of a watch.
    Initial(usize, &'a str, &'a str),
    /// Nothing: each is one of its own.
    Point(Point),
}

struct Gathering<'a> {
    places: Places,
    /// How often a question was asked in the same world.
    asked: BTreeMap<(usize, usize, &'a str), usize>,
    seen: BTreeSet<(Mishap, Same<'a>)>,
}

impl<'a> Gathering<'a> {
    fn add(&mut self, mishap: Mishap, point: Point, same: Same<'a>) {
        // To what is left behind, dying after a write and dying before the next are one.
        let kind = if mishap == Mishap::CrashAfter { Mishap::CrashBefore } else { mishap };
        if self.seen.insert((kind, same)) {
            self.places.faults.push(Fault { mishap, point });
        } else {
            self.places.pruned += 1;
        }
    }
}

/// Every fault of a family, from what happens without faults.
pub(super) fn enumerate(family: Family, passed: &[Passed], has_webhooks: bool) -> Places {
    let mut gathering =
        Gathering { places: Places::default(), asked: BTreeMap::new(), seen: BTreeSet::new() };
    let takes_old = passed.iter().any(|passed| passed.takes_old);
    let writes = passed.iter().filter(|passed| matches!(passed.point, Point::Write(_)));
    let last_writes: BTreeMap<usize, Point> = writes.map(|write| (write.step, write.point)).collect();
    for passed in passed {
        let before = Same::World(passed.changes_before, passed.step);
        let after = Same::World(passed.changes_after, passed.step);
        let is_write = matches!(passed.point, Point::Write(_));
        match family {
            Family::CrashPoints if is_write => {
                gathering.add(Mishap::CrashBefore, passed.point, before);
                gathering.add(Mishap::CrashAfter, passed.point, after);
            }
            Family::Requests => requests(&mut gathering, passed),
            Family::Watches => watches(&mut gathering, passed),
            Family::TimeTravel if is_write => {
                // Restarts come at any time; the most there is to go wrong is when a step is done, and after a delete.
                let is_last = last_writes.get(&passed.step) == Some(&passed.point);
                let matters = is_last || passed.verb.starts_with("delete");
                // Who never reads from a cache of the server's can only be told late.
                let far = if takes_old { TRAVEL_CHANGES_MAX.min(passed.changes_after) } else { 1 };
                if matters {
                    for changes in 1..=far {
                        gathering.add(Mishap::Travel(changes), passed.point, after);
                    }
                }
            }
            Family::TwoLeaders if is_write => gathering.add(Mishap::TwoLeaders, passed.point, before),
            Family::ClockJumps if is_write => {
                gathering.add(Mishap::Jump(HOUR_SECONDS), passed.point, before);
                gathering.add(Mishap::Jump(-HOUR_SECONDS), passed.point, before);
            }
            Family::WebhooksDown if is_write && has_webhooks => {
                gathering.add(Mishap::WebhookDown, passed.point, before);
            }
            _ => {}
        }
    }
    gathering.places
}

fn requests<'a>(gathering: &mut Gathering<'a>, passed: &'a Passed) {
    let mishaps: &[Mishap] = match passed.point {
        Point::Write(_) => &[
            Mishap::Refuse(409),
            Mishap::TooManyRequests,
            Mishap::Refuse(500),
            Mishap::Refuse(503),
            Mishap::Reset,
            Mishap::LoseAnswer,
        ],
        Point::Read(_) => &[
            Mishap::TooManyRequests,
            Mishap::Refuse(500),
            Mishap::Refuse(503),
            Mishap::Reset,
            Mishap::LoseAnswer,
        ],
        Point::Event(_) => &[],
    };
    // The same question may be asked in two places of a program, which do different things with a refusal.
    let asked = gathering.asked.entry((passed.changes_before, passed.step, &passed.asked)).or_default();
    *asked += 1;
    let time = (*asked).min(SAME_QUESTIONS_MAX);
    for mishap in mishaps {
        let same = Same::Asked(passed.changes_before, passed.step, &passed.asked, time);
        gathering.add(*mishap, passed.point, same);
    }
}

fn watches<'a>(gathering: &mut Gathering<'a>, passed: &'a Passed) {
    if !matches!(passed.point, Point::Event(_)) {
        return;
    }
    for mishap in [Mishap::Hold, Mishap::Cut, Mishap::Repeat, Mishap::Expire, Mishap::Miss] {
        let same = if passed.initial {
            Same::Initial(passed.step, &passed.place.cluster, &passed.place.resource)
        } else {
            Same::Point(passed.point)
        };
        gathering.add(mishap, passed.point, same);
    }
}

/// Several of these things in one run, from a seed.
pub(super) fn combine(seed: u64, all: &[Fault]) -> Faults {
    let mut rng = fastrand::Rng::with_seed(seed);
    if all.is_empty() {
        return Faults::default();
    }
    let count = rng.usize(1..=4);
    let mut faults: Vec<Fault> = (0..count).map(|_| all[rng.usize(..all.len())]).collect();
    faults.sort_by_key(|fault| fault.point);
    faults.dedup_by_key(|fault| fault.point);
    Faults(faults)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::state::Place;
    use super::*;

    fn passed(point: Point, step: usize, changes_before: usize, changes_after: usize) -> Passed {
        let place = Place::new("pods", "shop", "a");
        let (verb, asked, initial) = ("apply", "PATCH /api/v1/pods/a".to_owned(), false);
        Passed { point, verb, asked, place, step, changes_before, changes_after, takes_old: false, initial }
    }

    fn check(family: Family, passed: &[Passed], expect: &Expect) {
        let places = enumerate(family, passed, true);
        expect.assert_eq(&format!("{}; {} pruned", Faults(places.faults), places.pruned));
    }

    #[test]
    fn a_family_is_found_by_its_name_on_a_command_line_and_no_other() {
        for family in Family::ALL {
            assert_eq!(family.name().parse(), Ok(family));
            assert_eq!(family.to_string().replace(' ', "-"), family.name());
        }
        let error = "crash points".parse::<Family>().unwrap_err();
        expect![[r#""crash points" is no family of faults; they are crash-points, requests, watches, time-travel, two-leaders, clock-jumps, webhooks-down"#]]
            .assert_eq(&error.to_string());
    }

    #[test]
    fn a_crash_after_a_write_is_the_one_before_the_next_unless_somebody_came_between() {
        check(
            Family::CrashPoints,
            &[
                passed(Point::Write(1), 1, 10, 11),
                passed(Point::Write(2), 1, 11, 12),
                passed(Point::Write(3), 1, 13, 13),
                passed(Point::Write(4), 2, 13, 14),
            ],
            &expect![
                "crash before write 1, crash after write 1, crash after write 2, crash before write 3, crash before write 4, crash after write 4; 2 pruned"
            ],
        );
    }

    #[test]
    fn a_request_that_is_repeated_for_ever_in_the_same_world_is_refused_a_few_times() {
        let places = enumerate(
            Family::Requests,
            &[
                passed(Point::Read(1), 1, 10, 10),
                passed(Point::Read(2), 1, 10, 10),
                passed(Point::Read(3), 1, 10, 10),
                passed(Point::Read(4), 1, 10, 10),
                passed(Point::Read(5), 1, 11, 11),
            ],
            false,
        );
        let reads: BTreeSet<Point> = places.faults.iter().map(|fault| fault.point).collect();
        let tried = [Point::Read(1), Point::Read(2), Point::Read(3), Point::Read(5)];
        assert_eq!(reads, BTreeSet::from(tried), "two places of a program may ask the same");
        assert_eq!(places.pruned, 5);
    }

    #[test]
    fn only_the_first_event_of_a_list_is_tampered_with() {
        let initial = |number| Passed { initial: true, ..passed(Point::Event(number), 0, 5, 5) };
        check(
            Family::Watches,
            &[initial(1), initial(2), passed(Point::Event(3), 0, 5, 5)],
            &expect![
                "hold event 1, cut before event 1, repeat event 1, expire at event 1, miss from event 1, hold event 3, cut before event 3, repeat event 3, expire at event 3, miss from event 3; 5 pruned"
            ],
        );
    }

    #[test]
    fn time_travel_goes_far_only_where_lists_may_be_old() {
        let writes = [passed(Point::Write(1), 1, 2, 3), passed(Point::Write(2), 1, 3, 4)];
        check(Family::TimeTravel, &writes, &expect!["travel 1 changes back after write 2; 0 pruned"]);
        let mut old = writes.to_vec();
        old[0].takes_old = true;
        check(
            Family::TimeTravel,
            &old,
            &expect![
                "travel 1 changes back after write 2, travel 2 changes back after write 2, travel 3 changes back after write 2, travel 4 changes back after write 2; 0 pruned"
            ],
        );
    }

    #[test]
    fn the_same_seed_combines_the_same_faults() {
        let points: Vec<Passed> =
            (1..30).map(|number| passed(Point::Write(number), 1, number, number + 1)).collect();
        let all: Vec<Fault> =
            Family::ALL.into_iter().flat_map(|family| enumerate(family, &points, true).faults).collect();
        let combined = |seed| combine(seed, &all);
        assert_eq!(combined(7), combined(7));
        assert!((1..100).any(|seed| combined(seed).0.len() > 2));
        assert!((1..100).all(|seed| !combined(seed).0.is_empty()));
    }
}
