//! IP addresses and networks.

use super::kinds::Cidr;
use super::text::go_quote;
use super::{Function, failed, mismatch};
use crate::evaluate::{Machine, Outcome};
use crate::value::Value;
use std::net::IpAddr;

pub(super) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "ip" => |_, args| match args {
            [Value::Cidr(cidr)] => Ok(Value::Ip(Box::new(cidr.address))),
            [Value::String(text)] => match parse_ip(text) {
                Ok(ip) => Ok(Value::Ip(Box::new(ip))),
                Err(message) => failed(message),
            },
            _ => mismatch(),
        },
        "isIP" => |_, args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse_ip(text).is_ok())),
            _ => mismatch(),
        },
        "ip.isCanonical" => |_, args| match args {
            [Value::String(text)] => match parse_ip(text) {
                Ok(ip) => Ok(Value::Bool(ip.to_string() == **text)),
                Err(message) => failed(message),
            },
            _ => mismatch(),
        },
        "family" => |_, args| match args {
            [Value::Ip(ip)] => Ok(Value::Int(if ip.is_ipv4() { 4 } else { 6 })),
            _ => mismatch(),
        },
        "isUnspecified" => |_, args| test(args, std::net::IpAddr::is_unspecified),
        "isLoopback" => |_, args| test(args, std::net::IpAddr::is_loopback),
        "isLinkLocalMulticast" => |_, args| test(args, is_link_local_multicast),
        "isLinkLocalUnicast" => |_, args| test(args, is_link_local),
        "isGlobalUnicast" => |_, args| {
            test(args, |ip| {
                let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
                !(broadcast
                    || ip.is_unspecified()
                    || ip.is_loopback()
                    || ip.is_multicast()
                    || is_link_local(ip))
            })
        },
        "cidr" => |_, args| match args {
            [Value::String(text)] => match parse_cidr(text) {
                Ok(cidr) => Ok(Value::Cidr(Box::new(cidr))),
                Err(message) => {
                    failed(format!("network address parse error during conversion from string: {message}"))
                }
            },
            _ => mismatch(),
        },
        "isCIDR" => |_, args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse_cidr(text).is_ok())),
            _ => mismatch(),
        },
        "containsIP" => contains_ip,
        "containsCIDR" => contains_cidr,
        "prefixLength" => |_, args| match args {
            [Value::Cidr(cidr)] => Ok(Value::Int(i64::from(cidr.bits))),
            _ => mismatch(),
        },
        "masked" => |_, args| match args {
            [Value::Cidr(cidr)] => Ok(Value::Cidr(Box::new(cidr.masked()))),
            _ => mismatch(),
        },
        _ => return None,
    })
}

fn test(args: &[Value], holds: fn(&IpAddr) -> bool) -> Outcome {
    match args {
        [Value::Ip(ip)] => Ok(Value::Bool(holds(ip))),
        _ => mismatch(),
    }
}

fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_mapped(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let quoted = go_quote(text);
    if let Some((address, zone)) = text.split_once('%')
        && !zone.is_empty()
        && address.parse::<std::net::Ipv6Addr>().is_ok()
    {
        return Err(format!("IP address {quoted} with zone value is not allowed"));
    }
    match text.parse::<IpAddr>() {
        Ok(ip) if is_mapped(&ip) => Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed")),
        Ok(ip) => Ok(ip),
        Err(_) => Err(format!(
            "IP Address {quoted} parse error during conversion from string: ParseAddr({quoted}): unable to \
             parse IP"
        )),
    }
}

fn parse_cidr(text: &str) -> Result<Cidr, String> {
    let quoted = go_quote(text);
    match Cidr::parse(text) {
        Some(cidr) if is_mapped(&cidr.address) => {
            Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed"))
        }
        Some(cidr) => Ok(cidr),
        None => {
            let why = match text.rsplit_once('/') {
                None => "no '/'".to_owned(),
                Some((address, bits)) => match address.parse::<IpAddr>() {
                    Err(_) => format!("ParseAddr({}): unable to parse IP", go_quote(address)),
                    Ok(_) if bits.parse::<u32>().is_ok_and(|number| number.to_string() == bits) => {
                        "prefix length out of range".to_owned()
                    }
                    Ok(_) => format!("bad bits after slash: {}", go_quote(bits)),
                },
            };
            Err(format!(
                "network address parse error during conversion from string: netip.ParsePrefix({quoted}): {why}"
            ))
        }
    }
}

fn contains_ip(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Cidr(cidr), Value::Ip(ip)] => Ok(Value::Bool(cidr.contains(**ip))),
        [Value::Cidr(cidr), Value::String(text)] => match parse_ip(text) {
            Ok(ip) => Ok(Value::Bool(cidr.contains(ip))),
            Err(_) => mismatch(),
        },
        _ => mismatch(),
    }
}

fn contains_cidr(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let (cidr, other) = match args {
        [Value::Cidr(cidr), Value::Cidr(other)] => (cidr, **other),
        [Value::Cidr(cidr), Value::String(text)] => match parse_cidr(text) {
            Ok(other) => (cidr, other),
            Err(message) => {
                return failed(format!(
                    "network address parse error during conversion from string: {message}"
                ));
            }
        },
        _ => return mismatch(),
    };
    Ok(Value::Bool(cidr.bits <= other.bits && cidr.contains(other.address)))
}
