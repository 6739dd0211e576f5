//! Failures as a person reads them.
//!
//! ```text
//! error: what failed, on which object
//!   why, one cause a line
//!   unchanged: what the failure did not touch
//!   next: what to do
//! ```

use std::fmt::Write as _;

/// An error together with what it left alone and what helps.
#[derive(Debug)]
pub(crate) struct Failure {
    error: anyhow::Error,
    unchanged: Option<String>,
    next: Option<String>,
}

impl Failure {
    pub(crate) fn new(error: impl Into<anyhow::Error>) -> Self {
        Failure { error: error.into(), unchanged: None, next: None }
    }

    /// Names what was being done.
    pub(crate) fn context(mut self, doing: impl std::fmt::Display + Send + Sync + 'static) -> Self {
        self.error = self.error.context(doing);
        self
    }

    pub(crate) fn unchanged(mut self, what: impl Into<String>) -> Self {
        self.unchanged = Some(what.into());
        self
    }

    pub(crate) fn next(mut self, what: impl Into<String>) -> Self {
        self.next = Some(what.into());
        self
    }

    /// The error and its causes, each once and on a line of its own; and what helps.
    pub(crate) fn parts(&self) -> (String, Option<String>) {
        let mut text = self.error.to_string();
        let mut said = text.clone();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            // Some errors repeat their source in their own text.
            if !said.contains(&cause) {
                let _ = write!(text, "\n{cause}");
            }
            said = cause;
        }
        (text, self.next.clone())
    }

    /// All of it.
    pub(crate) fn render(&self) -> String {
        let mut text = format!("error: {}\n", self.parts().0.replace('\n', "\n  "));
        for (label, line) in [("unchanged", &self.unchanged), ("next", &self.next)] {
            if let Some(line) = line {
                let _ = writeln!(text, "  {label}: {line}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn causes_are_printed_once_and_in_order() {
        let failure = Failure::new(anyhow::anyhow!("disk full").context("writing b: disk full"))
            .context("cannot keep a")
            .unchanged("the old a")
            .next("make room");
        expect![[r#"
            error: cannot keep a
              writing b: disk full
              unchanged: the old a
              next: make room
        "#]]
        .assert_eq(&failure.render());
    }

    #[test]
    fn an_error_alone_is_one_line() {
        assert_eq!(Failure::new(anyhow::anyhow!("no")).render(), "error: no\n");
    }
}
