//! The values that Kubernetes adds: quantities, CIDRs, versions and named formats.

pub use super::names::NamedFormat;
pub use crate::go_url::Url;

use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;

/// An amount of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The amount in billionths, rounded up.
    pub nanos: i128,
    /// Whether Kubernetes keeps the amount as a decimal number, because it has a fraction or many digits. Such an
    /// amount is never an integer, even if its fraction is zero.
    pub fractional: bool,
}

const NANOS: i128 = 1_000_000_000;
/// Amounts with a binary suffix beyond this are cut off.
const NANOS_MAX: i128 = i64::MAX as i128 * NANOS;
/// Amounts with more digits are kept as decimal numbers.
const DIGITS_MAX: usize = 18;
/// The same for amounts with a binary suffix, whose factor counts for about a digit for each three bits.
const BINARY_DIGITS_MAX: usize = 15;

impl Quantity {
    /// A whole amount.
    pub fn whole(amount: i64) -> Self {
        Quantity { nanos: i128::from(amount) * NANOS, fractional: false }
    }

    /// Reads an amount like `1.5Gi`, with the errors of Kubernetes.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const FORMAT: &str = "quantities must match the regular expression \
                              '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        const SUFFIX: &str = "unable to parse quantity's suffix";
        let (negative, rest) = match text.as_bytes().first() {
            None => return Err(FORMAT),
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            Some(_) => (false, text),
        };
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (whole, rest) = rest.split_at(digits(rest));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(after) => after.split_at(digits(after)),
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(FORMAT);
        }
        if !suffix.bytes().all(|b| b.is_ascii_digit() || b"eEinumkKMGTP+-".contains(&b)) {
            return Err(FORMAT);
        }
        let fraction = fraction.trim_end_matches('0');
        let (factor, exponent) = scale(suffix).ok_or(SUFFIX)?;
        let fractional = exponent < 0 || (!fraction.is_empty() && exponent <= 0 && factor == 1);
        let nanos = magnitude(whole, fraction, factor, exponent);
        let digits = whole.trim_start_matches('0').len().max(1) + fraction.len();
        let fractional = match factor {
            1 => (fractional && nanos != 0) || digits > DIGITS_MAX,
            _ => !fraction.is_empty() || digits + factor.ilog2() as usize * 3 / 10 + 1 > BINARY_DIGITS_MAX,
        };
        let nanos = if factor == 1 { nanos } else { nanos.min(NANOS_MAX) };
        Ok(Quantity { nanos: if negative { -nanos } else { nanos }, fractional })
    }

    /// The amount as an integer, if it is kept as one.
    pub fn as_integer(&self) -> Option<i64> {
        if self.fractional { None } else { i64::try_from(self.nanos / NANOS).ok() }
    }

    /// The amount as a floating-point number.
    #[expect(clippy::cast_precision_loss, reason = "the function says that it approximates")]
    pub fn as_float(&self) -> f64 {
        self.nanos as f64 / 1e9
    }

    /// The sum of two amounts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let fractional = match (self.nanos, other.nanos) {
            (_, 0) => self.fractional,
            (0, _) => other.fractional,
            _ => self.fractional || other.fractional,
        };
        Quantity { nanos: self.nanos.saturating_add(other.nanos), fractional }
    }

    /// The amount below zero instead of above, and the other way round.
    #[must_use]
    pub const fn negated(self) -> Self {
        Quantity { nanos: self.nanos.saturating_neg(), fractional: self.fractional }
    }
}

/// What a suffix multiplies with: a factor and a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            (1, exponent.parse::<i32>().ok()?)
        }
    })
}

/// An amount in billionths, rounded up. Amounts above 10^29 are cut off.
fn magnitude(whole: &str, fraction: &str, factor: i128, exponent: i32) -> i128 {
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // The amount is `digits` times ten to the power of `power` billionths.
    let behind = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let mut power = exponent.saturating_add(9).saturating_sub(behind);
    let mut amount: i128 = 0;
    let mut dropped = false;
    for (index, digit) in digits.bytes().enumerate() {
        if index < 28 {
            amount = amount * 10 + i128::from(digit - b'0');
        } else {
            power = power.saturating_add(1);
            dropped |= digit != b'0';
        }
    }
    let mut amount = amount.saturating_mul(factor);
    while power > 0 && amount < i128::MAX / 10 {
        amount = amount.saturating_mul(10);
        power -= 1;
    }
    while power < 0 && amount > 0 {
        let rest = amount % 10 != 0 || dropped;
        amount /= 10;
        power += 1;
        dropped = rest;
        if amount == 0 {
            break;
        }
    }
    if power > 0 {
        return i128::MAX;
    }
    amount.saturating_add(i128::from(dropped))
}

/// An address and how many of its bits name a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address, with the bits that do not name the network.
    pub address: IpAddr,
    /// How many bits name the network.
    pub bits: u8,
}

impl Cidr {
    /// Reads `address/bits`.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.rsplit_once('/')?;
        let plain = bits == "0" || (!bits.starts_with('0') && bits.bytes().all(|b| b.is_ascii_digit()));
        let bits: u8 = bits.parse().ok().filter(|_| plain)?;
        let address: IpAddr = address.parse().ok()?;
        (bits <= width(address)).then_some(Cidr { address, bits })
    }

    /// The first address of the network.
    #[must_use]
    pub fn masked(self) -> Self {
        let keep = |width: u8| if self.bits == 0 { 0 } else { u128::MAX << (width - self.bits) };
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::try_from(keep(32) & u128::from(u32::MAX)).unwrap_or(u32::MAX);
                IpAddr::from((address.to_bits() & mask).to_be_bytes())
            }
            IpAddr::V6(address) => IpAddr::from((address.to_bits() & keep(128)).to_be_bytes()),
        };
        Cidr { address, bits: self.bits }
    }

    /// Whether an address is in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Cidr { address, bits: self.bits }.masked().address == self.masked().address
    }
}

const fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// A version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    /// Major, minor and patch number.
    pub numbers: [u64; 3],
    /// The parts of the pre-release.
    pub pre: Vec<String>,
}

impl Semver {
    /// Reads a version, with the errors of Kubernetes.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, pre) = rest.split_once('-').map_or((rest, None), |(rest, pre)| (rest, Some(pre)));
        let numbers = [number("Major", major)?, number("Minor", minor)?, number("Patch", patch)?];
        let pre: Vec<String> = pre.into_iter().flat_map(|pre| pre.split('.')).map(str::to_owned).collect();
        let word = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        for part in &pre {
            if part.is_empty() {
                return Err("Prerelease is empty".to_owned());
            }
            if is_numeric(part) && part.len() > 1 && part.starts_with('0') {
                return Err(format!("Numeric PreRelease version must not contain leading zeroes {part:?}"));
            }
            if !word(part) {
                return Err(format!("Invalid character(s) found in prerelease {part:?}"));
            }
        }
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !word(part) {
                return Err(format!("Invalid character(s) found in build meta data {part:?}"));
            }
        }
        Ok(Semver { numbers, pre })
    }

    /// Reads a version that may start with `v`, be short, or have zeros in front of its numbers.
    pub fn parse_tolerant(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
        for part in &mut parts {
            if part.len() > 1 {
                let trimmed = part.trim_start_matches('0');
                *part = match trimmed.as_bytes().first() {
                    Some(first) if first.is_ascii_digit() => trimmed.to_owned(),
                    _ => format!("0{trimmed}"),
                };
            }
        }
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    /// Which version is newer. Build metadata does not count.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.as_slice(), other.pre.as_slice()) {
            ([], []) => Ordering::Equal,
            ([], _) => Ordering::Greater,
            (_, []) => Ordering::Less,
            (first, second) => {
                let parts = first.iter().zip(second).map(|(first, second)| compare_pre(first, second));
                parts.fold(Ordering::Equal, Ordering::then).then(first.len().cmp(&second.len()))
            }
        })
    }
}

fn is_numeric(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn compare_pre(first: &str, second: &str) -> Ordering {
    match (is_numeric(first), is_numeric(second)) {
        // Numbers without zeros in front: the longer one is larger.
        (true, true) => (first.len(), first).cmp(&(second.len(), second)),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => first.cmp(second),
    }
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    let lower = name.to_ascii_lowercase();
    if !is_numeric(text) || (text.is_empty() && name != "Patch") {
        return Err(format!("Invalid character(s) found in {lower} number {text:?}"));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {text:?}"));
    }
    text.parse().map_err(|_| {
        if text.is_empty() {
            format!("strconv.ParseUint: parsing {text:?}: invalid syntax")
        } else {
            format!("strconv.ParseUint: parsing {text:?}: value out of range")
        }
    })
}
