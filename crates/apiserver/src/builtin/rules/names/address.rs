//! IP addresses and CIDR blocks: how they are checked in fields that predate strict rules, and in new ones.
//!
//! kube-apiserver reads old fields with a lenient parser (leading zeros, IPv4-mapped addresses) and refuses
//! the leniency in new ones by name; both need the lenient parser to say which it is.

use crate::field::{FieldError, Path};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reads an address as old versions did: octets may have leading zeros.
pub(crate) fn parse_lenient(text: &str) -> Option<IpAddr> {
    if text.contains(':') { lenient_v6(text).map(IpAddr::V6) } else { lenient_v4(text).map(IpAddr::V4) }
}

fn lenient_v4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = decimal(parts.next()?)?.try_into().ok()?;
    }
    parts.next().is_none().then(|| octets.into())
}

fn lenient_v6(text: &str) -> Option<Ipv6Addr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    // Only an embedded IPv4 address can have zeros that the strict parser refuses.
    let (head, tail) = text.rsplit_once(':')?;
    let tail = lenient_v4(tail)?;
    format!("{head}:{tail}").parse().ok()
}

fn decimal(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// The address itself, as Go's `net.IP` prints it: IPv4-mapped ones as IPv4.
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn is_mapped(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn check_address(text: &str, path: &Path<'_>, strict: bool, errors: &mut Vec<FieldError>) -> Option<IpAddr> {
    let Some(address) = parse_lenient(text) else {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.push(FieldError::invalid(path, &text.into(), detail));
        return None;
    };
    let before = errors.len();
    if strict {
        match text.parse::<IpAddr>() {
            Err(_) => errors.push(FieldError::invalid(path, &text.into(), "must not have leading 0s")),
            Ok(address) if is_mapped(&address) => {
                let detail = "must not be an IPv4-mapped IPv6 address";
                errors.push(FieldError::invalid(path, &text.into(), detail));
            }
            Ok(_) => {}
        }
    }
    (errors.len() == before).then_some(address)
}

/// Checks an address in a field that has always been lenient about its spelling.
pub(crate) fn validate_legacy_ip(text: &str, path: &Path<'_>, strict: bool, errors: &mut Vec<FieldError>) {
    check_address(text, path, strict, errors);
}

/// Checks an address in a field that wants the canonical spelling.
pub(crate) fn validate_ip(text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(address) = check_address(text, path, true, errors) {
        let canonical = canonical(address).to_string();
        if canonical != text {
            let detail = format!("must be in canonical form (\"{canonical}\")");
            errors.push(FieldError::invalid(path, &text.into(), detail));
        }
    }
}

/// A block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    /// The address as it was written, bits beyond the prefix included.
    pub address: IpAddr,
    /// How many leading bits all addresses of the block share.
    pub prefix: u32,
}

impl Cidr {
    /// Reads a block as old versions did.
    pub(crate) fn parse_lenient(text: &str) -> Option<Cidr> {
        let (address, prefix) = text.split_once('/')?;
        let address = parse_lenient(address)?;
        let prefix = decimal(prefix)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        (prefix <= width).then_some(Cidr { address, prefix })
    }

    /// The lowest address.
    pub(crate) fn first(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32_u32.saturating_sub(self.prefix)).unwrap_or(0);
                IpAddr::V4((u32::from(v4) & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128_u32.saturating_sub(self.prefix)).unwrap_or(0);
                IpAddr::V6((u128::from(v6) & mask).into())
            }
        }
    }

    /// Whether an address is of this block.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let width_matches = address.is_ipv4() == self.address.is_ipv4();
        width_matches && Cidr { address, prefix: self.prefix }.first() == self.first()
    }

    /// Whether every address of `other` is of this block.
    pub(crate) fn covers(&self, other: &Cidr) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }
}

/// Checks a block in a field that has always been lenient about its spelling.
pub(crate) fn validate_legacy_cidr(text: &str, path: &Path<'_>, strict: bool, errors: &mut Vec<FieldError>) {
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(path, &text.into(), detail));
    let Some(block) = Cidr::parse_lenient(text) else {
        return refuse("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    };
    if !strict {
        return;
    }
    let spelled_strictly = text.split_once('/').is_some_and(|(address, prefix)| {
        address.parse::<IpAddr>().is_ok() && (prefix == "0" || !prefix.starts_with('0'))
    });
    if !spelled_strictly {
        refuse("must not have leading 0s in IP or prefix length");
    } else if is_mapped(&block.address) {
        refuse("must not have an IPv4-mapped IPv6 address");
    } else if block.first() != block.address {
        refuse("must not have bits set beyond the prefix length");
    }
}
