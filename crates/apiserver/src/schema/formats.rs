//! The string formats a schema can ask for.
//!
//! Kubernetes enforces a fixed list of formats and ignores all others. What each accepts is defined by
//! Go's parsers (`net`, `net/mail`, `net/url`, `time`), which are followed here, their leniency included.

mod duration;

pub(crate) use duration::parse_duration;

use super::Type;
use mainstay_cel::go_url::is_request_uri;
use regex::Regex;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// A string format that is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

impl Format {
    /// The format of this name; dashes in names don't count.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Format::BsonObjectId,
            "uri" => Format::Uri,
            "email" => Format::Email,
            "hostname" => Format::Hostname,
            "ipv4" => Format::Ipv4,
            "ipv6" => Format::Ipv6,
            "cidr" => Format::Cidr,
            "mac" => Format::Mac,
            "uuid" => Format::Uuid,
            "uuid3" => Format::Uuid3,
            "uuid4" => Format::Uuid4,
            "uuid5" => Format::Uuid5,
            "isbn" => Format::Isbn,
            "isbn10" => Format::Isbn10,
            "isbn13" => Format::Isbn13,
            "creditcard" => Format::CreditCard,
            "ssn" => Format::Ssn,
            "hexcolor" => Format::HexColor,
            "rgbcolor" => Format::RgbColor,
            "byte" => Format::Byte,
            "password" => Format::Password,
            "date" => Format::Date,
            "duration" => Format::Duration,
            "datetime" => Format::DateTime,
            "k8sshortname" => Format::ShortName,
            "k8slongname" => Format::LongName,
            _ => return None,
        })
    }

    /// Whether Kubernetes enforces the format called `name` on values of this type.
    pub(crate) fn supported(name: &str, kind: Option<Type>, int_or_string: bool) -> bool {
        match kind {
            _ if int_or_string => Format::from_name(name).is_some(),
            None | Some(Type::String) => Format::from_name(name).is_some(),
            Some(Type::Integer) => matches!(name, "int32" | "int64"),
            Some(Type::Number) => matches!(name, "float" | "double"),
            Some(Type::Object | Type::Array | Type::Boolean) => false,
        }
    }

    /// Whether `text` has this format.
    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            Format::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Format::Uri => is_request_uri(text),
            Format::Email => super::email::is_address(text),
            Format::Hostname => is_hostname(text),
            Format::Ipv4 => text.contains('.') && (parse_ipv4_sloppy(text).is_some() || is_ipv6(text)),
            Format::Ipv6 => is_ipv6(text),
            Format::Cidr => is_cidr(text),
            Format::Mac => is_mac(text),
            Format::Uuid => UUID.is_match(text),
            Format::Uuid3 => UUID3.is_match(text),
            Format::Uuid4 => UUID4.is_match(text),
            Format::Uuid5 => UUID5.is_match(text),
            Format::Isbn => is_isbn10(text) || is_isbn13(text),
            Format::Isbn10 => is_isbn10(text),
            Format::Isbn13 => is_isbn13(text),
            Format::CreditCard => is_credit_card(text),
            Format::Ssn => text.len() == 11 && SSN.is_match(text),
            Format::HexColor => HEX_COLOR.is_match(text),
            Format::RgbColor => RGB_COLOR.is_match(text),
            Format::Byte => BASE64.is_match(text),
            Format::Password => true,
            Format::Date => is_date(text),
            Format::Duration => parse_duration(text).is_some(),
            Format::DateTime => is_date_time(text),
            Format::ShortName => text.len() <= 63 && SHORT_NAME.is_match(text),
            Format::LongName => text.len() <= 253 && LONG_NAME.is_match(text),
        }
    }
}

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        #[allow(
            clippy::expect_used,
            reason = "every pattern of formats is a constant and is compiled by a test"
        )]
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("constant pattern"));
    };
}
use pattern;

pattern!(UUID, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$");
pattern!(UUID3, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$");
pattern!(UUID4, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$");
pattern!(UUID5, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$");
pattern!(SSN, r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$");
pattern!(HEX_COLOR, "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$");
pattern!(BASE64, "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$");
pattern!(SHORT_NAME, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
pattern!(LONG_NAME, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$");
pattern!(
    RGB_COLOR,
    r"^rgb\([\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*\)$"
);
pattern!(
    CREDIT_CARD,
    "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
);
pattern!(
    HOSTNAME,
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
);

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(text)
}

/// Four decimal numbers; leading zeros are let through as they were before Go 1.17.
fn parse_ipv4_sloppy(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

fn is_ipv6(text: &str) -> bool {
    text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = if is_ipv6(address) {
        128
    } else if parse_ipv4_sloppy(address).is_some() {
        32
    } else {
        return false;
    };
    !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

/// 6, 8 or 20 octets: pairs separated by `:` or `-`, or groups of four by `.`.
fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize| {
        let mut count = 0;
        let fine = text.split(separator).all(|group| {
            count += 1;
            group.len() == width && group.bytes().all(|b| b.is_ascii_hexdigit())
        });
        (fine, count * width / 2)
    };
    let (fine, octets) = match text.as_bytes().get(2) {
        Some(b':') => groups(':', 2),
        Some(b'-') => groups('-', 2),
        _ => groups('.', 4),
    };
    fine && matches!(octets, 6 | 8 | 20)
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_spaces_and_dashes(text);
    let [body @ .., last] = digits.as_slice() else { return false };
    if body.len() != 9 || !body.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let check = match last {
        b'X' => 10,
        b'0'..=b'9' => u32::from(last - b'0'),
        _ => return false,
    };
    let sum: u32 = (1..).zip(body).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    (sum + 10 * check).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_spaces_and_dashes(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 =
        [1, 3].into_iter().cycle().zip(&digits).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    sum.is_multiple_of(10)
}

fn without_spaces_and_dashes(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !matches!(b, b' ' | b'\t' | b'\n' | 0x0c | b'\r' | b'-')).collect()
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let luhn: u32 = digits
        .bytes()
        .rev()
        .zip([1, 2].into_iter().cycle())
        .map(|(digit, weight)| {
            let value = weight * u32::from(digit - b'0');
            value / 10 + value % 10
        })
        .sum();
    CREDIT_CARD.is_match(&digits) && luhn.is_multiple_of(10)
}

/// `2006-01-02`, a day that exists.
fn is_date(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(i, b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() })
        && text.parse::<jiff::civil::Date>().is_ok()
}

/// A date, `t`, and a time whose parts are in range as text; leap seconds are refused, any offset is taken.
fn is_date_time(text: &str) -> bool {
    pattern!(TIME, "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$");
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date)
        && TIME
            .captures(time)
            .is_some_and(|parts| &parts[1] <= "23" && &parts[2] <= "59" && &parts[3] <= "59")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, good: &[&str], bad: &[&str]) {
        let format = Format::from_name(name).unwrap();
        for text in good {
            assert!(format.accepts(text), "{name} should accept {text:?}");
        }
        for text in bad {
            assert!(!format.accepts(text), "{name} should refuse {text:?}");
        }
    }

    #[test]
    fn formats_accept_what_go_accepts() {
        check(
            "date-time",
            &["2026-01-02T03:04:05Z", "2026-01-02t03:04:05.123+99:99"],
            &["2026-01-02", "2026-02-30T00:00:00Z", "2026-01-02T24:00:00Z", "2026-01-02T03:04:05"],
        );
        check("date", &["2024-02-29"], &["2023-02-29", "2023-2-1", ""]);
        check("duration", &["1h30m", "-1.5s", "0", "3 days", "2 weeks", ".5s"], &["", "1", "5 parsecs", "-"]);
        check(
            "ipv4",
            &["10.0.0.1", "010.0.0.1", "::ffff:1.2.3.4"],
            &["10.0.0", "256.1.1.1", "::1", "1.2.3.4.5"],
        );
        check("ipv6", &["::1", "fe80::1"], &["fe80::1%eth0", "1.2.3.4", ""]);
        check("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/+8"]);
        check(
            "mac",
            &["00:11:22:33:44:55", "0011.2233.4455", "00-11-22-33-44-55"],
            &["00:11:22:33:44", "zz:11:22:33:44:55", "00:11-22:33:44:55"],
        );
        check("uuid", &["5F8B9B0C-1d2e-4f3a-8b4c-5d6e7f8a9b0c"], &["5f8b"]);
        check("uuid4", &["5f8b9b0c-1d2e-4f3a-8b4c-5d6e7f8a9b0c"], &["5f8b9b0c-1d2e-1f3a-8b4c-5d6e7f8a9b0c"]);
        check("hostname", &["a", "example.com", "1.example.com"], &["", "-a", "a..b", "a_b.com", "a.b.c1"]);
        check("byte", &["YQ==", "YWJj"], &["", "YQ", "!!!!"]);
        check("hexcolor", &["#fff", "ABCDEF"], &["#ffff"]);
        check("rgbcolor", &["rgb(0, 1,255)"], &["rgb(0,1,256)"]);
        check("isbn", &["3836221195", "978-4-87311-368-5", "3 401 01319 X"], &["3423214121", "foo"]);
        check("creditcard", &["4220-8554-2622-2389"], &["4220855426213389", ""]);
        check("ssn", &["123-45-6789"], &["123456789"]);
        check("k8s-short-name", &["abc-1"], &["Abc", "-a", ""]);
        check("k8s-long-name", &["a.b-c.d"], &["a..b"]);
        check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]);
        check("password", &[""], &[]);
    }

    #[test]
    fn uris_are_those_that_go_parses() {
        let good = [
            "http://foo.bar/#com",
            "http://user:pass@www.foobar.com/",
            "mailto:someone@example.com",
            "/abs/test/dir",
            "http://[::1]:80/x",
            "http://duckduckgo.com/?q=%2F",
            "xyz://foobar.com",
            "http://foobar.中文网/",
            "*",
        ];
        let bad =
            ["", "foobar.com", "./rel", "invalid.", "http://a b/", "http://h:port/", "http://h/%zz", ":x"];
        check("uri", &good, &bad);
    }
}
