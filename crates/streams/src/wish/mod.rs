//! What a stream asks for, in words that are the same for all kinds of streams.
//!
//! A Secret that is not there is no problem: the Job is made, and its pod waits for the Secret as any pod does. For whether a run is to
//! be replaced, only Secrets that are there count:
//!
//! - One that goes away changes nothing. The program has what it held, and a new pod would only wait.
//! - One that comes back as it was changes nothing either, and otherwise replaces the run.
//! - One that arrives after the run began replaces it. Its pod cannot have started before, so little is lost; to let it be would mean
//!   not to know what the program has, and to miss the next change.

mod cron;
mod reference;
mod stream;
#[cfg(test)]
mod tests;

use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use mainstay::Error;
use serde_json::Value;

pub use stream::Stream;

use crate::config::StreamClassConfig;
use crate::hashes;
use crate::job::template;
use crate::kinds::{Hashes, Purpose, StreamingJobTemplate, annotations};

/// A field of the stream is not what it must be.
pub const INVALID_SPEC: &str = "InvalidSpec";
/// The stream names a template that is not there.
pub const TEMPLATE_MISSING: &str = "TemplateMissing";

/// What a stream refers to, in its own namespace. An error means that it cannot be told yet.
pub trait Materials {
    /// A template by its name.
    fn template(&self, name: &str) -> Result<Option<StreamingJobTemplate>, Error>;
    /// A Secret by its name.
    fn secret(&self, name: &str) -> Result<Option<Secret>, Error>;
}

/// Reads what a stream asks for.
///
/// `before` is what its present run was made from, or the one that ended in a crash loop: what it says of a Secret that is not there
/// any more still holds. The outer error means that it cannot be told yet; the inner one, that not even whether the stream is suspended
/// can be told. Whatever else is wrong is in the wish, beside what is not.
pub fn read(
    stream: &Value,
    class: &StreamClassConfig,
    materials: &dyn Materials,
    before: Option<&Hashes>,
) -> Result<Result<Wish, Problem>, Error> {
    let stream = Stream::new(stream, class);
    let suspensions = match stream.suspensions() {
        Ok(suspensions) => suspensions,
        Err(problem) => return Ok(Err(problem)),
    };
    let mode = stream.mode();
    let common = common_hashes(&stream, materials, before)?;
    let made_from = |purpose: &Purpose| -> Result<Result<Hashes, Problem>, Error> {
        let common = match &common {
            Ok(common) => common.clone(),
            Err(problem) => return Ok(Err(problem.clone())),
        };
        let template = template_for(&stream, purpose, materials)?;
        Ok(template.map(|template| Hashes { template: hashes::of_template(&template), ..common }))
    };
    let (purpose, schedule) = match mode {
        Mode::ChangeCapture => (Purpose::Stream, Ok(None)),
        Mode::Scheduled => (Purpose::Schedule, stream.schedule()),
    };
    let for_stream = match schedule {
        Ok(_) => made_from(&purpose)?,
        Err(problem) => Err(problem),
    };
    let any_backfill = Purpose::Backfill { request: None, id: String::new(), reload: None };
    Ok(Ok(Wish {
        mode,
        suspensions,
        stream: for_stream,
        backfill: made_from(&any_backfill)?,
        has_backfill_template: !matches!(stream.backfill_template_name(), Ok(None)),
        reload: stream.annotation(annotations::RELOAD).map(str::to_owned),
    }))
}

/// The template for a run, if it is there and a Job can be made from it.
pub fn template_for(
    stream: &Stream<'_>,
    purpose: &Purpose,
    materials: &dyn Materials,
) -> Result<Result<StreamingJobTemplate, Problem>, Error> {
    let (name, path) = match stream.template_name(purpose) {
        Ok(found) => found,
        Err(problem) => return Ok(Err(problem)),
    };
    let Some(found) = materials.template(name)? else {
        let message = format!("there is no StreamingJobTemplate {name} in namespace {}", stream.namespace());
        return Ok(Err(Problem { reason: TEMPLATE_MISSING, path: path.to_owned(), message }));
    };
    Ok(template::check(&found).map(|()| found))
}

/// What is the same for all runs of a stream: everything but the template.
fn common_hashes(
    stream: &Stream<'_>,
    materials: &dyn Materials,
    before: Option<&Hashes>,
) -> Result<Result<Hashes, Problem>, Error> {
    let names = match stream.secrets() {
        Ok(names) => names,
        Err(problem) => return Ok(Err(problem)),
    };
    let spec = hashes::of_spec(stream, &names);
    let secrets: Result<Vec<Option<Secret>>, Error> =
        names.iter().map(|name| materials.secret(name)).collect();
    // The same spec names the same Secrets in the same order.
    let before = before.filter(|before| before.spec == spec);
    let secrets = hashes::of_secrets(stream.uid(), &secrets?, before.map(|before| before.secrets.as_str()));
    let restart = stream.annotation(annotations::RESTART).map(str::to_owned);
    Ok(Ok(Hashes { spec, template: String::new(), secrets, restart }))
}

/// What a stream asks for, read from its spec and annotations by its class's paths.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// When it runs.
    pub mode: Mode,
    /// Why it shall not run, all of it. Empty: it shall.
    pub suspensions: Vec<Suspension>,
    /// What its runs are made from, or why they cannot be.
    pub stream: Result<Hashes, Problem>,
    /// The same for its backfills.
    pub backfill: Result<Hashes, Problem>,
    /// It names a template for backfills.
    pub has_backfill_template: bool,
    /// The value of the reload annotation.
    pub reload: Option<String>,
}

/// When a stream runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// All the time.
    ChangeCapture,
    /// When a schedule says so.
    Scheduled,
}

/// Who wants that a stream does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspension {
    /// Its spec.
    Spec,
    /// Its annotation.
    Annotation,
    /// A downtime, by its key.
    Downtime(String),
}

impl fmt::Display for Suspension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec => f.write_str("by its spec"),
            Self::Annotation => f.write_str("by its annotation"),
            Self::Downtime(key) => write!(f, "by the downtime {key}"),
        }
    }
}

/// What is wrong with what a user wrote, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct Problem {
    /// One word in `CamelCase`, for a condition.
    pub reason: &'static str,
    /// The field: of the stream (`spec.jobTemplateRef`), or of the object it refers to
    /// (`StreamingJobTemplate fast: spec.template.spec.template.spec.containers`).
    pub path: String,
    /// What is wrong with it, and what would be right.
    pub message: String,
}
