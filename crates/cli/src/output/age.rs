//! How long ago, in the few words that `kubectl get` uses.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The age of something from that time: two units while it is young, then one. Nothing has a negative age: clocks differ.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_second() - since.as_second()).max(0);
    let two = |large: i64, unit: &str, small: i64, rest: &str| match seconds % large / small {
        0 => format!("{}{unit}", seconds / large),
        more => format!("{}{unit}{more}{rest}", seconds / large),
    };
    match seconds {
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(MINUTE, "m", 1, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(HOUR, "h", MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(DAY, "d", HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        _ => two(YEAR, "y", DAY, "d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let aged = |seconds: i64| age(Timestamp::UNIX_EPOCH, Timestamp::from_second(seconds).unwrap());
        let all = [-5, 0, 119, 120, 125, 600, 3 * HOUR, 3 * HOUR + 120, 8 * HOUR, 2 * DAY, 2 * DAY + HOUR];
        let told = ["0s", "0s", "119s", "2m", "2m5s", "10m", "3h", "3h2m", "8h", "2d", "2d1h"];
        assert_eq!(all.map(aged), told);
        assert_eq!([9 * DAY, 2 * YEAR, 2 * YEAR + DAY].map(aged), ["9d", "2y", "2y1d"]);
    }
}
