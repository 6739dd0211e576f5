//! The manager: waits for workers, has them begin together, and collects what they found.

mod metrics;
mod otlp;
mod serve;
mod state;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mainstay::clock::later;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::FAILED;
use super::settings::ManagerSettings;
use otlp::Export;
use state::{Now, Run};

/// A run, and who waits for it to change.
#[derive(Clone)]
pub(in crate::runner::simulate) struct Shared {
    run: Arc<Mutex<Run>>,
    changed: Arc<Notify>,
}

impl Shared {
    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is so, or it is too late.
    async fn until(&self, deadline: Instant, is: impl Fn(&Run) -> bool) -> bool {
        loop {
            let changed = self.changed.notified();
            if is(&self.run()) {
                return true;
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return is(&self.run());
            }
        }
    }
}

/// Runs a manager until its report was read, and returns its exit code.
pub async fn run(settings: ManagerSettings, tell: impl Fn(&str)) -> u8 {
    match TcpListener::bind(settings.address).await {
        Ok(listener) => run_on(listener, settings, tell).await,
        Err(error) => {
            tell(&format!("cannot listen on {}: {error}", settings.address));
            FAILED
        }
    }
}

/// [`run`], on a port that is open already.
pub async fn run_on(listener: TcpListener, settings: ManagerSettings, tell: impl Fn(&str)) -> u8 {
    let run = Arc::new(Mutex::new(Run::new(settings.clone())));
    let shared = Shared { run, changed: Arc::default() };
    let server = serve::serve(listener, shared.clone());
    let export = settings.collector.clone().map(Export::to);
    let sending = async {
        match &export {
            Some(export) => export.keep_sending(&shared, &tell).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        code = course(&settings, &shared, export.as_ref(), &tell) => code,
        never = sending => match never {},
        failed = server => {
            let why = failed.err().map(|error| error.to_string()).unwrap_or_default();
            tell(&format!("cannot serve any longer: {why}"));
            FAILED
        }
    }
}

async fn course(
    settings: &ManagerSettings,
    shared: &Shared,
    export: Option<&Export>,
    tell: &impl Fn(&str),
) -> u8 {
    let expected = settings.workers;
    tell(&format!("run {}: waiting for {expected} workers", settings.load.run));
    if !shared.until(later(Instant::now(), settings.start), Run::is_complete).await {
        let missing = shared.run().missing();
        let seconds = settings.start.as_secs();
        tell(&format!("workers that did not come within {seconds} s: {missing:?}"));
        return FAILED;
    }
    shared.run().begin(Now::get());
    shared.changed.notify_waiters();
    tell(&format!("{expected} workers begin, for {} s", settings.load.run_time.as_secs()));
    let deadline = later(Instant::now(), settings.load.run_time.saturating_add(settings.grace));
    shared.until(deadline, Run::is_told).await;
    let report = shared.run().finish(Now::get());
    shared.changed.notify_waiters();
    if !report.lost.is_empty() {
        tell(&format!("workers that did not tell: {:?}", report.lost));
    }
    let (requests, failed) = (report.total.requests, report.total.failed());
    tell(&format!("{requests} requests, {failed} of them failed; the report can be read"));
    // The last numbers: nobody may be here to send them in a while.
    if let Some(export) = export
        && let Err(why) = export.send(shared).await
    {
        tell(&why);
    }
    shared.until(later(Instant::now(), settings.linger), Run::is_dismissed).await;
    0
}
