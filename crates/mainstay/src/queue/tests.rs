//! What the queue does, case by case.

mod lanes;

use std::time::Duration;

use tokio::time::Instant;

use super::*;

const LANE: &str = "lane";
const SECOND: Duration = Duration::from_secs(1);

type TestQueue = Queue<&'static str, u32, &'static str>;

/// A queue with a clock that only moves by hand. Backoffs have no jitter: 0.5 s, 1 s, 2 s and so on.
struct Bench {
    queue: TestQueue,
    start: Instant,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let mut queue = Queue::new(fastrand::Rng::with_seed(0));
        let backoff = Backoff { jitter: 0.0, ..Backoff::default() };
        queue.set_lane(&LANE, LaneSettings { backoff, ..LaneSettings::default() });
        let start = Instant::now();
        Self { queue, start, now: start }
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
    }

    fn push(&mut self, key: u32, priority: Priority) {
        self.queue.push(&LANE, &key, priority, "pushed", self.now);
    }

    fn take(&mut self) -> Option<u32> {
        self.queue.take(self.now).map(|taken| taken.key)
    }

    fn done(&mut self, key: u32, outcome: Outcome) -> Option<State> {
        self.queue.done(&LANE, &key, outcome, self.now)
    }

    /// Runs a key that is next and ends it.
    fn run(&mut self, key: u32, outcome: Outcome) -> Option<State> {
        assert_eq!(self.take(), Some(key));
        self.done(key, outcome)
    }

    fn state(&self, key: u32) -> Option<State> {
        self.queue.snapshot(&LANE, &key).map(|snapshot| snapshot.state)
    }

    /// A key that has failed so often and waits to be tried again.
    fn fail(&mut self, key: u32, times: u32) {
        self.push(key, Priority::Now);
        for _ in 0..times {
            self.now = self.queue.next_wake().map_or(self.now, |wake| wake.max(self.now));
            self.run(key, Outcome::FAILED);
        }
    }
}

#[test]
fn pushes_of_one_key_become_one_run() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        bench.push(1, Priority::Normal);
    }
    let taken = bench.queue.take(bench.now).unwrap();
    assert_eq!((taken.key, taken.triggers.unlisted()), (1, 99));
    assert_eq!(bench.take(), None);
    assert_eq!(bench.done(1, Outcome::DONE), None);
    assert_eq!(bench.take(), None);
}

#[test]
fn a_key_pushed_while_it_runs_comes_again_when_it_is_done() {
    let mut bench = Bench::new();
    bench.push(1, Priority::Normal);
    assert_eq!(bench.take(), Some(1));
    bench.push(1, Priority::Low);
    assert_eq!(bench.take(), None);
    assert_eq!(bench.state(1), Some(State::Running { again: Some(Priority::Low) }));
    bench.done(1, Outcome::DONE);
    assert_eq!(bench.take(), Some(1));
}

#[test]
fn a_done_key_is_not_remembered() {
    let mut bench = Bench::new();
    bench.push(1, Priority::Low);
    bench.run(1, Outcome::DONE);
    assert_eq!(bench.queue.depth(), Depth::default());
    assert_eq!(bench.state(1), None);
}

#[test]
fn urgent_keys_go_first_and_equals_in_their_order() {
    let mut bench = Bench::new();
    for (key, priority) in [
        (1, Priority::Low),
        (2, Priority::Normal),
        (3, Priority::Now),
        (4, Priority::Normal),
        (5, Priority::Low),
        (1, Priority::Now),
    ] {
        bench.push(key, priority);
    }
    let order: Vec<_> = std::iter::from_fn(|| bench.take()).collect();
    assert_eq!(order, [3, 1, 2, 4, 5]);
}

#[test]
fn a_less_urgent_push_leaves_a_key_where_it_stands() {
    let mut bench = Bench::new();
    bench.push(1, Priority::Now);
    bench.push(2, Priority::Now);
    bench.push(1, Priority::Low);
    assert_eq!(bench.take(), Some(1));
}

#[test]
fn a_failed_key_waits_longer_each_time() {
    let mut bench = Bench::new();
    bench.push(1, Priority::Normal);
    for (failures, wait) in [(1, SECOND / 2), (2, SECOND), (3, 2 * SECOND), (4, 4 * SECOND)] {
        let until = bench.now + wait;
        assert_eq!(bench.run(1, Outcome::FAILED), Some(State::BackingOff { failures, until }));
        assert_eq!(bench.queue.next_wake(), Some(until));
        bench.now = until.checked_sub(Duration::from_millis(1)).unwrap();
        assert_eq!(bench.take(), None);
        bench.now = until;
    }
    let taken = bench.queue.take(bench.now).unwrap();
    assert_eq!((taken.failures, taken.timer, taken.triggers.is_empty()), (4, Some(Timer::Retry), true));
}

#[test]
fn success_forgets_the_failures() {
    let mut bench = Bench::new();
    bench.fail(1, 5);
    bench.advance(9 * SECOND);
    bench.run(1, Outcome::DONE);
    bench.push(1, Priority::Normal);
    let until = bench.now + SECOND / 2;
    assert_eq!(bench.run(1, Outcome::FAILED), Some(State::BackingOff { failures: 1, until }));
}

#[test]
fn spurious_pushes_neither_shorten_nor_bypass_nor_raise_a_backoff() {
    let mut bench = Bench::new();
    bench.fail(1, 3);
    let waiting = bench.state(1);
    for priority in [Priority::Normal, Priority::Low] {
        bench.push(1, priority);
        bench.queue.push_at(&LANE, &1, bench.now);
        assert_eq!(bench.take(), None);
        assert_eq!(bench.state(1), waiting);
    }
    bench.advance(2 * SECOND);
    let taken = bench.queue.take(bench.now).unwrap();
    assert_eq!(taken.triggers.iter().count(), 1, "they are told of when the key is tried again");
    assert_eq!(taken.failures, 3);
}

#[test]
fn a_spurious_push_while_a_key_fails_does_not_bypass_its_backoff() {
    let mut bench = Bench::new();
    bench.push(1, Priority::Now);
    assert_eq!(bench.take(), Some(1));
    bench.push(1, Priority::Normal);
    let until = bench.now + SECOND / 2;
    assert_eq!(bench.done(1, Outcome::FAILED), Some(State::BackingOff { failures: 1, until }));
}

#[test]
fn a_change_of_the_object_ends_a_backoff_at_once() {
    let mut bench = Bench::new();
    bench.fail(1, 8);
    bench.push(1, Priority::Now);
    let taken = bench.queue.take(bench.now).unwrap();
    assert_eq!((taken.failures, taken.priority), (0, Priority::Now));
    assert_eq!(bench.queue.next_wake(), None);
}

#[test]
fn a_change_while_a_key_fails_makes_it_ready_at_once() {
    for outcome in [Outcome::FAILED, Outcome::Terminal, Outcome::Held { wait: SECOND }] {
        let mut bench = Bench::new();
        bench.push(1, Priority::Normal);
        assert_eq!(bench.take(), Some(1));
        bench.push(1, Priority::Now);
        let ready = State::Ready { priority: Priority::Now, since: bench.now };
        assert_eq!(bench.done(1, outcome), Some(ready));
        assert_eq!(bench.queue.take(bench.now).unwrap().failures, 0);
    }
}

#[test]
fn a_server_that_asks_to_wait_is_obeyed() {
    let mut bench = Bench::new();
    bench.push(1, Priority::Normal);
    let until = bench.now + 30 * SECOND;
    let state = bench.run(1, Outcome::Failed { wait_at_least: 30 * SECOND });
    assert_eq!(state, Some(State::BackingOff { failures: 1, until }));
}

#[test]
fn a_key_that_failed_for_good_rests_until_its_object_changes() {
    let mut bench = Bench::new();
    bench.fail(1, 1);
    bench.advance(SECOND);
    assert_eq!(bench.run(1, Outcome::Terminal), Some(State::Resting { failures: 2 }));
    bench.push(1, Priority::Normal);
    bench.push(1, Priority::Low);
    bench.queue.push_at(&LANE, &1, bench.now + SECOND);
    assert_eq!(bench.queue.next_wake(), None);
    bench.advance(100_000 * SECOND);
    assert_eq!(bench.take(), None);
    bench.push(1, Priority::Now);
    assert_eq!(bench.take(), Some(1));
}

#[test]
fn a_hold_between_failures_does_not_shorten_the_backoff() {
    let mut bench = Bench::new();
    bench.fail(1, 5);
    bench.advance(60 * SECOND);
    bench.run(1, Outcome::Held { wait: SECOND });
    bench.advance(SECOND);
    let state = bench.run(1, Outcome::FAILED);
    assert!(matches!(state, Some(State::BackingOff { failures: 6, .. })), "{state:?}");
}

#[test]
fn a_held_key_comes_at_its_time_or_when_its_object_changes() {
    let mut bench = Bench::new();
    bench.push(1, Priority::Normal);
    let until = bench.now + 60 * SECOND;
    assert_eq!(bench.run(1, Outcome::Held { wait: 60 * SECOND }), Some(State::Held { until }));
    bench.push(1, Priority::Normal);
    assert_eq!(bench.take(), None);
    bench.advance(60 * SECOND);
    assert_eq!(bench.queue.take(bench.now).unwrap().timer, Some(Timer::Held));
    bench.done(1, Outcome::Held { wait: 60 * SECOND });
    bench.push(1, Priority::Now);
    assert_eq!(bench.take(), Some(1));
}

#[test]
fn a_key_comes_again_after_the_time_it_asked_for() {
    let mut bench = Bench::new();
    bench.push(1, Priority::Now);
    let until = bench.now + SECOND;
    let state = bench.run(1, Outcome::Done { again_after: Some(SECOND) });
    assert_eq!(state, Some(State::Delayed { until }));
    bench.advance(2 * SECOND);
    let taken = bench.queue.take(bench.now).unwrap();
    assert_eq!((taken.timer, taken.ready_since), (Some(Timer::Requeue), until));
}

#[test]
fn the_earliest_time_asked_for_wins() {
    let mut bench = Bench::new();
    for seconds in [5, 3, 9] {
        bench.queue.push_at(&LANE, &1, bench.start + seconds * SECOND);
    }
    assert_eq!(bench.queue.next_wake(), Some(bench.start + 3 * SECOND));
    bench.advance(3 * SECOND);
    assert_eq!(bench.take(), Some(1));
    for seconds in [8, 7] {
        bench.queue.push_at(&LANE, &1, bench.start + seconds * SECOND);
    }
    let until = bench.start + 7 * SECOND;
    let state = bench.done(1, Outcome::Done { again_after: Some(60 * SECOND) });
    assert_eq!(state, Some(State::Delayed { until }));
}

#[test]
fn a_run_before_its_time_answers_the_timer_too() {
    let mut bench = Bench::new();
    bench.queue.push_at(&LANE, &1, bench.start + 5 * SECOND);
    bench.push(1, Priority::Normal);
    bench.run(1, Outcome::DONE);
    assert_eq!(bench.queue.next_wake(), None);
    bench.advance(10 * SECOND);
    assert_eq!(bench.take(), None);
}

#[test]
fn a_resync_does_not_make_a_key_later_than_its_timer() {
    let mut bench = Bench::new();
    for key in 10..20 {
        bench.push(key, Priority::Low);
    }
    bench.queue.push_at(&LANE, &1, bench.start + SECOND);
    bench.push(1, Priority::Low);
    bench.push(2, Priority::Low);
    bench.queue.push_at(&LANE, &2, bench.start + SECOND);
    bench.advance(SECOND);
    let order: Vec<_> = std::iter::from_fn(|| bench.take()).take(3).collect();
    assert_eq!(order, [1, 2, 10]);
}

#[test]
fn times_beyond_the_clock_are_far_away() {
    let mut bench = Bench::new();
    for outcome in [
        Outcome::Done { again_after: Some(Duration::MAX) },
        Outcome::Held { wait: Duration::MAX },
        Outcome::Failed { wait_at_least: Duration::MAX },
    ] {
        bench.push(1, Priority::Now);
        bench.run(1, outcome);
        assert!(bench.queue.next_wake().unwrap() > bench.now + 1_000_000 * SECOND);
    }
}

#[test]
fn a_forgotten_key_leaves_nothing_behind() {
    let mut bench = Bench::new();
    bench.fail(2, 1);
    bench.push(1, Priority::Now);
    bench.queue.push_at(&LANE, &3, bench.now + SECOND);
    for key in [1, 2, 3, 4] {
        bench.queue.forget(&LANE, &key);
    }
    assert_eq!(bench.queue.depth(), Depth::default());
    assert_eq!((bench.queue.next_wake(), bench.take()), (None, None));
}

#[test]
fn a_key_forgotten_while_it_runs_is_gone_however_the_run_ends() {
    for outcome in [Outcome::FAILED, Outcome::Terminal, Outcome::Done { again_after: Some(SECOND) }] {
        let mut bench = Bench::new();
        bench.push(1, Priority::Normal);
        assert_eq!(bench.take(), Some(1));
        bench.push(1, Priority::Normal);
        bench.queue.forget(&LANE, &1);
        assert_eq!(bench.state(1), Some(State::Running { again: None }));
        assert_eq!(bench.done(1, outcome), None);
    }
}

#[test]
fn a_key_made_again_while_its_former_object_runs_waits_for_that_run() {
    let mut bench = Bench::new();
    bench.push(1, Priority::Normal);
    assert_eq!(bench.take(), Some(1));
    bench.queue.forget(&LANE, &1);
    bench.push(1, Priority::Low);
    assert_eq!(bench.take(), None);
    bench.done(1, Outcome::FAILED);
    assert_eq!(bench.queue.take(bench.now).unwrap().failures, 0);
}

#[test]
fn latency_counts_from_the_first_push_and_from_when_it_could_run() {
    let mut bench = Bench::new();
    bench.fail(1, 1);
    let failed = bench.now;
    bench.advance(SECOND / 4);
    bench.push(1, Priority::Normal);
    bench.advance(SECOND);
    let taken = bench.queue.take(bench.now).unwrap();
    assert_eq!(taken.triggers.since(), Some(failed + SECOND / 4));
    assert_eq!(taken.ready_since, failed + SECOND / 2);
}

#[test]
fn a_touch_ends_a_rest_and_nothing_else() {
    let mut bench = Bench::new();
    let touch = |bench: &mut Bench| bench.queue.touch(&LANE, &1, "touched", bench.now);
    bench.fail(1, 3);
    let backing_off = bench.state(1);
    touch(&mut bench);
    assert_eq!(bench.state(1), backing_off, "a backoff goes on");
    // Nor does one that comes while the key runs reset its failures.
    bench.now = bench.queue.next_wake().unwrap();
    assert_eq!(bench.take(), Some(1));
    touch(&mut bench);
    let state = bench.done(1, Outcome::FAILED);
    assert!(matches!(state, Some(State::BackingOff { failures: 4, .. })), "{state:?}");

    bench.now = bench.queue.next_wake().unwrap();
    bench.run(1, Outcome::Terminal);
    assert!(matches!(bench.state(1), Some(State::Resting { failures: 5 })));
    touch(&mut bench);
    assert_eq!(bench.take(), Some(1), "it rests no more");
    touch(&mut bench);
    let state = bench.done(1, Outcome::Terminal);
    assert!(matches!(state, Some(State::Ready { priority: Priority::Normal, .. })), "{state:?}");
}
