//! What an author writes: a function from a snapshot to a desired state.
//!
//! ```text
//! SyncRequest (one parent, its children, as they are) ─▶ sync ─▶ SyncResponse (children as they should be, status)
//! ```
//!
//! A plain function or closure is a [`Handler`]; so is any struct with state of its own. One that must do I/O
//! implements [`AsyncHandler`] instead. [`Finalize`] is a trait apart, because only an operator that has something to
//! clean up puts a finalizer on its parents.

mod children;
mod effect;
mod error;
mod registration;
mod related;
mod request;
mod response;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use children::{Child, Children, TypedChildren};
pub use effect::Effect;
pub use error::{Error, ErrorKind};
pub use registration::{Registered, RegisteredState, Registration};
pub use related::Related;
pub(crate) use related::{Answers, Lookup, RecordedQuestion};
pub use request::SyncRequest;
pub(crate) use response::Over;
pub use response::{Finalized, SyncResponse};

/// Decides what should exist for one parent.
///
/// The answer should depend on the request alone: the same request, the same answer. A value that differs at each call
/// (a timestamp, a random name) makes every sync a change; the framework notices, names the field and stops.
///
/// On a multi-threaded runtime handlers run on threads where blocking is allowed; a slow or panicking one delays only
/// its own parent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "a handler is a `Fn(&SyncRequest) -> Result<SyncResponse, mainstay::Error>`, or a type that implements `Handler`",
    note = "for an async function use `ControllerBuilder::sync_async`"
)]
pub trait Handler: Send + Sync + 'static {
    /// Called whenever something changed that the parent's children or status may depend on.
    ///
    /// # Errors
    /// An error changes nothing at all: neither the parent nor a child is written (but for the condition of a parent that does
    /// not [fit its type](SyncRequest::parent)); an event tells of it. The parent is tried again after a backoff, or, if the error
    /// is [terminal](Error::terminal), once it has changed.
    fn sync(&self, request: &SyncRequest) -> Result<SyncResponse, Error>;
}

impl<F> Handler for F
where
    F: Fn(&SyncRequest) -> Result<SyncResponse, Error> + Send + Sync + 'static,
{
    fn sync(&self, request: &SyncRequest) -> Result<SyncResponse, Error> {
        self(request)
    }
}

/// A [`Handler`] that waits for something: a database, another API.
///
/// A `Fn(SyncRequest) -> impl Future` is one. Requests are cheap to clone.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an async handler",
    note = "an async handler is a `Fn(SyncRequest) -> impl Future<Output = Result<SyncResponse, mainstay::Error>> + Send`, or a type that implements `AsyncHandler`"
)]
pub trait AsyncHandler: Send + Sync + 'static {
    /// See [`Handler::sync`]. The future is dropped when the deadline of the sync passes.
    fn sync(&self, request: SyncRequest) -> impl Future<Output = Result<SyncResponse, Error>> + Send;
}

impl<F, A> AsyncHandler for F
where
    F: Fn(SyncRequest) -> A + Send + Sync + 'static,
    A: Future<Output = Result<SyncResponse, Error>> + Send,
{
    fn sync(&self, request: SyncRequest) -> impl Future<Output = Result<SyncResponse, Error>> + Send {
        self(request)
    }
}

/// Cleans up what a parent leaves behind outside of its children, which Kubernetes deletes by itself.
///
/// Registering one with [`ControllerBuilder::finalize`](crate::ControllerBuilder::finalize) puts a finalizer on every parent before
/// anything is made for it; the parent goes when `finalize` says [`Finalized::Done`].
pub trait Finalize: Send + Sync + 'static {
    /// Called instead of `sync` once the parent is being deleted, until it says that it is done.
    ///
    /// # Errors
    /// As with [`Handler::sync`]: nothing changes, and it is tried again after a backoff.
    fn finalize(&self, request: &SyncRequest) -> Result<Finalized, Error>;
}

impl<F> Finalize for F
where
    F: Fn(&SyncRequest) -> Result<Finalized, Error> + Send + Sync + 'static,
{
    fn finalize(&self, request: &SyncRequest) -> Result<Finalized, Error> {
        self(request)
    }
}

/// A [`Finalize`] that waits for something.
pub trait AsyncFinalize: Send + Sync + 'static {
    /// See [`Finalize::finalize`].
    fn finalize(&self, request: SyncRequest) -> impl Future<Output = Result<Finalized, Error>> + Send;
}

impl<F, A> AsyncFinalize for F
where
    F: Fn(SyncRequest) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Finalized, Error>> + Send,
{
    fn finalize(&self, request: SyncRequest) -> impl Future<Output = Result<Finalized, Error>> + Send {
        self(request)
    }
}

impl<H: Handler + ?Sized> Handler for Arc<H> {
    fn sync(&self, request: &SyncRequest) -> Result<SyncResponse, Error> {
        (**self).sync(request)
    }
}

impl<H: Finalize + ?Sized> Finalize for Arc<H> {
    fn finalize(&self, request: &SyncRequest) -> Result<Finalized, Error> {
        (**self).finalize(request)
    }
}

/// A future in a box, so that handlers of all types fit in one place.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A handler of either form, its type forgotten.
#[derive(Clone)]
pub(crate) enum AnyHandler {
    Plain(Arc<dyn Handler>),
    Async(Arc<dyn Fn(SyncRequest) -> Boxed<'static, Result<SyncResponse, Error>> + Send + Sync>),
}

impl AnyHandler {
    pub(crate) fn from_async<H: AsyncHandler>(handler: H) -> Self {
        let handler = Arc::new(handler);
        Self::Async(Arc::new(move |request| {
            let handler = Arc::clone(&handler);
            Box::pin(async move { handler.sync(request).await })
        }))
    }
}

/// A finalizer of either form, its type forgotten.
#[derive(Clone)]
pub(crate) enum AnyFinalize {
    Plain(Arc<dyn Finalize>),
    Async(Arc<dyn Fn(SyncRequest) -> Boxed<'static, Result<Finalized, Error>> + Send + Sync>),
}

impl AnyFinalize {
    pub(crate) fn from_async<F: AsyncFinalize>(finalize: F) -> Self {
        let finalize = Arc::new(finalize);
        Self::Async(Arc::new(move |request| {
            let finalize = Arc::clone(&finalize);
            Box::pin(async move { finalize.finalize(request).await })
        }))
    }
}
