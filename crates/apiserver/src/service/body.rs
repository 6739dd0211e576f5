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
/// What all requests under way may hold of bodies.
const BYTES_MAX: usize = 64 << 20;
/// How long a request waits for others to end before it is refused.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// What the budget is counted in.
const UNIT: usize = 1 << 10;

/// The budget that the bodies of all requests share.
pub(crate) struct Budget(Semaphore);

impl Default for Budget {
    fn default() -> Self {
        Budget(Semaphore::new(BYTES_MAX / UNIT))
    }
}

/// A body, and its part of the budget, which is returned when the request has been answered.
pub(super) struct Read<'b> {
    pub bytes: Bytes,
    _share: Option<SemaphorePermit<'b>>,
}

/// Reads a body. Room for all of it is taken before its first byte, so that no two that are half read wait for each other.
pub(super) async fn read<B>(budget: &Budget, body: B) -> Result<Read<'_>, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    if body.is_end_stream() {
        return Ok(Read { bytes: Bytes::new(), _share: None });
    }
    let hint = body.size_hint();
    let limit = u64::try_from(BODY_MAX).unwrap_or(u64::MAX);
    if hint.lower() > limit {
        return Err(too_large());
    }
    let expected = usize::try_from(hint.upper().unwrap_or(limit).min(limit)).unwrap_or(BODY_MAX);
    let share = take(budget, expected).await?;
    let mut reading = Box::pin(collect(body));
    // Most bodies are there already, and need no timer.
    let bytes = match reading.as_mut().now_or_never() {
        Some(read) => read?,
        None => timeout(SENT_MAX, reading).await.map_err(|_| too_slow())??,
    };
    Ok(Read { bytes, _share: Some(share) })
}

async fn take(budget: &Budget, bytes: usize) -> Result<SemaphorePermit<'_>, ApiError> {
    let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
    let mut taking = Box::pin(budget.0.acquire_many(units));
    let taken = match taking.as_mut().now_or_never() {
        Some(taken) => taken,
        None => timeout(WAIT_MAX, taking).await.map_err(|_| too_many())?,
    };
    // Nobody closes it.
    taken.map_err(|_| too_many())
}

async fn collect<B>(body: B) -> Result<Bytes, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::bad_request(format!("cannot read the body: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + all.len() + data.len() > BODY_MAX {
            return Err(too_large());
        }
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
    use http_body_util::{Full, StreamBody};
    use std::convert::Infallible;

    /// A body that never comes to its end.
    fn endless() -> impl http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static {
        StreamBody::new(futures::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_given_up() {
        let budget = Budget::default();
        let start = tokio::time::Instant::now();
        let refused = read(&budget, endless()).await.map(drop).unwrap_err();
        assert_eq!((refused.code, start.elapsed()), (504, SENT_MAX));
        assert_eq!(budget.0.available_permits(), BYTES_MAX / UNIT);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_under_way_share_a_budget() {
        let budget = Budget::default();
        let fit = BYTES_MAX / BODY_MAX;
        let mut held = Vec::new();
        for _ in 0..fit {
            let body = Full::new(Bytes::from(vec![b' '; BODY_MAX]));
            held.push(read(&budget, body).await.unwrap());
        }
        let refused = read(&budget, endless()).await.map(drop).unwrap_err();
        assert_eq!((refused.code, &*refused.reason), (429, "TooManyRequests"));
        // A small one has room beside them, and whoever waits gets the room of who leaves.
        assert_eq!(read(&budget, Full::new(Bytes::from("x"))).await.unwrap().bytes, "x");
        let body = Full::new(Bytes::from(vec![b' '; BODY_MAX]));
        let (waiting, ()) = tokio::join!(read(&budget, body), async {
            tokio::time::sleep(WAIT_MAX / 2).await;
            held.pop();
        });
        assert_eq!(waiting.unwrap().bytes.len(), BODY_MAX);
    }

    #[tokio::test]
    async fn a_body_that_says_it_is_too_large_is_not_read() {
        let budget = Budget::default();
        let body = Full::new(Bytes::from(vec![b' '; BODY_MAX + 1]));
        assert_eq!(read(&budget, body).await.map(drop).unwrap_err().code, 413);
        assert!(read(&budget, Full::new(Bytes::new())).await.unwrap().bytes.is_empty());
    }
}
