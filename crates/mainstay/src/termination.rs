//! When the process is asked to end.

/// Done when the process is asked to end: by Ctrl-C, or by the SIGTERM that Kubernetes sends to a pod before it kills it.
///
/// What [`Operator::run`](crate::Operator::run) of a program waits for. From the first poll on these signals no longer
/// kill the process. Where it cannot be told of a signal, that signal keeps its usual effect.
pub async fn termination() {
    tokio::select! {
        biased;
        () = interrupted() => {}
        () = terminated() => {}
    }
}

async fn interrupted() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::warn!(%error, "cannot wait for Ctrl-C");
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        // The stream of signals never ends.
        Ok(mut signals) => drop(signals.recv().await),
        Err(error) => {
            tracing::warn!(%error, "cannot wait for SIGTERM");
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending::<()>().await;
}
