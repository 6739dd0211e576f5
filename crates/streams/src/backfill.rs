//! From a `BackfillRequest` to its place in the stream's queue. The stream decides; this tells what has become of the request.
//!
//! A request carries the uid of its stream as a label, by which the stream finds it. What the stream says of it is in the stream's status:
//! the run that goes on, and requests that are over until they say so themselves.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use mainstay::conditions::{Conditions, State};
use mainstay::events::Event;
use mainstay::{Controller, Error, Key, Related, SyncRequest, SyncResponse};
use serde_json::{Value, json};

use crate::class::kind_of;
use crate::config::StreamClassConfig;
use crate::kinds::{
    BackfillPhase, BackfillRequest, BackfillRequestStatus, Purpose, StreamClass, StreamStatus, labels,
};
use crate::record;

/// The controller of requests.
pub(crate) fn controller() -> Controller {
    Controller::of::<BackfillRequest>()
        .reads::<StreamClass>()
        .reads::<BackfillRequest>()
        .reads_any_kind()
        .writes_parents()
        .sync(sync)
}

fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let asked: BackfillRequest = request.parent()?;
    let known = asked.status.clone().unwrap_or_default();
    if known.phase.is_over() {
        return expire(request, &asked, &known);
    }
    let stream = match find_stream(request, &asked)? {
        Ok(stream) => stream,
        Err(told) => return respond(request, &known, told),
    };
    let uid = stream["metadata"]["uid"].as_str().unwrap_or_default();
    let queue = queue(request.select::<BackfillRequest>(&format!("{}={uid}", labels::STREAM_UID))?);
    let told = tell(&asked, &record::read(&stream), &queue);
    let response = respond(request, &known, told)?;
    response.with_parent(json!({"metadata": {"labels": {labels::STREAM_UID: uid}}}))
}

/// Requests that are not over, in the order in which their stream takes them up.
pub(crate) fn queue(mut requests: Vec<BackfillRequest>) -> Vec<BackfillRequest> {
    requests.retain(|request| {
        request.metadata.deletion_timestamp.is_none()
            && !request.status.as_ref().is_some_and(|status| status.phase.is_over())
    });
    requests.sort_by_key(|request| {
        let priority = std::cmp::Reverse(request.spec.priority.unwrap_or_default());
        (priority, request.creation_timestamp(), request.name_any())
    });
    requests
}

/// What is to be told of a request.
#[derive(Debug, PartialEq)]
struct Told {
    status: BackfillRequestStatus,
    ready: State,
    reason: String,
    message: String,
}

impl Told {
    fn waiting(reason: &str, message: String) -> Self {
        let status = BackfillRequestStatus::default();
        Self { status, ready: State::False, reason: reason.to_owned(), message }
    }
}

/// The stream that a request is about, or why there is none.
fn find_stream(request: &SyncRequest, asked: &BackfillRequest) -> Result<Result<Value, Told>, Error> {
    let Some(class) = request.get::<StreamClass>(&asked.spec.stream_class)? else {
        let message = format!("spec.streamClass: there is no StreamClass {}", asked.spec.stream_class);
        return Ok(Err(Told::waiting("ClassMissing", message)));
    };
    let kind = kind_of(&StreamClassConfig::from(&class.spec));
    let is_ready =
        class.status.as_ref().is_some_and(|status| status.phase == crate::kinds::ClassPhase::Ready);
    if !is_ready {
        let message = format!("the StreamClass {} is not ready", asked.spec.stream_class);
        return Ok(Err(Told::waiting("ClassNotReady", message)));
    }
    let name = &asked.spec.stream_id;
    let found = request.related(&Related::named(&kind, Key::new(request.namespace(), name)))?;
    Ok(found.into_iter().next().ok_or_else(|| {
        let place = request.namespace().unwrap_or_default();
        let message = format!("spec.streamId: there is no {} {name} in the namespace {place}", kind.kind());
        Told::waiting("StreamMissing", message)
    }))
}

/// What the stream says of a request. Pure.
fn tell(asked: &BackfillRequest, stream: &StreamStatus, queue: &[BackfillRequest]) -> Told {
    let uid = asked.uid().unwrap_or_default();
    let known = asked.status.clone().unwrap_or_default();
    if let Some(over) = stream.backfills.iter().find(|over| over.request == uid) {
        let status = BackfillRequestStatus {
            phase: over.phase,
            attempts: over.attempts,
            started_at: known.started_at.or(over.started_at.map(Time)),
            finished_at: Some(Time(over.ended_at)),
            ..BackfillRequestStatus::default()
        };
        let (ready, reason) = match over.phase {
            BackfillPhase::Completed => (State::True, "Completed"),
            BackfillPhase::Cancelled => (State::False, "Cancelled"),
            _ => (State::False, over.reason.as_deref().unwrap_or("Failed")),
        };
        return Told { status, ready, reason: reason.to_owned(), message: over.message.clone() };
    }
    let run = stream.run.as_ref().filter(|run| match &run.purpose {
        Purpose::Backfill { request, .. } => request.as_deref() == Some(uid.as_str()),
        _ => false,
    });
    if let Some(run) = run {
        let status = BackfillRequestStatus {
            phase: BackfillPhase::Running,
            attempts: run.attempt,
            job: Some(run.job.clone()),
            started_at: known.started_at.or(Some(Time(run.started_at))),
            ..BackfillRequestStatus::default()
        };
        return Told {
            status,
            ready: State::False,
            reason: "Running".to_owned(),
            message: format!("the Job {} runs", run.job),
        };
    }
    let position = queue.iter().position(|other| other.uid() == asked.uid()).map(|place| place + 1);
    let phase = stream.phase.map_or_else(|| "not looked at yet".to_owned(), |phase| phase.to_string());
    let message =
        format!("the stream is {phase}, and the request is number {} in its queue", position.unwrap_or(1));
    let status = BackfillRequestStatus {
        phase: BackfillPhase::Queued,
        position,
        attempts: known.attempts,
        started_at: known.started_at,
        ..BackfillRequestStatus::default()
    };
    Told { status, ready: State::False, reason: "Queued".to_owned(), message }
}

fn respond(request: &SyncRequest, known: &BackfillRequestStatus, told: Told) -> Result<SyncResponse, Error> {
    let Told { mut status, ready, reason, message } = told;
    let mut conditions = Conditions::of_status(&request.parent_json()["status"]);
    let was = known
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
        .map(|known| known.reason.clone());
    conditions.set("Ready", ready, &reason, &message, Some(request.generation()), request.now())?;
    status.conditions = conditions.into();
    let is_bad =
        status.phase == BackfillPhase::Failed || matches!(reason.as_str(), "ClassMissing" | "StreamMissing");
    let response = SyncResponse::from_status(status)?;
    if was.as_deref() == Some(reason.as_str()) {
        return Ok(response);
    }
    let event = if is_bad { Event::warning } else { Event::normal };
    Ok(response.with_event(event(&reason, &message)))
}

/// What is over stays as it is, until its time has come.
fn expire(
    request: &SyncRequest,
    asked: &BackfillRequest,
    known: &BackfillRequestStatus,
) -> Result<SyncResponse, Error> {
    let response = SyncResponse::from_status(&request.parent_json()["status"])?;
    let (Some(ttl), Some(finished)) = (asked.spec.ttl_seconds_after_finished, &known.finished_at) else {
        return Ok(response);
    };
    let age = Duration::try_from(request.now().duration_since(finished.0)).unwrap_or_default();
    match Duration::from_secs(ttl.into()).checked_sub(age).filter(|left| !left.is_zero()) {
        Some(left) => Ok(response.requeue_after(left)),
        None => Ok(response.delete_parent()),
    }
}
