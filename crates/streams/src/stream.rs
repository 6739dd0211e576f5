//! The handler of streams: what there is becomes a situation, the lifecycle decides, and the decision becomes an answer.

mod answer;
mod live;

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use mainstay::{ChildKind, Controller, Error, Handler, Kind, Strategy, SyncRequest, SyncResponse};
use serde_json::Value;

use crate::backfill::queue;
use crate::config::StreamClassConfig;
use crate::job;
use crate::kinds::{BackfillRequest, Phase, StreamStatus, StreamingJobTemplate, labels};
use crate::lifecycle::{Decision, Seat, Situation, decide};
use crate::pace::Pace;
use crate::record;
use crate::shared::Shared;
use crate::wish::{self, Stream};

use live::{Found, Questions, live_jobs, live_schedule, with_problems};

/// The class of the streams that a controller looks after.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    name: String,
    config: StreamClassConfig,
    /// The schema of its kind's status, if that does not keep all that is written into it.
    narrow_status: Option<Value>,
}

impl Class {
    pub(crate) fn new(name: &str, config: StreamClassConfig, narrow_status: Option<Value>) -> Self {
        Self { name: name.to_owned(), config, narrow_status }
    }

    /// Any class, for what is the same with all of them.
    pub(crate) fn unnamed() -> Self {
        Self::new("", StreamClassConfig::default(), None)
    }
}

/// The controller of the streams of a class.
pub(crate) fn controller(kind: Kind, class: Class, shared: &Arc<Shared>) -> Controller {
    let anew = |child: ChildKind| child.strategy(Strategy::Recreate).delete_in_foreground();
    let pace = shared.pace(&class.name);
    let (gone, gone_pace) = (Arc::clone(shared), Arc::clone(&pace));
    let mut controller = Controller::for_kind(kind)
        .child(anew(ChildKind::of::<Job>()))
        .child(anew(ChildKind::of::<CronJob>()))
        .child(ChildKind::of::<ConfigMap>().metadata_only())
        // Pods are their Jobs'; those that a Job has left behind are taken over, and go as all that is not wanted does.
        .child(
            ChildKind::of::<Pod>()
                .adopt(|stream| of_uid(stream["metadata"]["uid"].as_str().unwrap_or_default())),
        )
        .reads::<StreamingJobTemplate>()
        .reads::<Secret>()
        .reads::<Pod>()
        .reads::<Job>()
        .reads::<BackfillRequest>()
        .when_gone(move |_, uid| {
            gone_pace.gone(uid);
            gone.metrics.forget(uid);
        });
    if class.narrow_status.is_some() {
        controller = controller.writes_parents();
    }
    controller.sync(Streams { class, pace, shared: Arc::clone(shared) })
}

struct Streams {
    class: Class,
    pace: Arc<Pace>,
    shared: Arc<Shared>,
}

impl Handler for Streams {
    fn sync(&self, request: &SyncRequest) -> Result<SyncResponse, Error> {
        let known = record::read(request.parent_json());
        self.shared.metrics.saw(request.kind(), request.uid(), &known, request.now());
        self.take_seat(request, &known);
        let config = &self.class.config;
        let before = known.run.as_ref().map(|run| &run.made_from).or(known.crashed.as_ref());
        let wish = wish::read(request.parent_json(), config, &Found(request), before)?;
        let jobs = live_jobs(request)?;
        let schedule = live_schedule(request)?;
        let requests = queue(request.select(&of_stream(request))?);
        let stream = Stream::new(request.parent_json(), config);
        let asks = Questions { request, pace: &self.pace, config };
        let decision = decide(&Situation {
            now: request.now(),
            status: &known,
            wish: &wish,
            jobs: &jobs,
            schedule: schedule.as_ref(),
            requests: &with_problems(&stream, &requests, request)?,
            class: config,
            names: &|purpose, number| {
                let kind = request.kind();
                job::run_name(request.name(), kind.group(), kind.kind(), purpose, number)
            },
            asks: &asks,
        });
        self.report(request, &decision);
        self.answer(request, &decision, &requests)
    }
}

impl Streams {
    /// A stream that has a seat in a roll-out has it in this process, too.
    fn take_seat(&self, request: &SyncRequest, known: &StreamStatus) {
        if known.rollout.is_some() {
            let is_failing = known.crashed.is_some() || known.failures > 0;
            self.pace.hold(request.uid(), &name_of(request), is_failing);
        }
        self.pace.saw(request.uid());
    }

    /// Gives back what the stream had of the class's budgets.
    fn report(&self, request: &SyncRequest, decision: &Decision) {
        let uid = request.uid();
        match decision.phase() {
            Phase::Pending => {}
            Phase::Running | Phase::Backfilling | Phase::Scheduled => {
                let is_there = |run: &crate::kinds::ActiveRun| {
                    request.all_children().iter().any(|child| child.name() == run.job)
                };
                if decision.status.run.as_ref().is_some_and(is_there) {
                    self.pace.started(uid);
                }
            }
            Phase::Suspended | Phase::Failed | Phase::CrashLoopDetected => self.pace.rests(uid),
        }
        match decision.seat {
            Seat::None => self.pace.settled(uid),
            Seat::Waits => {}
            Seat::Held { is_failing } => self.pace.hold(uid, &name_of(request), is_failing),
        }
    }
}

fn name_of(request: &SyncRequest) -> String {
    format!("{}/{}", request.namespace().unwrap_or_default(), request.name())
}

/// Selects what belongs to the stream.
fn of_stream(request: &SyncRequest) -> String {
    of_uid(request.uid())
}

fn of_uid(uid: &str) -> String {
    format!("{}={uid}", labels::STREAM_UID)
}
