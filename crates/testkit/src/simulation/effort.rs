//! How much a test run tries: the checks of a repository say what could go wrong, a run how much of it.

use std::env;

use super::check::Check;
use super::family::Family;

/// Says how much: see [`Effort`].
const EFFORT: &str = "MAINSTAY_SIMULATION";
/// The first seed of combined faults. The others follow it.
const SEED: &str = "MAINSTAY_SEED";
/// A campaign tries this many times the seeds that a check asks for.
const CAMPAIGN_SEEDS: u64 = 10;

/// How much of a check [`Check::run`] tries, as `MAINSTAY_SIMULATION` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// `crash-points`: only these, for an answer in a minute or two.
    CrashPoints,
    /// Unset: what the check asks for, with seeds that are the same each time.
    AsWritten,
    /// `campaign`: more seeds.
    Campaign,
}

impl Effort {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self::AsWritten),
            "crash-points" => Ok(Self::CrashPoints),
            "campaign" => Ok(Self::Campaign),
            other => Err(format!("{EFFORT} is {other:?}, but can be crash-points or campaign")),
        }
    }
}

/// The effort and the first seed that this process is run with.
///
/// # Panics
/// When one of the variables cannot be read.
pub(super) fn of_this_run() -> (Effort, u64) {
    let effort = Effort::parse(&env::var(EFFORT).unwrap_or_default());
    let seed = match env::var(SEED).unwrap_or_default().as_str() {
        "" => Ok(1),
        text => text.parse().map_err(|_| format!("{SEED} is {text:?}, but must be a number")),
    };
    effort.and_then(|effort| Ok((effort, seed?))).unwrap_or_else(|error| panic!("{error}"))
}

/// The check with this effort.
pub(super) fn adapt(mut check: Check, (effort, seed): (Effort, u64)) -> Check {
    if check.replay.is_some() || check.same_end_as.is_some() {
        return check;
    }
    check.first_seed = seed;
    match effort {
        Effort::AsWritten => {}
        Effort::CrashPoints => {
            check.families.retain(|family| *family == Family::CrashPoints);
            check.seeds = 0;
            check.walk = None;
        }
        Effort::Campaign => check.seeds = check.seeds.saturating_mul(CAMPAIGN_SEEDS),
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{check, program};

    fn checked() -> Check {
        let idle = program("idle", |_| std::future::pending());
        check(idle).every_crash_point().every_clock_jump().seeds(3)
    }

    #[test]
    fn a_quick_run_has_crash_points_only() {
        let quick = adapt(checked(), (Effort::CrashPoints, 1));
        assert_eq!((quick.families, quick.seeds), ([Family::CrashPoints].into(), 0));
    }

    #[test]
    fn a_campaign_has_more_seeds() {
        let campaign = adapt(checked(), (Effort::Campaign, 77));
        assert_eq!((campaign.families.len(), campaign.seeds, campaign.first_seed), (2, 30, 77));
    }

    #[test]
    fn otherwise_a_check_is_as_it_is_written() {
        let normal = adapt(checked(), (Effort::AsWritten, 1));
        assert_eq!((normal.families.len(), normal.seeds, normal.first_seed), (2, 3, 1));
    }

    #[test]
    fn an_unknown_effort_is_an_error() {
        assert_eq!(
            Effort::parse("all").unwrap_err(),
            r#"MAINSTAY_SIMULATION is "all", but can be crash-points or campaign"#
        );
    }
}
