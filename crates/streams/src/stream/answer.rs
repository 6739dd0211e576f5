//! From a decision to the answer that carries it out.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use mainstay::conditions::{Conditions, State};
use mainstay::events::Event;
use mainstay::{Error, Key, Kind, ObjectRef, SyncRequest, SyncResponse};
use serde_json::json;

use super::Streams;
use super::live::Found;
use crate::job;
use crate::kinds::{ActiveRun, BackfillRequest, Phase, Purpose, StreamStatus, labels};
use crate::lifecycle::{Decision, Desired};
use crate::paths;
use crate::record;
use crate::wish::{self, Problem, Stream};

/// The reason of a stream that runs and is not ready.
const POD_NOT_READY: &str = "PodNotReady";

/// What shall be there, as far as it can be made.
#[derive(Default)]
struct Built {
    spec_in_file: bool,
    /// Why it cannot be made.
    problem: Option<Problem>,
    /// It cannot be made, and nothing is there that could stay.
    is_missing: bool,
}

impl Streams {
    pub(super) fn answer(
        &self,
        request: &SyncRequest,
        decision: &Decision,
        requests: &[BackfillRequest],
    ) -> Result<SyncResponse, Error> {
        let mut response = SyncResponse::new();
        let built = match &decision.desired {
            Desired::Nothing => Built::default(),
            Desired::AsIs(name) => {
                keep(request, name, &mut response)?;
                Built::default()
            }
            Desired::Run(run) => self.build(request, run, requests, &mut response)?,
        };
        for name in &decision.left_behind {
            response.add_child(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}))?;
        }
        for name in &decision.let_go {
            let job = ObjectRef { kind: Kind::of::<Job>(), key: Key::new(request.namespace(), name) };
            response = response.let_go(job, labels::OUTCOME);
        }
        let (status, events) = tell(request, decision, &built)?;
        if let Some(schema) = &self.class.narrow_status {
            let whole = serde_json::to_value(&status).map_err(Error::terminal)?;
            // If nothing is left of it, none is written. The class says so.
            if let Some(kept) = paths::kept(&whole, schema) {
                response.set_status(kept)?;
            }
            response = response.with_parent(
                json!({"metadata": {"annotations": {record::ANNOTATION: record::write(&status)}}}),
            )?;
        } else {
            response.set_status(&status)?;
        }
        if decision.status_first {
            response = response.status_first();
        }
        response = events.into_iter().fold(response, SyncResponse::with_event);
        Ok(match decision.wake_at {
            Some(at) => response.requeue_after(until(at, request.now())),
            None => response,
        })
    }

    /// Adds the objects of a run. If they cannot be made, what is there stays: nothing that runs is harmed.
    fn build(
        &self,
        request: &SyncRequest,
        run: &ActiveRun,
        requests: &[BackfillRequest],
        response: &mut SyncResponse,
    ) -> Result<Built, Error> {
        let stream = Stream::new(request.parent_json(), &self.class.config);
        let asked = match &run.purpose {
            Purpose::Backfill { request: Some(uid), .. } => requests
                .iter()
                .find(|known| known.metadata.uid.as_ref() == Some(uid))
                .map(|known| &known.spec),
            _ => None,
        };
        let made = match wish::template_for(&stream, &run.purpose, &Found(request))? {
            Ok(template) => job::job(&stream, &template, run, asked),
            Err(wrong) => Err(wrong),
        };
        match made {
            Ok(made) => {
                for child in made.children {
                    response.add_child(child)?;
                }
                Ok(Built { spec_in_file: made.spec_in_file, ..Built::default() })
            }
            Err(wrong) => {
                let is_missing = !keep(request, &run.job, response)?;
                Ok(Built { problem: Some(wrong), is_missing, ..Built::default() })
            }
        }
    }
}

/// The status with its conditions, and what there is to say in events.
fn tell(
    request: &SyncRequest,
    decision: &Decision,
    built: &Built,
) -> Result<(StreamStatus, Vec<Event>), Error> {
    let mut status = decision.status.clone();
    let mut conditions = Conditions::of_status(&request.parent_json()["status"]);
    let (generation, now) = (Some(request.generation()), request.now());
    let problem = built.problem.as_ref().or(decision.problem.as_ref());
    let runs = matches!(decision.phase(), Phase::Running | Phase::Backfilling | Phase::Scheduled);
    let (ready, reason, message) = match (&built.problem, &decision.unready) {
        (Some(problem), _) if built.is_missing => {
            status.phase = Some(Phase::Failed);
            (State::False, problem.reason, problem.to_string())
        }
        (_, Some(unready)) if runs => (State::False, POD_NOT_READY, unready.clone()),
        _ => (runs.into(), decision.rule, decision.message.clone()),
    };
    conditions.set("Ready", ready, reason, &message, generation, now)?;
    let was_in_file = conditions.is_true("SpecInFile");
    match problem {
        Some(problem) => {
            let told = problem.to_string();
            conditions.set("ConfigurationValid", State::False, problem.reason, &told, generation, now)?;
        }
        None => {
            conditions.remove("ConfigurationValid");
        }
    }
    let mut events = Vec::new();
    if built.spec_in_file {
        let told = "the spec is too large for an environment variable; STREAMCONTEXT__SPEC_FILE names the file that has it";
        conditions.set("SpecInFile", State::True, "SpecTooLargeForEnvironment", told, generation, now)?;
        if !was_in_file {
            events.push(Event::normal("SpecInFile", told));
        }
    } else if decision.status.run.is_none() || matches!(decision.desired, Desired::Run(_)) {
        conditions.remove("SpecInFile");
    }
    status.conditions = conditions.into();
    for news in &decision.happened {
        let event = if news.is_warning { Event::warning } else { Event::normal };
        events.push(event(news.reason, &news.note));
    }
    Ok((status, events))
}

/// Keeps a Job or `CronJob` as it is, with the file that it may have. Whether there is one.
fn keep(request: &SyncRequest, name: &str, response: &mut SyncResponse) -> Result<bool, Error> {
    let mut is_there = false;
    for child in request.all_children().iter() {
        if child.name() == name || child.name() == job::spec_name(name) {
            is_there |= child.name() == name;
            let kind = child.kind();
            response.add_child(json!({
                "apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": child.name()},
            }))?;
        }
    }
    Ok(is_there)
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    // A moment at least: a time that has come already is seen in the next sync.
    Duration::try_from(at.duration_since(now)).unwrap_or_default().max(Duration::from_millis(1))
}
