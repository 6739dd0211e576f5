//! The unified diff that refusals to change a volume or a claim carry.
//!
//! The real server prints its internal form of both objects as indented JSON, and the lines that differ with
//! three lines around them.

use std::fmt::Write as _;
use std::ops::Range;

/// A value in the order its Go type has.
pub(super) enum Tree {
    /// A scalar, rendered.
    Leaf(String),
    /// An object.
    Object(Vec<(String, Tree)>),
    /// A list.
    List(Vec<Tree>),
}

impl Tree {
    pub(super) fn null() -> Tree {
        Tree::Leaf("null".to_owned())
    }

    fn lines(&self, indent: usize, opening: &str, closing: &str, out: &mut Vec<String>) {
        let pad = " ".repeat(indent);
        let (open, close) = match self {
            Tree::Leaf(text) => return out.push(format!("{opening}{text}{closing}")),
            Tree::Object(fields) if fields.is_empty() => return out.push(format!("{opening}{{}}{closing}")),
            Tree::List(items) if items.is_empty() => return out.push(format!("{opening}[]{closing}")),
            Tree::Object(_) => ('{', '}'),
            Tree::List(_) => ('[', ']'),
        };
        out.push(format!("{opening}{open}"));
        match self {
            Tree::Leaf(_) => {}
            Tree::Object(fields) => {
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index + 1 < fields.len() { "," } else { "" };
                    value.lines(indent + 1, &format!("{pad} \"{name}\": "), comma, out);
                }
            }
            Tree::List(items) => {
                for (index, value) in items.iter().enumerate() {
                    let comma = if index + 1 < items.len() { "," } else { "" };
                    value.lines(indent + 1, &format!("{pad} "), comma, out);
                }
            }
        }
        out.push(format!("{pad}{close}{closing}"));
    }

    fn to_lines(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.lines(0, "", "", &mut out);
        out
    }
}

const CONTEXT: usize = 3;

/// The unified diff of two values.
pub(super) fn unified(old: &Tree, new: &Tree) -> String {
    let (a, b) = (old.to_lines(), new.to_lines());
    let mut blocks = Vec::new();
    matching_blocks(&a, &b, 0..a.len(), 0..b.len(), &mut blocks);
    blocks.push((a.len(), b.len(), 0));
    let mut out = String::new();
    for hunk in hunks(&blocks) {
        render(&a, &b, &hunk, &mut out);
    }
    out
}

/// Equal runs `(start in a, start in b, length)`: the longest first, then those before and after it.
fn matching_blocks(
    a: &[String],
    b: &[String],
    in_a: Range<usize>,
    in_b: Range<usize>,
    out: &mut Vec<(usize, usize, usize)>,
) {
    let mut best = (in_a.start, in_b.start, 0);
    for i in in_a.clone() {
        for j in in_b.clone() {
            let pairs = a[i..in_a.end].iter().zip(&b[j..in_b.end]);
            let length = pairs.take_while(|(x, y)| x == y).count();
            if length > best.2 {
                best = (i, j, length);
            }
        }
    }
    let (i, j, length) = best;
    if length == 0 {
        return;
    }
    matching_blocks(a, b, in_a.start..i, in_b.start..j, out);
    out.push(best);
    matching_blocks(a, b, i + length..in_a.end, j + length..in_b.end, out);
}

/// A change: lines of `a` that go, lines of `b` that come.
type Change = (Range<usize>, Range<usize>);

/// Changes that stand so near each other that their context meets.
fn hunks(blocks: &[(usize, usize, usize)]) -> Vec<Vec<Change>> {
    let (mut at_a, mut at_b) = (0, 0);
    let mut hunks: Vec<Vec<Change>> = Vec::new();
    for (i, j, length) in blocks.iter().copied() {
        if at_a < i || at_b < j {
            let change = (at_a..i, at_b..j);
            match hunks.last_mut() {
                Some(hunk) if hunk.last().is_some_and(|(a, _)| at_a - a.end <= 2 * CONTEXT) => {
                    hunk.push(change);
                }
                _ => hunks.push(vec![change]),
            }
        }
        (at_a, at_b) = (i + length, j + length);
    }
    hunks
}

fn render(a: &[String], b: &[String], hunk: &[Change], out: &mut String) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let before = CONTEXT.min(first.0.start);
    let after = CONTEXT.min(a.len() - last.0.end);
    let (a_start, a_end) = (first.0.start - before, last.0.end + after);
    let (b_start, b_end) = (first.1.start - before, last.1.end + after);
    // Writing to a String cannot fail.
    let _ = writeln!(out, "@@ -{} +{} @@", span(a_start, a_end), span(b_start, b_end));
    let mut line = |mark: char, text: &str| {
        out.push(mark);
        out.push_str(text);
        out.push('\n');
    };
    let mut at = a_start;
    for (gone, come) in hunk {
        a[at..gone.start].iter().for_each(|text| line(' ', text));
        a[gone.clone()].iter().for_each(|text| line('-', text));
        b[come.clone()].iter().for_each(|text| line('+', text));
        at = gone.end;
    }
    a[at..a_end].iter().for_each(|text| line(' ', text));
}

fn span(start: usize, end: usize) -> String {
    match end - start {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}
