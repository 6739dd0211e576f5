//! `fieldPath` of a rule: `.spec.a['b.c']`, relative to the rule's place.

use crate::schema::{Additional, Schema};
use std::fmt::Write as _;

/// The path as errors show it; none if it does not lead to a field of the schema.
pub(crate) fn valid_field_path(path: &str, schema: &Schema) -> Option<String> {
    let mut out = String::new();
    let mut here = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix("['") {
            let end = closing_quote(after)?;
            name = unescape(&after[..end])?;
            rest = after[end + 1..].strip_prefix(']')?;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            name = after[..end].to_owned();
            rest = &after[end..];
        }
        if name.is_empty() {
            return None;
        }
        if !here.properties.is_empty() {
            here = here.properties.get(&name)?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else if let Additional::Values(values) = &here.additional {
            here = values;
            // Writing to a String cannot fail.
            let _ = write!(out, "[{name}]");
        } else {
            return None;
        }
    }
    (!out.is_empty()).then_some(out)
}

fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|at| bytes[*at] == b'\'' && (*at == 0 || bytes[at - 1] != b'\\'))
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\'' => '\'',
            '\\' => '\\',
            _ => return None,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::valid_field_path;
    use crate::schema::read::read_node;
    use serde_json::json;

    #[test]
    fn paths_must_lead_to_fields() {
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b.c": map}});
        let schema = read_node(&schema, 0);
        let cases = [
            (".a", Some("a")),
            ("['b.c']", Some("b.c")),
            ("['b.c'].x", Some("b.c[x]")),
            ("['b.c']['x y']", Some("b.c[x y]")),
            ("a", None),
            (".zz", None),
            (".a.b", None),
            ("['b.c'", None),
            ("", None),
        ];
        for (path, expected) in cases {
            assert_eq!(valid_field_path(path, &schema).as_deref(), expected, "{path}");
        }
    }
}
