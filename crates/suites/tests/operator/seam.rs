//! A place between an operator and its cluster where a test can look on, hold back, refuse, cut off and meddle. The test's
//! own requests do not pass here.
//!
//! Requests are told as `PATCH /api/v1/…?…`, and picked by words, all of which must be in that: `"PATCH /secrets/"`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Bytes;
use kube::client::Body;
use mainstay::{Controller, Operator, OperatorBuilder};
use mainstay_testkit::{Cluster, OperatorTest, RunningOperator};
use serde_json::json;
use tokio::sync::watch;

/// Numbers requests and answers of all seams in the order in which they happen.
static CLOCK: AtomicUsize = AtomicUsize::new(1);

/// The number of the next request or answer.
pub(crate) fn now() -> usize {
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// A request that was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) method: Method,
    /// With its query.
    pub(crate) path: String,
    pub(crate) began: usize,
    /// When it was answered, and how.
    pub(crate) answer: Option<(usize, u16)>,
}

impl Sent {
    fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Whether it may change something. Events are told of what happens, whether or not something is written.
    fn is_write(&self) -> bool {
        self.method != Method::GET && !self.path.contains("events.k8s.io")
    }

    pub(crate) fn is_about_leases(&self) -> bool {
        self.path.contains("/leases")
    }

    /// The name of the object that it is about.
    pub(crate) fn object(&self) -> &str {
        self.path.split('?').next().and_then(|path| path.rsplit('/').next()).unwrap_or_default()
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

/// What passes between an operator and its cluster.
#[derive(Clone)]
pub(crate) struct Seam {
    inner: kube::Client,
    namespace: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    log: Mutex<Log>,
    hooks: Mutex<Vec<Hook>>,
    /// Which requests are not passed on. Those with no code are never answered either.
    stopped: Mutex<Vec<(String, Option<u16>)>>,
    held_requests: watch::Sender<Vec<String>>,
    held_events: watch::Sender<Vec<String>>,
    /// Counts the times that watches were cut.
    cuts: watch::Sender<usize>,
}

#[derive(Default)]
struct Log {
    sent: Vec<Sent>,
    /// How many of them a test has taken.
    taken: usize,
}

struct Hook {
    before: String,
    run: BoxFuture<'static, ()>,
}

impl Seam {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self::over(cluster, cluster.client())
    }

    /// One whose requests are sent by this client.
    pub(crate) fn over(cluster: &Cluster, inner: kube::Client) -> Self {
        Self { inner, namespace: cluster.namespace().to_owned(), state: Arc::default() }
    }

    /// The client of the operator.
    pub(crate) fn client(&self) -> kube::Client {
        let seam = self.clone();
        let service = tower::service_fn(move |request| {
            let seam = seam.clone();
            async move { seam.send(request).await }
        });
        kube::Client::new(service, "default")
    }

    /// An operator in the test's namespace that goes through here.
    pub(crate) fn builder(&self, name: &str) -> OperatorBuilder {
        Operator::builder(name, self.client()).namespace(&self.namespace)
    }

    /// It, stepped.
    pub(crate) fn stepping(&self, cluster: &Cluster, name: &str, controller: Controller) -> OperatorTest {
        OperatorTest::stepping(cluster, &self.builder(name).controller(controller).build().unwrap())
    }

    /// It, running.
    pub(crate) fn running(&self, name: &str, controller: Controller) -> RunningOperator {
        RunningOperator::start(self.builder(name).controller(controller).build().unwrap())
    }

    /// Runs something once, before the first such request is passed on.
    pub(crate) fn before(&self, words: &str, run: impl Future<Output = ()> + Send + 'static) {
        let hook = Hook { before: words.to_owned(), run: Box::pin(run) };
        self.state.hooks.lock().unwrap().push(hook);
    }

    /// Answers such requests with this code.
    pub(crate) fn refuse(&self, words: &str, code: u16) {
        self.state.stopped.lock().unwrap().push((words.to_owned(), Some(code)));
    }

    /// Such requests are never answered, nor do they reach the server.
    pub(crate) fn lose(&self, words: &str) {
        self.state.stopped.lock().unwrap().push((words.to_owned(), None));
    }

    /// Refuses and loses nothing any more. What was lost stays lost.
    pub(crate) fn allow(&self) {
        self.state.stopped.lock().unwrap().clear();
    }

    /// Holds such requests, until they are let go.
    pub(crate) fn hold_requests(&self, words: &str) {
        self.state.held_requests.send_modify(|held| held.push(words.to_owned()));
    }

    /// Holds the events of watches with such requests, until they are let go.
    pub(crate) fn hold_events(&self, words: &str) {
        self.state.held_events.send_modify(|held| held.push(words.to_owned()));
    }

    /// Holds nothing any more.
    pub(crate) fn let_go(&self) {
        self.state.held_requests.send_modify(Vec::clear);
        self.state.held_events.send_modify(Vec::clear);
    }

    /// Ends all watches that are open.
    pub(crate) fn cut_watches(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// All requests so far.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.state.log.lock().unwrap().sent.clone()
    }

    /// Such requests so far.
    pub(crate) fn requests(&self, words: &str) -> Vec<Sent> {
        self.sent().into_iter().filter(|sent| has_all(&sent.line(), words)).collect()
    }

    /// The requests so far that may change something.
    pub(crate) fn writes(&self) -> Vec<Sent> {
        self.sent().into_iter().filter(Sent::is_write).collect()
    }

    /// Those since the last call of this, as they are told.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        let mut log = self.state.log.lock().unwrap();
        let (taken, all) = (log.taken, log.sent.len());
        log.taken = all;
        log.sent[taken..].iter().filter(|sent| sent.is_write()).map(Sent::line).collect()
    }

    async fn send(&self, request: Request<Body>) -> Result<Answer, kube::Error> {
        let sent = Sent {
            method: request.method().clone(),
            path: request.uri().to_string(),
            began: now(),
            answer: None,
        };
        let (line, mut cuts) = (sent.line(), self.state.cuts.subscribe());
        let index = self.state.note(sent);
        let response = match self.state.admit(&line).await {
            None => self.inner.send(request).await?,
            Some(Some(code)) => refusal(code),
            Some(None) => std::future::pending().await,
        };
        self.state.log.lock().unwrap().sent[index].answer = Some((now(), response.status().as_u16()));
        if !line.contains("watch=") {
            return Ok(response.map(Body::boxed_unsync));
        }
        let state = Arc::clone(&self.state);
        Ok(response.map(|body| {
            let frames = futures::stream::unfold((body, line, state), async |(mut body, line, state)| {
                let frame = body.frame().await?;
                wait_until_let_go(&state.held_events, &line).await;
                Some((frame, (body, line, state)))
            });
            let cut = Box::pin(async move {
                let _ = cuts.changed().await;
            });
            StreamBody::new(frames.take_until(cut)).boxed_unsync()
        }))
    }
}

impl State {
    /// Remembers a request, and says as which.
    fn note(&self, sent: Sent) -> usize {
        let mut log = self.log.lock().unwrap();
        log.sent.push(sent);
        log.sent.len() - 1
    }

    /// Everything before a request is passed on. If it is not: the code of its answer, if it gets one.
    async fn admit(&self, line: &str) -> Option<Option<u16>> {
        let hook = {
            let mut hooks = self.hooks.lock().unwrap();
            let found = hooks.iter().position(|hook| has_all(line, &hook.before));
            found.map(|index| hooks.remove(index))
        };
        if let Some(hook) = hook {
            hook.run.await;
        }
        wait_until_let_go(&self.held_requests, line).await;
        let stopped = self.stopped.lock().unwrap();
        stopped.iter().find(|(words, _)| has_all(line, words)).map(|(_, code)| *code)
    }
}

fn has_all(line: &str, words: &str) -> bool {
    words.split_whitespace().all(|word| line.contains(word))
}

async fn wait_until_let_go(held: &watch::Sender<Vec<String>>, line: &str) {
    let free = |held: &Vec<String>| !held.iter().any(|words| has_all(line, words));
    held.subscribe().wait_for(free).await.unwrap();
}

fn refusal(code: u16) -> Response<Body> {
    let reason = if code == 403 { "Forbidden" } else { "" };
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": "refused by the test"});
    let response = Response::builder().status(code).header("content-type", "application/json");
    response.body(Body::from(status.to_string().into_bytes())).unwrap()
}
