//! Sending a request, and what every answer must be like.

use bytes::Bytes;
use futures::FutureExt as _;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use mainstay_apiserver::{ApiServer, Body};
use serde_json::Value;

/// A request as it is sent.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) method: &'static str,
    /// With its query.
    pub(crate) target: String,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) body: Vec<u8>,
}

impl std::fmt::Debug for Sent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (types, body) = ((&self.content_type, &self.accept), String::from_utf8_lossy(&self.body));
        write!(f, "{} {} {types:?} {body}", self.method, self.target)
    }
}

impl Sent {
    pub(crate) fn get(target: &str) -> Self {
        Sent::new("GET", target, "", Vec::new())
    }

    pub(crate) fn new(
        method: &'static str,
        target: &str,
        content_type: &str,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        Sent {
            method,
            target: target.into(),
            content_type: content_type.into(),
            accept: "application/json".into(),
            body: body.into(),
        }
    }

    /// The same as a dry run. A deletion with options in its body has that among them: the query does not count then.
    pub(crate) fn dry(mut self) -> Self {
        if self.method == "DELETE"
            && let Ok(mut options) = serde_json::from_slice::<Value>(&self.body)
        {
            options["dryRun"] = serde_json::json!(["All"]);
            self.body = options.to_string().into_bytes();
            return self;
        }
        self.target.push_str(if self.target.contains('?') { "&dryRun=All" } else { "?dryRun=All" });
        self
    }

    /// One line, however large the body.
    pub(crate) fn summary(&self) -> String {
        format!("{} {} {} ({} bytes)", self.method, self.target, self.content_type, self.body.len())
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Sends a request and reads its answer, of a watch as much as is there at once. Says what is wrong with it, if anything.
pub(crate) async fn send(server: &ApiServer, sent: &Sent) -> Result<Answer, String> {
    let mut request = Request::builder().method(sent.method).uri(&sent.target);
    for (name, value) in [("content-type", &sent.content_type), ("accept", &sent.accept)] {
        if !value.is_empty() {
            request = request.header(name, value.as_str());
        }
    }
    let request =
        request.body(Full::new(Bytes::from(sent.body.clone()))).map_err(|e| format!("no request: {e}"))?;
    let response = server.handle(request).await;
    let status = response.status().as_u16();
    let header =
        |name| response.headers().get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let content_type = header("content-type").unwrap_or_default().to_owned();
    let mut body = response.into_body();
    let (bytes, streaming) = read_available(&mut body);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if !content_type.starts_with("application/json") {
        return match status {
            500.. if text.contains("InternalError") => Err(format!("{status}: {text}")),
            _ => Ok(Answer { status, body: Value::String(text) }),
        };
    }
    let whole: Option<Value> =
        serde_json::from_str(&text).ok().filter(|body: &Value| body.get("object").is_none());
    let watched = sent.target.contains("watch") && status == 200 && whole.is_none();
    if streaming || watched {
        for line in text.lines() {
            let event: Value =
                serde_json::from_str(line).map_err(|error| format!("{error} in event {line}"))?;
            well_formed_event(&event)?;
        }
        return Ok(Answer { status, body: Value::Null });
    }
    let body = match whole {
        Some(body) => body,
        None if sent.method == "HEAD" && text.is_empty() => Value::Null,
        None => return Err(format!("{status} with a body that is no JSON: {text}")),
    };
    well_formed(status, &body, &sent.target).map_err(|why| format!("{why}: {status} {body}"))?;
    Ok(Answer { status, body })
}

/// What a body has without waiting, and whether there may be more later.
fn read_available(body: &mut Body) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    loop {
        match body.frame().now_or_never() {
            None => return (bytes, true),
            Some(None) => return (bytes, false),
            Some(Some(Ok(frame))) => bytes.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Some(Some(Err(never))) => match never {},
        }
    }
}

fn well_formed_event(event: &Value) -> Result<(), String> {
    let kind = event["type"].as_str().unwrap_or_default();
    let known = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"].contains(&kind);
    let object = event["object"]["kind"].is_string() && event["object"]["apiVersion"].is_string();
    if known && object { Ok(()) } else { Err(format!("no event: {event}")) }
}

fn well_formed(status: u16, body: &Value, target: &str) -> Result<(), &'static str> {
    if body.is_null() {
        return Ok(());
    }
    if status >= 400 {
        let says = |field: &str| body[field].as_str().is_some_and(|text| !text.is_empty());
        let is_status = body["kind"] == "Status" && body["apiVersion"] == "v1" && body["status"] == "Failure";
        return match () {
            () if !is_status => Err("an error that is no Status"),
            () if body["code"] != status => Err("a Status of another code"),
            () if !says("message") => Err("a Status without a message"),
            () if status >= 500 && status != 501 && status != 504 && !as_kubernetes(body) => {
                Err("the server's own fault")
            }
            () => Ok(()),
        };
    }
    if !target.starts_with("/api") {
        return Ok(());
    }
    // The one answer of Kubernetes that has a kind and no version.
    let bare = body["kind"] == "APIVersions";
    if !body["kind"].is_string() || !body["apiVersion"].is_string() && !bare {
        return Err("an answer of no kind");
    }
    if let Some(items) =
        body.get("items").filter(|_| body["kind"].as_str().is_some_and(|kind| kind.ends_with("List")))
    {
        let complete = items.as_array().is_some_and(|items| items.iter().all(Value::is_object));
        return if complete { Ok(()) } else { Err("a list of something else than objects") };
    }
    Ok(())
}

/// Kubernetes answers with a plain 500, without a reason, where it did not think of an input: those are its interface as
/// well. What has gone wrong inside has a reason.
fn as_kubernetes(body: &Value) -> bool {
    body.get("reason").is_none()
}
