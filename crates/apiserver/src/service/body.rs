//! Bodies of requests: read in time, up to a size, and not too many at a time.

use crate::incoming::BODY_MAX;
use crate::status::ApiError;
use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use serde_json::Map;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// How long a client may take to send a body.
const SENT_MAX: Duration = Duration::from_mins(1);
/// What is the beginning of a body, in bytes. Most bodies have no more.
const BEGINNING: usize = 64 << 10;
/// What all requests under way may hold of beginnings.
const BEGINNINGS_BYTES_MAX: usize = 16 << 20;
/// What they may hold of the rest of long bodies.
const RESTS_BYTES_MAX: usize = 48 << 20;
/// How long a request waits for others to end before it is refused.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// What the budget is counted in.
const UNIT: usize = 1 << 10;

/// The budget that the bodies of all requests share. Long bodies have a part of their own, so that short ones pass however
/// many long ones are on their way.
pub(crate) struct Budget {
    beginnings: Semaphore,
    rests: Semaphore,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            beginnings: Semaphore::new(BEGINNINGS_BYTES_MAX / UNIT),
            rests: Semaphore::new(RESTS_BYTES_MAX / UNIT),
        }
    }
}

/// A body, and its part of the budget, which is returned when the request has been answered.
pub(super) struct Read<'b> {
    pub bytes: Bytes,
    _share: Share<'b>,
}

/// What one body has of the budget.
struct Share<'b> {
    budget: &'b Budget,
    /// The longest that the body can be.
    expected: usize,
    beginning: Option<SemaphorePermit<'b>>,
    rest: Option<SemaphorePermit<'b>>,
}

impl Share<'_> {
    /// Takes what the first bytes of the body need. The beginning is paid for as it comes, so that a client that sends little
    /// holds little. Room for all of the rest is taken at once: no two bodies that are half read wait for each other.
    async fn cover(&mut self, bytes: usize) -> Result<(), ApiError> {
        let needed = bytes.min(BEGINNING).div_ceil(UNIT);
        let held = self.beginning.as_ref().map_or(0, SemaphorePermit::num_permits);
        if needed > held {
            let more = take(&self.budget.beginnings, needed - held).await?;
            match &mut self.beginning {
                Some(beginning) => beginning.merge(more),
                None => self.beginning = Some(more),
            }
        }
        if bytes > BEGINNING && self.rest.is_none() {
            let rest = self.expected.max(bytes) - BEGINNING;
            self.rest = Some(take(&self.budget.rests, rest.div_ceil(UNIT)).await?);
        }
        Ok(())
    }
}

/// Reads a body.
pub(super) async fn read<B>(budget: &Budget, body: B) -> Result<Read<'_>, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let mut share = Share { budget, expected: BODY_MAX, beginning: None, rest: None };
    if body.is_end_stream() {
        return Ok(Read { bytes: Bytes::new(), _share: share });
    }
    let hint = body.size_hint();
    let limit = u64::try_from(BODY_MAX).unwrap_or(u64::MAX);
    if hint.lower() > limit {
        return Err(too_large());
    }
    share.expected = usize::try_from(hint.upper().unwrap_or(limit).min(limit)).unwrap_or(BODY_MAX);
    let mut reading = Box::pin(collect(body, &mut share));
    // Most bodies are there already, and need no timer.
    let bytes = match reading.as_mut().now_or_never() {
        Some(read) => read?,
        None => timeout(SENT_MAX, reading.as_mut()).await.map_err(|_| too_slow())??,
    };
    drop(reading);
    Ok(Read { bytes, _share: share })
}

async fn take(part: &Semaphore, units: usize) -> Result<SemaphorePermit<'_>, ApiError> {
    let units = u32::try_from(units).unwrap_or(u32::MAX);
    let mut taking = Box::pin(part.acquire_many(units));
    let taken = match taking.as_mut().now_or_never() {
        Some(taken) => taken,
        None => timeout(WAIT_MAX, taking).await.map_err(|_| too_many())?,
    };
    // Nobody closes it.
    taken.map_err(|_| too_many())
}

async fn collect<B>(body: B, share: &mut Share<'_>) -> Result<Bytes, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let broken = |error| ApiError::bad_request(format!("cannot read the body: {error}"));
    loop {
        let Some(frame) = body.frame().await.transpose().map_err(broken)? else { break };
        let Ok(data) = frame.into_data() else { continue };
        let bytes = first.len() + all.len() + data.len();
        if bytes > BODY_MAX {
            return Err(too_large());
        }
        share.cover(bytes).await?;
        // Most bodies come in one piece, which is kept as it is.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

fn too_large() -> ApiError {
    ApiError::too_large(format!("Request entity too large: limit is {BODY_MAX}"))
}

fn too_slow() -> ApiError {
    ApiError::plain(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
}

fn too_many() -> ApiError {
    let message = "the server has received too many requests and has asked us to try again later";
    let mut error = ApiError::plain(429, "TooManyRequests", message);
    let mut details = Map::new();
    details.insert("retryAfterSeconds".into(), 1.into());
    error.details = Some(Box::new(details));
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt as _;
    use http_body_util::{Full, StreamBody};
    use std::convert::Infallible;

    /// A body of which this much comes, and never the end.
    fn endless(bytes: usize) -> impl http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static {
        let piece = Ok(http_body::Frame::data(Bytes::from(vec![b' '; bytes])));
        StreamBody::new(futures::stream::iter([piece]).chain(futures::stream::pending()))
    }

    fn long() -> Full<Bytes> {
        Full::new(Bytes::from(vec![b' '; BODY_MAX]))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_given_up() {
        let budget = Budget::default();
        for bytes in [0, 1, BODY_MAX] {
            let start = tokio::time::Instant::now();
            let refused = read(&budget, endless(bytes)).await.map(drop).unwrap_err();
            assert_eq!((refused.code, start.elapsed()), (504, SENT_MAX));
            assert_eq!(budget.beginnings.available_permits(), BEGINNINGS_BYTES_MAX / UNIT);
            assert_eq!(budget.rests.available_permits(), RESTS_BYTES_MAX / UNIT);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_under_way_share_a_budget() {
        let budget = Budget::default();
        let fit = RESTS_BYTES_MAX / (BODY_MAX - BEGINNING);
        let mut held = Vec::new();
        for _ in 0..fit {
            held.push(read(&budget, long()).await.unwrap());
        }
        let refused = read(&budget, long()).await.map(drop).unwrap_err();
        assert_eq!((refused.code, &*refused.reason), (429, "TooManyRequests"));
        // A small one has room beside them, and whoever waits gets the room of who leaves.
        assert_eq!(read(&budget, Full::new(Bytes::from("x"))).await.unwrap().bytes, "x");
        let (waiting, ()) = tokio::join!(read(&budget, long()), async {
            tokio::time::sleep(WAIT_MAX / 2).await;
            held.pop();
        });
        assert_eq!(waiting.unwrap().bytes.len(), BODY_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_body_passes_slow_ones() {
        for (slow, bytes) in [(22, BODY_MAX), (100, BEGINNING), (10_000, 1), (100_000, 0)] {
            let budget = Budget::default();
            let mut reading: Vec<_> = (0..slow).map(|_| Box::pin(read(&budget, endless(bytes)))).collect();
            // Otherwise tokio's budget makes a task that polls many frames in a row yield.
            let begun = tokio::task::unconstrained(async {
                for body in &mut reading {
                    assert!(futures::poll!(body.as_mut()).is_pending());
                }
                read(&budget, Full::new(Bytes::from(vec![b' '; BEGINNING]))).now_or_never()
            });
            let small = begun.await;
            assert!(small.is_some_and(|read| read.is_ok()), "{slow} bodies of {bytes} bytes");
        }
    }

    #[tokio::test]
    async fn a_body_that_says_it_is_too_large_is_not_read() {
        let budget = Budget::default();
        let body = Full::new(Bytes::from(vec![b' '; BODY_MAX + 1]));
        assert_eq!(read(&budget, body).await.map(drop).unwrap_err().code, 413);
        assert!(read(&budget, Full::new(Bytes::new())).await.unwrap().bytes.is_empty());
    }
}
