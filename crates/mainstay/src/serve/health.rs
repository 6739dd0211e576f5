//! Checks and how they are told, in the words of the Kubernetes API server.

use std::fmt::Write as _;

use axum::response::Response;
use http::StatusCode;

use super::plain;
use super::query::Query;

/// A check's name, and the reason when it fails.
pub type Check = (String, Result<(), String>);

/// Whether an operator can do its work: one check per thing that it needs, named for a person.
///
/// A closure that returns the checks is one.
pub trait Readiness: Send + Sync + 'static {
    /// All checks as they are now. Asked at every probe, so it looks at what is known and asks nobody.
    fn checks(&self) -> Vec<Check>;
}

impl<F: Fn() -> Vec<Check> + Send + Sync + 'static> Readiness for F {
    fn checks(&self) -> Vec<Check> {
        self()
    }
}

/// All checks together. They are listed when one fails, or when it is asked for.
pub(super) fn answer(endpoint: &str, checks: &[Check], query: &Query) -> Response {
    let (passed, text) =
        render(endpoint, checks, query.has("verbose"), &query.all("exclude").collect::<Vec<_>>());
    plain(if passed { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR }, text)
}

/// One check alone.
pub(super) fn answer_one(checks: &[Check], name: &str) -> Response {
    match checks.iter().find(|(found, _)| found == name) {
        Some((_, Ok(()))) => plain(StatusCode::OK, "ok\n".to_owned()),
        Some((_, Err(why))) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("[-]{name} failed: {why}\n")),
        None => plain(StatusCode::NOT_FOUND, format!("there is no check {name}\n")),
    }
}

fn render(endpoint: &str, checks: &[Check], verbose: bool, excluded: &[&str]) -> (bool, String) {
    let counts = |(name, _): &&Check| !excluded.contains(&name.as_str());
    let passed = checks.iter().filter(counts).all(|(_, result)| result.is_ok());
    if passed && !verbose {
        return (true, "ok\n".to_owned());
    }
    let mut text = String::new();
    for check in checks {
        let name = &check.0;
        // Writing to a string cannot fail.
        let _ = match &check.1 {
            _ if !counts(&check) => writeln!(text, "[+]{name} excluded: ok"),
            Ok(()) => writeln!(text, "[+]{name} ok"),
            Err(why) => writeln!(text, "[-]{name} failed: {}", one_line(why)),
        };
    }
    for name in excluded.iter().filter(|name| !checks.iter().any(|(found, _)| found == *name)) {
        let _ = writeln!(text, "warn: there is no check {} to exclude", one_line(name));
    }
    let _ = writeln!(text, "{endpoint} check {}", if passed { "passed" } else { "failed" });
    (passed, text)
}

/// A reason takes one line, whatever a server has said.
fn one_line(text: &str) -> String {
    text.split(char::is_control).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(verbose: bool, excluded: &[&str], failing: &[&str], expect: &Expect) {
        let checks: Vec<_> = ["WebApp.example.com/v1", "Service.v1"]
            .map(|name| {
                let result =
                    if failing.contains(&name) { Err("403: may not\nlist".to_owned()) } else { Ok(()) };
                (name.to_owned(), result)
            })
            .into();
        let (passed, text) = render("readyz", &checks, verbose, excluded);
        expect.assert_eq(&format!("{passed}\n{text}"));
    }

    #[test]
    fn all_passed_is_one_word_unless_more_is_asked_for() {
        check(
            false,
            &[],
            &[],
            &expect![[r"
            true
            ok
        "]],
        );
        check(
            true,
            &[],
            &[],
            &expect![[r"
            true
            [+]WebApp.example.com/v1 ok
            [+]Service.v1 ok
            readyz check passed
        "]],
        );
    }

    #[test]
    fn a_failure_lists_every_check_and_its_reason_on_one_line() {
        check(
            false,
            &[],
            &["Service.v1"],
            &expect![[r"
            false
            [+]WebApp.example.com/v1 ok
            [-]Service.v1 failed: 403: may not list
            readyz check failed
        "]],
        );
    }

    #[test]
    fn an_excluded_check_cannot_fail_and_an_unknown_one_is_told() {
        check(
            true,
            &["Service.v1", "Pod.v1"],
            &["Service.v1"],
            &expect![[r"
            true
            [+]WebApp.example.com/v1 ok
            [+]Service.v1 excluded: ok
            warn: there is no check Pod.v1 to exclude
            readyz check passed
        "]],
        );
    }
}
