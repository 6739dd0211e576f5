//! A decision, kept in a file: everything that it rested on, to be made again elsewhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cache::{Object, Unreadable};
use crate::controller::Controller;
use crate::diff::Rules;
use crate::handler::{
    Answers, AnyFinalize, AnyHandler, Error, Finalized, Lookup, RecordedQuestion, Registered, Related,
    SyncRequest,
};
use crate::kind::{Kind, ObjectRef};
use crate::plan::{Memory, Plan, Situation};
use crate::runner::{Answer, Role};
use crate::snapshot::Snapshot;

/// Everything that a decision about one parent rests on. It serialises; what it holds can be kept in a file and
/// [replayed](Self::replay) without a cluster.
///
/// It holds the objects as the handler saw them, Secrets included: treat the file like them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    at: Timestamp,
    kind: Kind,
    parent: Value,
    children: Vec<(Kind, Vec<Value>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    revisions: Vec<Value>,
    /// Objects that have a desired child's name and are not this parent's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    strangers: Vec<(Kind, Value)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    related: Vec<Asked>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    registered: Vec<(Kind, Registered)>,
    rules: Vec<(Kind, Rules)>,
    memory: Memory,
    finalizer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    has_status: bool,
    deletions_allowed: usize,
}

/// A question, with its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    kind: Kind,
    question: RecordedQuestion,
    answer: Option<Vec<Value>>,
}

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It is of another kind of parent than the controller's.
    #[error("the recording is of a {recorded}, and the controller's parents are {parents}")]
    OtherKind {
        /// The kind in the recording.
        recorded: Kind,
        /// The controller's.
        parents: Kind,
    },
    /// An object in it cannot be read.
    #[error("an object of the recording")]
    Object(#[from] Unreadable),
    /// The handler failed, as it may have done when this was recorded.
    #[error("the handler failed: {0}")]
    Handler(String),
}

impl Recording {
    pub(crate) fn new(situation: &Situation<'_>, asked: &Answers) -> Self {
        let values =
            |objects: &[Arc<Object>]| objects.iter().map(|object| object.value()).collect::<Vec<_>>();
        let snapshot = situation.snapshot;
        Self {
            at: snapshot.now,
            kind: snapshot.kind.clone(),
            parent: situation.parent_json.clone(),
            children: snapshot
                .children
                .iter()
                .map(|(kind, objects)| (kind.clone(), values(objects)))
                .collect(),
            revisions: values(&snapshot.revisions),
            strangers: situation
                .strangers
                .iter()
                .map(|(object, live)| (object.kind.clone(), live.value()))
                .collect(),
            related: asked
                .iter()
                .map(|(question, answer)| Asked {
                    kind: question.kind().clone(),
                    question: RecordedQuestion::of(question),
                    answer: answer.as_deref().map(values),
                })
                .collect(),
            registered: snapshot
                .registered
                .iter()
                .map(|(kind, known)| (kind.clone(), known.clone()))
                .collect(),
            rules: situation.rules.iter().map(|(kind, rules)| (kind.clone(), Rules::clone(rules))).collect(),
            memory: situation.memory.clone(),
            finalizer: situation.finalizer.to_owned(),
            namespace: situation.namespace.map(str::to_owned),
            has_status: situation.has_status,
            deletions_allowed: situation.deletions_allowed,
        }
    }

    /// Writes it to a file, which only its owner can read.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        serde_json::to_writer_pretty(options.open(path)?, self).map_err(io::Error::from)
    }

    /// Reads one from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a recording.
    pub fn load(path: impl AsRef<Path>) -> io::Result<Self> {
        serde_json::from_slice(&fs::read(path)?).map_err(io::Error::from)
    }

    /// Makes the decision again: calls the controller's handler with what was recorded, and plans. Needs no cluster and
    /// changes nothing.
    ///
    /// # Errors
    /// If the recording is not of this controller's kind, or the handler fails.
    pub async fn replay(&self, controller: &Controller) -> Result<Plan, ReplayError> {
        if self.kind != *controller.parent() {
            let (recorded, parents) = (self.kind.clone(), controller.parent().clone());
            return Err(ReplayError::OtherKind { recorded, parents });
        }
        let request = SyncRequest::to_plan(self.snapshot()?, Arc::new(self.answers()?));
        let answer = decide_again(controller, &request, &self.finalizer).await;
        let answer = answer.map_err(|error| ReplayError::Handler(error.chain()))?;
        let strangers = self.strangers.iter().map(|(kind, value)| read(kind, value));
        let strangers = strangers.map(|object| object.map(|object| (object.reference(), object)));
        let strangers: BTreeMap<ObjectRef, Arc<Object>> = strangers.collect::<Result<_, _>>()?;
        let rules = self.rules.iter().map(|(kind, rules)| (kind.clone(), Arc::new(rules.clone()))).collect();
        Ok(answer.decide(&Situation {
            controller,
            finalizer: &self.finalizer,
            namespace: self.namespace.as_deref(),
            snapshot: request.snapshot(),
            parent_json: request.parent_json(),
            strangers: &strangers,
            rules: &rules,
            memory: &self.memory,
            has_status: self.has_status,
            deletions_allowed: self.deletions_allowed,
        }))
    }

    fn snapshot(&self) -> Result<Snapshot, Unreadable> {
        let all = |kind: &Kind, values: &[Value]| {
            values.iter().map(|value| read(kind, value)).collect::<Result<Vec<_>, _>>()
        };
        let children = self.children.iter().map(|(kind, values)| Ok((kind.clone(), all(kind, values)?)));
        Ok(Snapshot {
            kind: self.kind.clone(),
            parent: read(&self.kind, &self.parent)?,
            children: children.collect::<Result<_, Unreadable>>()?,
            revisions: all(&crate::plan::revision_kind(), &self.revisions)?,
            registered: self.registered.iter().cloned().collect(),
            now: self.at,
        })
    }

    fn answers(&self) -> Result<RecordedAnswers, Unreadable> {
        let mut answers = Answers::new();
        for asked in &self.related {
            let objects = asked
                .answer
                .as_ref()
                .map(|values| values.iter().map(|value| read(&asked.kind, value)).collect());
            answers.insert(asked.question.about(&asked.kind), objects.transpose()?);
        }
        Ok(RecordedAnswers(answers))
    }
}

fn read(kind: &Kind, value: &Value) -> Result<Arc<Object>, Unreadable> {
    Object::from_value(kind, value).map(Arc::new)
}

/// Calls whoever was called, without a deadline: somebody may be looking at it step by step.
async fn decide_again(
    controller: &Controller,
    request: &SyncRequest,
    finalizer: &str,
) -> Result<Answer, Error> {
    match Role::of(controller, request, finalizer) {
        Role::Handler(AnyHandler::Plain(handler)) => handler.sync(request).map(Answer::Synced),
        Role::Handler(AnyHandler::Async(handler)) => handler(request.clone()).await.map(Answer::Synced),
        Role::Finalizer(AnyFinalize::Plain(finalize)) => finalize.finalize(request).map(Answer::Finalized),
        Role::Finalizer(AnyFinalize::Async(finalize)) => {
            finalize(request.clone()).await.map(Answer::Finalized)
        }
        Role::Nobody => Ok(Answer::Finalized(Finalized::Done)),
    }
}

/// What was answered when this was recorded.
struct RecordedAnswers(Answers);

impl Lookup for RecordedAnswers {
    fn look_up(&self, question: &Related) -> Result<Vec<Arc<Object>>, Error> {
        match self.0.get(question) {
            Some(Some(objects)) => Ok(objects.clone()),
            Some(None) => Err(Error::pending(question.kind())),
            None => {
                Err(Error::terminal(format!("{question}: this was not asked when the decision was recorded")))
            }
        }
    }

    /// What was refused when it was asked has no answer here.
    fn reaches_everywhere(&self, _kind: &Kind) -> bool {
        true
    }
}
