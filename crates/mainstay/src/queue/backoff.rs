//! How long a key waits after it failed.

use std::time::Duration;

/// Exponential backoff with jitter.
///
/// After the `n`th failure in a row a key waits `initial × factor^(n-1)`, at most `max`, shortened by a random part
/// of at most `jitter`: the wait is between `(1 - jitter) × wait` and `wait`, so `max` is never exceeded and keys
/// that failed together don't come back together.
///
/// ```
/// use std::time::Duration;
/// use mainstay::queue::Backoff;
///
/// let backoff = Backoff { jitter: 0.0, ..Backoff::default() };
/// let mut rng = fastrand::Rng::with_seed(1);
/// assert_eq!(backoff.wait(1, &mut rng), Duration::from_millis(500));
/// assert_eq!(backoff.wait(3, &mut rng), Duration::from_secs(2));
/// assert_eq!(backoff.wait(1_000, &mut rng), Duration::from_secs(600));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub initial: Duration,
    /// What each further failure multiplies it with. Anything below 1 counts as 1.
    pub factor: f64,
    /// The longest wait.
    pub max: Duration,
    /// The part of the wait that is random, from 0 (none) to 1 (all of it).
    pub jitter: f64,
}

impl Default for Backoff {
    /// Half a second, doubled with every failure up to ten minutes, a fifth of it random.
    fn default() -> Self {
        Self { initial: Duration::from_millis(500), factor: 2.0, max: Duration::from_mins(10), jitter: 0.2 }
    }
}

impl Backoff {
    /// The wait after so many failures in a row. No failures, no wait.
    pub fn wait(&self, failures: u32, rng: &mut fastrand::Rng) -> Duration {
        let full = self.longest_wait(failures);
        let jitter = if self.jitter.is_nan() { 0.0 } else { self.jitter.clamp(0.0, 1.0) };
        let seconds = full.as_secs_f64() * (1.0 - jitter * rng.f64());
        // Rounding may make a little more of it than it was.
        Duration::try_from_secs_f64(seconds).map_or(full, |wait| wait.min(full))
    }

    /// The wait after so many failures in a row if jitter shortens nothing.
    pub fn longest_wait(&self, failures: u32) -> Duration {
        if failures == 0 || self.initial.is_zero() {
            return Duration::ZERO;
        }
        let exponent = i32::try_from(failures - 1).unwrap_or(i32::MAX);
        let seconds = self.initial.as_secs_f64() * self.factor.max(1.0).powi(exponent);
        // Too many seconds for a Duration is certainly more than `max`.
        Duration::try_from_secs_f64(seconds).map_or(self.max, |wait| wait.min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_backoff() -> impl Strategy<Value = Backoff> {
        let number = prop_oneof![any::<f64>(), 0.0..4.0, Just(f64::NAN), Just(f64::INFINITY)];
        let time = prop_oneof![any::<Duration>(), Just(Duration::ZERO), Just(Duration::MAX)];
        (time.clone(), number.clone(), time, number).prop_map(|(initial, factor, max, jitter)| Backoff {
            initial,
            factor,
            max,
            jitter,
        })
    }

    proptest! {
        /// Holds for every setting, senseless ones included.
        #[test]
        fn a_wait_stays_within_its_bounds(backoff in any_backoff(), failures: u32, seed: u64) {
            let wait = backoff.wait(failures, &mut fastrand::Rng::with_seed(seed));
            prop_assert!(wait <= backoff.max);
            prop_assert!(wait <= backoff.longest_wait(failures));
        }

        #[test]
        fn jitter_shortens_by_no_more_than_its_part(failures in 1_u32..40, jitter in 0.0..1.0, seed: u64) {
            let backoff = Backoff { jitter, ..Backoff::default() };
            let full = backoff.longest_wait(failures).as_secs_f64();
            let wait = backoff.wait(failures, &mut fastrand::Rng::with_seed(seed)).as_secs_f64();
            prop_assert!(wait >= full * (1.0 - jitter) - 1e-6);
        }

        #[test]
        fn a_further_failure_never_shortens_the_longest_wait(backoff in any_backoff(), failures in 0_u32..200) {
            prop_assert!(backoff.longest_wait(failures) <= backoff.longest_wait(failures + 1));
        }
    }

    #[test]
    fn the_default_doubles_from_half_a_second_to_ten_minutes() {
        let waits: Vec<_> = [1, 2, 3, 10, 11, 12, u32::MAX]
            .map(|failures| Backoff::default().longest_wait(failures).as_secs_f64())
            .into();
        assert_eq!(waits, [0.5, 1.0, 2.0, 256.0, 512.0, 600.0, 600.0]);
    }
}
