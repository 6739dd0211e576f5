//! The parts of timestamps and durations.

use super::{Function, failed, mismatch};
use crate::evaluate::Outcome;
use crate::value::Value;
use jiff::Timestamp;
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
            _ => part(args, |time| i64::from(time.subsec_nanosecond()) / 1_000_000),
        },
        _ => return None,
    })
}

fn part(args: &[Value], read: fn(&jiff::Zoned) -> i64) -> Outcome {
    let at = |time: &Timestamp, zone: TimeZone| Ok(Value::Int(read(&time.to_zoned(zone))));
    match args {
        [Value::Timestamp(time)] => at(time, TimeZone::UTC),
        [Value::Timestamp(time), Value::String(zone)] => match time_zone(zone) {
            Ok(zone) => at(time, zone),
            Err(message) => failed(message),
        },
        _ => mismatch(),
    }
}

/// A zone by name, or an offset like `-02:30`.
fn time_zone(name: &str) -> Result<TimeZone, String> {
    let Some((hours, minutes)) = name.split_once(':') else {
        if matches!(name, "" | "UTC") {
            return Ok(TimeZone::UTC);
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
