//! Takes out of kubectl's output what is the server's own choice: uids, times, ages, revisions, addresses. Equal uids and
//! addresses stay equal.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Normalises the output of one run of one script.
#[derive(Debug)]
pub(crate) struct Normaliser {
    /// Texts that this run chose, with what they are called.
    literals: Vec<(String, String)>,
    uids: Vec<String>,
    addresses: Vec<String>,
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"));
/// Of the ranges that the two clusters take service addresses from.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b10\.(96\.\d{1,3}|0\.0)\.\d{1,3}\b"));
/// Of a table's cell.
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d+[smhdy])+$"));
static GAP: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\S)(?: {2,}|\t+)"));
/// Texts whose variable part carries no fact worth keeping.
static CHANCE: LazyLock<[(Regex, &str); 10]> = LazyLock::new(|| {
    [
        (pattern(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "<now>"),
        (pattern(r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "<now>"),
        (pattern(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}"), "<now>"),
        (pattern(r#"(?i)(resource ?version\\*"?:\s*\\*"?)\d+"#), "$1<version>"),
        (pattern(r"(LIVE|MERGED)-\d+"), "$1-<number>"),
        (pattern(r"kube-api-access-[a-z0-9]{5}\b"), "kube-api-access-<suffix>"),
        (pattern(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"), "<token>"),
        (pattern(r"kubectl-edit-\w+-?\d*\.yaml"), "kubectl-edit-<number>.yaml"),
        (pattern(r"[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ "), "<log> "),
        (pattern(r"\b\d+(\.\d+)?m?s (ago)"), "<age> $2"),
    ]
});

impl Normaliser {
    pub(crate) fn new(literals: Vec<(String, String)>) -> Self {
        Self { literals, uids: Vec::new(), addresses: Vec::new() }
    }

    pub(crate) fn normalise(&mut self, raw: &str) -> String {
        let mut text = raw.to_owned();
        for (literal, called) in &self.literals {
            text = text.replace(literal, called);
        }
        for (pattern, replacement) in CHANCE.iter() {
            text = pattern.replace_all(&text, *replacement).into_owned();
        }
        text = named(&UID, &text, "uid", &mut self.uids);
        text = named(&ADDRESS, &text, "address", &mut self.addresses);
        let lines: Vec<_> = text.lines().map(normalise_line).collect();
        lines.join("\n").trim_end().to_owned()
    }
}

fn named(pattern: &Regex, text: &str, called: &str, seen: &mut Vec<String>) -> String {
    let name = |found: &Captures<'_>| {
        let position = seen.iter().position(|known| *known == found[0]).unwrap_or_else(|| {
            seen.push(found[0].to_owned());
            seen.len() - 1
        });
        format!("<{called}-{}>", position + 1)
    };
    pattern.replace_all(text, name).into_owned()
}

/// Columns are as wide as their widest cell, which may be one of those taken out.
fn normalise_line(line: &str) -> String {
    let spaced = GAP.replace_all(line.trim_end(), "$1   ");
    let cells = spaced.split("   ").map(|cell| if AGE.is_match(cell) { "<age>" } else { cell });
    cells.collect::<Vec<_>>().join("   ")
}

#[test]
fn what_is_chance_is_taken_out_and_what_is_equal_stays_equal() {
    let mut normaliser = Normaliser::new(vec![("test-1".into(), "{ns}".into())]);
    let raw = "NAME        AGE\ntest-1-a    5m3s\n\
               uid: 01234567-89ab-cdef-0123-456789abcdef\n  uid: 01234567-89ab-cdef-0123-456789abcdef\n\
               resourceVersion: \"12\"\ncreated: \"2025-01-02T03:04:05Z\"\n";
    expect_test::expect![[r#"
        NAME   AGE
        {ns}-a   <age>
        uid: <uid-1>
          uid: <uid-1>
        resourceVersion: "<version>"
        created: "<now>""#]]
    .assert_eq(&normaliser.normalise(raw));
}
