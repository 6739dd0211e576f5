//! Connections to what an operator serves: health and metrics, and webhooks.
//!
//! Whatever a client does or leaves undone, others are answered. Every connection has a place. One that does nothing loses
//! it after a while. When all places are taken, a newcomer gets that of whoever has done nothing for longest. So sockets that
//! are opened and left alone keep nobody out.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse as _;
use http::StatusCode;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

/// The longest head of a request, in bytes.
const HEAD_BYTES_MAX: u32 = 64 << 10;
/// Requests under way on one HTTP/2 connection. Go's clients open another connection when they have as many.
const STREAMS_MAX: u32 = 250;
/// How often an HTTP/2 client is asked whether it is still there.
const PING_EVERY: Duration = Duration::from_secs(30);

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub connections_max: usize,
    /// For a TLS handshake, and for the head of a request that has begun.
    pub head: Duration,
    /// Until the first request on a connection.
    pub first: Duration,
    /// Without a request, after the first.
    pub idle: Duration,
    /// For a request with its body, until it is answered.
    pub request: Duration,
}

impl Bounds {
    pub(crate) const fn new(connections_max: usize) -> Self {
        Bounds {
            connections_max,
            head: Duration::from_secs(10),
            first: Duration::from_secs(30),
            // Most clients close after 90 seconds, and must not find a connection closed that they are about to use.
            idle: Duration::from_mins(3),
            request: Duration::from_mins(1),
        }
    }
}

/// Serves a router on a listener until `shutdown` is done, and then until the requests that have begun are answered, for at
/// most `grace`. False if they were not.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    bounds: Bounds,
    shutdown: impl Future<Output = ()>,
    grace: Duration,
) -> bool {
    let connections = Arc::new(Connections { bounds, open: Mutex::default() });
    let (closing, closed) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            // In a fixed order, so that simulations run the same way each time.
            biased;
            () = &mut shutdown => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    // If everybody is at work there is no room, and the client sees its connection closed.
                    let Some(entry) = connections.enter() else { continue };
                    tasks.spawn(hold(socket, tls.clone(), router.clone(), entry, closed.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection");
                    // Most likely there are too many open files.
                    connections.open().close_idle();
                    sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    closing.send_replace(true);
    let finished = async { while tasks.join_next().await.is_some() {} };
    timeout(grace, finished).await.is_ok()
}

/// Serves one connection for as long as it keeps its place.
async fn hold(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    entry: Entry,
    closed: watch::Receiver<bool>,
) {
    // Only a matter of speed.
    let _ = socket.set_nodelay(true);
    let (place, bounds) = (entry.place.clone(), entry.connections.bounds);
    let served = async {
        let Some(tls) = tls else { return converse(socket, router, place.clone(), bounds, closed).await };
        match timeout(bounds.head, tls.accept(socket)).await {
            Ok(Ok(stream)) => converse(stream, router, place.clone(), bounds, closed).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    };
    tokio::select! {
        biased;
        () = served => {}
        () = place.unused(&bounds) => tracing::debug!("closing a connection that nobody uses"),
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    place: Arc<Place>,
    bounds: Bounds,
    mut closed: watch::Receiver<bool>,
) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.head)
        .max_buf_size(HEAD_BYTES_MAX as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        let (answer, under_way) = (router.call(request), place.begin());
        async move {
            let answer = timeout(bounds.request, answer).await;
            drop(under_way);
            let late = || (StatusCode::REQUEST_TIMEOUT, "the request took too long\n").into_response();
            Ok::<_, Infallible>(answer.map_or_else(|_| late(), |Ok(response)| response))
        }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = async { drop(closed.wait_for(|closed| *closed).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // A caller that hangs up has lost patience, which is its right.
        tracing::debug!(error, "a connection ended early");
    }
}

/// All connections of a server.
struct Connections {
    bounds: Bounds,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u64,
    places: BTreeMap<u64, Arc<Place>>,
}

impl Open {
    /// Closes the connection that has done nothing for longest. None if all are in use.
    fn close_idle(&mut self) -> Option<()> {
        let idle = self.places.iter().filter_map(|(id, place)| Some((place.idle_since()?, *id)));
        let (_, id) = idle.min()?;
        self.places.remove(&id)?.change(|state| state.lost = true);
        Some(())
    }
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a newcomer. None if all are taken by connections that are in use.
    fn enter(self: &Arc<Self>) -> Option<Entry> {
        let mut open = self.open();
        while open.places.len() >= self.bounds.connections_max {
            open.close_idle()?;
        }
        open.last += 1;
        let id = open.last;
        let state = State { requests: 0, since: Instant::now(), has_asked: false, lost: false };
        let place = Arc::new(Place { state: Mutex::new(state), changed: Notify::new() });
        open.places.insert(id, place.clone());
        Some(Entry { connections: self.clone(), id, place })
    }
}

/// A connection's hold on its place.
struct Entry {
    connections: Arc<Connections>,
    id: u64,
    place: Arc<Place>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.open().places.remove(&self.id);
    }
}

/// One connection, as the others see it.
struct Place {
    state: Mutex<State>,
    /// Notified of each change of the state.
    changed: Notify,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// Requests that are not answered yet.
    requests: usize,
    /// When the connection was accepted, or its last request was answered.
    since: Instant,
    /// There has been a request.
    has_asked: bool,
    /// Another connection has the place now.
    lost: bool,
}

impl Place {
    fn read(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// None while there is something to do.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.read();
        (state.requests == 0).then_some(state.since)
    }

    /// Counts a request until what is returned is dropped.
    fn begin(self: &Arc<Self>) -> UnderWay {
        self.change(|state| {
            state.requests += 1;
            state.has_asked = true;
        });
        UnderWay(self.clone())
    }

    /// Returns when the connection has done nothing for too long, or another one has its place.
    async fn unused(&self, bounds: &Bounds) {
        loop {
            let changed = self.changed.notified();
            let state = self.read();
            if state.lost {
                return;
            }
            if state.requests > 0 {
                changed.await;
                continue;
            }
            let patience = if state.has_asked { bounds.idle } else { bounds.first };
            tokio::select! {
                () = changed => {}
                () = sleep_until(state.since + patience) => return,
            }
        }
    }
}

/// A request that is under way.
struct UnderWay(Arc<Place>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.requests -= 1;
            state.since = Instant::now();
        });
    }
}
