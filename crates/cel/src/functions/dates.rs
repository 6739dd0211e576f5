//! The parts of timestamps and durations.

use super::{Function, failed, mismatch};
use crate::evaluate::Outcome;
use crate::time::Time;
use crate::value::Value;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

pub(super) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "getFullYear" => |_, args| part(args, |time| i64::from(time.year())),
        "getMonth" => |_, args| part(args, |time| i64::from(time.month()) - 1),
        "getDayOfYear" => |_, args| part(args, |time| i64::from(time.day_of_year()) - 1),
        "getDayOfMonth" => |_, args| part(args, |time| i64::from(time.day()) - 1),
        "getDate" => |_, args| part(args, |time| i64::from(time.day())),
        "getDayOfWeek" => |_, args| part(args, |time| i64::from(time.weekday().to_sunday_zero_offset())),
        "getHours" => |_, args| match args {
            [Value::Duration(nanoseconds)] => Ok(Value::Int(nanoseconds / 3_600_000_000_000)),
            _ => part(args, |time| i64::from(time.hour())),
        },
        "getMinutes" => |_, args| match args {
            [Value::Duration(nanoseconds)] => Ok(Value::Int(nanoseconds / 60_000_000_000)),
            _ => part(args, |time| i64::from(time.minute())),
        },
        "getSeconds" => |_, args| match args {
            [Value::Duration(nanoseconds)] => Ok(Value::Int(nanoseconds / 1_000_000_000)),
            _ => part(args, |time| i64::from(time.second())),
        },
        "getMilliseconds" => |_, args| match args {
            [Value::Duration(nanoseconds)] => Ok(Value::Int(nanoseconds / 1_000_000)),
            [Value::Timestamp(time), ..] => part(args, |_| 0).map(|_| Value::Int(milliseconds(*time))),
            _ => mismatch(),
        },
        _ => return None,
    })
}

fn milliseconds(time: Time) -> i64 {
    i64::try_from(time.subsecond() / 1_000_000).unwrap_or_default()
}

fn part(args: &[Value], read: fn(&DateTime) -> i64) -> Outcome {
    let at = |time: &Time, zone: &TimeZone| Ok(Value::Int(read(&time.local(zone))));
    match args {
        [Value::Timestamp(time)] => at(time, &TimeZone::UTC),
        [Value::Timestamp(time), Value::String(zone)] => match time_zone(zone) {
            Ok(zone) => at(time, &zone),
            Err(message) => failed(message),
        },
        _ => mismatch(),
    }
}

/// A zone by name, or an offset like `-02:30`.
fn time_zone(name: &str) -> Result<TimeZone, String> {
    let Some((hours, minutes)) = name.split_once(':') else {
        // The zone of the server is UTC.
        if matches!(name, "" | "UTC" | "Local") {
            return Ok(TimeZone::UTC);
        }
        if name.contains("..") || name.starts_with(['/', '\\']) {
            return Err("time: invalid location name".to_owned());
        }
        return TimeZone::get(name).map_err(|_| format!("unknown time zone {name}"));
    };
    let syntax = |text: &str| format!("strconv.Atoi: parsing \"{text}\": invalid syntax");
    let whole: i32 = hours.parse().map_err(|_| syntax(hours))?;
    let part: i32 = minutes.parse().map_err(|_| syntax(minutes))?;
    let part = if hours.starts_with('-') { part.saturating_neg() } else { part };
    let seconds = whole.saturating_mul(3600).saturating_add(part.saturating_mul(60));
    let offset = Offset::from_seconds(seconds).map_err(|error| error.to_string())?;
    Ok(TimeZone::fixed(offset))
}
