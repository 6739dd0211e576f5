//! Numbers that a spec gives as such or as a percentage.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a percentage that is no whole number goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    Up,
    Down,
}

/// How many of `total` are meant. What is neither a number nor a percentage, which the API server lets nobody write, is none.
pub(super) fn share(value: &IntOrString, total: i32, round: Round) -> i32 {
    let percent = match value {
        IntOrString::Int(count) => return *count,
        IntOrString::String(text) => text.strip_suffix('%').and_then(|text| text.parse::<i64>().ok()),
    };
    let whole = percent.unwrap_or(0).saturating_mul(total.into());
    let count = match round {
        Round::Up => whole.saturating_add(99).div_euclid(100),
        Round::Down => whole.div_euclid(100),
    };
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_rounded_as_asked() {
        let percent = |text: &str, total, round| share(&IntOrString::String(text.into()), total, round);
        assert_eq!(percent("25%", 10, Round::Up), 3);
        assert_eq!(percent("25%", 10, Round::Down), 2);
        assert_eq!(percent("50%", 4, Round::Up), 2);
        assert_eq!(percent("0%", 4, Round::Up), 0);
        assert_eq!(percent("1%", 1, Round::Up), 1);
        assert_eq!(percent("many", 4, Round::Up), 0);
        assert_eq!(share(&IntOrString::Int(7), 4, Round::Down), 7);
    }
}
