//! How a watch goes on: after every end, failure and success, what is asked of the server next and when. Pure.
//!
//! - A cut watch resumes from the last version that it was told. Only when the server has forgotten that version is
//!   the state listed again.
//! - After an interruption the server may have another history: its state was removed, or a backup was restored. Before a
//!   watch resumes, the server's revision is read. If it is lower than the last known one, the state is listed again.
//! - The state is listed as a stream. A server that refuses, or does not bring it to an end, is asked for pages.
//! - Failures wait twice as long each time, from half a second to half a minute, less up to a half by chance; at least
//!   as long as the server asks. Hearing anything begins anew.
//! - A kind is missing when the server says twice in a row that there is none, or once if it never had one.

use std::time::Duration;

use fastrand::Rng;

use super::lines::Refusal;

const BACKOFF_MIN: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// The longest wait for a kind that does not exist, which a person may just be installing.
const MISSING_MAX: Duration = Duration::from_secs(10);
/// A watch that ends sooner and says nothing has not worked.
const WORKING_MIN: Duration = Duration::from_secs(5);
/// A watch that lasted this long was ended by the timeout that the client asked for, not by a restart of the server.
pub(super) const WATCH_SECONDS_MIN: u64 = 260;
/// So often a list may lose its place before it is asked for in one piece.
const LOST_PLACES_MAX: u32 = 2;

/// What to ask next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attempt {
    StreamedList,
    /// In pages, or in one piece.
    Pages {
        limited: bool,
    },
    /// The server's revision, before a watch resumes.
    Revision,
    Changes {
        from: String,
    },
}

impl Attempt {
    /// The permission that it needs.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Pages { .. } | Self::Revision => "list",
            Self::StreamedList | Self::Changes { .. } => "watch",
        }
    }
}

/// Why an attempt came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("the request could not be made")]
    Request(#[source] http::Error),
    #[error("the server could not be asked")]
    Connection(#[source] kube::Error),
    #[error("the answer broke off")]
    Broken(#[source] kube::Error),
    #[error("the server did not answer for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("the watch has been silent for {} s", .0.as_secs())]
    Quiet(Duration),
    #[error("the server refused")]
    Refused(#[source] Refusal),
    #[error("the answer is not what a Kubernetes server sends")]
    Garbled(#[source] serde_json::Error),
    #[error("the streamed list ended before it was complete")]
    Endless,
}

/// What a failure means.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) wait: Duration,
    /// What others are to know, if it is new to them.
    pub(super) finding: Finding,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Nothing is wrong: a list is due, or another way to ask for it.
    Usual,
    /// Something is wrong that may pass.
    Trouble,
    Forbidden {
        message: String,
    },
    /// There is no such kind.
    Missing,
}

/// How lists are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lists {
    Streamed,
    /// In pages this time: the last stream had no end.
    PagesOnce,
    /// In pages: the server refuses to stream.
    Pages,
}

/// The state of one watch between attempts.
#[derive(Debug)]
pub(super) struct Course {
    lists: Lists,
    /// The version to resume from, once a list is complete.
    from: Option<String>,
    /// The watch was interrupted, and the server that answers now may have another history.
    interrupted: bool,
    /// A list was completed once.
    ever_listed: bool,
    failures: u32,
    not_found: u32,
    lost_places: u32,
}

impl Course {
    pub(super) fn new() -> Self {
        Self {
            lists: Lists::Streamed,
            from: None,
            interrupted: false,
            ever_listed: false,
            failures: 0,
            not_found: 0,
            lost_places: 0,
        }
    }

    pub(super) fn attempt(&self) -> Attempt {
        match &self.from {
            Some(_) if self.interrupted => Attempt::Revision,
            Some(from) => Attempt::Changes { from: from.clone() },
            None if self.lists == Lists::Streamed => Attempt::StreamedList,
            None => Attempt::Pages { limited: self.lost_places < LOST_PLACES_MAX },
        }
    }

    /// The state must be listed again.
    pub(super) fn list_again(&mut self) {
        self.from = None;
    }

    /// The list is complete and shows this version.
    pub(super) fn listed(&mut self, version: &str) {
        self.heard(version);
        self.ever_listed = true;
        self.interrupted = false;
        self.stream_unless_refused();
        self.lost_places = 0;
    }

    fn stream_unless_refused(&mut self) {
        if self.lists == Lists::PagesOnce {
            self.lists = Lists::Streamed;
        }
    }

    /// Everything up to this version was told.
    pub(super) fn heard(&mut self, version: &str) {
        self.answered();
        self.failures = 0;
        match &mut self.from {
            // In the place of the old text: this happens with every event.
            Some(from) => {
                from.clear();
                from.push_str(version);
            }
            None => self.from = Some(version.to_owned()),
        }
    }

    /// The server's revision is known again. Returns whether it went back, so that the state must be listed again.
    pub(super) fn found_revision(&mut self, version: &str) -> bool {
        self.interrupted = false;
        let known = self.from.as_ref().and_then(|from| from.parse::<u64>().ok());
        // Versions that are no numbers cannot be compared.
        let went_back =
            known.zip(version.parse().ok()).is_some_and(|(known, found): (u64, u64)| found < known);
        if went_back {
            self.from = None;
        }
        went_back
    }

    /// The server has accepted the question.
    pub(super) fn answered(&mut self) {
        self.not_found = 0;
    }

    /// The server has ended a watch without an error. Returns how long to wait.
    pub(super) fn ended(&mut self, lasted: Duration, rng: &mut Rng) -> Duration {
        self.interrupted |= lasted < Duration::from_secs(WATCH_SECONDS_MIN);
        if lasted >= WORKING_MIN { Duration::ZERO } else { self.back_off(BACKOFF_MAX, rng) }
    }

    pub(super) fn failed(&mut self, attempt: &Attempt, failure: &Failure, rng: &mut Rng) -> Verdict {
        self.interrupted = true;
        if matches!(failure, Failure::Quiet(_)) && self.from.is_some() {
            // Not every server sends bookmarks. Its revision shows whether it still answers.
            return Verdict { wait: Duration::ZERO, finding: Finding::Usual };
        }
        let Failure::Refused(refusal) = failure else {
            self.stream_unless_refused();
            if matches!(failure, Failure::Endless) {
                self.lists = Lists::PagesOnce;
            }
            return Verdict { wait: self.back_off(BACKOFF_MAX, rng), finding: Finding::Trouble };
        };
        let streaming = *attempt == Attempt::StreamedList;
        let (finding, wait) = match refusal.code {
            400 | 422 if streaming => {
                self.lists = Lists::Pages;
                return Verdict { wait: Duration::ZERO, finding: Finding::Usual };
            }
            410 => return self.gone(attempt, rng),
            403 if *attempt == Attempt::Revision => {
                // Without permission to list, the watch resumes unchecked.
                self.interrupted = false;
                return Verdict { wait: Duration::ZERO, finding: Finding::Usual };
            }
            403 => {
                let message = refusal.message.clone();
                (Finding::Forbidden { message }, self.back_off(BACKOFF_MAX, rng))
            }
            404 => {
                self.not_found += 1;
                let wait = self.back_off(MISSING_MAX, rng);
                // A server that is just starting may not know a kind for a moment.
                if self.ever_listed && self.not_found < 2 {
                    (Finding::Trouble, wait)
                } else {
                    self.from = None;
                    self.ever_listed = false;
                    (Finding::Missing, wait)
                }
            }
            _ => (Finding::Trouble, self.back_off(BACKOFF_MAX, rng)),
        };
        Verdict { wait: wait.max(refusal.retry_after.unwrap_or_default()), finding }
    }

    /// The server has forgotten the version from which it should go on.
    fn gone(&mut self, attempt: &Attempt, rng: &mut Rng) -> Verdict {
        self.from = None;
        if matches!(attempt, Attempt::Pages { .. }) {
            self.lost_places += 1;
        }
        // Once is usual. One after the other would be a loop of lists.
        let wait = if self.failures == 0 { Duration::ZERO } else { self.jittered(BACKOFF_MAX, rng) };
        self.failures += 1;
        Verdict { wait, finding: Finding::Usual }
    }

    fn back_off(&mut self, max: Duration, rng: &mut Rng) -> Duration {
        self.failures += 1;
        self.jittered(max, rng)
    }

    fn jittered(&self, max: Duration, rng: &mut Rng) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(10);
        let full = (BACKOFF_MIN * 2_u32.pow(doublings)).min(max);
        full.mul_f64(0.5 + 0.5 * rng.f64())
    }
}

/// An error with its causes.
pub(super) fn render_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors of other crates repeat their source.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
