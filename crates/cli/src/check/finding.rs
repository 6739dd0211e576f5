//! What was found, as text and as data. Pure.

use crate::cluster::LOOK;
use crate::failure::Failure;
use crate::output::{Cell, Paint, Table, Tone, count};
use serde::Serialize;
use std::fmt::Write as _;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    what: String,
    verdict: Verdict,
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Pass,
    /// Nothing is wrong, and yet it is worth knowing.
    Note,
    Fail,
}

impl Finding {
    pub(super) fn passed(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Finding { what: what.into(), verdict: Verdict::Pass, detail: detail.into(), fix: None }
    }

    pub(super) fn noted(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Finding { verdict: Verdict::Note, ..Self::passed(what, detail) }
    }

    pub(super) fn failed(what: impl Into<String>, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Finding { verdict: Verdict::Fail, fix: Some(fix.into()), ..Self::passed(what, detail) }
    }

    /// A failure of a whole command, as one finding.
    pub(super) fn failed_with(what: &str, failure: &Failure) -> Self {
        let (detail, fix) = failure.parts();
        // To look further is what is being done.
        let fix =
            fix.map(|fix| fix.trim_end_matches(LOOK).trim_end().to_owned()).filter(|fix| !fix.is_empty());
        Finding { verdict: Verdict::Fail, fix, ..Self::passed(what, detail) }
    }

    pub(super) fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub(super) fn is_failure(&self) -> bool {
        self.verdict == Verdict::Fail
    }
}

/// For a person: a line for each, the fix below.
pub(super) fn table(findings: &[Finding], paint: Paint) -> String {
    let mut table = Table::new(["CHECK", "", "FOUND"]);
    for finding in findings {
        let verdict = match finding.verdict {
            Verdict::Pass => Cell::new("ok", Tone::Good),
            Verdict::Note => Cell::new("note", Tone::Note),
            Verdict::Fail => Cell::new("FAIL", Tone::Bad),
        };
        let mut lines = finding.detail.lines();
        table.row([finding.what.clone().into(), verdict, lines.next().unwrap_or_default().into()]);
        for line in lines {
            table.row([Cell::default(), Cell::default(), line.into()]);
        }
        for (place, line) in finding.fix.iter().flat_map(|fix| fix.lines()).enumerate() {
            let text =
                if place == 0 { format!("fix: {line}") } else { format!("     {}", line.trim_start()) };
            table.row([Cell::default(), Cell::default(), Cell::new(text, Tone::Strong)]);
        }
    }
    table.render(paint)
}

/// What it comes to.
pub(super) fn summary(findings: &[Finding]) -> String {
    let failed = findings.iter().filter(|finding| finding.is_failure()).count();
    let mut text = count(findings.len(), "check");
    let _ = match failed {
        0 => writeln!(text, ", none failed"),
        failed => writeln!(text, ", {failed} failed"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_fix_is_below_what_it_mends() {
        let findings = [
            Finding::passed("server", "v1.36.3"),
            Finding::noted("webapp", "not installed"),
            Finding::failed("clock", "9 s behind\nby the server's", "set it"),
        ];
        expect![[r#"
            CHECK           FOUND
            server   ok     v1.36.3
            webapp   note   not installed
            clock    FAIL   9 s behind
                            by the server's
                            fix: set it
        "#]]
        .assert_eq(&table(&findings, Paint::NONE));
        assert_eq!(summary(&findings), "3 checks, 1 failed\n");
        assert_eq!(summary(&findings[..1]), "1 check, none failed\n");
    }
}
