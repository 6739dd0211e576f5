//! Export of tracing spans by OTLP, as protobuf over HTTP.
//!
//! ```text
//! tracing span ─▶ layer ─▶ bounded buffer ─▶ one task: batches ─▶ POST <endpoint>/v1/traces
//! ```
//!
//! - A span that ends never waits. When the buffer is full it is dropped and counted ([`Guard::dropped`]).
//! - Everything runs on the tokio runtime that [`layer`] was called on; there is no thread of its own.
//! - What is sent while exporting is not traced itself.
//!
//! Headers, compression and timeouts follow the standard `OTEL_EXPORTER_OTLP_…` environment variables.
//!
//! ```no_run
//! use tracing_subscriber::prelude::*;
//! # #[tokio::main]
//! # async fn main() -> Result<(), mainstay_otlp::OtlpError> {
//! let (layer, guard) = mainstay_otlp::layer("http://localhost:4318", "shop-operator")?;
//! tracing_subscriber::registry().with(layer).init();
//! // … run the operator, then:
//! guard.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod client;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::FusedFuture as _;
use http::Uri;
use opentelemetry::Context;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanExporter as _, SpanProcessor};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::Subscriber;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use client::PlainClient;

/// Spans that may wait to be sent.
const BUFFERED_MAX: usize = 2048;
/// Spans that are sent together.
const BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for others.
const BATCH_DELAY: Duration = Duration::from_secs(2);
/// How long one batch, with its retries, may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The endpoint is not an address such as `http://collector:4318`.
    #[error("cannot export spans to {endpoint:?}: an endpoint is an http or https address with a host")]
    Endpoint {
        /// The endpoint that was given.
        endpoint: String,
    },
    /// There is no tokio runtime to export on.
    #[error("cannot export spans outside of a tokio runtime")]
    Runtime(#[source] tokio::runtime::TryCurrentError),
    /// TLS cannot be set up.
    #[error("cannot set up TLS to export spans")]
    Tls(#[source] rustls::Error),
    /// The exporter does not accept its configuration, which may come from the environment.
    #[error("cannot set up the export of spans")]
    Exporter(#[source] ExporterBuildError),
}

/// A layer that exports the spans of a service, and the guard that sends the last of them.
///
/// An endpoint without a path gets the standard one, `/v1/traces`. Must be called on a tokio runtime.
pub fn layer<S>(
    endpoint: &str,
    service: &str,
) -> Result<(impl Layer<S> + Send + Sync + use<S>, Guard), OtlpError>
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let runtime = Handle::try_current().map_err(OtlpError::Runtime)?;
    let endpoint = traces_endpoint(endpoint)?;
    let resource = Resource::builder().with_service_name(service.to_owned()).build();
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(PlainClient::new(&endpoint).map_err(OtlpError::Tls)?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(endpoint.to_string())
        .build()
        .map_err(OtlpError::Exporter)?;
    exporter.set_resource(&resource);
    let (sender, receiver) = mpsc::channel(BUFFERED_MAX);
    let (stop, stopping) = oneshot::channel();
    let dropped = Arc::new(AtomicU64::new(0));
    let task = runtime.spawn(export(exporter, receiver, stopping));
    let processor = Buffer { sender, dropped: dropped.clone() };
    let provider =
        SdkTracerProvider::builder().with_resource(resource).with_span_processor(processor).build();
    let tracer = provider.tracer("mainstay");
    let layer = tracing_opentelemetry::layer().with_tracer(tracer).with_threads(false);
    Ok((layer, Guard { _provider: provider, stop, task, dropped }))
}

/// Keeps the export going, and ends it.
#[must_use = "without a shutdown the last spans are lost"]
pub struct Guard {
    // The provider shuts its processors down when its last handle goes.
    _provider: SdkTracerProvider,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    dropped: Arc<AtomicU64>,
}

impl Guard {
    /// Spans that were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Sends what is left, for at most ten seconds. Spans that end later are dropped.
    pub async fn shutdown(self) {
        // A task that has ended, because the runtime did, has nothing left to send.
        let _ = self.stop.send(());
        let _ = timeout(PATIENCE, self.task).await;
    }
}

/// Takes spans as they end.
#[derive(Debug)]
struct Buffer {
    sender: mpsc::Sender<SpanData>,
    dropped: Arc<AtomicU64>,
}

impl SpanProcessor for Buffer {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.sender.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Sends batches until it is told to stop, or until nobody makes spans any more.
async fn export(
    exporter: SpanExporter,
    mut spans: mpsc::Receiver<SpanData>,
    stopping: oneshot::Receiver<()>,
) {
    let mut stopping = stopping.fuse();
    let mut has_failed = false;
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            // Whoever drops the guard without a shutdown does not stop the export.
            Ok(()) = &mut stopping, if !stopping.is_terminated() => spans.close(),
            () = fill(&mut batch, &mut spans) => {
                if batch.is_empty() {
                    return;
                }
                let why = send(&exporter, std::mem::take(&mut batch)).await.err();
                match &why {
                    Some(why) if has_failed => tracing::debug!(why, "spans were not exported"),
                    Some(why) => tracing::warn!(why, "spans were not exported, nor may others be"),
                    None => {}
                }
                has_failed = why.is_some();
            }
        }
    }
}

/// Waits for a span, then a while for more. What is in the batch stays there if this is dropped. An empty batch means
/// that there will be no more.
async fn fill(batch: &mut Vec<SpanData>, spans: &mut mpsc::Receiver<SpanData>) {
    if batch.is_empty() && spans.recv_many(batch, BATCH_MAX).await == 0 {
        return;
    }
    let deadline = Instant::now() + BATCH_DELAY;
    while batch.len() < BATCH_MAX {
        let room = BATCH_MAX - batch.len();
        match timeout_at(deadline, spans.recv_many(batch, room)).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

async fn send(exporter: &SpanExporter, batch: Vec<SpanData>) -> Result<(), String> {
    let sending = exporter.export(batch).with_subscriber(NoSubscriber::new());
    match timeout(PATIENCE, sending).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

fn traces_endpoint(endpoint: &str) -> Result<Uri, OtlpError> {
    let invalid = || OtlpError::Endpoint { endpoint: endpoint.to_owned() };
    let uri: Uri = endpoint.parse().map_err(|_| invalid())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
        return Err(invalid());
    }
    if uri.path().trim_matches('/').is_empty() {
        return format!("{}/v1/traces", endpoint.trim_end_matches('/')).parse().map_err(|_| invalid());
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_without_a_path_gets_the_standard_one() {
        for (given, expected) in [
            ("http://localhost:4318", Some("http://localhost:4318/v1/traces")),
            ("http://localhost:4318/", Some("http://localhost:4318/v1/traces")),
            ("https://otel.example.com/in/v1/traces", Some("https://otel.example.com/in/v1/traces")),
            ("localhost:4318", None),
            ("ftp://localhost", None),
            ("", None),
        ] {
            let found = traces_endpoint(given).map(|uri| uri.to_string()).ok();
            assert_eq!(found.as_deref(), expected, "{given}");
        }
    }

    #[test]
    fn outside_of_a_runtime_is_an_error() {
        let error = layer::<tracing_subscriber::Registry>("http://localhost:4318", "shop").err().unwrap();
        assert_eq!(error.to_string(), "cannot export spans outside of a tokio runtime");
    }
}
