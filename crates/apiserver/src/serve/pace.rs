//! Answers on their way, which their clients must read in time.
//!
//! [`Stall`](super::stall::Stall) notices a client that takes nothing off its socket. Over HTTP/2 a client can go on answering
//! pings and still let the window of one answer run out; and over both it can read a few bytes now and then, and hold a list
//! for as long as it likes. So each answer keeps account of how far its client is behind.

use super::connections::Request;
use crate::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// The slowest that a client may read on the whole, in bytes per second.
const RATE_MIN: f64 = 16384.0;
/// The longest piece that is handed out at once. The next one is held back until there is room for it.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// How far a client is behind with the reading of one answer.
#[derive(Debug)]
pub(super) struct Pace(Mutex<Progress>);

#[derive(Clone, Copy, Debug)]
struct Progress {
    /// How much longer the client has taken than [`RATE_MIN`] allows. The time in which it waits for more counts for it.
    behind: Duration,
    /// Since when the client has been reading, or waiting for more.
    since: Instant,
    /// The length of the piece that it reads; none if it waits for more.
    reading: Option<usize>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Pace(Mutex::new(Progress { behind: Duration::ZERO, since: Instant::now(), reading: None }))
    }

    fn change(&self, change: impl FnOnce(&mut Progress, Duration)) {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let passed = now.duration_since(progress.since);
        change(&mut progress, passed);
        progress.since = now;
    }

    /// There is room for more: the client has read what it was given.
    fn asked(&self) {
        self.change(|progress, passed| match progress.reading.take() {
            Some(bytes) => progress.behind = (progress.behind + passed).saturating_sub(time_for(bytes)),
            None => progress.behind = progress.behind.saturating_sub(passed),
        });
    }

    /// A piece is on its way.
    fn given(&self, bytes: usize) {
        self.change(|progress, passed| {
            progress.behind = progress.behind.saturating_sub(passed);
            progress.reading = Some(bytes);
        });
    }

    /// Whether the client is behind by more than this.
    pub(super) fn is_behind(&self, max: Duration) -> bool {
        let progress = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        progress.reading.is_some() && progress.behind + progress.since.elapsed() > max
    }
}

/// The time that the slowest client takes for this many bytes.
#[expect(clippy::cast_precision_loss, reason = "pieces are far smaller than that")]
fn time_for(bytes: usize) -> Duration {
    Duration::from_secs_f64(bytes as f64 / RATE_MIN)
}

/// The rest of an answer cannot be made. The client sees that it breaks off.
#[derive(Debug, thiserror::Error)]
#[error("the answer cannot be completed")]
pub(super) struct Broken;

/// The body of an answer to a client on a connection.
pub(super) struct Paced {
    body: Body,
    /// What is left of a long piece.
    rest: Bytes,
    request: Request,
}

impl Paced {
    pub(super) fn new(body: Body, request: Request) -> Self {
        Paced { body, rest: Bytes::new(), request }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.rest.is_empty() {
            let body = Pin::new(&mut self.body);
            let polled = catch_unwind(AssertUnwindSafe(|| http_body::Body::poll_frame(body, context)));
            let frame = match polled {
                Ok(Poll::Ready(Some(Ok(frame)))) => frame,
                Ok(Poll::Ready(None)) => return Poll::Ready(None),
                Ok(Poll::Pending) => return Poll::Pending,
                Err(panic) => {
                    tracing::error!("an answer breaks off: {}", crate::store::panic_text(&*panic));
                    self.body = Body::whole(Bytes::new());
                    return Poll::Ready(Some(Err(Broken)));
                }
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
        let piece = self.rest.split_to(self.rest.len().min(PIECE_BYTES_MAX));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.request.pace.asked();
        let polled = self.poll(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.request.pace.given(frame.data_ref().map_or(0, Bytes::len));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.size_hint();
        let Some(more) = hint.exact() else { return hint };
        SizeHint::with_exact(more + self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_mins(2);

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_behind_after_a_while() {
        let pace = Pace::new();
        pace.asked();
        pass(3600).await;
        assert!(!pace.is_behind(MAX), "it waits for us");
        pace.given(1);
        pass(120).await;
        assert!(!pace.is_behind(MAX));
        pass(1).await;
        assert!(pace.is_behind(MAX));
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_too_little_is_behind_before_long() {
        let pace = Pace::new();
        let mut pieces = 0;
        loop {
            pace.asked();
            pace.given(PIECE_BYTES_MAX);
            pass(60).await;
            if pace.is_behind(MAX) {
                break;
            }
            pieces += 1;
        }
        // Four of each sixty seconds are allowed for.
        assert_eq!(pieces, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_keeps_up_is_never_behind() {
        let pace = Pace::new();
        for _ in 0..10_000 {
            pace.asked();
            pace.given(PIECE_BYTES_MAX);
            pass(4).await;
            assert!(!pace.is_behind(MAX));
        }
        // A watch that is slow to read each event, and waits for the next, has made up for it by then.
        for _ in 0..1000 {
            pace.given(100);
            pass(50).await;
            assert!(!pace.is_behind(MAX));
            pace.asked();
            pass(60).await;
        }
    }
}
