//! Go's regular expressions on top of the `regex` crate.
//!
//! Both are RE2 dialects. Where they differ, patterns are rewritten before they are compiled: in Go `\d`,
//! `\w`, `\s` and `\b` are ASCII, sets have no operators, and a brace that starts no repetition is a brace.

use regex::{Regex, RegexBuilder};

/// Compiles a pattern with the meaning it has in Go; the error is worded as Go words it.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    compile_within(pattern, BYTES_MAX).map_err(|error| match error {
        TooLarge::Pattern => "error parsing regexp: expression too large".to_owned(),
        TooLarge::Not(why) => why,
    })
}

/// How many bytes a compiled pattern may take up.
const BYTES_MAX: usize = 10 << 20;

/// How many bytes what is found out while matching may take up beside it.
const CACHE_BYTES_MAX: usize = 256 << 10;

/// Why a pattern was not compiled: there was no room for it, or something else is wrong.
#[derive(Debug)]
pub enum TooLarge {
    /// The compiled pattern would exceed the limit.
    Pattern,
    /// The pattern is wrong; the reason in Go's words.
    Not(String),
}

/// The same, for a pattern that takes up no more than this.
pub fn compile_within(pattern: &str, bytes_max: usize) -> Result<Regex, TooLarge> {
    if let Some(error) = refused_by_go(pattern) {
        return Err(TooLarge::Not(error));
    }
    let mut builder = RegexBuilder::new(&translate(pattern));
    builder.size_limit(bytes_max).dfa_size_limit(CACHE_BYTES_MAX).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => TooLarge::Pattern,
        other => TooLarge::Not(reason(pattern, &other.to_string())),
    })
}

/// What the other dialect accepts and Go does not.
fn refused_by_go(pattern: &str) -> Option<String> {
    for look in ["(?=", "(?!", "(?<=", "(?<!"] {
        if pattern.contains(look) {
            let shown = if look.contains('<') { "(?<" } else { &look[..3] };
            return Some(format!("error parsing regexp: invalid or unsupported Perl syntax: `{shown}`"));
        }
    }
    if let Some(error) = repeated_too_often(pattern) {
        return Some(error);
    }
    ["(?x", "(?u", "(?R"]
        .iter()
        .find(|flag| pattern.contains(**flag))
        .map(|flag| format!("error parsing regexp: invalid or unsupported Perl syntax: `{flag}`"))
}

/// The highest count of a repetition.
const REPEAT_MAX: u32 = 1000;

/// Counts above the limit, and repetitions of repetitions.
fn repeated_too_often(pattern: &str) -> Option<String> {
    let mut rest = pattern;
    let mut in_set = false;
    // Where the repetition before starts, if nothing stands between.
    let mut before: Option<&str> = None;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        let mut repeats = false;
        match c {
            '\\' => length += rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => in_set = true,
            ']' => in_set = false,
            '*' | '+' | '?' if !in_set => repeats = true,
            '{' if !in_set && starts_repetition(rest) => {
                length = rest.find('}').map_or(rest.len(), |end| end + 1);
                let counts = &rest[1..length - 1];
                let high = |count: &str| {
                    !count.is_empty() && count.parse().map_or(true, |count: u32| count > REPEAT_MAX)
                };
                if counts.split(',').any(high) {
                    return Some(format!("error parsing regexp: invalid repeat count: `{{{counts}}}`"));
                }
                repeats = true;
            }
            _ => {}
        }
        let behind = &rest[length..];
        if let (true, Some(start)) = (repeats, before) {
            let operators = &start[..start.len() - behind.len()];
            return Some(format!("error parsing regexp: invalid nested repetition operator: `{operators}`"));
        }
        before = repeats.then_some(rest);
        rest = behind;
        if repeats && let Some(lazy) = rest.strip_prefix('?') {
            rest = lazy;
        }
        // A group may start with a question mark.
        if c == '('
            && !in_set
            && let Some(flags) = rest.strip_prefix('?')
        {
            rest = flags;
        }
    }
    None
}

/// Go's words for the commonest mistakes.
fn reason(pattern: &str, error: &str) -> String {
    let after = |marker: char| pattern.find(marker).map_or(pattern, |at| &pattern[at..]);
    let text = if error.contains("unclosed character class") {
        format!("missing closing ]: `{}`", after('['))
    } else if error.contains("unclosed group") {
        format!("missing closing ): `{pattern}`")
    } else if error.contains("unopened group") {
        format!("unexpected ): `{pattern}`")
    } else if error.contains("repetition operator missing expression") {
        let operator = pattern.chars().find(|c| "*+?".contains(*c)).unwrap_or('*');
        format!("missing argument to repetition operator: `{operator}`")
    } else if error.contains("incomplete escape sequence") {
        "trailing backslash at end of expression: ``".to_owned()
    } else if error.contains("unrecognized escape sequence") || error.contains("backreferences") {
        let bad = pattern.char_indices().filter(|(_, c)| *c == '\\').find_map(|(at, _)| {
            let c = pattern[at + 1..].chars().next()?;
            (c.is_ascii_alphanumeric() && !"abfnrtvdDwWsSpPAzxQEBC".contains(c)).then_some(c)
        });
        format!("invalid escape sequence: `\\{}`", bad.unwrap_or('\\'))
    } else {
        format!("invalid expression: `{pattern}`")
    };
    format!("error parsing regexp: {text}")
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    let mut in_set = false;
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        match c {
            '\\' => {
                let escaped = rest[1..].chars().next();
                used += escaped.map_or(0, char::len_utf8);
                if escaped == Some('Q') {
                    let (literal, _) = rest[2..].split_once("\\E").unwrap_or((&rest[2..], ""));
                    out.push_str(&regex::escape(literal));
                    used += literal.len() + if rest[2 + literal.len()..].is_empty() { 0 } else { 2 };
                } else {
                    // The name of a class stands in braces.
                    if matches!(escaped, Some('p' | 'P')) && rest[2..].starts_with('{') {
                        used = rest.find('}').map_or(rest.len(), |end| end + 1);
                    }
                    push_escape(&mut out, escaped, &rest[..used]);
                }
            }
            '[' if in_set => {
                if rest.starts_with("[:")
                    && let Some(end) = rest.find(":]")
                {
                    used = end + 2;
                    out.push_str(&rest[..used]);
                } else {
                    out.push_str("\\[");
                }
            }
            '[' => {
                in_set = true;
                // A bracket right after the opening one is a member of the set.
                let negated = rest[1..].starts_with('^');
                let start = 1 + usize::from(negated);
                out.push_str(&rest[..start]);
                used = start;
                if rest[start..].starts_with(']') {
                    out.push_str("\\]");
                    used += 1;
                }
            }
            ']' if in_set => {
                in_set = false;
                out.push(c);
            }
            '&' | '~' if in_set => {
                out.push('\\');
                out.push(c);
            }
            '{' if !in_set && !starts_repetition(rest) => out.push_str("\\{"),
            _ => out.push(c),
        }
        rest = &rest[used..];
    }
    out
}

fn push_escape(out: &mut String, escaped: Option<char>, original: &str) {
    out.push_str(match escaped {
        Some('d') => "[0-9]",
        Some('D') => "[^0-9]",
        Some('w') => "[0-9A-Za-z_]",
        Some('W') => "[^0-9A-Za-z_]",
        Some('s') => "[\\t\\n\\x0c\\r ]",
        Some('S') => "[^\\t\\n\\x0c\\r ]",
        Some('b') => "(?-u:\\b)",
        Some('<') => "<",
        Some('>') => ">",
        _ => original,
    });
}

fn starts_repetition(text: &str) -> bool {
    let Some((inner, _)) = text[1..].split_once('}') else { return false };
    let (low, high) = inner.split_once(',').unwrap_or((inner, ""));
    !low.is_empty() && low.bytes().chain(high.bytes()).all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        let cases = [
            (r"^\d+$", "١", false),
            (r"^[\d.]+$", "1.2", true),
            (r"^\w+$", "é", false),
            (r"^[[]$", "[", true),
            (r"^[a&&b]$", "&", true),
            (r"^a{$", "a{", true),
            (r"^a{2}$", "aa", true),
            (r"^[]a]$", "]", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^[^]]$", "a", true),
            (r"^\/$", "/", true),
            (r"\bfoo\b", "a foo", true),
            (r"^[[:alpha:]]$", "x", true),
        ];
        for (pattern, text, matches) in cases {
            assert_eq!(compile(pattern).unwrap().is_match(text), matches, "{pattern} {text}");
        }
    }

    #[test]
    fn bad_patterns_are_explained_in_go_words() {
        let cases = [
            ("[", "error parsing regexp: missing closing ]: `[`"),
            ("(", "error parsing regexp: missing closing ): `(`"),
            ("*", "error parsing regexp: missing argument to repetition operator: `*`"),
            ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
            (r"\y", r"error parsing regexp: invalid escape sequence: `\y`"),
        ];
        for (pattern, error) in cases {
            assert_eq!(compile(pattern).unwrap_err(), error);
        }
    }
}
