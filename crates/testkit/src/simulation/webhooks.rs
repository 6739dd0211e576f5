//! Webhooks in a world: functions that the server calls without a network.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use mainstay_apiserver::WebhookTransport;
use serde_json::{Value, json};

use super::stage::Stage;

type Answer = Arc<dyn Fn(&Value) -> Value + Send + Sync>;

/// What is answered to the `request` of a review, by the webhook's URL.
#[derive(Clone, Default)]
pub(super) struct Answers(pub(super) BTreeMap<String, Answer>);

/// See the [module](self).
pub(super) struct Webhooks {
    pub(super) answers: Arc<Answers>,
    pub(super) stage: Weak<Stage>,
}

impl Webhooks {
    fn answer(&self, url: &str, review: &Bytes) -> Result<Bytes, String> {
        let down = self.stage.upgrade().is_some_and(|stage| stage.webhooks_are_down());
        let answer = self.answers.0.get(url).filter(|_| !down);
        let answer = answer.ok_or("dial tcp 127.0.0.1:443: connect: connection refused")?;
        let review: Value = serde_json::from_slice(review).map_err(|error| error.to_string())?;
        let mut response = answer(&review["request"]);
        response["uid"] = review["request"]["uid"].clone();
        let answer =
            json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response});
        Ok(answer.to_string().into())
    }
}

impl WebhookTransport for Webhooks {
    fn post<'a>(
        &'a self,
        url: &'a str,
        review: Bytes,
    ) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send + 'a>> {
        Box::pin(async move { self.answer(url, &review) })
    }
}

#[cfg(test)]
mod tests;
