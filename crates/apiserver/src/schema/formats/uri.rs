//! URIs as `net/url` takes them.

/// What `url.ParseRequestURI` takes: an absolute path, or a URI with a scheme, no control characters.
pub(super) fn is_request_uri(text: &str) -> bool {
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
            Some(end) => end + 2,
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
