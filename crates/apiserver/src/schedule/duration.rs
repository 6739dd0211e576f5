//! Durations as Go writes them: `1h30m`, `-1.5s`.

use jiff::SignedDuration;

use crate::field::go_quote;

/// Reads a duration; the error is the sentence for the user.
pub(crate) fn read(text: &str) -> Result<SignedDuration, String> {
    let quoted = go_quote(text);
    let invalid = || format!("time: invalid duration {quoted}");
    let mut rest = text.trim_start_matches(['-', '+']);
    if rest == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if rest.is_empty() || text.len() > rest.len() + 1 {
        return Err(invalid());
    }
    let mut total = 0_i128;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(unit_at);
        if !number.bytes().any(|b| b.is_ascii_digit()) || number.matches('.').count() > 1 {
            return Err(invalid());
        }
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let nanoseconds = match unit {
            "" => return Err(format!("time: missing unit in duration {quoted}")),
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            other => {
                let unit = go_quote(other);
                return Err(format!("time: unknown unit {unit} in duration {quoted}"));
            }
        };
        let sum = scaled(number, nanoseconds).and_then(|more| total.checked_add(more));
        // Go counts in 64 bits.
        total = sum.filter(|sum| *sum <= i128::from(i64::MAX)).ok_or_else(invalid)?;
        rest = after;
    }
    let total = if text.starts_with('-') { -total } else { total };
    Ok(SignedDuration::from_nanos(i64::try_from(total).map_err(|_| invalid())?))
}

/// A decimal number times a unit. Digits beyond the eighteenth after the point make no difference.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = &fraction[..fraction.len().min(18)];
    let read = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<i128>().ok() };
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    read(whole)?.checked_mul(unit)?.checked_add(read(fraction)? * unit / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_number_holds_is_invalid() {
        let most = i64::MAX;
        assert_eq!(read(&format!("{most}ns")), Ok(SignedDuration::from_nanos(most)));
        assert_eq!(read(&format!("-{most}ns")), Ok(SignedDuration::from_nanos(-most)));
        let past = most.unsigned_abs() + 1;
        for text in [
            format!("{past}ns"),
            format!("1ns{most}ns"),
            format!("1h{}ns", i128::MAX),
            format!("{}h", i128::MAX),
        ] {
            assert_eq!(read(&text), Err(format!("time: invalid duration \"{text}\"")));
        }
    }
}
