//! Lanes and turns: who is served, and who waits.

use proptest::prelude::*;

use super::super::turns;
use super::*;

#[test]
fn a_paused_lane_holds_its_keys() {
    let mut bench = Bench::new();
    bench.queue.pause(&LANE);
    bench.push(1, Priority::Now);
    bench.queue.push(&"other", &2, Priority::Low, "start", bench.now);
    assert_eq!(bench.take(), Some(2));
    assert_eq!(bench.take(), None);
    bench.queue.resume(&LANE);
    assert_eq!(bench.take(), Some(1));
}

#[test]
fn a_removed_lane_takes_its_keys_along_and_no_key_runs_twice_when_it_comes_back() {
    let mut bench = Bench::new();
    bench.push(1, Priority::Normal);
    bench.push(2, Priority::Normal);
    assert_eq!(bench.take(), Some(1));
    bench.queue.remove_lane(&LANE);
    assert_eq!(bench.take(), None);
    bench.push(1, Priority::Normal);
    assert_eq!(bench.take(), None);
    bench.done(1, Outcome::FAILED);
    assert_eq!(bench.take(), Some(1));

    bench.queue.remove_lane(&LANE);
    bench.done(1, Outcome::DONE);
    assert_eq!(bench.queue.depths().count(), 0);
}

#[test]
fn a_lane_keeps_the_keys_that_it_is_told_to_keep() {
    let mut bench = Bench::new();
    for key in 0..10 {
        bench.push(key, Priority::Low);
    }
    bench.queue.retain(&LANE, |key| key % 5 == 0);
    let kept: Vec<_> = bench.queue.snapshots(&LANE).map(|(key, _)| *key).collect();
    assert_eq!(kept, [0, 5]);
}

#[test]
fn a_lane_runs_no_more_keys_than_it_may() {
    let mut bench = Bench::new();
    bench.queue.set_lane(&LANE, LaneSettings { running_max: 2, ..LaneSettings::default() });
    for key in 0..4 {
        bench.push(key, Priority::Normal);
    }
    assert_eq!((bench.take(), bench.take(), bench.take()), (Some(0), Some(1), None));
    bench.done(1, Outcome::DONE);
    assert_eq!((bench.take(), bench.take()), (Some(2), None));
}

#[test]
fn low_keys_have_turns_while_urgent_ones_never_cease() {
    let mut bench = Bench::new();
    bench.push(0, Priority::Low);
    let turns = (1..100)
        .take_while(|key| {
            bench.push(*key, Priority::Now);
            bench.take() != Some(0)
        })
        .count();
    assert_eq!(turns, turns::PATIENCE as usize);
}

proptest! {
    /// However many keys the other lanes have waiting, a lane's only key waits for one turn of each.
    #[test]
    fn a_full_lane_does_not_delay_another(
        backlogs in proptest::collection::vec(1..50_u32, 1..5),
        priority in 0..3_usize,
        taken in 0..20_usize,
    ) {
        const LANES: [&str; 5] = ["a", "b", "c", "d", "lone"];
        let mut bench = Bench::new();
        for (lane, backlog) in LANES.iter().zip(&backlogs) {
            for key in 0..*backlog {
                bench.queue.push(lane, &key, Priority::ALL[priority], "pushed", bench.now);
            }
        }
        for _ in 0..taken {
            bench.take();
        }
        bench.queue.push(&"lone", &7, Priority::ALL[priority], "pushed", bench.now);
        let before = std::iter::from_fn(|| bench.queue.take(bench.now))
            .take_while(|taken| taken.lane != "lone")
            .count();
        prop_assert!(before <= backlogs.len());
    }
}
