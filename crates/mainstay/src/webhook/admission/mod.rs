//! Admission: a review's text in, its answer's text out.
//!
//! - Every review that can be read gets an answer with its own uid. One that cannot be read is answered 400.
//! - An object that does not fit the handler's type is denied, naming the field.
//! - A handler that panics or takes too long fails that review alone, in the way that the hook's failure policy asks for:
//!   with `Fail` the answer is a refusal that says what happened; with `Ignore` the call itself fails, and so the API
//!   server goes on as if there were no webhook, and counts it.
//!
//! Nothing here knows of sockets.

mod denied;
mod patch;
mod request;
mod wire;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use json_patch::Patch;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use denied::Denied;
pub(super) use denied::chain;
pub use request::{AdmissionRequest, Operation};

use super::hook::{FailurePolicy, Hook};
use request::Notes;
use wire::{API_VERSION, Answer, Answered, Asked, Failure, Review};

/// What goes back over HTTP.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// JSON with status 200, otherwise plain text.
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn json(body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => Self { status: 200, body },
            Err(error) => Self::text(500, format!("the answer cannot be written as JSON: {error}")),
        }
    }

    pub(super) fn text(status: u16, text: impl Into<String>) -> Self {
        Self { status, body: text.into().into_bytes() }
    }
}

/// A handler that has lost its type: reads the object, decides, and renders the patch.
pub(super) struct Handler(Box<DecideFn>);

type DecideFn = dyn for<'a> Fn(&'a Asked<'a>) -> BoxFuture<'a, Verdict> + Send + Sync;

/// What a handler said.
struct Verdict {
    outcome: Result<Option<Patch>, Denied>,
    notes: Notes,
}

impl From<Denied> for Verdict {
    fn from(denied: Denied) -> Self {
        Self { outcome: Err(denied), notes: Notes::default() }
    }
}

impl Handler {
    /// A handler that says yes or no.
    pub(super) fn validating<T, F, Answering>(decide: F) -> Self
    where
        T: DeserializeOwned + Send + Sync + 'static,
        F: Fn(Arc<AdmissionRequest<T>>) -> Answering + Send + Sync + 'static,
        Answering: Future<Output = Result<(), Denied>> + Send + 'static,
    {
        let decide = Arc::new(decide);
        Self(Box::new(move |asked| {
            let decide = decide.clone();
            async move {
                let request = match AdmissionRequest::<T>::read(asked) {
                    Ok(request) => Arc::new(request),
                    Err(denied) => return denied.into(),
                };
                let outcome = decide(request.clone()).await.map(|()| None);
                Verdict { outcome, notes: request.take_notes() }
            }
            .boxed()
        }))
    }

    /// A handler that may also change the object. On deletions there is nothing to change, and only a refusal counts.
    pub(super) fn mutating<T, F, Answering>(change: F) -> Self
    where
        T: DeserializeOwned + Serialize + Clone + Send + Sync + 'static,
        F: Fn(Arc<AdmissionRequest<T>>, T) -> Answering + Send + Sync + 'static,
        Answering: Future<Output = Result<T, Denied>> + Send + 'static,
    {
        let change = Arc::new(change);
        Self(Box::new(move |asked| {
            let change = change.clone();
            async move {
                let request = match AdmissionRequest::<T>::read(asked) {
                    Ok(request) => Arc::new(request),
                    Err(denied) => return denied.into(),
                };
                let outcome = match change(request.clone(), request.object().clone()).await {
                    Ok(changed) => render_patch(asked, request.object(), &changed),
                    Err(denied) => Err(denied),
                };
                Verdict { outcome, notes: request.take_notes() }
            }
            .boxed()
        }))
    }
}

fn render_patch<T: Serialize>(asked: &Asked<'_>, before: &T, after: &T) -> Result<Option<Patch>, Denied> {
    let Some(sent) = asked.object else { return Ok(None) };
    let failed = |error: serde_json::Error| Denied::because(&error);
    let (before, after) =
        (serde_json::to_value(before).map_err(failed)?, serde_json::to_value(after).map_err(failed)?);
    if before == after {
        return Ok(None);
    }
    let sent: Value = serde_json::from_str(sent.get()).map_err(failed)?;
    Ok(patch::plan_patch(&sent, &before, after))
}

/// Answers a review. `deadline` is how long the handler may take.
pub(super) async fn review(hook: &Hook, body: &[u8], deadline: Duration) -> Reply {
    let asked = match read_review(body) {
        Ok(asked) => asked,
        Err(reply) => return reply,
    };
    let deciding = AssertUnwindSafe(async { (hook.handler().0)(&asked).await }).catch_unwind();
    let failure = match tokio::time::timeout(deadline, deciding).await {
        Ok(Ok(verdict)) => return render(&asked, verdict),
        Ok(Err(panic)) => {
            tracing::error!(
                hook = hook.webhook_name(),
                panic = panic_text(&*panic),
                "webhook handler panicked"
            );
            "the webhook's handler panicked; the operator's log tells more".to_owned()
        }
        Err(_) => {
            tracing::error!(hook = hook.webhook_name(), ?deadline, "webhook handler took too long");
            format!("the webhook's handler did not answer within {deadline:?}")
        }
    };
    match hook.policy() {
        FailurePolicy::Fail => render(&asked, Denied::new(failure).code(500).into()),
        FailurePolicy::Ignore => Reply::text(500, failure),
    }
}

fn read_review(body: &[u8]) -> Result<Asked<'_>, Reply> {
    let review: Review<'_> = serde_json::from_slice(body)
        .map_err(|error| Reply::text(400, format!("this is no AdmissionReview: {error}")))?;
    if review.api_version != API_VERSION || review.kind != "AdmissionReview" {
        let Review { api_version, kind, .. } = review;
        return Err(Reply::text(
            400,
            format!("expected AdmissionReview of {API_VERSION}, got {kind} of {api_version}"),
        ));
    }
    review.request.ok_or_else(|| Reply::text(400, "the AdmissionReview holds no request"))
}

fn render(asked: &Asked<'_>, Verdict { outcome, notes }: Verdict) -> Reply {
    let mut answer = Answer {
        uid: &asked.uid,
        allowed: outcome.is_ok(),
        status: None,
        patch_type: None,
        patch: None,
        audit_annotations: notes.audit,
        warnings: notes.warnings,
    };
    match &outcome {
        Ok(None) => {}
        Ok(Some(patch)) => match serde_json::to_vec(patch) {
            Ok(patch) => {
                answer.patch_type = Some("JSONPatch");
                answer.patch = Some(BASE64.encode(patch));
            }
            Err(error) => return Reply::text(500, format!("the patch cannot be written as JSON: {error}")),
        },
        Err(denied) => answer.status = Some(Failure::of(denied, asked)),
    }
    Reply::json(&Answered { api_version: API_VERSION, kind: "AdmissionReview", response: answer })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}

#[cfg(test)]
mod tests;
