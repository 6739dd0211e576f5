//! The handler of streams: what there is becomes a situation, the lifecycle decides, and the decision becomes an answer.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::ResourceExt as _;
use mainstay::conditions::{Conditions, State};
use mainstay::events::Event;
use mainstay::{
    ChildKind, Controller, Error, Handler, Key, Kind, ObjectRef, Strategy, SyncRequest, SyncResponse,
};
use serde_json::{Value, json};

use crate::backfill::queue;
use crate::config::StreamClassConfig;
use crate::job;
use crate::kinds::{BackfillRequest, Phase, Purpose, StreamingJobTemplate, labels};
use crate::lifecycle::{
    Asks, Decision, Desired, LingeringPod, LiveJob, LiveSchedule, Permit, Request, Situation, decide,
};
use crate::pace::Pace;
use crate::paths;
use crate::record;
use crate::shared::Shared;
use crate::wish::{self, Materials, Stream};

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
        let config = &self.class.config;
        let before = known.run.as_ref().map(|run| &run.made_from).or(known.crashed.as_ref());
        let wish = wish::read(request.parent_json(), config, &Found(request), before)?;
        let jobs = live_jobs(request)?;
        let schedule = live_schedule(request)?;
        let requests = queue(request.select(&of_stream(request))?);
        let asks = Questions { request, pace: &self.pace, config };
        let decision = decide(&Situation {
            now: request.now(),
            status: &known,
            wish: &wish,
            jobs: &jobs,
            schedule: schedule.as_ref(),
            requests: &requests.iter().map(as_request).collect::<Vec<_>>(),
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
                    if matches!(decision.desired, Desired::Run(_)) {
                        self.pace.settled(uid);
                    }
                }
            }
            Phase::Suspended | Phase::Failed | Phase::CrashLoopDetected => self.pace.gone(uid),
        }
    }

    fn answer(
        &self,
        request: &SyncRequest,
        decision: &Decision,
        requests: &[BackfillRequest],
    ) -> Result<SyncResponse, Error> {
        let mut response = SyncResponse::new();
        let mut spec_in_file = false;
        let mut problem = decision.problem.clone();
        match &decision.desired {
            Desired::Nothing => {}
            Desired::AsIs(name) => keep(request, name, &mut response)?,
            Desired::Run(run) => {
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
                        spec_in_file = made.spec_in_file;
                        for child in made.children {
                            response.add_child(child)?;
                        }
                    }
                    // Nothing that runs is harmed by what cannot be made.
                    Err(wrong) => {
                        keep(request, &run.job, &mut response)?;
                        problem = Some(wrong);
                    }
                }
            }
        }
        for name in &decision.left_behind {
            response.add_child(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}))?;
        }
        for name in &decision.let_go {
            let job = ObjectRef { kind: Kind::of::<Job>(), key: Key::new(request.namespace(), name) };
            response = response.let_go(job, labels::OUTCOME);
        }
        let mut status = decision.status.clone();
        let mut conditions = Conditions::of_status(&request.parent_json()["status"]);
        let (generation, now) = (Some(request.generation()), request.now());
        let ready = matches!(decision.phase(), Phase::Running | Phase::Backfilling | Phase::Scheduled);
        conditions.set("Ready", ready.into(), decision.rule, &decision.message, generation, now)?;
        let was_in_file = conditions.is_true("SpecInFile");
        match &problem {
            Some(problem) => {
                let told = problem.to_string();
                conditions.set("ConfigurationValid", State::False, problem.reason, &told, generation, now)?;
            }
            None => {
                conditions.remove("ConfigurationValid");
            }
        }
        if spec_in_file {
            let told = "the spec is too large for an environment variable; STREAMCONTEXT__SPEC_FILE names the file that has it";
            conditions.set("SpecInFile", State::True, "SpecTooLargeForEnvironment", told, generation, now)?;
            if !was_in_file {
                response = response.with_event(Event::normal("SpecInFile", told));
            }
        } else if decision.status.run.is_none() || matches!(decision.desired, Desired::Run(_)) {
            conditions.remove("SpecInFile");
        }
        status.conditions = conditions.into();
        if let Some(schema) = &self.class.narrow_status {
            let whole = serde_json::to_value(&status).map_err(Error::terminal)?;
            response.set_status(paths::kept(&whole, schema).unwrap_or_default())?;
            response = response.with_parent(
                json!({"metadata": {"annotations": {record::ANNOTATION: record::write(&status)}}}),
            )?;
        } else {
            response.set_status(&status)?;
        }
        if decision.status_first {
            response = response.status_first();
        }
        for news in &decision.happened {
            let event = if news.is_warning { Event::warning } else { Event::normal };
            response = response.with_event(event(news.reason, &news.note));
        }
        Ok(match decision.wake_at {
            Some(at) => response.requeue_after(until(at, request.now())),
            None => response,
        })
    }
}

/// Keeps a Job or `CronJob` as it is, with the file that it may have.
fn keep(request: &SyncRequest, name: &str, response: &mut SyncResponse) -> Result<(), Error> {
    for child in request.all_children().iter() {
        if child.name() == name || child.name() == job::spec_name(name) {
            let kind = child.kind();
            response.add_child(json!({
                "apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": child.name()},
            }))?;
        }
    }
    Ok(())
}

/// Selects what belongs to the stream.
fn of_stream(request: &SyncRequest) -> String {
    of_uid(request.uid())
}

fn of_uid(uid: &str) -> String {
    format!("{}={uid}", labels::STREAM_UID)
}

fn live_jobs(request: &SyncRequest) -> Result<Vec<LiveJob>, Error> {
    let kind = Kind::of::<Job>();
    let mut jobs = Vec::new();
    for child in request.children_of(&kind).iter() {
        let job = child.json();
        // Pods tell exit codes, which matter only until they are recorded.
        let pods = if job::has_failed(&job) {
            pods_of(request, &format!("{}={}", job::JOB_NAME, child.name()))?
        } else {
            Vec::new()
        };
        jobs.push(job::read_job(&job, &pods));
    }
    Ok(jobs)
}

fn live_schedule(request: &SyncRequest) -> Result<Option<LiveSchedule>, Error> {
    let kind = Kind::of::<CronJob>();
    let Some(child) = request.children_of(&kind).iter().next() else { return Ok(None) };
    let jobs: Vec<Job> = request.select(&of_stream(request))?;
    let jobs: Vec<Value> = jobs.iter().filter_map(|job| serde_json::to_value(job).ok()).collect();
    let failed = jobs.iter().any(job::has_failed);
    let pods = if failed { pods_of(request, &of_stream(request))? } else { Vec::new() };
    Ok(Some(job::read_schedule(&child.json(), &jobs, &pods)))
}

fn pods_of(request: &SyncRequest, selector: &str) -> Result<Vec<Value>, Error> {
    let kind = Kind::of::<Pod>();
    request.related(&mainstay::Related::selected(&kind, request.namespace(), selector))
}

fn as_request(request: &BackfillRequest) -> Request {
    Request {
        uid: request.uid().unwrap_or_default(),
        name: request.name_any(),
        retries: request.spec.retries.unwrap_or_default(),
        is_cancelled: request.spec.cancelled == Some(true),
    }
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    // A moment at least: a time that has come already is seen in the next sync.
    Duration::try_from(at.duration_since(now)).unwrap_or_default().max(Duration::from_millis(1))
}

/// What a stream refers to.
struct Found<'a>(&'a SyncRequest);

impl Materials for Found<'_> {
    fn template(&self, name: &str) -> Result<Option<StreamingJobTemplate>, Error> {
        self.0.get(name)
    }

    fn secret(&self, name: &str) -> Result<Option<Secret>, Error> {
        self.0.get(name)
    }
}

/// What the lifecycle asks only if it matters.
struct Questions<'a> {
    request: &'a SyncRequest,
    pace: &'a Pace,
    config: &'a StreamClassConfig,
}

impl Questions<'_> {
    /// Whether there is a Job of this name. One that nobody has seen yet may be there.
    fn has_job(&self, name: &str) -> bool {
        self.request.get::<Job>(name).map_or(true, |job| job.is_some())
    }
}

impl Asks for Questions<'_> {
    fn lingering(&self) -> Vec<LingeringPod> {
        // Pods that nobody has seen yet may be there.
        let Ok(pods) = self.request.select::<Pod>(&of_stream(self.request)) else {
            let name = "pods that have not been listed yet".to_owned();
            return vec![LingeringPod { name, is_left_behind: false }];
        };
        let is_over = |pod: &Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            matches!(phase, Some("Succeeded" | "Failed"))
        };
        let lingering = pods.iter().filter(|pod| !is_over(pod));
        let told = |pod: &Pod| LingeringPod {
            name: pod.name_any(),
            is_left_behind: job::is_left_behind(pod, |job| self.has_job(job)),
        };
        lingering.map(told).collect()
    }

    fn start(&self) -> Permit {
        self.pace.start(self.request.uid(), self.request.now(), &self.config.start_rate)
    }

    fn rollout(&self) -> Permit {
        self.pace.rollout(self.request.uid(), self.request.now(), self.config.rollout.max_unavailable)
    }
}
