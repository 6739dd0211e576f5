//! Runs a trace against one server.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use kube::client::Body;
use mainstay_testkit::Cluster;
use mainstay_testkit::cluster::unique_name;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::differential::normalise::Normaliser;
use crate::differential::pointer::select;
use crate::differential::trace::{CustomKind, Step, Trace, Until};

/// How long a repeated request may take to settle. Only a failing trace uses it up.
const SETTLE_PATIENCE: Duration = Duration::from_secs(90);

/// How long events may take to come.
const WATCH_PATIENCE: Duration = Duration::from_secs(30);

/// Headers that are part of what a client sees.
const HEADERS: [&str; 4] = ["allow", "content-type", "retry-after", "warning"];

/// The normalised answers of all steps, each `{status, headers, body}`.
///
/// Nothing is cleaned up: every run has names of its own, the cluster is thrown away as a whole, and hundreds of
/// namespaces that are being deleted would keep a real cluster's controllers from what the traces wait for.
pub(crate) async fn run_trace(trace: &Trace, cluster: &Cluster) -> Result<Vec<Value>, String> {
    let mut run = Run::new(trace, cluster);
    run.create_kinds(&trace.kinds).await?;
    let mut transcript = Vec::new();
    for (number, step) in trace.steps.iter().enumerate() {
        let answer = run.step(step).await;
        let named = |error| format!("step {}: {}: {error}", number + 1, step.summary());
        transcript.push(answer.map_err(named)?);
    }
    Ok(transcript)
}

/// An answer before it is normalised.
struct Answer {
    status: u16,
    headers: Map<String, Value>,
    body: Value,
}

struct Run<'c> {
    cluster: &'c Cluster,
    /// What `{name}` stands for.
    variables: BTreeMap<String, String>,
    normaliser: Normaliser,
}

impl<'c> Run<'c> {
    fn new(trace: &Trace, cluster: &'c Cluster) -> Self {
        let (namespace, run) = (cluster.namespace().to_string(), unique_name("run"));
        let group = format!("{run}.example.com");
        let mut variables = BTreeMap::new();
        for kind in &trace.kinds {
            let namespaces =
                if kind.is_cluster_scoped() { String::new() } else { format!("namespaces/{namespace}/") };
            variables.insert(kind.plural(), format!("/apis/{group}/v1/{namespaces}{}", kind.plural()));
        }
        let normaliser =
            Normaliser::new(vec![(namespace.clone(), "{ns}".into()), (run.clone(), "{run}".into())]);
        variables.extend([("ns".into(), namespace), ("run".into(), run), ("group".into(), group)]);
        Self { cluster, variables, normaliser }
    }

    async fn create_kinds(&mut self, kinds: &[CustomKind]) -> Result<(), String> {
        const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for kind in kinds {
            let create: Step =
                serde_json::from_value(json!({"POST": DEFINITIONS, "body": kind.definition()}))
                    .map_err(|error| error.to_string())?;
            let answer = self.send(&create).await?;
            if answer.status != 201 {
                return Err(format!("creating {}: {} {}", kind.kind, answer.status, answer.body));
            }
            // Established is not yet served: the handler sees it a moment later.
            let list = json!({"GET": format!("{{{}}}", kind.plural()), "until": 200});
            let list: Step = serde_json::from_value(list).map_err(|error| error.to_string())?;
            self.settle(&list, &Until::Status(200)).await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<Value, String> {
        let answer = match &step.until {
            Some(until) => self.settle(step, until).await?,
            None => self.send(step).await?,
        };
        for (name, pointer) in &step.capture {
            let mut body = answer.body.clone();
            let value = match select(&mut body, pointer).as_slice() {
                [Value::String(text)] => text.clone(),
                [value] => value.to_string(),
                _ => return Err(format!("nothing to capture at {pointer} in {} {body}", answer.status)),
            };
            self.variables.insert(name.clone(), value);
        }
        Ok(self.normalise(step, answer))
    }

    /// Sends the request until its answer is as wanted.
    async fn settle(&mut self, step: &Step, until: &Until) -> Result<Answer, String> {
        let deadline = Instant::now() + SETTLE_PATIENCE;
        loop {
            let mut answer = self.send(step).await?;
            if self.is_settled(&mut answer, until) {
                return Ok(answer);
            }
            if Instant::now() > deadline {
                return Err(format!(
                    "waited in vain for {until:?}; last answer {} {}",
                    answer.status, answer.body
                ));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn is_settled(&self, answer: &mut Answer, until: &Until) -> bool {
        match until {
            Until::Status(status) => answer.status == *status,
            Until::Body(wanted) => wanted.iter().all(|(pointer, wanted)| {
                let found = select(&mut answer.body, &self.fill(pointer));
                match wanted {
                    Value::Null => found.is_empty(),
                    Value::String(text) => {
                        found.first().is_some_and(|found| **found == self.fill(text).as_str())
                    }
                    wanted => found.first().is_some_and(|found| *found == wanted),
                }
            }),
        }
    }

    /// Sends the request, again where the server asks for it: kube-apiserver does while it takes over a changed definition.
    async fn send(&mut self, step: &Step) -> Result<Answer, String> {
        let deadline = Instant::now() + SETTLE_PATIENCE;
        loop {
            let answer = self.send_once(step).await?;
            let asked = answer.status == 429 && answer.headers.contains_key("retry-after");
            if !asked || Instant::now() > deadline {
                return Ok(answer);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn send_once(&mut self, step: &Step) -> Result<Answer, String> {
        let (method, path) = step.target();
        let path = self.fill_path(path);
        let mut request = http::Request::builder().method(method).uri(&path);
        for (name, value) in step.headers() {
            request = request.header(name, self.fill(&value));
        }
        let request = request.body(self.body(step)?).map_err(|error| format!("{path}: {error}"))?;
        let client = self.cluster.client();
        let response = client.send(request.map(Body::from));
        let response = tokio::time::timeout(SETTLE_PATIENCE, response).await;
        let response = response.map_err(|_| "no answer")?.map_err(chain)?;
        let status = response.status().as_u16();
        let headers = HEADERS
            .iter()
            .filter_map(|name| {
                let values: Vec<_> = response
                    .headers()
                    .get_all(*name)
                    .iter()
                    .map(|value| Value::from(String::from_utf8_lossy(value.as_bytes())))
                    .collect();
                (!values.is_empty()).then(|| ((*name).to_string(), Value::Array(values)))
            })
            .collect();
        let watching = status == 200 && (step.watch.is_some() || step.watch_to_end);
        let body = if watching {
            read_events(response.into_body(), step.watch).await?
        } else {
            let bytes = tokio::time::timeout(WATCH_PATIENCE, response.into_body().collect()).await;
            let bytes = bytes.map_err(|_| "the answer does not end; is it a watch?")?;
            let bytes = bytes.map_err(chain)?.to_bytes();
            serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into())
        };
        Ok(Answer { status, headers, body })
    }

    fn body(&self, step: &Step) -> Result<Vec<u8>, String> {
        if let Some(body) = &step.body {
            return Ok(self.fill(&body.to_string()).into_bytes());
        }
        if let Some(text) = &step.base64 {
            let compact: String = text.split_whitespace().collect();
            return BASE64.decode(compact).map_err(|error| error.to_string());
        }
        Ok(pad(&self.fill(step.raw.as_deref().unwrap_or_default())).into_bytes())
    }

    fn fill(&self, text: &str) -> String {
        self.variables
            .iter()
            .fold(text.to_string(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    /// As [`fill`](Self::fill), but what is put into the query is encoded.
    fn fill_path(&self, text: &str) -> String {
        let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
        let mut filled = self.fill(path);
        if let Some(query) = query {
            let query = self.variables.iter().fold(query.to_string(), |text, (name, value)| {
                text.replace(&format!("{{{name}}}"), &encode(value))
            });
            filled = format!("{filled}?{query}");
        }
        filled
    }

    fn normalise(&mut self, step: &Step, answer: Answer) -> Value {
        if step.uncompared {
            return Value::Null;
        }
        let mut body = answer.body;
        if !step.only.is_empty() {
            body = step
                .only
                .iter()
                .map(|pointer| {
                    let found = select(&mut body, &self.fill(pointer)).into_iter().map(|value| value.clone());
                    (pointer.clone(), Value::Array(found.collect()))
                })
                .collect();
        }
        for pointer in &step.ignore {
            for value in select(&mut body, &self.fill(pointer)) {
                *value = "<ignored>".into();
            }
        }
        let mut body = self.normaliser.normalise(body);
        for pointer in &step.unordered {
            for value in select(&mut body, pointer) {
                if let Value::Array(list) = value {
                    list.sort_by_key(Value::to_string);
                }
            }
        }
        if step.unordered_causes {
            sort_causes(&mut body);
        }
        let headers = self.normaliser.normalise(Value::Object(answer.headers));
        json!({"status": answer.status, "headers": headers, "body": body})
    }
}

/// Sorts a Status' causes, and in its message the same texts.
fn sort_causes(status: &mut Value) {
    let Some(Value::Array(causes)) = status.pointer_mut("/details/causes") else { return };
    causes.sort_by_key(Value::to_string);
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_string();
    let all = causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message")));
    let sorted = all.collect::<Vec<_>>().join(", ");
    if let Some(Value::String(message)) = status.get_mut("message")
        && let Some((before, after)) = message.split_once(": [")
        // The list is of the same texts, so only its order is lost here.
        && after.len() == sorted.len() + 1
    {
        *message = format!("{before}: [{sorted}]");
    }
}

/// The events of a watch; ordinary bookmarks come when the server likes and are left out.
async fn read_events(body: Body, wanted: Option<usize>) -> Result<Value, String> {
    let deadline = Instant::now() + WATCH_PATIENCE;
    let mut stream = body.into_data_stream();
    let (mut buffer, mut events) = (Vec::new(), Vec::new());
    while wanted.is_none_or(|wanted| events.len() < wanted) {
        let chunk = tokio::time::timeout_at(deadline, stream.next()).await;
        let chunk = chunk.map_err(|_| format!("waited in vain for further events; so far {events:?}"))?;
        let Some(chunk) = chunk else {
            match wanted {
                Some(_) => return Err(format!("the stream ended early, after {events:?}")),
                None => break,
            }
        };
        buffer.extend_from_slice(&chunk.map_err(chain)?);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).map_err(chain)?;
            if !is_ordinary_bookmark(&event) {
                events.push(event);
            }
        }
    }
    // More can come in one piece than was asked for.
    events.truncate(wanted.unwrap_or(usize::MAX));
    Ok(Value::Array(events))
}

fn is_ordinary_bookmark(event: &Value) -> bool {
    // Where the annotation is depends on the form that was asked for.
    event["type"] == "BOOKMARK" && !event.to_string().contains("k8s.io/initial-events-end")
}

/// Puts N letters for `{pad:N}`.
fn pad(text: &str) -> String {
    let Some((before, rest)) = text.split_once("{pad:") else { return text.to_string() };
    let Some((count, after)) = rest.split_once('}') else { return text.to_string() };
    let count = count.parse().unwrap_or_else(|error| panic!("{{pad:{count}}}: {error}"));
    format!("{before}{}{after}", "a".repeat(count))
}

/// Percent-encoding of everything that a query could take for something else.
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn chain(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}
