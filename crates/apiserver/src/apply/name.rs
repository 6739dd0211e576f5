//! Names of field managers.

use crate::field::{FieldError, Path};
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

const NAME_MAX: usize = 128;

/// The manager of a write: the one named in the request, else the client's name from its User-Agent.
pub(crate) fn manager_name(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let client = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for c in client.chars().filter(|c| is_printable(*c)) {
        if name.len() + c.len_utf8() > NAME_MAX {
            break;
        }
        name.push(c);
    }
    name
}

/// What is wrong with a name given as `fieldManager` or in an entry of `managedFields`.
pub(crate) fn validate_manager_name(name: &str, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > NAME_MAX {
        errors.push(FieldError::too_long(path, NAME_MAX));
    }
    for (at, c) in name.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let detail = format!("invalid character U+{:04X} (at position {at})", c as u32);
        errors.push(FieldError::invalid(path, &Value::from(name), detail));
    }
    errors
}

/// What Go calls printable: letters, marks, numbers, punctuation, symbols, and the ASCII space.
fn is_printable(c: char) -> bool {
    static PRINTABLE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S}]$").ok());
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    let mut buffer = [0; 4];
    PRINTABLE.as_ref().is_some_and(|printable| printable.is_match(c.encode_utf8(&mut buffer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_gives_its_name_when_the_request_does_not() {
        let long = "a".repeat(200);
        let cases = [
            ("mine", "kubectl/v1.36.3 (linux/amd64)", "mine"),
            ("", "kubectl/v1.36.3 (linux/amd64)", "kubectl"),
            ("", "kube\u{7}\u{a0}ctl", "kubectl"),
            ("", "", ""),
            ("", &long, &long[..128]),
        ];
        for (field_manager, user_agent, name) in cases {
            assert_eq!(manager_name(field_manager, user_agent), name);
        }
        // A character that does not fit whole is left out.
        assert_eq!(manager_name("", &format!("{}é", "a".repeat(127))).len(), 127);
    }

    #[test]
    fn names_are_short_and_printable() {
        let check = |name: &str| -> Vec<String> {
            validate_manager_name(name, &Path::of("fieldManager")).iter().map(ToString::to_string).collect()
        };
        assert!(check("kubectl-client-side-apply é").is_empty());
        assert_eq!(check(&"a".repeat(129)), ["fieldManager: Too long: may not be more than 128 bytes"]);
        assert_eq!(
            check("a\nb"),
            ["fieldManager: Invalid value: \"a\\nb\": invalid character U+000A (at position 1)"]
        );
    }
}
