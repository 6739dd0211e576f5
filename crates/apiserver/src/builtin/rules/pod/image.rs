//! Image references: only as much of their grammar as decides the pull policy.

/// The tag of an image reference: `latest` if it has neither tag nor digest, none if it has no tag but a
/// digest, or is no reference at all.
pub(super) fn tag(image: &str) -> Option<&str> {
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|d| !is_digest(d)) {
        return None;
    }
    let (name, tag) = match rest.rfind(':').filter(|colon| !rest[*colon..].contains('/')) {
        Some(colon) => (&rest[..colon], Some(&rest[colon + 1..])),
        None => (rest, None),
    };
    if !is_name(name) || tag.is_some_and(|t| !is_tag(t)) {
        return None;
    }
    match (tag, digest) {
        (None, None) => Some("latest"),
        (tag, _) => tag,
    }
}

fn is_name(name: &str) -> bool {
    if name.len() == 64 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return false;
    }
    let mut path = name;
    if let Some((first, rest)) = name.split_once('/') {
        let is_domain = first.contains(['.', ':'])
            || first == "localhost"
            || first.bytes().any(|b| b.is_ascii_uppercase());
        if is_domain {
            if !first.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.:[]".contains(&b)) {
                return false;
            }
            path = rest;
        }
    }
    path.split('/').all(is_component)
}

fn is_component(part: &str) -> bool {
    let bytes = part.as_bytes();
    let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| edge(Some(b)) || b"._-".contains(b))
        && !["..", "___", "._", "_.", ".-", "-.", "_-", "-_"].iter().any(|s| part.contains(s))
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|b| word(b) || b == b'.' || b == b'-')
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(kind, hex)| {
        !kind.is_empty() && hex.len() >= 32 && hex.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::tag;

    #[test]
    fn the_tag_is_latest_only_when_nothing_pins_the_image() {
        let digest = format!("nginx@sha256:{}", "a".repeat(64));
        for (image, expected) in [
            ("nginx", Some("latest")),
            ("nginx:1.27", Some("1.27")),
            ("registry:5000/nginx", Some("latest")),
            ("registry:5000/team/nginx:v1", Some("v1")),
            (digest.as_str(), None),
            ("Nginx", None),
            ("", None),
            ("a//b", None),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
    }
}
