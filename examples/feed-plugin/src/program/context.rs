//! What the operator tells a program: variables that begin with `STREAMCONTEXT__`, and what the stream's Secrets hold.

use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What is not as the operator has it.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// A variable is not there.
    #[error("{0} is not set: this program is run by a stream's Job")]
    Missing(&'static str),
    /// A variable or file cannot be read.
    #[error("{0} is not readable")]
    Unreadable(&'static str, #[source] serde_json::Error),
    /// The file with the spec is not there.
    #[error("cannot read {0}")]
    NoFile(PathBuf, #[source] std::io::Error),
}

/// All that the program goes by.
#[derive(Debug, PartialEq)]
pub struct Context {
    /// The stream's name.
    pub stream: String,
    /// Its kind.
    pub kind: String,
    /// Its spec without the fields that refer to Secrets.
    pub spec: Spec,
    /// If this is a backfill.
    pub backfill: Option<Backfill>,
    /// A Secret has a token for the sink. What it is is nobody's business.
    pub has_token: bool,
}

/// The part of a feed's spec that the program knows.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Where records come from.
    pub source: String,
    /// Where they go.
    pub sink: String,
    /// The seconds between two records.
    #[serde(default = "five")]
    pub interval_seconds: u64,
    /// So many records make a backfill, or a run of a feed with a schedule.
    #[serde(default = "three")]
    pub count: u64,
    /// The code to end with after these records.
    pub fail_with: Option<u8>,
    /// A feed with a schedule is done after its records.
    pub schedule: Option<String>,
}

fn five() -> u64 {
    5
}

fn three() -> u64 {
    3
}

/// What a backfill is about.
#[derive(Debug, PartialEq)]
pub struct Backfill {
    /// What the operator calls it.
    pub id: String,
    /// From where to where, in this program's terms: dates. An end that is not there is open.
    pub range: Option<(String, String)>,
    /// So many records, instead of what the spec says.
    pub count: Option<u64>,
}

impl Context {
    /// Reads the environment.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ContextError> {
        let needed = |name: &'static str| variable(name).ok_or(ContextError::Missing(name));
        let spec = match variable("STREAMCONTEXT__SPEC_FILE") {
            // A spec that is too long for a variable is in a file.
            Some(file) => read_mounted(&file, variable("MAINSTAY_ROOT").as_deref())?,
            None => needed("STREAMCONTEXT__SPEC")?,
        };
        let unreadable = |name| move |error| ContextError::Unreadable(name, error);
        let backfill = if variable("STREAMCONTEXT__BACKFILL").as_deref() == Some("true") {
            let text = variable("STREAMCONTEXT__OVERRIDE").unwrap_or_else(|| "null".to_owned());
            let asked = serde_json::from_str(&text).map_err(unreadable("STREAMCONTEXT__OVERRIDE"))?;
            Some(Backfill::new(variable("STREAMCONTEXT__BACKFILL_ID").unwrap_or_default(), &asked))
        } else {
            None
        };
        Ok(Context {
            stream: needed("STREAMCONTEXT__STREAM_ID")?,
            kind: needed("STREAMCONTEXT__STREAM_KIND")?,
            spec: serde_json::from_str(&spec).map_err(unreadable("STREAMCONTEXT__SPEC"))?,
            backfill,
            has_token: variable("SINK_TOKEN").is_some_and(|token| !token.is_empty()),
        })
    }

    /// So many records are copied; none if there is no end.
    pub fn records(&self) -> Option<u64> {
        match &self.backfill {
            Some(backfill) => Some(backfill.count.unwrap_or(self.spec.count)),
            None if self.spec.schedule.is_some() || self.spec.fail_with.is_some() => Some(self.spec.count),
            None => None,
        }
    }

    /// What it is about to do.
    pub fn introduction(&self) -> String {
        let Spec { source, sink, .. } = &self.spec;
        let doing = match &self.backfill {
            None => "copies".to_owned(),
            Some(Backfill { id, range: None, .. }) => format!("backfills ({id})"),
            Some(Backfill { id, range: Some((from, to)), .. }) => format!("backfills ({id}: {from} to {to})"),
        };
        let token = if self.has_token { ", with a token" } else { "" };
        format!("{} {} {doing} {source} to {sink}{token}", self.kind, self.stream)
    }
}

impl Backfill {
    fn new(id: String, asked: &Value) -> Self {
        let end = |name: &str| asked["range"][name].as_str().unwrap_or("the end").to_owned();
        let range = asked["range"].is_object().then(|| (end("from"), end("to")));
        Backfill { id, range, count: asked["count"].as_u64() }
    }
}

/// On a node that does not isolate pods, mounts are below a directory of the pod.
fn read_mounted(file: &str, root: Option<&str>) -> Result<String, ContextError> {
    let path = match root {
        Some(root) => Path::new(root).join(file.trim_start_matches('/')),
        None => PathBuf::from(file),
    };
    std::fs::read_to_string(&path).map_err(|error| ContextError::NoFile(path, error))
}
