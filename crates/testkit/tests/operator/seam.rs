//! A place between an operator and its cluster where a test can look on, hold back, refuse and meddle. The test's own
//! requests do not pass here.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, StreamBody};
use kube::client::Body;
use mainstay::{Controller, Operator, OperatorBuilder};
use mainstay_testkit::{Cluster, OperatorTest, RunningOperator};
use serde_json::json;
use tokio::sync::watch;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What passes between an operator and its cluster. Requests are told as `PATCH /api/v1/…?…`.
#[derive(Clone)]
pub(crate) struct Seam {
    inner: kube::Client,
    namespace: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    log: Mutex<Vec<String>>,
    hooks: Mutex<Vec<Hook>>,
    refused: Mutex<Vec<(String, u16)>>,
    held_requests: watch::Sender<Vec<String>>,
    held_events: watch::Sender<Vec<String>>,
}

struct Hook {
    before: String,
    run: BoxFuture<'static, ()>,
}

impl Seam {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self {
            inner: cluster.client(),
            namespace: cluster.namespace().to_owned(),
            state: Arc::new(State::default()),
        }
    }

    /// The client of the operator.
    pub(crate) fn client(&self) -> kube::Client {
        let (inner, state) = (self.inner.clone(), Arc::clone(&self.state));
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (inner, state) = (inner.clone(), Arc::clone(&state));
            async move {
                let line = format!("{} {}", request.method(), request.uri());
                if let Some(code) = state.admit(&line).await {
                    return Ok::<_, BoxError>(refusal(code).map(http_body_util::BodyExt::boxed_unsync));
                }
                let response = inner.send(request).await?;
                // Passes the body on, but the events of a watch that is held only once it is let go.
                Ok(response.map(|body| {
                    let frames =
                        futures::stream::unfold((body, line, state), async |(mut body, line, state)| {
                            let frame = body.frame().await?;
                            if line.contains("watch=") {
                                wait_until_let_go(&state.held_events, &line).await;
                            }
                            Some((frame, (body, line, state)))
                        });
                    StreamBody::new(frames).boxed_unsync()
                }))
            }
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

    /// Runs something once, before the first request that contains `part` is passed on.
    pub(crate) fn before(&self, part: &str, run: impl Future<Output = ()> + Send + 'static) {
        let hook = Hook { before: part.to_owned(), run: Box::pin(run) };
        self.state.hooks.lock().unwrap().push(hook);
    }

    /// Answers requests that contain `part` with this code.
    pub(crate) fn refuse(&self, part: &str, code: u16) {
        self.state.refused.lock().unwrap().push((part.to_owned(), code));
    }

    /// Refuses nothing any more.
    pub(crate) fn allow(&self) {
        self.state.refused.lock().unwrap().clear();
    }

    /// Holds requests that contain `part`, until they are let go.
    pub(crate) fn hold_requests(&self, part: &str) {
        self.state.held_requests.send_modify(|held| held.push(part.to_owned()));
    }

    /// Holds the events of watches whose request contains `part`, until they are let go.
    pub(crate) fn hold_events(&self, part: &str) {
        self.state.held_events.send_modify(|held| held.push(part.to_owned()));
    }

    /// Holds nothing any more.
    pub(crate) fn let_go(&self) {
        self.state.held_requests.send_modify(Vec::clear);
        self.state.held_events.send_modify(Vec::clear);
    }

    /// The requests that contain all of the parts.
    pub(crate) fn requests(&self, parts: &[&str]) -> Vec<String> {
        let log = self.state.log.lock().unwrap();
        log.iter().filter(|line| parts.iter().all(|part| line.contains(part))).cloned().collect()
    }

    /// How many requests were made that may change something.
    pub(crate) fn writes(&self) -> usize {
        self.state.log.lock().unwrap().iter().filter(|line| is_write(line)).count()
    }

    /// The requests since the last call of this that may change something.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        let log = std::mem::take(&mut *self.state.log.lock().unwrap());
        log.into_iter().filter(|line| is_write(line)).collect()
    }
}

impl State {
    /// Everything before a request is passed on. A code if it is not.
    async fn admit(&self, line: &str) -> Option<u16> {
        self.log.lock().unwrap().push(line.to_owned());
        let hook = {
            let mut hooks = self.hooks.lock().unwrap();
            let found = hooks.iter().position(|hook| line.contains(&hook.before));
            found.map(|index| hooks.remove(index))
        };
        if let Some(hook) = hook {
            hook.run.await;
        }
        wait_until_let_go(&self.held_requests, line).await;
        let refused = self.refused.lock().unwrap();
        refused.iter().find(|(part, _)| line.contains(part)).map(|(_, code)| *code)
    }
}

/// Events are told of what happens, whether or not something is written.
fn is_write(line: &str) -> bool {
    !line.starts_with("GET ") && !line.contains("events.k8s.io")
}

async fn wait_until_let_go(held: &watch::Sender<Vec<String>>, line: &str) {
    let free = |held: &Vec<String>| !held.iter().any(|part| line.contains(part.as_str()));
    held.subscribe().wait_for(free).await.unwrap();
}

fn refusal(code: u16) -> http::Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "message": "refused by the test"});
    let response = http::Response::builder().status(code).header("content-type", "application/json");
    response.body(Body::from(status.to_string().into_bytes())).unwrap()
}
