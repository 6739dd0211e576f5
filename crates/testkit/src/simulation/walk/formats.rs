//! Formats of texts and numbers: whether a value has one, and values that do.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Two values of a text format; none if nothing is known of it.
pub(super) fn samples(format: &str) -> &'static [&'static str] {
    match format {
        "date-time" | "datetime" => &["2031-02-03T04:05:06Z", "2001-02-03T04:05:06Z"],
        "date" => &["2031-02-03", "2001-02-03"],
        "duration" => &["90s", "10m"],
        "ip" | "ipv4" => &["192.0.2.7", "198.51.100.8"],
        "ipv6" => &["2001:db8::7", "2001:db8::8"],
        "cidr" => &["192.0.2.0/24", "198.51.100.0/25"],
        "mac" => &["00:00:5e:00:53:07", "00:00:5e:00:53:08"],
        "uri" | "url" => &["https://walked.example.org/a", "https://walked.example.org/b"],
        "hostname" => &["walked.example.org", "other.example.org"],
        "email" => &["walked@example.org", "other@example.org"],
        "uuid" | "uuid4" => &["5f2c1d1e-8d3b-4b0a-9c55-0a4d3c2b1a07", "5f2c1d1e-8d3b-4b0a-9c55-0a4d3c2b1a08"],
        "uuid3" => &["5f2c1d1e-8d3b-3b0a-9c55-0a4d3c2b1a07", "5f2c1d1e-8d3b-3b0a-9c55-0a4d3c2b1a08"],
        "uuid5" => &["5f2c1d1e-8d3b-5b0a-9c55-0a4d3c2b1a07", "5f2c1d1e-8d3b-5b0a-9c55-0a4d3c2b1a08"],
        "byte" => &["d2Fsa2Vk", "b3RoZXI="],
        "quantity" => &["1Gi", "200m"],
        _ => &[],
    }
}

/// Whether a text has the format. Formats that are not known are no bar, as for the server.
pub(super) fn fits(format: Option<&str>, text: &str) -> bool {
    match format.unwrap_or_default() {
        "date-time" | "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => is_duration(text),
        "ip" => text.parse::<IpAddr>().is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(address, bits)| {
            let bits_max =
                address.parse().map(|address| if matches!(address, IpAddr::V4(_)) { 32 } else { 128 });
            bits_max.is_ok_and(|max| bits.parse::<u8>().is_ok_and(|bits| bits <= max))
        }),
        "mac" => text.split(':').count() == 6 && text.split(':').all(|part| part.len() == 2 && is_hex(part)),
        "uri" | "url" => text.starts_with('/') || text.contains("://"),
        "hostname" => !text.is_empty() && text.split('.').all(is_label),
        "email" => text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "byte" => !text.is_empty() && STANDARD.decode(text).is_ok(),
        "quantity" => doubled(text).is_some(),
        _ => true,
    }
}

/// Whether a number lies in the range of its format.
pub(super) fn holds(format: Option<&str>, number: f64) -> bool {
    let (min, max) = match format.unwrap_or_default() {
        "int8" => (f64::from(i8::MIN), f64::from(i8::MAX)),
        "int16" => (f64::from(i16::MIN), f64::from(i16::MAX)),
        "int32" => (f64::from(i32::MIN), f64::from(i32::MAX)),
        "uint8" => (0.0, f64::from(u8::MAX)),
        "uint16" => (0.0, f64::from(u16::MAX)),
        "uint32" => (0.0, f64::from(u32::MAX)),
        "uint" | "uint64" => (0.0, f64::INFINITY),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    (min..=max).contains(&number)
}

/// A Kubernetes quantity twice as large; None if it is none, or nothing.
pub(super) fn doubled(quantity: &str) -> Option<String> {
    let end = quantity.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at(end);
    let units = ["", "n", "u", "m", "k", "Ki", "M", "Mi", "G", "Gi", "T", "Ti", "P", "Pi", "E", "Ei"];
    let number = number.parse::<f64>().ok()?;
    (units.contains(&unit) && number.is_finite()).then(|| format!("{}{unit}", number * 2.0))
}

/// As Go writes durations: `1h30m`.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let unit = ["ns", "us", "ms", "s", "m", "h"].into_iter().find(|unit| {
            rest[digits..]
                .strip_prefix(unit)
                .is_some_and(|after| after.is_empty() || after.starts_with(|c: char| c.is_ascii_digit()))
        });
        match unit {
            Some(unit) if digits > 0 => rest = &rest[digits + unit.len()..],
            _ => return false,
        }
    }
    !text.is_empty()
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| is_hex(part))
        && version.is_none_or(|version| parts[2].starts_with(version))
}

fn is_hex(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_label(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 63
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_their_format_and_nonsense_has_none() {
        for format in [
            "date-time",
            "date",
            "duration",
            "ip",
            "ipv4",
            "ipv6",
            "cidr",
            "mac",
            "uri",
            "hostname",
            "email",
            "uuid",
            "uuid3",
            "uuid4",
            "uuid5",
            "byte",
            "quantity",
        ] {
            let known = samples(format);
            assert!(known.len() == 2 && known[0] != known[1], "{format}");
            assert!(known.iter().all(|text| fits(Some(format), text)), "{format}: {known:?}");
            assert!(!fits(Some(format), "no such thing!"), "{format}");
        }
        assert!(fits(Some("made-up"), "no such thing!"));
    }

    #[test]
    fn quantities_are_doubled_in_their_own_unit() {
        assert_eq!(doubled("10Gi").as_deref(), Some("20Gi"));
        assert_eq!(doubled("1.5").as_deref(), Some("3"));
        assert_eq!(doubled("250m").as_deref(), Some("500m"));
        assert_eq!(doubled("ephemeral"), None);
        assert_eq!(doubled("10 apples"), None);
    }
}
