//! The task that keeps the shelf of one kind as the server is. It asks what the [`Course`] says, and puts what it hears
//! on the shelf.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use http::{Response, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::time::{Instant, timeout};

use super::course::{Attempt, Course, Failure, Finding, WATCH_SECONDS_MIN, render_chain};
use super::kind_cache::{KindCache, Listeners, Wanted};
use super::lines::{self, Line, Lines, Refusal};
use super::request::{Question, request};
use super::scope::Selection;
use super::shelf::{Event, Relist};
use super::state::{KindState, count};
use super::wire::Shape;
use super::{Change, Unreadable};

/// How long an answer may take to begin, or a page to arrive.
const ANSWER_MAX: Duration = Duration::from_mins(1);
/// The longest time without a word on a watch. Kubernetes sends a bookmark every minute when nothing changes; after this time
/// the connection may be half-open, so the server is asked for its revision.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(90);
/// The server is asked to end watches after a time of this range, so that those of many processes don't end at once.
const WATCH_SECONDS: std::ops::RangeInclusive<u64> = WATCH_SECONDS_MIN..=290;

/// Keeps one shelf as the server is.
pub(super) struct Watcher {
    client: kube::Client,
    cache: Arc<KindCache>,
    listeners: Arc<Listeners>,
    rng: Rng,
    course: Course,
    version: u64,
    selection: Selection,
    shape: Shape,
    /// What the next list is for.
    relist: Relist,
    /// Where texts grow before they are stored, kept from line to line.
    scratch: String,
}

impl Watcher {
    pub(super) fn new(
        client: kube::Client,
        cache: Arc<KindCache>,
        listeners: Arc<Listeners>,
        rng: Rng,
    ) -> Self {
        let Wanted { version, selection } = cache.wanted.borrow().clone();
        Self {
            client,
            listeners,
            rng,
            course: Course::new(),
            version,
            shape: Shape::new(&cache.kind, &selection.options),
            selection,
            relist: Relist::Widened,
            scratch: String::new(),
            cache,
        }
    }

    /// Runs until it is aborted.
    pub(super) async fn run(mut self) {
        let mut wanted = self.cache.wanted.subscribe();
        loop {
            let now_wanted = wanted.borrow_and_update().clone();
            self.adopt(now_wanted);
            let more_wanted = async {
                // The sender lives in the cache, which this task holds.
                let _ = wanted.changed().await;
            };
            tokio::select! {
                biased;
                () = more_wanted => {}
                () = self.turn() => {}
            }
        }
    }

    fn adopt(&mut self, Wanted { version, selection }: Wanted) {
        if version == self.version {
            return;
        }
        self.version = version;
        self.shape = Shape::new(&self.cache.kind, &selection.options);
        self.selection = selection;
        if self.relist != Relist::Replaced {
            self.relist = Relist::Widened;
        }
        self.course.list_again();
    }

    /// One attempt and the wait after it.
    async fn turn(&mut self) {
        let attempt = self.course.attempt();
        let begun = Instant::now();
        let outcome = match &attempt {
            Attempt::Pages { limited } => match self.read_pages(*limited).await {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            Attempt::Revision => match self.check_revision().await {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            Attempt::StreamedList | Attempt::Changes { .. } => self.follow(&attempt).await,
        };
        let wait = match outcome {
            Ok(()) => self.course.ended(begun.elapsed(), &mut self.rng),
            Err(failure) => self.fail(&attempt, &failure),
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Tells everyone what a failure means, and returns how long to wait.
    fn fail(&mut self, attempt: &Attempt, failure: &Failure) -> Duration {
        let verdict = self.course.failed(attempt, failure, &mut self.rng);
        let kind = &self.cache.kind;
        let state = self.cache.status.borrow().state.clone();
        let error = render_chain(failure);
        let wait_ms = u64::try_from(verdict.wait.as_millis()).unwrap_or(u64::MAX);
        let next = match verdict.finding {
            Finding::Usual => {
                tracing::debug!(%kind, error, "asking again");
                return verdict.wait;
            }
            Finding::Missing => KindState::Missing,
            Finding::Forbidden { message } => KindState::Forbidden {
                verb: attempt.verb(),
                kind: kind.clone(),
                namespace: self.selection.scope.namespace.clone(),
                message,
            },
            Finding::Trouble => state.troubled(error.clone()),
        };
        count(&self.cache.counts.errors);
        // Once, not with every attempt.
        if next.name() == state.name() {
            tracing::debug!(%kind, error, wait_ms, "the kind still cannot be watched");
        } else if next == KindState::Missing {
            tracing::info!(%kind, "the server has no such kind; waiting for its definition");
        } else {
            tracing::warn!(%kind, error, wait_ms, state = next.name(), "the kind cannot be watched");
        }
        if next == KindState::Missing {
            self.end_kind();
        }
        self.cache.set_state(next);
        verdict.wait
    }

    fn end_kind(&mut self) {
        self.cache.status.send_modify(|status| status.listed = 0);
        let changes = self.cache.write().end_of_kind();
        for change in changes {
            tell(&self.cache, &self.listeners, change);
        }
    }

    /// Sends a question and returns the accepted answer.
    async fn ask(&mut self, question: Question<'_>) -> Result<Response<Body>, Failure> {
        let request = request(&self.cache.kind, &self.selection, question).map_err(Failure::Request)?;
        let response = timeout(ANSWER_MAX, self.client.send(request))
            .await
            .map_err(|_| Failure::Silent(ANSWER_MAX))?
            .map_err(Failure::Connection)?;
        self.cache.counts.hear();
        if response.status().is_success() {
            self.course.answered();
            return Ok(response);
        }
        let code = response.status().as_u16();
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        let body = collect(response.into_body()).await?;
        Err(Failure::Refused(Refusal::read(code, retry_after.map(Duration::from_secs), &body)))
    }

    /// Compares the server's revision with the last known one.
    async fn check_revision(&mut self) -> Result<(), Failure> {
        let response = self.ask(Question::Revision).await?;
        let body = collect(response.into_body()).await?;
        let page = lines::read_page(&self.shape, &mut self.scratch, &body, &mut |_| ());
        let found = page.map_err(Failure::Garbled)?.resource_version;
        if self.course.found_revision(&found) {
            let known = self.cache.read().progress();
            tracing::warn!(
                kind = %self.cache.kind, known, found,
                "the server's revision went back: its state was replaced; listing again"
            );
            self.relist = Relist::Replaced;
        }
        Ok(())
    }

    /// Reads the whole state page by page.
    async fn read_pages(&mut self, limited: bool) -> Result<(), Failure> {
        let mut token = String::new();
        self.cache.write().begin_relist(self.relist);
        loop {
            let response = self.ask(Question::Page { token: &token, limited }).await?;
            self.cache.set_state(KindState::Listing);
            let body = collect(response.into_body()).await?;
            self.cache.counts.hear();
            let (cache, listeners) = (&*self.cache, &*self.listeners);
            let mut take = |item: Result<_, Unreadable>| match item {
                Ok(object) => {
                    let change = cache.write().item(object);
                    tell(cache, listeners, change);
                }
                Err(error) => unreadable(cache, &error),
            };
            let page = lines::read_page(&self.shape, &mut self.scratch, &body, &mut take);
            let page = page.map_err(Failure::Garbled)?;
            if page.next.is_empty() {
                self.complete_list(&page.resource_version);
                return Ok(());
            }
            token = page.next;
        }
    }

    /// Hears a watch to its end.
    async fn follow(&mut self, attempt: &Attempt) -> Result<(), Failure> {
        let timeout_seconds = self.rng.u64(WATCH_SECONDS);
        let question = match attempt {
            Attempt::Changes { from } => Question::Changes { from, timeout_seconds },
            _ => Question::StreamedList { timeout_seconds },
        };
        let mut body = self.ask(question).await?.into_body();
        let mut listing = !matches!(attempt, Attempt::Changes { .. });
        if listing {
            self.cache.write().begin_relist(self.relist);
        }
        self.cache.set_state(if listing { KindState::Listing } else { KindState::Live });
        let mut lines = Lines::default();
        loop {
            let frame = timeout(SILENCE_MAX, body.frame()).await.map_err(|_| Failure::Quiet(SILENCE_MAX))?;
            let Some(frame) = frame else {
                return if listing { Err(Failure::Endless) } else { Ok(()) };
            };
            let Ok(data) = frame.map_err(Failure::Broken)?.into_data() else { continue };
            self.cache.counts.hear();
            lines.feed(data);
            while let Some(line) = lines.next() {
                if !line.is_empty() {
                    self.hear(&line, &mut listing)?;
                }
                // A server that has much to say must not keep others from running.
                tokio::task::coop::consume_budget().await;
            }
        }
    }

    fn hear(&mut self, line: &[u8], listing: &mut bool) -> Result<(), Failure> {
        match lines::read_line(&self.shape, &mut self.scratch, line).map_err(Failure::Garbled)? {
            Line::Event(event) => {
                count(&self.cache.counts.events);
                if let (false, Event::Seen(object) | Event::Gone(object)) = (*listing, &event) {
                    self.course.heard(object.resource_version());
                }
                let change = self.cache.write().apply_event(event);
                tell(&self.cache, &self.listeners, change);
            }
            Line::Bookmark { version, ends_list: true } if *listing => {
                *listing = false;
                self.complete_list(&version);
            }
            Line::Bookmark { version, .. } => {
                if !*listing {
                    self.course.heard(&version);
                    self.cache.write().apply_event(Event::Bookmark(version.parse().unwrap_or_default()));
                }
            }
            Line::Refused(refusal) => return Err(Failure::Refused(refusal)),
            Line::Unreadable(error) => unreadable(&self.cache, &error),
            Line::Unknown => {}
        }
        Ok(())
    }

    /// Everything was listed as it was at this version.
    fn complete_list(&mut self, version: &str) {
        let revision = version.parse().unwrap_or_default();
        let (changes, progress) = {
            let mut shelf = self.cache.write();
            (shelf.end_relist(revision), shelf.progress())
        };
        // After a list from a server that lags, the watch goes on from where it was.
        if progress > revision {
            self.course.listed(&progress.to_string());
        } else {
            self.course.listed(version);
        }
        self.relist = Relist::CatchUp;
        count(&self.cache.counts.lists);
        for change in changes {
            tell(&self.cache, &self.listeners, change);
        }
        self.cache.status.send_modify(|status| {
            status.state = KindState::Live;
            status.listed = self.version;
        });
    }
}

/// Passes a change on, unless it may be that of an own write.
fn tell(cache: &KindCache, listeners: &Listeners, change: Change) {
    // Without an object nothing has changed.
    let Some(key) = change.object().map(|object| object.key().clone()) else { return };
    if let Some(change) = cache.in_flight.withhold(&key, change) {
        listeners.tell(&cache.kind, &change);
    }
}

async fn collect(body: Body) -> Result<Bytes, Failure> {
    let body = timeout(ANSWER_MAX, body.collect()).await.map_err(|_| Failure::Silent(ANSWER_MAX))?;
    Ok(body.map_err(Failure::Broken)?.to_bytes())
}

fn unreadable(cache: &KindCache, error: &Unreadable) {
    count(&cache.counts.unreadable);
    tracing::warn!(kind = %cache.kind, error = render_chain(error), "an object cannot be cached");
}
