//! Whether a text can be a schedule. The server has the last word when it gets the `CronJob`; this finds what is usually wrong, early
//! and at the field that the user wrote.

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const NAMED: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    /// Words for numbers, from the least.
    words: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, words: &[] },
    Field { name: "hour", least: 0, most: 23, words: &[] },
    Field { name: "day of month", least: 1, most: 31, words: &[] },
    Field { name: "month", least: 1, most: 12, words: &MONTHS },
    Field { name: "day of week", least: 0, most: 6, words: &DAYS },
];

/// What is wrong with a schedule, for people.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.contains("TZ=") {
        return Err("names a time zone, which a CronJob refuses there".to_owned());
    }
    if let Some(period) = text.strip_prefix("@every ") {
        let is_period = period.starts_with(|first: char| first.is_ascii_digit() || first == '.');
        return if is_period { Ok(()) } else { Err(format!("{period:?} is no period, such as 1h30m")) };
    }
    if text.starts_with('@') {
        return if NAMED.contains(&text) { Ok(()) } else { Err(format!("{text:?} is not known")) };
    }
    let parts: Vec<&str> = text.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!(
            "has {} fields, must have 5: minute, hour, day of month, month, day of week",
            parts.len()
        ));
    }
    for (field, part) in FIELDS.iter().zip(parts) {
        if !part.split(',').all(|range| field.fits(range)) {
            let Field { name, least, most, .. } = field;
            return Err(format!("{part:?} is no {name}, which is from {least} to {most}"));
        }
    }
    Ok(())
}

impl Field {
    fn fits(&self, range: &str) -> bool {
        let (range, step) = range.split_once('/').map_or((range, None), |(range, step)| (range, Some(step)));
        if step.is_some_and(|step| !step.parse::<u32>().is_ok_and(|step| step > 0)) {
            return false;
        }
        if range == "*" || range == "?" {
            return true;
        }
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        matches!((self.number(first), self.number(last)), (Some(first), Some(last)) if first <= last)
    }

    fn number(&self, text: &str) -> Option<u32> {
        let word = self.words.iter().position(|word| text.eq_ignore_ascii_case(word));
        let number = match word {
            Some(place) => self.least + u32::try_from(place).ok()?,
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
            None => return None,
        };
        (self.least..=self.most).contains(&number).then_some(number)
    }
}
