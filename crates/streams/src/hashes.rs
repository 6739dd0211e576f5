//! What a run is made from, as a few short hashes that can be compared.
//!
//! Equal hashes mean that the very same Job would be made, and the other way round. Who only sorts the fields of a spec anew has changed
//! nothing.

use k8s_openapi::api::core::v1::Secret;
use ring::{digest, hmac};
use serde_json::{Map, Value, json};

use crate::kinds::{Purpose, StreamingJobTemplate};
use crate::wish::{Mode, Stream};

/// Bytes of a hash that are kept: enough to tell a few versions of one object apart.
const KEPT: usize = 8;
/// In place of the hash of a Secret that is not there.
const MISSING: &str = "missing";

/// JSON without blanks, all fields sorted by name.
pub fn canonical(value: &Value) -> String {
    sorted(value).to_string()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            let fields = names.into_iter().map(|name| (name.clone(), sorted(&fields[name])));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// A short hash of a text.
pub fn short(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().take(KEPT).fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Of a stream's spec as its program sees it, with the names of its templates and Secrets, and its schedule.
pub fn of_spec(stream: &Stream<'_>, secrets: &[&str]) -> String {
    let template = |purpose: &Purpose| stream.template_name(purpose).ok().map(|(name, _)| name.to_owned());
    let backfill = stream.backfill_template_name().ok().flatten().map(|(name, _)| name.to_owned());
    short(&canonical(&json!({
        "spec": stream.program_spec(),
        "secrets": secrets,
        "template": template(&Purpose::Stream),
        "backfillTemplate": backfill,
        "isScheduled": stream.mode() == Mode::Scheduled,
        "schedule": stream.schedule().ok().flatten(),
    })))
}

/// Of what a template says about Jobs. Its own labels and annotations do not count.
pub fn of_template(template: &StreamingJobTemplate) -> String {
    short(&canonical(&Value::Object(template.spec.template.clone())))
}

/// Of what Secrets hold, one after the other; empty without any. For one that is not there, what was said before of as many Secrets
/// holds.
///
/// The key is made of the stream's uid and the Secret's. Who may not read the Secret does not know the latter, so that guesses at what it
/// holds cannot be tried; and equal Secrets do not look equal.
pub fn of_secrets(stream_uid: &str, secrets: &[Option<Secret>], before: Option<&str>) -> String {
    let before: Vec<&str> = before.into_iter().flat_map(|before| before.split('.')).collect();
    let hash = |(place, secret): (usize, &Option<Secret>)| match secret {
        Some(secret) => of_secret(stream_uid, secret),
        None if before.len() == secrets.len() => before[place].to_owned(),
        None => MISSING.to_owned(),
    };
    secrets.iter().enumerate().map(hash).collect::<Vec<_>>().join(".")
}

fn of_secret(stream_uid: &str, secret: &Secret) -> String {
    let uid = secret.metadata.uid.as_deref().unwrap_or_default();
    let key = hmac::Key::new(hmac::HMAC_SHA256, format!("{stream_uid}/{uid}").as_bytes());
    let mut context = hmac::Context::with_key(&key);
    let mut add = |bytes: &[u8]| {
        // With its length, so that a byte cannot move from one field to the next unnoticed.
        context.update(&bytes.len().to_le_bytes());
        context.update(bytes);
    };
    for (name, value) in secret.data.iter().flatten() {
        add(name.as_bytes());
        add(&value.0);
    }
    hex(context.sign().as_ref())
}

#[cfg(test)]
mod tests;
