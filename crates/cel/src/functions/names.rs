//! Named formats: the checks behind `format.dns1123Label().validate(…)`.

use crate::{go_url, time};

/// A format that texts can be checked against.
#[derive(Debug)]
pub struct NamedFormat {
    /// Its name in expressions.
    pub name: &'static str,
    /// How long its regular expression counts as, for costs.
    pub regex_size: u64,
    /// What is wrong with a text.
    pub(crate) check: fn(&str) -> Vec<String>,
}

/// The format of a name.
pub(super) fn named_format(name: &str) -> Option<&'static NamedFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

static FORMATS: [NamedFormat; 13] = [
    NamedFormat { name: "dns1123Label", regex_size: 30, check: label },
    NamedFormat { name: "dns1123Subdomain", regex_size: 60, check: subdomain },
    NamedFormat { name: "dns1035Label", regex_size: 30, check: label_1035 },
    NamedFormat { name: "qualifiedName", regex_size: 60, check: qualified_name },
    NamedFormat { name: "dns1123LabelPrefix", regex_size: 30, check: |text| label(&prefix(text)) },
    NamedFormat { name: "dns1123SubdomainPrefix", regex_size: 60, check: |text| subdomain(&prefix(text)) },
    NamedFormat { name: "dns1035LabelPrefix", regex_size: 30, check: |text| label_1035(&prefix(text)) },
    NamedFormat { name: "labelValue", regex_size: 40, check: label_value },
    NamedFormat { name: "uri", regex_size: 1103, check: uri },
    NamedFormat {
        name: "uuid",
        regex_size: 70,
        check: |text| one(is_uuid(text), "does not match the UUID format"),
    },
    NamedFormat { name: "byte", regex_size: 84, check: |text| one(is_base64(text), "invalid base64") },
    NamedFormat { name: "date", regex_size: 71, check: |text| one(is_date(text), "invalid date") },
    NamedFormat {
        name: "datetime",
        regex_size: 71,
        check: |text| one(is_datetime(text), "invalid datetime"),
    },
];

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

fn one(fine: bool, message: &str) -> Vec<String> {
    if fine { Vec::new() } else { vec![message.to_owned()] }
}

/// A name that something is appended to may end with a dash.
fn prefix(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(start) if !start.is_empty() => format!("{start}a"),
        _ => text.to_owned(),
    }
}

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
    has_form(text, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), b"-")
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn too_long(text: &str, max: usize) -> Vec<String> {
    if text.len() > max { vec![format!("must be no more than {max} characters")] } else { Vec::new() }
}

fn label(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, LABEL_MAX);
    if !is_label(text) {
        wrong.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
             start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
             validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned()
        });
    }
    wrong
}

const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

fn subdomain(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, SUBDOMAIN_MAX);
    if !is_subdomain(text) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

fn label_1035(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, LABEL_MAX);
    if !(is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())) {
        wrong.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
             alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
             regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    wrong
}

const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                   alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                   validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn is_key(text: &str) -> bool {
    has_form(text, |c| c.is_ascii_alphanumeric(), b"-_.")
}

fn qualified_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(subdomain(prefix).into_iter().map(|why| format!("prefix part {why}")));
            }
            name
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        wrong.push(format!("name part must be no more than {LABEL_MAX} characters"));
    }
    if !is_key(name) {
        wrong.push(format!("name part {KEY}"));
    }
    wrong
}

fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > LABEL_MAX {
        wrong.push(format!("must be no more than {LABEL_MAX} bytes"));
    }
    if !text.is_empty() && !is_key(text) {
        wrong.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
             must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
             regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    wrong
}

fn uri(text: &str) -> Vec<String> {
    if go_url::is_request_uri(text) {
        return Vec::new();
    }
    let why = if text.is_empty() { "empty url" } else { "invalid URI for request" };
    vec![format!("parse {}: {why}", super::text::go_quote(text))]
}

fn is_uuid(text: &str) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    digits.len() == 32
        && digits.bytes().all(|b| b.is_ascii_hexdigit())
        && text.len() <= 36
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_base64(text: &str) -> bool {
    let padding = text.bytes().rev().take_while(|b| *b == b'=').count();
    let digits = &text[..text.len() - padding];
    !text.is_empty()
        && padding <= 2
        && text.len().is_multiple_of(4)
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/".contains(&b))
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && time::parse_timestamp(&format!("{text}T00:00:00Z")).is_some()
}

fn is_datetime(text: &str) -> bool {
    let upper = text.replacen('t', "T", 1).replace('z', "Z");
    time::parse_timestamp(&upper).is_some()
}
