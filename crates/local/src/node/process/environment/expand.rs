//! References to variables in commands and values: `$(NAME)`, and `$$` for a dollar sign.

/// Puts values in the place of references. A reference to what `value` does not know stays as it is, and so does whatever
/// is not quite a reference.
pub(crate) fn expand(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let (before, from) = rest.split_at(dollar);
        out.push_str(before);
        let after = &from[1..];
        if let Some(escaped) = after.strip_prefix('$') {
            out.push('$');
            rest = escaped;
        } else if let Some((name, behind)) = after.strip_prefix('(').and_then(|open| open.split_once(')')) {
            match value(name) {
                Some(value) => out.push_str(&value),
                None => out.extend(["$(", name, ")"]),
            }
            rest = behind;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        let value = |name: &str| match name {
            "A" => Some("a".to_owned()),
            "DOLLAR" => Some("$(A)".to_owned()),
            "" => Some("empty".to_owned()),
            _ => None,
        };
        assert_eq!(expand(text, value), expected, "{text}");
    }

    #[test]
    fn references_become_values_once() {
        check("$(A)", "a");
        check("x$(A)y$(A)", "xaya");
        check("$(DOLLAR)", "$(A)");
        check("$()", "empty");
    }

    #[test]
    fn two_dollars_are_one() {
        check("$$(A)", "$(A)");
        check("$$$(A)", "$a");
        check("$$$$(A)", "$$(A)");
    }

    #[test]
    fn what_is_no_reference_stays() {
        check("$(UNKNOWN)", "$(UNKNOWN)");
        check("$(A", "$(A");
        check("$A $", "$A $");
        check("costs 5$", "costs 5$");
        check("$é$(A)", "$éa");
        check("$($(A))", "$($(A))");
    }

    proptest! {
        #[test]
        fn text_without_dollars_stays(text in "[^$]*") {
            prop_assert_eq!(expand(&text, |_| None), text);
        }

        #[test]
        fn without_references_only_escapes_change(text in "[a$)]{0,12}") {
            prop_assert_eq!(expand(&text, |_| None), text.replace("$$", "$"));
        }
    }
}
