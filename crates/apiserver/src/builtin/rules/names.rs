//! Names, labels and the other small texts of the API: what may stand in them, and the sentence that
//! says so when it may not.
//!
//! Each check returns what is wrong with a text, nothing if all is well. The sentences are kube-apiserver's;
//! clients match on them. [`object_meta`] applies them to `metadata`, [`selectors`] to label selectors,
//! [`address`] holds IP addresses and CIDR blocks, [`generate`] makes names from `generateName`.

pub(crate) mod address;
pub(crate) mod generate;
pub(crate) mod object_meta;
mod selectors;

pub(crate) use object_meta::{
    complain, in_order, validate_annotations, validate_immutable, validate_immutable_text, validate_labels,
    validate_object_meta, validate_object_meta_update, validate_object_names,
};
pub(crate) use selectors::{validate_label_selector, validate_selector_requirement};

/// What is wrong with a name; empty when nothing is.
pub(crate) type NameCheck = fn(&str) -> Vec<String>;

pub(crate) const LABEL_MAX: usize = 63;
pub(crate) const SUBDOMAIN_MAX: usize = 253;

const LABEL_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FORM: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const WILDCARD_FORM: &str = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035_FORM: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY_FORM: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE_FORM: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
     '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
     characters, '-' or '.', and must start and end with an alphanumeric character";
const WILDCARD_RULE: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
     subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an \
     alphanumeric character";
const LABEL_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
     start with an alphabetic character, and end with an alphanumeric character";
const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
     with an alphanumeric character";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', \
     '_' or '.', and must start and end with an alphanumeric character";

/// The sentence for a text that does not have the form it must have.
pub(crate) fn form_error(rule: &str, form: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{form}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{form}')", examples.join(" or "))
}

/// The sentence for a text that is too long.
pub(crate) fn length_error(max: usize) -> String {
    format!("must be no more than {max} characters")
}

/// The sentence for a number out of range.
pub(crate) fn range_error(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

fn lower(c: u8) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// Starts and ends with an `edge` character, and holds only those and `inner` ones.
fn has_form(text: &str, edge: fn(u8) -> bool, inner: &[u8]) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => edge(*only),
        [first, middle @ .., last] => {
            edge(*first) && edge(*last) && middle.iter().all(|c| edge(*c) || inner.contains(c))
        }
    }
}

fn is_label(text: &str) -> bool {
    has_form(text, lower, b"-")
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// A lower-case RFC 1123 label: names of namespaces, of containers.
pub(crate) fn dns1123_label(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, LABEL_MAX);
    if !is_label(text) {
        wrong.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            form_error(LABEL_RULE, LABEL_FORM, &["my-name", "123-abc"])
        });
    }
    wrong
}

/// A lower-case RFC 1123 subdomain: names of most objects.
pub(crate) fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, SUBDOMAIN_MAX);
    if !is_subdomain(text) {
        wrong.push(form_error(SUBDOMAIN_RULE, SUBDOMAIN_FORM, &["example.com"]));
    }
    wrong
}

/// A subdomain whose first label is `*`: hosts of an Ingress.
pub(crate) fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, SUBDOMAIN_MAX);
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        wrong.push(form_error(WILDCARD_RULE, WILDCARD_FORM, &["*.example.com"]));
    }
    wrong
}

/// An RFC 1035 label: group versions, names of custom resources.
pub(crate) fn dns1035_label(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, LABEL_MAX);
    if !(is_label(text) && text.as_bytes()[0].is_ascii_lowercase()) {
        wrong.push(form_error(LABEL_1035_RULE, LABEL_1035_FORM, &["my-name", "abc-123"]));
    }
    wrong
}

fn too_long(text: &str, max: usize) -> Vec<String> {
    if text.len() > max { vec![length_error(max)] } else { Vec::new() }
}

fn is_key_name(text: &str) -> bool {
    has_form(text, |c| c.is_ascii_alphanumeric(), b"-_.")
}

/// A label key, which is also every "qualified name": annotations, finalizers, condition types.
pub(crate) fn label_key(text: &str) -> Vec<String> {
    let examples = &["MyName", "my.name", "123-abc"];
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                form_error(KEY_RULE, KEY_FORM, examples)
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    let mut wrong = Vec::new();
    match prefix {
        None => {}
        Some("") => wrong.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            if prefix.len() > SUBDOMAIN_MAX {
                wrong.push(format!("prefix part must be no more than {SUBDOMAIN_MAX} bytes"));
            }
            if !is_subdomain(prefix) {
                let sentence = form_error(SUBDOMAIN_RULE, SUBDOMAIN_FORM, &["example.com"]);
                wrong.push(format!("prefix part {sentence}"));
            }
        }
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        wrong.push(format!("name part must be no more than {LABEL_MAX} bytes"));
    }
    if !is_key_name(name) {
        wrong.push(format!("name part {}", form_error(KEY_RULE, KEY_FORM, examples)));
    }
    wrong
}

/// The value of a label.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > LABEL_MAX {
        wrong.push(format!("must be no more than {LABEL_MAX} bytes"));
    }
    if !(text.is_empty() || is_key_name(text)) {
        wrong.push(form_error(VALUE_RULE, VALUE_FORM, &["MyValue", "my_value", "12345"]));
    }
    wrong
}

/// A name that can stand in a URL path: RBAC kinds, custom objects of old servers.
pub(crate) fn path_segment_name(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"].iter().filter(|c| text.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// The name of a container's or a service's target port.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, 15);
    if text.is_empty() || !text.bytes().all(|c| lower(c) || c == b'-') {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|c| c.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// A port number.
pub(crate) fn port_number(port: i64) -> Vec<String> {
    if (1..=65535).contains(&port) { Vec::new() } else { vec![range_error(1, 65535)] }
}

/// A key of a `ConfigMap` or `Secret`.
pub(crate) fn config_key(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, SUBDOMAIN_MAX);
    if text.is_empty() || !text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._".contains(&c)) {
        wrong.push(form_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match text {
        "." | ".." => wrong.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// The prefix of a generated name, as the name's own check sees it: the trailing dash is no mistake.
pub(crate) fn masked_prefix(text: &str) -> std::borrow::Cow<'_, str> {
    match text.strip_suffix('-') {
        // The character before the dash goes too, which is what the real server does.
        Some(head) if !head.is_empty() => {
            let cut = head.char_indices().next_back().map_or(0, |(at, _)| at);
            format!("{}a", &head[..cut]).into()
        }
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests;
