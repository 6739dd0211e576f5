//! `/livez`, `/readyz` and `/healthz`: whether the server is of use, and why not.

use crate::respond::Reply;
use crate::server::Server;
use crate::store::Health;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// What controllers ran into: how often, and the last time.
#[derive(Debug, Default)]
pub(crate) struct Troubles(Mutex<Option<(u64, String)>>);

impl Troubles {
    /// A controller panicked, and goes on.
    pub(crate) fn report(&self, who: &str, what: &str) {
        tracing::error!(controller = who, error = what, "a controller failed, and is restarted");
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = last.as_ref().map_or(0, |(count, _)| *count).saturating_add(1);
        *last = Some((count, format!("{who}: {what}")));
    }

    fn note(&self) -> String {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            None => String::new(),
            Some((count, last)) => format!(" ({count} restarts, the last one after: {last})"),
        }
    }
}

/// One thing that is looked at.
struct Check {
    name: &'static str,
    /// Why it is not well.
    failure: Option<String>,
    note: String,
}

fn checks(server: &Server, endpoint: &str) -> Vec<Check> {
    let failure = match server.store.health() {
        Health::Good => None,
        // A restart would not bring the disk back, so the server lives.
        Health::Failing(_) if endpoint == "livez" => None,
        Health::Failing(why) | Health::Dead(why) => Some(why),
    };
    vec![
        Check { name: "ping", failure: None, note: String::new() },
        Check { name: "store", failure, note: String::new() },
        Check { name: "controllers", failure: None, note: server.troubles.note() },
    ]
}

/// Answers one of the endpoints, or one check of it.
pub(crate) fn answer(server: &Server, endpoint: &str, rest: &[&str], query: Option<&str>) -> Reply {
    let checks = checks(server, endpoint);
    if let [name] = rest {
        return match checks.iter().find(|check| check.name == *name) {
            Some(Check { failure: Some(why), .. }) => {
                Reply::plain(500, format!("internal server error: {why}\n"))
            }
            // Names of checks that only the real server has are well here.
            _ => Reply::plain(200, "ok"),
        };
    }
    let failed = checks.iter().any(|check| check.failure.is_some());
    let verbose = query.is_some_and(|query| query.split('&').any(|part| part.starts_with("verbose")));
    if !failed && !verbose {
        return Reply::plain(200, "ok");
    }
    let mut text = String::new();
    for Check { name, failure, note } in checks {
        // Writing to a text does not fail.
        let _ = match failure {
            None => writeln!(text, "[+]{name} ok{note}"),
            Some(why) => writeln!(text, "[-]{name} failed: {why}"),
        };
    }
    let _ = writeln!(text, "{endpoint} check {}", if failed { "failed" } else { "passed" });
    Reply::plain(if failed { 500 } else { 200 }, text)
}
