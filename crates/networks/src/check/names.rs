//! Names that Kubernetes takes. Each function gives what is wrong with one, if anything.

/// How long a label may be.
pub(super) const LABEL_LENGTH: usize = 63;
/// How long a name may be that is no label.
const NAME_LENGTH: usize = 253;

/// The name is one of a namespace, a container, a pod: a DNS label.
pub(super) fn label(name: &str, most: usize) -> Option<String> {
    let wrong = !is_label(name) || name.len() > most;
    wrong.then(|| {
        format!(
            "must be lower-case letters, digits and '-', with no '-' at either end, \
             and at most {most} characters long, not {name:?}"
        )
    })
}

/// The name is one of a Service as well: a DNS label that begins with a letter.
pub(super) fn service(name: &str, most: usize) -> Option<String> {
    let begins = name.bytes().next().is_none_or(|first| first.is_ascii_lowercase());
    label(name, most)
        .or_else(|| (!begins).then(|| format!("must begin with a lower-case letter, not as {name:?} does")))
}

/// The name is one of a ConfigMap: DNS labels with dots between them.
pub(super) fn subdomain(name: &str) -> Option<String> {
    let wrong = !name.split('.').all(is_label) || name.len() > NAME_LENGTH;
    wrong.then(|| {
        format!(
            "must be lower-case letters, digits, '-' and '.', with letters or digits at both ends and beside every '.', \
             and at most {NAME_LENGTH} characters long, not {name:?}"
        )
    })
}

/// The name is one of a container's port.
pub(super) fn port(name: &str) -> Option<String> {
    let right = is_label(name)
        && name.len() <= 15
        && !name.contains("--")
        && name.bytes().any(|byte| byte.is_ascii_lowercase());
    (!right).then(|| {
        format!(
            "must be lower-case letters, digits and single '-' between them, with at least one letter, \
             and at most 15 characters long, not {name:?}"
        )
    })
}

fn is_label(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !name.is_empty()
        && name.bytes().all(|byte| plain(byte) || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}
