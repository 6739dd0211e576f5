//! Faults in front of a server: requests that fail before they arrive, or whose answer is lost after
//! they were carried out.
//!
//! A [`FaultLayer`] wraps any tower service. What fails is decided by a [`Faults`] implementation, which
//! sees each request and says what becomes of it; so a test or a simulation can hit exactly one write.

use crate::body::Body;
use crate::respond::Reply;
use crate::status::ApiError;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Request, Response};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Decides what becomes of requests.
pub trait Faults: Send + Sync + 'static {
    /// Called for each request before it is passed on.
    fn decide(&self, request: &Parts) -> Fault;
}

/// What becomes of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// It is carried out and answered.
    #[default]
    None,
    /// It is carried out and answered after a while, by tokio's clock.
    Delay(Duration),
    /// It is answered with this HTTP status and not carried out: 409, 429, 500, 503…
    Refuse(u16),
    /// As [`Fault::Refuse`], with a `Retry-After` of so many seconds, in the header and in the details.
    RetryAfter(u16, u64),
    /// The connection breaks before it arrives: not carried out, no answer.
    Lost,
    /// It is carried out, and the connection breaks before the answer arrives.
    LostAnswer,
}

/// The connection broke, by intent.
#[derive(Debug, thiserror::Error)]
#[error("connection reset (injected)")]
pub struct Broken;

/// Puts faults in front of a service.
#[derive(Clone)]
pub struct FaultLayer(Arc<dyn Faults>);

impl FaultLayer {
    /// A layer of these faults.
    pub fn new(faults: impl Faults) -> Self {
        FaultLayer(Arc::new(faults))
    }

    /// Puts them in front of a service.
    pub fn around<S>(&self, inner: S) -> Faulty<S> {
        Faulty { inner, faults: self.0.clone() }
    }
}

/// A service with faults in front of it.
#[derive(Clone)]
pub struct Faulty<S> {
    inner: S,
    faults: Arc<dyn Faults>,
}

impl<S, B> tower_service::Service<Request<B>> for Faulty<S>
where
    S: tower_service::Service<Request<B>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: std::error::Error + Send + Sync + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Response<Body>, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        let fault = self.faults.decide(&head);
        let answer = match &fault {
            Fault::Refuse(code) => return refuse(*code, None),
            Fault::RetryAfter(code, seconds) => return refuse(*code, Some(*seconds)),
            Fault::Lost => return Box::pin(async { Err(Broken.into()) }),
            Fault::None | Fault::Delay(_) | Fault::LostAnswer => {
                self.inner.call(Request::from_parts(head, body))
            }
        };
        Box::pin(async move {
            let answer = answer.await?;
            match fault {
                Fault::LostAnswer => Err(Broken.into()),
                Fault::Delay(time) => {
                    tokio::time::sleep(time).await;
                    Ok(answer)
                }
                _ => Ok(answer),
            }
        })
    }
}

type Refusal = BoxFuture<'static, Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>>>;

fn refuse(code: u16, retry_after_seconds: Option<u64>) -> Refusal {
    let (reason, message) = match code {
        409 => ("Conflict", "the object has been modified (injected)"),
        429 => ("TooManyRequests", "too many requests, please try again later (injected)"),
        500 => ("InternalError", "Internal error occurred (injected)"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request (injected)"),
        504 => ("Timeout", "request did not complete within the allowed duration (injected)"),
        _ => ("", "refused (injected)"),
    };
    let mut error = ApiError::plain(code, reason, message);
    if let Some(seconds) = retry_after_seconds {
        error.details =
            Some(Box::new([("retryAfterSeconds".to_owned(), seconds.into())].into_iter().collect()));
    }
    let mut response = Reply::error(&error).into_response();
    if let Some(seconds) = retry_after_seconds {
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    }
    Box::pin(async move { Ok(response) })
}
