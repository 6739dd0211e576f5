//! `pods/log`: what `kubectl logs` asks for.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Response, header};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use mainstay_apiserver::{Body, SubresourceProvider, SubresourceRequest};
use serde_json::{Value, json};

use super::super::{Processes, Shared, pod_id};
use super::line::{Framer, Stream};
use super::query::{Query, Refusal};
use super::reader::Reader;
use super::which;

/// What a container that is only simulated would have printed.
type Simulated = dyn Fn(&Pod, &str) -> String + Send + Sync;

/// Serves the logs of pods. Made before the server that it is part of, and told of the runtime after: it answers 503 until then.
#[derive(Clone, Default)]
pub struct LogEndpoint {
    // The runtime has a client of the server that has this endpoint: held strongly, neither would ever go.
    processes: Arc<OnceLock<Weak<Shared>>>,
    simulated: Arc<OnceLock<Box<Simulated>>>,
}

impl LogEndpoint {
    /// Serves the files of these processes from now on.
    pub fn serve_from(&self, processes: &Processes) {
        // Whoever was first stays.
        let _ = self.processes.set(Arc::downgrade(&processes.0));
    }

    /// Says what the log of a container is that is not a process; without this it is empty.
    pub fn simulate(&self, text: impl Fn(&Pod, &str) -> String + Send + Sync + 'static) {
        let _ = self.simulated.set(Box::new(text));
    }

    async fn answer(&self, request: SubresourceRequest) -> Response<Body> {
        if request.request.method() != http::Method::GET {
            let message = "the server does not allow this method on the requested resource";
            return refusal(405, "MethodNotAllowed", message, Some(json!({})));
        }
        let query = match Query::read(request.request.uri().query().unwrap_or_default()) {
            Ok(query) => query,
            Err(Refusal::Unreadable(why)) => return refusal(400, "BadRequest", &why, None),
            Err(Refusal::Invalid(fields)) => return invalid(&request.name, &fields),
        };
        let pod: Pod = match serde_json::from_value(request.object) {
            Ok(pod) => pod,
            Err(error) => {
                return refusal(500, "InternalError", &format!("cannot read the pod: {error}"), None);
            }
        };
        self.log(&pod, &query).await.unwrap_or_else(|why| refusal(400, "BadRequest", &why, None))
    }

    /// The log itself, or why there is none.
    async fn log(&self, pod: &Pod, query: &Query) -> Result<Response<Body>, String> {
        let container = which::container(pod, query.container.as_deref())?;
        if pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default().is_empty() {
            let mut response = Response::new(Body::from(String::new()));
            *response.status_mut() = http::StatusCode::NO_CONTENT;
            return Ok(response);
        }
        let Some(processes) = self.processes.get().and_then(Weak::upgrade) else {
            let message = "logs cannot be read: the node does not run";
            return Ok(refusal(503, "ServiceUnavailable", message, None));
        };
        let id = pod_id(pod);
        let by_status = which::attempt(pod, &container, query.previous);
        let attempt = match processes.last_attempt(&id, &container) {
            // A status comes later than what it tells of.
            Some(last) if !query.previous => Some(last),
            Some(_) => Some(by_status?),
            None => {
                by_status?;
                None
            }
        };
        let selection = query.selection(Timestamp::now());
        let Some(attempt) = attempt else {
            let text = self.simulated.get().map(|text| text(pod, &container)).unwrap_or_default();
            let mut selection = selection;
            let lines = as_file(&text, since(pod));
            let start = selection.start(&lines);
            return Ok(plain(Body::from(Bytes::from(selection.feed(&lines[start..])))));
        };
        let (path, progress) = processes.log_of(&id, &container, attempt);
        let reader = Reader::open(&path, selection, progress, query.follow).await;
        let about = format!("container {container:?} in pod {:?}", id.name);
        let reader = reader.map_err(|_| format!("unable to retrieve container logs for {about}"))?;
        Ok(plain(Body::stream(futures::stream::unfold(reader, |mut reader| async {
            Some((reader.next().await?, reader))
        }))))
    }
}

impl SubresourceProvider for LogEndpoint {
    fn serve(&self, request: SubresourceRequest) -> BoxFuture<'static, Response<Body>> {
        let endpoint = self.clone();
        async move { endpoint.answer(request).await }.boxed()
    }
}

/// A text as a file would have it, had it been printed when the pod began.
fn as_file(text: &str, since: Timestamp) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut framer = Framer::new(Stream::Stdout);
    framer.feed(text.as_bytes(), since, &mut lines);
    framer.finish(since, &mut lines);
    lines
}

fn since(pod: &Pod) -> Timestamp {
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    started.or(pod.metadata.creation_timestamp.as_ref()).map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

fn plain(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain"));
    response
}

/// A `Status`, as the API server sends it.
fn refusal(code: u16, reason: &str, message: &str, details: Option<Value>) -> Response<Body> {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    if let Some(details) = details {
        status["details"] = details;
    }
    let mut response = Response::new(Body::from(format!("{status}\n")));
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// 422 for options that cannot be so.
fn invalid(pod: &str, fields: &[(&'static str, String, &'static str)]) -> Response<Body> {
    // A problem of no single field has no name, as Kubernetes has it.
    let named = |field: &'static str| if field.is_empty() { "<nil>" } else { field };
    let sentences: Vec<String> =
        fields.iter().map(|(field, why, _)| format!("{}: {why}", named(field))).collect();
    let mut message = format!("PodLogOptions {pod:?} is invalid: ");
    let _ = match sentences.as_slice() {
        [one] => write!(message, "{one}"),
        many => write!(message, "[{}]", many.join(", ")),
    };
    let causes = fields
        .iter()
        .map(|(field, why, reason)| json!({"reason": reason, "message": why, "field": named(field)}));
    let details = json!({"name": pod, "kind": "PodLogOptions", "causes": causes.collect::<Vec<_>>()});
    refusal(422, "Invalid", &message, Some(details))
}
