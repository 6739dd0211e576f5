//! What the pace allows, by examples and as laws.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + milliseconds).unwrap()
}

/// The pace of a class whose streams have all been seen.
fn seen() -> Pace {
    let pace = Pace::default();
    pace.expect(0);
    pace
}

fn rate(burst: u32, per_minute: u32) -> StartRateConfig {
    StartRateConfig { burst, per_minute }
}

#[test]
fn a_burst_starts_at_once_and_the_rest_at_the_rate() {
    let (pace, rate) = (Pace::default(), rate(2, 60));
    let asked = ["a", "b", "c", "d"].map(|uid| pace.start(uid, at(0), &rate));
    assert_eq!(asked, [Permit::Granted, Permit::Granted, Permit::At(at(1000)), Permit::At(at(2000))]);
    assert_eq!(pace.start("d", at(1000), &rate), Permit::At(at(2000)), "c comes first");
    assert_eq!(pace.start("c", at(1000), &rate), Permit::Granted);
    assert_eq!(pace.start("d", at(2000), &rate), Permit::Granted);
}

#[test]
fn to_ask_again_costs_nothing_until_the_stream_has_started() {
    let (pace, rate) = (Pace::default(), rate(1, 60));
    assert_eq!(pace.start("a", at(0), &rate), Permit::Granted);
    assert_eq!(pace.start("a", at(10), &rate), Permit::Granted);
    pace.started("a");
    assert_eq!(pace.start("a", at(20), &rate), Permit::At(at(1000)));
}

#[test]
fn a_permit_that_nobody_uses_is_forgotten() {
    let (pace, rate) = (Pace::default(), rate(1, 1));
    assert_eq!(pace.start("a", at(0), &rate), Permit::Granted);
    assert_eq!(pace.start("a", at(60_000), &rate), Permit::Granted);
    assert_eq!(pace.start("b", at(60_000), &rate), Permit::Granted);
    assert_eq!(pace.start("a", at(60_001), &rate), Permit::At(at(120_000)));
}

#[test]
fn who_does_not_come_back_holds_up_nobody_for_long() {
    let (pace, rate) = (Pace::default(), rate(1, 60));
    assert_eq!(pace.start("a", at(0), &rate), Permit::Granted);
    assert_eq!(pace.start("b", at(0), &rate), Permit::At(at(1000)));
    assert_eq!(pace.start("c", at(0), &rate), Permit::At(at(2000)));
    assert_eq!(pace.start("c", at(2000), &rate), Permit::At(at(3000)), "b may still come");
    assert_eq!(pace.start("c", at(61_001), &rate), Permit::Granted);
    assert_eq!(pace.start("d", at(61_001), &rate), Permit::At(at(62_001)));
    pace.gone("d");
    assert_eq!(pace.start("e", at(62_001), &rate), Permit::Granted);
}

#[test]
fn another_rate_holds_at_once() {
    let pace = Pace::default();
    assert_eq!(pace.start("a", at(0), &rate(1, 1)), Permit::Granted);
    assert_eq!(pace.start("b", at(0), &rate(1, 1)), Permit::At(at(60_000)));
    assert_eq!(pace.start("b", at(100), &rate(1, 600)), Permit::Granted);
}

#[test]
fn a_clock_that_goes_back_gives_nothing() {
    let (pace, rate) = (Pace::default(), rate(1, 60));
    assert_eq!(pace.start("a", at(5000), &rate), Permit::Granted);
    assert_eq!(pace.start("b", at(0), &rate), Permit::At(at(1000)));
    assert_eq!(pace.start("b", at(5999), &rate), Permit::At(at(6000)));
    assert_eq!(pace.start("b", at(6000), &rate), Permit::Granted);
}

#[test]
fn a_rollout_has_so_many_seats_and_a_line() {
    let pace = seen();
    assert_eq!(pace.rollout("a", at(0), 1), Permit::Granted);
    assert_eq!(pace.rollout("a", at(0), 1), Permit::Granted);
    assert_eq!(pace.rollout("b", at(0), 1), Permit::At(at(5000)));
    assert_eq!(pace.rollout("c", at(0), 1), Permit::At(at(5000)));
    pace.settled("a");
    assert_eq!(pace.rollout("c", at(5000), 1), Permit::At(at(10_000)), "b comes first");
    assert_eq!(pace.rollout("b", at(5000), 1), Permit::Granted);
    pace.gone("b");
    assert_eq!(pace.rollout("c", at(10_000), 1), Permit::Granted);
    assert_eq!(pace.rollout("d", at(10_000), 2), Permit::Granted, "there are more seats now");
}

#[test]
fn streams_that_fail_keep_their_seats_and_halt_a_rollout() {
    let pace = seen();
    for uid in ["a", "b"] {
        assert_eq!(pace.rollout(uid, at(0), 2), Permit::Granted);
        pace.hold(uid, &format!("shop/{uid}"), true);
    }
    assert_eq!(pace.halted_by(2), None, "nobody waits");
    assert_eq!(pace.rollout("c", at(0), 2), Permit::Halted(at(5000)));
    assert_eq!(pace.halted_by(2), Some(vec!["shop/a".to_owned(), "shop/b".to_owned()]));
    pace.hold("a", "shop/a", false);
    assert_eq!(pace.rollout("c", at(5000), 2), Permit::At(at(10_000)), "a may still become ready");
    assert_eq!(pace.halted_by(2), None);
    pace.settled("a");
    assert_eq!(pace.rollout("c", at(10_000), 2), Permit::Granted);
}

#[test]
fn no_seat_is_given_away_before_all_streams_have_been_seen() {
    let pace = Pace::default();
    pace.saw("a");
    assert_eq!(pace.rollout("a", at(0), 1), Permit::At(at(5000)), "nobody knows how many there are");
    pace.expect(2);
    assert_eq!(pace.rollout("a", at(5000), 1), Permit::At(at(10_000)));
    pace.hold("b", "shop/b", true);
    pace.saw("b");
    assert_eq!(pace.rollout("a", at(10_000), 1), Permit::Halted(at(15_000)));
    pace.gone("b");
    assert_eq!(pace.rollout("a", at(15_000), 1), Permit::Granted);
}

#[test]
fn a_stream_that_is_never_seen_holds_up_a_rollout_for_a_minute() {
    let pace = Pace::default();
    pace.expect(2);
    pace.saw("a");
    assert_eq!(pace.rollout("a", at(0), 1), Permit::At(at(5000)));
    assert_eq!(pace.rollout("a", at(60_001), 1), Permit::Granted);
}

proptest! {
    #[test]
    fn no_stretch_of_time_sees_more_starts_than_the_burst_and_the_rate(
        burst in prop_oneof![9 => 1_u32..5, 1 => Just(0), 1 => Just(u32::MAX)],
        per_minute in prop_oneof![9 => 1_u32..2000, 1 => Just(0), 1 => Just(u32::MAX)],
        asks in prop::collection::vec((0_usize..12, 0_i64..3000, any::<bool>()), 1..200),
    ) {
        let (pace, rate) = (Pace::default(), rate(burst, per_minute));
        let mut clock = 0;
        let mut starts = Vec::new();
        for (who, passed, goes) in asks {
            clock += passed;
            let uid = format!("s{who}");
            let answer = pace.start(&uid, at(clock), &rate);
            prop_assert_eq!(pace.start(&uid, at(clock), &rate), answer, "to ask twice changes the answer");
            match answer {
                Permit::Granted => {
                    pace.started(&uid);
                    starts.push(clock);
                }
                Permit::At(then) | Permit::Halted(then) => prop_assert!(then > at(clock)),
            }
            if goes {
                pace.gone(&uid);
            }
        }
        for (first, begin) in starts.iter().enumerate() {
            for (last, end) in starts.iter().enumerate().skip(first) {
                // Nothing at all would be no rate; it counts as one.
                let most = i64::from(burst.max(1)) + (end - begin) * i64::from(per_minute.max(1)) / 60_000;
                prop_assert!(i64::try_from(last - first + 1).unwrap() <= most, "{:?}", starts);
            }
        }
    }

    #[test]
    fn whoever_comes_back_when_told_starts_no_later_than_told_first(
        burst in prop_oneof![9 => 1_u32..10, 1 => Just(0), 1 => Just(u32::MAX)],
        per_minute in prop_oneof![9 => 1_u32..2000, 1 => Just(0), 1 => Just(u32::MAX)],
        arrivals in prop::collection::vec(0_i64..10_000, 1..60),
    ) {
        let (pace, rate) = (Pace::default(), rate(burst, per_minute));
        // Who asks when, in the order of time; those who come back ask before those who are new.
        let mut agenda: BTreeMap<(Timestamp, bool, usize), Option<Timestamp>> = BTreeMap::new();
        for (who, arrival) in arrivals.iter().enumerate() {
            agenda.insert((at(*arrival), true, who), None);
        }
        let mut started = 0;
        while let Some(((now, _, who), promise)) = agenda.pop_first() {
            let uid = format!("s{who}");
            match pace.start(&uid, now, &rate) {
                Permit::Granted => {
                    pace.started(&uid);
                    started += 1;
                }
                Permit::At(then) | Permit::Halted(then) => {
                    // Times are told in whole nanoseconds, and what is lost by that adds up.
                    let slack = SignedDuration::from_micros(1);
                    prop_assert!(promise.is_none_or(|promise| then <= promise + slack), "{} waits on", uid);
                    agenda.insert((then, false, who), Some(promise.unwrap_or(then)));
                }
            }
        }
        prop_assert_eq!(started, arrivals.len());
    }

    #[test]
    fn seats_are_never_more_than_there_are(
        max in prop_oneof![9 => 1_u32..4, 1 => Just(0), 1 => Just(u32::MAX)],
        asks in prop::collection::vec((0_usize..8, 0_i64..20_000, any::<bool>()), 1..100),
    ) {
        let pace = seen();
        let mut clock = 0;
        let mut seated = std::collections::BTreeSet::new();
        for (who, passed, settles) in asks {
            clock += passed;
            let uid = format!("s{who}");
            if pace.rollout(&uid, at(clock), max) == Permit::Granted {
                seated.insert(who);
            }
            prop_assert!(seated.len() <= usize::try_from(max).unwrap());
            if settles {
                pace.settled(&uid);
                seated.remove(&who);
            }
        }
    }
}
