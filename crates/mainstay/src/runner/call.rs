//! Calls a handler so that whatever it does harms only its own parent: it may panic, block, or never return.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::course::{Answer, has_finalizer};
use crate::controller::Controller;
use crate::handler::{AnyFinalize, AnyHandler, Error, Finalized, SyncRequest, SyncResponse};

/// How a call ended.
pub(crate) enum Called<T> {
    /// The handler answered.
    Answered(Result<T, Error>),
    /// It panicked, with this message.
    Panicked(String),
    /// It took longer than allowed.
    TooSlow,
}

/// Who is asked about a parent.
pub(crate) enum Role<'a> {
    Handler(&'a AnyHandler),
    Finalizer(&'a AnyFinalize),
    /// Nobody: the parent goes, and nothing is to be done before.
    Nobody,
}

impl<'a> Role<'a> {
    /// A parent that is being deleted and still has our finalizer is the finalizer's. Without a function for that, the framework
    /// releases its children and removes the finalizer itself.
    pub(crate) fn of(controller: &'a Controller, request: &SyncRequest, finalizer: &str) -> Self {
        let deleting = request.snapshot().parent.is_deleting();
        let waits = deleting && has_finalizer(request.parent_json(), finalizer);
        match &controller.finalize {
            _ if !deleting => Self::Handler(&controller.handler),
            Some(finalize) if waits => Self::Finalizer(finalize),
            _ if !waits && controller.options.until_gone => Self::Handler(&controller.handler),
            _ => Self::Nobody,
        }
    }
}

/// Asks whoever is to be asked, within the controller's deadline. See [`call_sync`] for `overdue`.
pub(crate) async fn ask(
    controller: &Controller,
    request: &SyncRequest,
    finalizer: &str,
    overdue: impl FnOnce() + Send,
) -> Called<Answer> {
    let deadline = controller.options.deadline;
    match Role::of(controller, request, finalizer) {
        Role::Handler(handler) => {
            call_sync(handler, request.clone(), deadline, overdue).await.map(Answer::Synced)
        }
        Role::Finalizer(finalize) => {
            call_finalize(finalize, request.clone(), deadline, overdue).await.map(Answer::Finalized)
        }
        Role::Nobody => Called::Answered(Ok(Answer::Finalized(Finalized::Done))),
    }
}

impl<T> Called<T> {
    fn map<U>(self, to: impl FnOnce(T) -> U) -> Called<U> {
        match self {
            Self::Answered(answer) => Called::Answered(answer.map(to)),
            Self::Panicked(message) => Called::Panicked(message),
            Self::TooSlow => Called::TooSlow,
        }
    }
}

/// Calls the handler. `overdue` is called when the deadline passes while a blocking handler still runs: it cannot be
/// stopped, so this returns only when it does.
async fn call_sync(
    handler: &AnyHandler,
    request: SyncRequest,
    deadline: Duration,
    overdue: impl FnOnce() + Send,
) -> Called<SyncResponse> {
    match handler {
        AnyHandler::Plain(handler) => {
            let handler = Arc::clone(handler);
            call_plain(move || handler.sync(&request), deadline, overdue).await
        }
        AnyHandler::Async(handler) => call_async(handler(request), deadline).await,
    }
}

/// Calls the finalizer, in the same way.
async fn call_finalize(
    finalize: &AnyFinalize,
    request: SyncRequest,
    deadline: Duration,
    overdue: impl FnOnce() + Send,
) -> Called<Finalized> {
    match finalize {
        AnyFinalize::Plain(finalize) => {
            let finalize = Arc::clone(finalize);
            call_plain(move || finalize.finalize(&request), deadline, overdue).await
        }
        AnyFinalize::Async(finalize) => call_async(finalize(request), deadline).await,
    }
}

async fn call_plain<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Error> + Send + 'static,
    deadline: Duration,
    overdue: impl FnOnce() + Send,
) -> Called<T> {
    // A runtime with one thread is a test or a simulation, where the order of everything must be the same each time.
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return match catch_unwind(AssertUnwindSafe(call)) {
            Ok(answer) => Called::Answered(answer),
            Err(panic) => Called::Panicked(message(&*panic)),
        };
    }
    let mut running = tokio::task::spawn_blocking(call);
    let Ok(joined) = tokio::time::timeout(deadline, &mut running).await else {
        overdue();
        // Its answer comes too late to be trusted. It is waited for because a parent is never synced twice at once.
        let _ = running.await;
        return Called::TooSlow;
    };
    match joined {
        Ok(answer) => Called::Answered(answer),
        Err(error) => Called::Panicked(
            error.try_into_panic().map_or_else(|_| "cancelled".into(), |panic| message(&*panic)),
        ),
    }
}

async fn call_async<T>(call: impl Future<Output = Result<T, Error>>, deadline: Duration) -> Called<T> {
    match tokio::time::timeout(deadline, AssertUnwindSafe(call).catch_unwind()).await {
        Ok(Ok(answer)) => Called::Answered(answer),
        Ok(Err(panic)) => Called::Panicked(message(&*panic)),
        Err(_) => Called::TooSlow,
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it did not say why".into())
}
