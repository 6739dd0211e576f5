//! What the queue knows of one key, and what each event makes of it. All decisions about a single key are here;
//! the queue carries them out.

use tokio::time::Instant;

use super::{Backoff, Outcome, Priority, State, Timer, Triggers};
use crate::clock::later;

/// One key that waits, runs or rests. A key that does none of these has no entry.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) place: Place,
    /// Failures in a row.
    pub(super) failures: u32,
    pub(super) triggers: Triggers<T>,
    /// The one timer of the key, as the queue's timers know it.
    pub(super) timer: Option<(Instant, u64)>,
    /// The timer that has made the key ready, or made it more urgent.
    pub(super) fired: Option<Timer>,
}

/// Where a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Just made; the event that made it moves it on.
    New,
    Ready {
        priority: Priority,
        /// Its place in the line.
        ticket: u64,
        since: Instant,
    },
    Waiting {
        why: Timer,
        until: Instant,
    },
    Resting,
    Running {
        /// The most urgent push since it was taken.
        again: Option<Priority>,
        /// The earliest time it was asked for since it was taken.
        again_at: Option<Instant>,
        /// It was forgotten while it ran: how the run ends says nothing about the key any more.
        forgotten: bool,
        /// It was touched since it was taken: it does not rest.
        touched: bool,
    },
}

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Stay,
    Ready {
        priority: Priority,
        since: Instant,
        /// A time that will make it more urgent if it still stands in the line then.
        urgent_at: Option<Instant>,
    },
    Wait {
        why: Timer,
        until: Instant,
    },
    Rest,
    Gone,
}

impl Step {
    /// Ready, with the time that the key waited for: of use only if it is more urgent than the push that came first.
    fn ready(priority: Priority, since: Instant, waited_for: Option<Instant>) -> Self {
        Self::Ready { priority, since, urgent_at: waited_for.filter(|_| priority > TIMER_PRIORITY) }
    }
}

/// The priority of a key that comes because its time has come.
const TIMER_PRIORITY: Priority = Priority::Normal;

/// The priority of a key that was touched.
pub(super) const TOUCH_PRIORITY: Priority = Priority::Normal;

fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}

impl<T> Entry<T> {
    pub(super) fn new() -> Self {
        Self { place: Place::New, failures: 0, triggers: Triggers::default(), timer: None, fired: None }
    }

    /// Somebody pushed the key.
    pub(super) fn on_push(&mut self, priority: Priority, now: Instant) -> Step {
        let step = match &mut self.place {
            Place::Running { again, .. } => {
                *again = Some(again.map_or(priority, |earlier| earlier.min(priority)));
                return Step::Stay;
            }
            // Only a change of the object itself ends a backoff, a hold or a rest.
            Place::Waiting { why: Timer::Retry | Timer::Held, .. } | Place::Resting
                if priority != Priority::Now =>
            {
                return Step::Stay;
            }
            Place::Ready { priority: present, .. } if *present <= priority => Step::Stay,
            Place::Ready { since, .. } => Step::ready(priority, *since, self.timer.map(|(until, _)| until)),
            Place::Waiting { until, .. } => Step::ready(priority, now, Some(*until)),
            Place::New | Place::Resting => Step::ready(priority, now, None),
        };
        if priority == Priority::Now {
            self.failures = 0;
        }
        step
    }

    /// Something of the key's object changed that may matter.
    pub(super) fn on_touch(&mut self, now: Instant) -> Step {
        match &mut self.place {
            Place::Resting => return Step::ready(TOUCH_PRIORITY, now, None),
            Place::Running { touched, .. } => *touched = true,
            _ => {}
        }
        self.on_push(TOUCH_PRIORITY, now)
    }

    /// Somebody wants the key at a later time.
    pub(super) fn on_push_at(&mut self, at: Instant) -> Step {
        let earlier = self.timer.is_none_or(|(until, _)| at < until);
        match &mut self.place {
            Place::Running { again_at, .. } => {
                *again_at = earliest(*again_at, Some(at));
                Step::Stay
            }
            Place::New => Step::Wait { why: Timer::Requeue, until: at },
            Place::Waiting { why: Timer::Requeue, .. } if earlier => {
                Step::Wait { why: Timer::Requeue, until: at }
            }
            Place::Ready { priority, since, .. } if earlier && *priority > TIMER_PRIORITY => {
                Step::ready(*priority, *since, Some(at))
            }
            // It comes sooner, or what it waits for outweighs the wish.
            Place::Ready { .. } | Place::Waiting { .. } | Place::Resting => Step::Stay,
        }
    }

    /// The key's timer has come.
    pub(super) fn on_timer(&mut self) -> Step {
        match self.place {
            Place::Waiting { why, until } => {
                self.fired = Some(why);
                Step::ready(TIMER_PRIORITY, until, None)
            }
            Place::Ready { since, .. } => {
                self.fired = Some(Timer::Requeue);
                Step::ready(TIMER_PRIORITY, since, None)
            }
            Place::New | Place::Resting | Place::Running { .. } => Step::Stay,
        }
    }

    /// The key's run has ended. `None` if it was not running.
    pub(super) fn on_done(
        &mut self,
        outcome: Outcome,
        backoff: &Backoff,
        rng: &mut fastrand::Rng,
        now: Instant,
    ) -> Option<Step> {
        let Place::Running { again, again_at, forgotten, touched } = self.place else { return None };
        // After a change of the object, the outcome is of what is no more.
        let outcome = if forgotten || again == Some(Priority::Now) { Outcome::DONE } else { outcome };
        Some(match outcome {
            Outcome::Done { again_after } => {
                self.failures = 0;
                let at = earliest(again_after.map(|wait| later(now, wait)), again_at);
                match (again, at) {
                    (Some(priority), at) => Step::ready(priority, now, at),
                    (None, Some(until)) => Step::Wait { why: Timer::Requeue, until },
                    (None, None) => Step::Gone,
                }
            }
            Outcome::Failed { wait_at_least } => {
                self.failures = self.failures.saturating_add(1);
                let wait = backoff.wait(self.failures, rng).max(wait_at_least);
                Step::Wait { why: Timer::Retry, until: later(now, wait) }
            }
            Outcome::Held { wait } => Step::Wait { why: Timer::Held, until: later(now, wait) },
            Outcome::Terminal => {
                self.failures = self.failures.saturating_add(1);
                if touched { Step::ready(again.unwrap_or(TOUCH_PRIORITY), now, None) } else { Step::Rest }
            }
        })
    }

    /// The key's object is gone.
    pub(super) fn on_forget(&mut self) -> Step {
        match &mut self.place {
            Place::Running { again, again_at, forgotten, touched } => {
                (*again, *again_at, *forgotten, *touched) = (None, None, true, false);
                self.failures = 0;
                self.triggers = Triggers::default();
                Step::Stay
            }
            _ => Step::Gone,
        }
    }

    /// What others are told. `None` for a key that is just being made.
    pub(super) fn state(&self) -> Option<State> {
        let failures = self.failures;
        match self.place {
            Place::New => None,
            Place::Ready { priority, since, .. } => Some(State::Ready { priority, since }),
            Place::Running { again, .. } => Some(State::Running { again }),
            Place::Resting => Some(State::Resting { failures }),
            Place::Waiting { why: Timer::Requeue, until } => Some(State::Delayed { until }),
            Place::Waiting { why: Timer::Retry, until } => Some(State::BackingOff { failures, until }),
            Place::Waiting { why: Timer::Held, until } => Some(State::Held { until }),
        }
    }
}
