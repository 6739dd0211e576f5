//! URLs as Go's `net/url` reads them.

use std::fmt::Write as _;

/// What `url.ParseRequestURI` takes: an absolute path, or a URI with a scheme, no control characters.
pub fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let (rest, query_free) = rest.split_once('?').map_or((rest, true), |(rest, _)| (rest, false));
    if !rest.starts_with('/') {
        // `mailto:a@b` is opaque and taken as it is.
        return !scheme.is_empty() && (!rest.is_empty() || query_free);
    }
    let (authority, path) = match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() || !rest.starts_with("///") => {
            after.find('/').map_or((after, ""), |slash| after.split_at(slash))
        }
        _ => ("", rest),
    };
    is_authority(authority) && valid_escapes(path)
}

/// A URL taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The whole URL.
    pub text: String,
    /// The scheme in lower case, empty if there is none.
    pub scheme: String,
    /// Host and port.
    pub host: String,
    /// The path, escaped.
    pub path: String,
    /// What stands behind the question mark.
    pub query: String,
}

impl Url {
    /// Reads what [`is_request_uri`] accepts.
    pub fn parse(text: &str) -> Option<Self> {
        if !is_request_uri(text) {
            return None;
        }
        let (scheme, rest) = split_scheme(text)?;
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(after) => after.find('/').map_or((after, ""), |slash| after.split_at(slash)),
            None if rest.starts_with('/') => ("", rest),
            None => ("", ""),
        };
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        Some(Url {
            text: text.to_owned(),
            scheme: scheme.to_ascii_lowercase(),
            host: host.to_owned(),
            path: escape_path(path),
            query: query.to_owned(),
        })
    }

    /// The host without port and brackets.
    pub fn hostname(&self) -> &str {
        let name = self.split_port().0;
        name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
    }

    /// The port, empty if there is none.
    pub fn port(&self) -> &str {
        self.split_port().1
    }

    fn split_port(&self) -> (&str, &str) {
        let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
        match self.host.rsplit_once(':') {
            Some((name, port)) if is_port(port) => (name, port),
            _ => (&self.host, ""),
        }
    }

    /// Keys and values of the query, in order.
    pub fn query_pairs(&self) -> Vec<(String, String)> {
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        pairs
            .filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((unescape(key)?, unescape(value)?))
            })
            .collect()
    }
}

/// The escaped path. As in Go, a path that contains characters that need escaping is escaped again.
fn escape_path(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*[]%".contains(&byte);
    if path.bytes().all(plain) {
        return path.to_owned();
    }
    let decoded = percent_decoded(path);
    let mut out = String::with_capacity(path.len());
    for byte in decoded {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Text cannot fail to be written to.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The bytes that a text stands for. Wrong escapes stay as they are.
fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        if let Some(decoded) = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            out.push(decoded);
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    out
}

/// A part of a query without escapes; none if they are wrong.
fn unescape(text: &str) -> Option<String> {
    if !valid_escapes(text) {
        return None;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16));
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// Splits off a scheme; the scheme is empty if there is none. None if the text cannot have one.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' => return (index > 0).then(|| (&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    let user_byte = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    if !user.bytes().all(user_byte) || !valid_escapes(user) {
        return false;
    }
    let port_start = match host.strip_prefix('[') {
        Some(inner) => match inner.find(']') {
            // Only addresses of version 6 stand in brackets, with a zone perhaps.
            Some(end) => {
                let (address, zone) = inner[..end].split_once("%25").unwrap_or((&inner[..end], "zone"));
                if zone.is_empty() || address.parse::<std::net::Ipv6Addr>().is_err() {
                    return false;
                }
                end + 2
            }
            None => return false,
        },
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(port_start);
    let port_fine =
        port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    let host_byte = |b: u8| b >= 0x80 || b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&b);
    port_fine && name.bytes().all(host_byte) && valid_escapes(name)
}

fn valid_escapes(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(index, _)| {
        bytes.get(index + 1..index + 3).is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit))
    })
}
