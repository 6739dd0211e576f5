//! What can be asked of a running operator: plans, reports, states. Changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::call::{Called, ask};
use super::course::Answer;
use super::lookup::describe;
use super::{Active, Knowledge, Runner, lock};
use crate::cache::{KindState, Object, Selector, Watch};
use crate::execute::{Doubt, Reader};
use crate::handler::SyncRequest;
use crate::kind::{Key, Kind, ObjectRef};
use crate::metrics::Reading;
use crate::operator::PlanError;
use crate::plan::{Memory, Plan, Situation, Waiting};
use crate::queue::{Priority, State};
use crate::record::Recording;
use crate::serve::{Check, DebugSource, ParentFilter};

/// How long a watch may be without its server before it counts as stale. A connection that is cut and made again within
/// this time is everyday business.
const STALE_AFTER: Duration = Duration::from_mins(1);
/// A watch of which nothing was heard for this long may be deaf: servers send a bookmark every minute, and one that does not is
/// asked after a minute and a half.
const HEARD_MAX: Duration = Duration::from_mins(2);

/// How often a plan is made anew because the server was found to have rewritten something. Once is enough for what is there;
/// a second time is for who changes it meanwhile.
const DOUBTS_MAX: usize = 3;

/// How a controller is doing.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerState {
    /// Its parent kind.
    pub parent: String,
    /// Whether its parents are synced.
    pub ready: bool,
    /// Every kind that it needs, and how its watch is doing.
    pub kinds: Vec<(String, String)>,
    /// Parents in its cache.
    pub parents: usize,
    /// Parents whose last sync failed.
    pub failing: usize,
}

/// What is known of a parent.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentReport {
    /// Which parent.
    pub parent: String,
    /// Where it is in the queue; `idle` if nothing is due.
    pub queue: String,
    /// How often it failed in a row.
    pub failures: u32,
    /// How often its syncs ended with an error since the operator started.
    pub errors: u64,
    /// Why the last sync did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why the next sync will run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// The last syncs that had something to do, the oldest first: see [`PastSync`](crate::PastSync).
    pub history: Vec<Value>,
}

impl Runner {
    /// Decides, and goes no further. What the decision rests on is told even if the handler fails.
    pub(crate) async fn inspect(
        self: &Arc<Self>,
        kind: &Kind,
        key: &Key,
    ) -> Result<(Result<Plan, PlanError>, Recording), PlanError> {
        let active = self.active(kind).ok_or_else(|| PlanError::NoController(kind.clone()))?;
        let not_ready = || PlanError::NotReady { kind: kind.clone(), state: states(&active) };
        let knowledge = active.knowledge().filter(|_| active.is_ready()).ok_or_else(not_ready)?;
        let no_parent = || PlanError::NoParent { kind: kind.clone(), key: key.clone() };
        let parent = self.caches.get(kind, key).ok_or_else(no_parent)?;
        let request = self.request_to_plan(&active, Arc::clone(&parent));
        let called = ask(&active.controller, &request, &self.finalizer).await;
        let answer = match called {
            Called::Answered(Ok(answer)) => Ok(answer),
            Called::Answered(Err(error)) => Err(PlanError::Handler(error.chain())),
            Called::Panicked(message) => Err(PlanError::Handler(format!("it panicked: {message}"))),
            Called::TooSlow(_) => Err(PlanError::Handler("it did not answer in time".into())),
        };
        let children = answer.as_ref().map_or(&[] as &[Value], Answer::children);
        let strangers = self.strangers(&active, &parent, children);
        let mut memory = lock(&self.parents)
            .get(&(kind.clone(), key.clone()))
            .map_or_else(Memory::default, |state| state.memory.clone());
        let decide = |memory: &Memory| {
            let situation = self.situation(&active, &knowledge, &request, &strangers, memory);
            let recording = Recording::new(&situation, &request.asked());
            (answer.as_ref().map(|answer| answer.decide(&situation)), recording)
        };
        let (mut plan, mut recording) = decide(&memory);
        for _ in 0..DOUBTS_MAX {
            let Ok(doubtful) = &plan else { break };
            if !self.learn_rewritten(doubtful, &knowledge, &mut memory).await {
                break;
            }
            (plan, recording) = decide(&memory);
        }
        if let Ok(plan) = &mut plan {
            self.hold_loops(plan, &parent, Instant::now());
            if !self.fence.is_mine(active.shard_uid(&parent)) {
                plan.waiting.insert(0, Waiting::OtherReplica);
            }
        }
        Ok((plan.map_err(Clone::clone), recording))
    }

    /// Asks about every step that may not be needed, as a sync does before it takes one. Tells whether one is not.
    async fn learn_rewritten(&self, plan: &Plan, knowledge: &Knowledge, memory: &mut Memory) -> bool {
        let found = |kind: &_, change: &_| self.changed(kind, change, None);
        let reader = Reader { api: &self.api, caches: &self.caches, found: &found };
        let mut learned = false;
        for step in &plan.steps {
            let rules = knowledge.rules(&step.object.kind);
            // Who cannot ask is left with the step: at worst it is one too many.
            learned |= reader.resolve(step, rules, memory).await == Ok(Doubt::Rewritten);
        }
        learned
    }

    /// Everything that a plan depends on besides the handler's answer.
    pub(super) fn situation<'a>(
        &'a self,
        active: &'a Active,
        knowledge: &'a Knowledge,
        request: &'a SyncRequest,
        strangers: &'a BTreeMap<ObjectRef, Arc<Object>>,
        memory: &'a Memory,
    ) -> Situation<'a> {
        Situation {
            controller: &active.controller,
            finalizer: &self.finalizer,
            namespace: self.namespace.as_deref(),
            snapshot: request.snapshot(),
            parent_json: request.parent_json(),
            strangers,
            rules: &knowledge.rules,
            memory,
            has_status: knowledge.has_status,
            deletions_allowed: lock(&self.budget).allowed(Instant::now()),
        }
    }

    pub(crate) fn report(&self, kind: &Kind, key: &Key) -> Option<ParentReport> {
        let parent = self.caches.get(kind, key)?;
        let queue = lock(&self.queue);
        let snapshot = queue.snapshot(kind, key);
        let now = Instant::now();
        let told = snapshot.as_ref().map_or_else(|| "idle".into(), |known| queue_state(known.state, now));
        let failures = snapshot.as_ref().map_or(0, |known| known.failures);
        let triggers = snapshot.map(|known| known.triggers.iter().map(ToString::to_string).collect());
        drop(queue);
        let parents = lock(&self.parents);
        let state = parents.get(&(kind.clone(), key.clone()));
        Some(ParentReport {
            parent: parent.reference().to_string(),
            queue: told,
            failures,
            errors: state.map_or(0, |state| state.errors),
            error: state.and_then(|state| state.error.clone()),
            triggers: triggers.unwrap_or_default(),
            history: state.map(|state| state.history.json()).unwrap_or_default(),
        })
    }

    pub(crate) fn controller_states(&self) -> Vec<ControllerState> {
        let parents = lock(&self.parents);
        let failing = |kind: &Kind| {
            parents.iter().filter(|((known, _), state)| known == kind && state.error.is_some()).count()
        };
        let reports = self.caches.reports();
        let all = self.all_active();
        all.iter()
            .map(|active| {
                let kind = active.controller.parent();
                ControllerState {
                    parent: kind.to_string(),
                    ready: active.is_ready(),
                    kinds: active
                        .watches()
                        .iter()
                        .map(|watch| (watch.kind().to_string(), describe(&watch.state())))
                        .collect(),
                    parents: reports
                        .iter()
                        .find(|report| report.kind == *kind)
                        .map_or(0, |report| report.objects),
                    failing: failing(kind),
                }
            })
            .collect()
    }

    /// One check per watched kind: is its cache filled, and is it fresh?
    pub(crate) fn readiness(&self) -> Vec<Check> {
        let mut checks: Vec<Check> = Vec::new();
        for report in self.caches.reports() {
            let silent = report.heard_ago.filter(|ago| *ago > HEARD_MAX);
            let passes = match &report.state {
                KindState::Live => report.synced,
                KindState::Stale { since, .. } => report.synced && since.elapsed() < STALE_AFTER,
                _ => false,
            };
            let result = match silent {
                None if passes => Ok(()),
                Some(ago) if passes => Err(format!("not heard of for {} s", ago.as_secs())),
                _ => Err(describe(&report.state)),
            };
            checks.push((report.kind.to_string(), result));
        }
        if let Some(webhooks) = &*lock(&self.webhooks) {
            let state = webhooks.borrow();
            let pending: Vec<_> = state.pending.iter().map(ToString::to_string).collect();
            let result = match pending.is_empty() {
                _ if state.is_ready() => Ok(()),
                true => Err("there is no certificate yet".to_owned()),
                false => Err(pending.join("; ")),
            };
            checks.push(("webhooks".to_owned(), result));
        }
        for active in self.all_active() {
            if active.knowledge().is_none() && active.watches().iter().all(Watch::is_synced) {
                let kind = active.controller.parent();
                checks.push((format!("schema of {kind}"), Err("the server has not told it yet".into())));
            }
        }
        checks
    }

    /// Gauges that are read when somebody scrapes.
    pub(crate) fn read_gauges(&self, reading: &mut Reading) {
        let queue = lock(&self.queue);
        for (kind, depth) in queue.depths() {
            for (priority, label) in
                [(Priority::Now, "now"), (Priority::Normal, "normal"), (Priority::Low, "low")]
            {
                reading.queue_depth(kind, label, depth.ready(priority));
            }
            reading.queue_running(kind, depth.running);
        }
        drop(queue);
        for report in self.caches.reports() {
            reading.cached(&report.kind, report.objects, report.allocated_bytes);
            reading.watched(&report.kind, report.errors, report.lists);
            let lag = match report.state {
                KindState::Stale { since, .. } => since.elapsed(),
                _ => Duration::ZERO,
            };
            reading.watch_lag(&report.kind, lag);
        }
        let parents = lock(&self.parents);
        let loops = lock(&self.loops);
        for active in self.all_active() {
            let kind = active.controller.parent();
            let of_kind = || parents.iter().filter(|((known, _), _)| known == kind);
            reading.parents_failing(kind, of_kind().filter(|(_, state)| state.error.is_some()).count());
            let looping = of_kind().filter(|((kind, key), _)| {
                let parent = ObjectRef { kind: kind.clone(), key: key.clone() };
                loops.spots(&parent).next().is_some()
            });
            reading.loops(kind, looping.count());
        }
        let held = self.fence.standing().borrow().held.clone();
        for shard in 0..self.fence.shards() {
            reading.lease_held(shard, held.keys().any(|known| known.index() == shard));
        }
    }
}

fn states(active: &Active) -> String {
    let states =
        active.watches().iter().map(|watch| format!("{} is {}", watch.kind(), describe(&watch.state())));
    states.collect::<Vec<_>>().join(", ")
}

fn queue_state(state: State, now: Instant) -> String {
    let seconds = |until: Instant| until.saturating_duration_since(now).as_secs_f64();
    match state {
        State::Ready { priority, .. } => format!("ready, {priority}"),
        State::Running { again: None } => "running".into(),
        State::Running { again: Some(_) } => "running, and due again".into(),
        State::Delayed { until } => format!("due in {:.1} s", seconds(until)),
        State::BackingOff { failures, until } => {
            format!("failed {failures} times, tried again in {:.1} s", seconds(until))
        }
        State::Held { until } => format!("held for {:.1} s", seconds(until)),
        State::Resting { failures } => format!("failed {failures} times, rests until it is changed"),
    }
}

/// What `/debug/parents` shows.
pub(crate) struct Debug(pub(crate) Arc<Runner>);

impl DebugSource for Debug {
    fn parents(&self, filter: &ParentFilter) -> Value {
        let runner = &self.0;
        let mut shown = Vec::new();
        for active in runner.all_active() {
            let kind = active.controller.parent();
            if filter
                .kind
                .as_deref()
                .is_some_and(|wanted| wanted != kind.kind() && wanted != kind.to_string())
            {
                continue;
            }
            let all = Selector::everything();
            for parent in runner.caches.list(kind, filter.namespace.as_deref(), &all) {
                if shown.len() >= filter.limit {
                    break;
                }
                shown.extend(runner.report(kind, parent.key()).map(|mut report| {
                    let last = report.history.pop();
                    json!({"parent": report.parent, "queue": report.queue, "failures": report.failures,
                        "error": report.error, "lastSync": last})
                }));
            }
        }
        json!({"controllers": runner.controller_states(), "parents": shown})
    }

    fn parent(&self, kind: &str, namespace: Option<&str>, name: &str) -> Option<Value> {
        let all = self.0.all_active();
        let active = all.iter().find(|active| {
            let known = active.controller.parent();
            known.kind() == kind || known.to_string() == kind
        })?;
        let report = self.0.report(active.controller.parent(), &Key::new(namespace, name))?;
        serde_json::to_value(report).ok()
    }
}
