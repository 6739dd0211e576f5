//! Differences between two texts, in unified form.
//!
//! Refusals of some updates end with such a diff. So that ours reads like the real server's, lines are
//! matched the way Ratcliff and Obershelp match them: the longest common run first, then what is left and
//! right of it; lines that are everywhere in a long text do not count as a beginning of a run.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Lines shown around each change.
const CONTEXT: usize = 3;
/// Texts from this length on have lines that are too common to be worth matching.
const LONG_TEXT_LINES: usize = 200;

/// A run that is equal on both sides.
#[derive(Clone, Copy)]
struct Run {
    a: usize,
    b: usize,
    length: usize,
}

/// One step from the old lines to the new ones.
#[derive(Clone, Debug)]
struct Step {
    equal: bool,
    a: Range<usize>,
    b: Range<usize>,
}

/// The difference between two texts; empty if there is none.
pub(crate) fn unified_diff(old: &str, new: &str) -> String {
    let a: Vec<&str> = old.split('\n').collect();
    let b: Vec<&str> = new.split('\n').collect();
    let mut out = String::new();
    for group in groups(steps(&a, &b)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "@@ -{} +{} @@",
            shown_range(first.a.start..last.a.end),
            shown_range(first.b.start..last.b.end)
        );
        for step in &group {
            if step.equal {
                push_lines(&mut out, ' ', &a[step.a.clone()]);
            } else {
                push_lines(&mut out, '-', &a[step.a.clone()]);
                push_lines(&mut out, '+', &b[step.b.clone()]);
            }
        }
    }
    out
}

fn push_lines(out: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        let _ = writeln!(out, "{mark}{line}");
    }
}

fn shown_range(range: Range<usize>) -> String {
    match range.len() {
        1 => (range.start + 1).to_string(),
        0 => format!("{},0", range.start),
        length => format!("{},{length}", range.start + 1),
    }
}

/// Where each line of `b` stands, without the lines that are too common.
fn positions<'a>(b: &[&'a str]) -> HashMap<&'a str, Vec<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in b.iter().enumerate() {
        places.entry(line).or_default().push(index);
    }
    if b.len() >= LONG_TEXT_LINES {
        let common = b.len() / 100 + 1;
        places.retain(|_, at| at.len() <= common);
    }
    places
}

fn steps(a: &[&str], b: &[&str]) -> Vec<Step> {
    let places = positions(b);
    let mut runs = Vec::new();
    let mut open = vec![(0..a.len(), 0..b.len())];
    while let Some((in_a, in_b)) = open.pop() {
        let run = longest_run(a, b, &places, in_a.clone(), in_b.clone());
        if run.length == 0 {
            continue;
        }
        open.push((in_a.start..run.a, in_b.start..run.b));
        open.push((run.a + run.length..in_a.end, run.b + run.length..in_b.end));
        runs.push(run);
    }
    runs.sort_by_key(|run| (run.a, run.b));
    runs.push(Run { a: a.len(), b: b.len(), length: 0 });
    let mut steps: Vec<Step> = Vec::new();
    let (mut at_a, mut at_b) = (0, 0);
    for run in runs {
        if at_a < run.a || at_b < run.b {
            steps.push(Step { equal: false, a: at_a..run.a, b: at_b..run.b });
        }
        (at_a, at_b) = (run.a + run.length, run.b + run.length);
        if run.length == 0 {
            continue;
        }
        match steps.last_mut() {
            // Runs that touch are one.
            Some(last) if last.equal && last.a.end == run.a && last.b.end == run.b => {
                last.a.end = at_a;
                last.b.end = at_b;
            }
            _ => steps.push(Step { equal: true, a: run.a..at_a, b: run.b..at_b }),
        }
    }
    steps
}

/// The longest run in these ranges; the earliest in `a`, then in `b`, if there are several.
fn longest_run(
    a: &[&str],
    b: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    in_a: Range<usize>,
    in_b: Range<usize>,
) -> Run {
    let mut best = Run { a: in_a.start, b: in_b.start, length: 0 };
    // Lengths of the runs that end at the previous line of `a`, by where they end in `b`; in order.
    let mut lengths: Vec<(usize, usize)> = Vec::new();
    let mut next = Vec::new();
    for i in in_a.clone() {
        let mut before = lengths.iter().peekable();
        for &j in places.get(a[i]).map_or(&[][..], Vec::as_slice) {
            if j < in_b.start {
                continue;
            }
            if j >= in_b.end {
                break;
            }
            while before.next_if(|(end, _)| end + 1 < j).is_some() {}
            let length = before.peek().filter(|(end, _)| end + 1 == j).map_or(0, |(_, length)| *length) + 1;
            next.push((j, length));
            if length > best.length {
                best = Run { a: i + 1 - length, b: j + 1 - length, length };
            }
        }
        std::mem::swap(&mut lengths, &mut next);
        next.clear();
    }
    // Common lines do not begin a run, but they extend one.
    while best.a > in_a.start && best.b > in_b.start && a[best.a - 1] == b[best.b - 1] {
        best = Run { a: best.a - 1, b: best.b - 1, length: best.length + 1 };
    }
    while best.a + best.length < in_a.end
        && best.b + best.length < in_b.end
        && a[best.a + best.length] == b[best.b + best.length]
    {
        best.length += 1;
    }
    best
}

/// Changes with their context, split where they are far apart.
fn groups(mut steps: Vec<Step>) -> Vec<Vec<Step>> {
    if let Some(first) = steps.first_mut().filter(|s| s.equal) {
        let skip = first.a.len().saturating_sub(CONTEXT);
        first.a.start += skip;
        first.b.start += skip;
    }
    if let Some(last) = steps.last_mut().filter(|s| s.equal) {
        let skip = last.a.len().saturating_sub(CONTEXT);
        last.a.end -= skip;
        last.b.end -= skip;
    }
    let mut groups = Vec::new();
    let mut group: Vec<Step> = Vec::new();
    for mut step in steps {
        if step.equal && step.a.len() > 2 * CONTEXT {
            let (a, b) = (step.a.clone(), step.b.clone());
            group.push(Step { equal: true, a: a.start..a.start + CONTEXT, b: b.start..b.start + CONTEXT });
            groups.push(std::mem::take(&mut group));
            step.a.start = a.end - CONTEXT;
            step.b.start = b.end - CONTEXT;
        }
        group.push(step);
    }
    groups.push(group);
    groups.retain(|group| group.iter().any(|step| !step.equal));
    groups
}

#[cfg(test)]
mod tests {
    use super::unified_diff;
    use expect_test::expect;

    #[test]
    fn distant_changes_are_shown_apart() {
        let old: Vec<String> = (0..30).map(|n| n.to_string()).collect();
        let mut new = old.clone();
        new[2] = "two".into();
        new.remove(20);
        expect![[r"
            @@ -1,6 +1,6 @@
             0
             1
            -2
            +two
             3
             4
             5
            @@ -18,7 +18,6 @@
             17
             18
             19
            -20
             21
             22
             23
        "]]
        .assert_eq(&unified_diff(&old.join("\n"), &new.join("\n")));
    }

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(unified_diff("a\nb", "a\nb"), "");
    }
}
