//! Calls a handler so that whatever it does harms only its own parent: it may panic, block, or never return.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use super::course::{Answer, has_finalizer};
use super::threads;
use crate::controller::Controller;
use crate::handler::{AnyFinalize, AnyHandler, Error, Finalized, SyncRequest, SyncResponse};

/// How a call ended.
pub(crate) enum Called<T> {
    /// The handler answered.
    Answered(Result<T, Error>),
    /// It panicked, with this message.
    Panicked(String),
    /// It took longer than allowed, and may still run.
    TooSlow(Option<Busy>),
}

/// Ends when a handler that could not be stopped has returned. Its answer is dropped: it comes too late to be trusted.
pub(crate) type Busy = BoxFuture<'static, ()>;

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

/// Asks whoever is to be asked, within the controller's deadline.
pub(crate) async fn ask(controller: &Controller, request: &SyncRequest, finalizer: &str) -> Called<Answer> {
    let deadline = controller.options.deadline;
    match Role::of(controller, request, finalizer) {
        Role::Handler(handler) => call_sync(handler, request.clone(), deadline).await.map(Answer::Synced),
        Role::Finalizer(finalize) => {
            call_finalize(finalize, request.clone(), deadline).await.map(Answer::Finalized)
        }
        Role::Nobody => Called::Answered(Ok(Answer::Finalized(Finalized::Done))),
    }
}

impl<T> Called<T> {
    fn map<U>(self, to: impl FnOnce(T) -> U) -> Called<U> {
        match self {
            Self::Answered(answer) => Called::Answered(answer.map(to)),
            Self::Panicked(message) => Called::Panicked(message),
            Self::TooSlow(busy) => Called::TooSlow(busy),
        }
    }
}

/// Calls the handler.
async fn call_sync(handler: &AnyHandler, request: SyncRequest, deadline: Duration) -> Called<SyncResponse> {
    match handler {
        AnyHandler::Plain(handler) => {
            let handler = Arc::clone(handler);
            call_plain(move || handler.sync(&request), deadline).await
        }
        AnyHandler::Async(handler) => call_async(handler(request), deadline).await,
    }
}

/// Calls the finalizer, in the same way.
async fn call_finalize(
    finalize: &AnyFinalize,
    request: SyncRequest,
    deadline: Duration,
) -> Called<Finalized> {
    match finalize {
        AnyFinalize::Plain(finalize) => {
            let finalize = Arc::clone(finalize);
            call_plain(move || finalize.finalize(&request), deadline).await
        }
        AnyFinalize::Async(finalize) => call_async(finalize(request), deadline).await,
    }
}

async fn call_plain<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Error> + Send + 'static,
    deadline: Duration,
) -> Called<T> {
    // A runtime with one thread is a test or a simulation, where the order of everything must be the same each time.
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return match catch_unwind(AssertUnwindSafe(call)) {
            Ok(answer) => Called::Answered(answer),
            Err(panic) => Called::Panicked(message(&*panic)),
        };
    }
    let (tell, mut told) = oneshot::channel();
    let runtime = Handle::current();
    let job = move || {
        let _entered = runtime.enter();
        // Nobody listens any more if it is too late.
        let _ = tell.send(catch_unwind(AssertUnwindSafe(call)));
    };
    if let Err(error) = threads::run(Box::new(job)) {
        return Called::Answered(Err(Error::new(error)));
    }
    match tokio::time::timeout(deadline, &mut told).await {
        Ok(Ok(Ok(answer))) => Called::Answered(answer),
        Ok(Ok(Err(panic))) => Called::Panicked(message(&*panic)),
        Ok(Err(_)) => Called::Panicked("it ended without an answer".into()),
        Err(_) => Called::TooSlow(Some(told.map(drop).boxed())),
    }
}

async fn call_async<T>(call: impl Future<Output = Result<T, Error>>, deadline: Duration) -> Called<T> {
    match tokio::time::timeout(deadline, AssertUnwindSafe(call).catch_unwind()).await {
        Ok(Ok(answer)) => Called::Answered(answer),
        Ok(Err(panic)) => Called::Panicked(message(&*panic)),
        // It was dropped, so it runs no longer.
        Err(_) => Called::TooSlow(None),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it did not say why".into())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_handler_that_blocks_keeps_no_runtime_from_ending() {
        let (free, freed) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let ends = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
            let blocked = move || {
                let _ = freed.recv();
                Ok(())
            };
            let called = runtime.block_on(async {
                tokio::spawn(call_plain(blocked, Duration::from_millis(1))).await.unwrap()
            });
            assert!(matches!(called, Called::TooSlow(Some(_))));
            drop((called, runtime));
            tell.send(()).unwrap();
        });
        told.recv_timeout(Duration::from_mins(1)).expect("the runtime ends");
        drop(free);
        ends.join().unwrap();
    }
}
