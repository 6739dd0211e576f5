//! From a `StreamClass` to a controller of the kind that it names, and to a status that tells whether that works.
//!
//! - A class never disturbs another, whatever is wrong with it or with its kind.
//! - `Ready` is true while the class's streams are looked after, and not a moment longer than is known.
//! - The streams and Jobs of a class that goes stay as they are.

mod claim;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use mainstay::conditions::{Conditions, State};
use mainstay::events::{Event, Severity};
use mainstay::{
    Controller, Error, Kind, Registered, RegisteredState, Registration, Scope, SyncRequest, SyncResponse,
};

use crate::config::StreamClassConfig;
use crate::kinds::{ClassPhase, StreamClass, StreamClassStatus, StreamCounts};
use crate::paths;
use crate::shared::Shared;
use crate::stream;

use claim::{Claim, Finding, definition_name, examine};

pub(crate) use claim::kind_of;

/// How often the streams are counted.
const COUNT_EVERY: Duration = Duration::from_secs(5);

/// The condition of a class whose streams wait to be restarted while those that were restarted fail.
const ROLLOUT_HALTED: &str = "RolloutHalted";
/// The condition of a class whose kind has a status that cannot hold anything.
const STATUS_KEPT: &str = "StatusKept";
/// The most streams that a halted roll-out names.
const NAMES_MAX: usize = 10;

/// The controller of classes.
pub(crate) fn controller(shared: &Arc<Shared>) -> Controller {
    // Kinds of streams are known only when there are classes; what streams need besides is always the same.
    let any_stream = Kind::new("streams.mainstay.dev/v1alpha1", "Stream", "streams", Scope::Namespaced);
    let like = stream::controller(any_stream, stream::Class::unnamed(), shared);
    let (handled, gone) = (Arc::clone(shared), Arc::clone(shared));
    Controller::of::<StreamClass>()
        .reads::<CustomResourceDefinition>()
        .reads::<StreamClass>()
        .runs(like)
        .when_gone(move |class, _| gone.forget_class(class.name()))
        .sync(move |request: &SyncRequest| sync(request, &handled))
}

fn sync(request: &SyncRequest, shared: &Arc<Shared>) -> Result<SyncResponse, Error> {
    let class: StreamClass = request.parent()?;
    let config = StreamClassConfig::from(&class.spec);
    let definition = request.get::<CustomResourceDefinition>(&definition_name(&config))?;
    let others = request.select::<StreamClass>("")?;
    let claim = examine(&class, &config, definition.as_ref(), &others);
    let runs = claim.is_good() && !config.stopped;
    let registered = request.registered(&claim.kind).filter(|_| runs);
    let known = class.status.clone().unwrap_or_default();
    let is_settled =
        known.phase == ClassPhase::Ready && known.observed_generation == Some(request.generation());
    let pace = shared.pace(&class.name_any());
    if let Some(Registered { state: RegisteredState::Ready | RegisteredState::Stale(_), parents, .. }) =
        registered
    {
        pace.expect(*parents);
    }
    let halted = pace.halted_by(config.rollout.max_unavailable).filter(|_| runs);
    let mut response = match registered.map(|registered| &registered.state) {
        // The controller is on its way, as it is whenever the operator starts: what was true before is the best that is known.
        None | Some(RegisteredState::Starting) if runs && is_settled => {
            SyncResponse::from_status(&request.parent_json()["status"])?
        }
        _ => {
            let news = (judge(&config, &claim, registered), halted.as_deref());
            tell(request, &known, &claim, news, shared)?
        }
    };
    if !runs && claim.unclaimed.is_good() {
        shared.metrics.forget_kind(&claim.kind);
    }
    if runs {
        let version = serde_json::to_string(&(&class.spec, &claim.narrow_status)).map_err(Error::terminal)?;
        let class = stream::Class::new(&class.name_any(), config, claim.narrow_status);
        let controller = stream::controller(claim.kind, class, shared);
        let registration = Registration::new(controller, version).count_by("/status/phase");
        response = response.with_controller(registration).requeue_after(COUNT_EVERY);
    }
    Ok(response)
}

/// The answer with this status, and the news in it.
fn tell(
    request: &SyncRequest,
    known: &StreamClassStatus,
    claim: &Claim,
    (judged, halted): (Judged, Option<&[String]>),
    shared: &Shared,
) -> Result<SyncResponse, Error> {
    shared.metrics.counted(&claim.kind, &judged.streams);
    let mut conditions = Conditions::of_status(&request.parent_json()["status"]);
    let (generation, now) = (Some(request.generation()), request.now());
    for (type_, finding) in claim.findings().into_iter().chain([
        ("Permitted", &judged.permitted),
        ("Watched", &judged.watched),
        ("Ready", &judged.ready),
    ]) {
        conditions.set(type_, finding.state, finding.reason, &finding.message, generation, now)?;
    }
    if claim.keeps_nothing {
        let message = "the schema of the kind's status takes nothing of what the operator writes: streams have it in the annotation mainstay.dev/stream-record only";
        conditions.set(STATUS_KEPT, State::False, paths::STATUS_NOT_KEPT, message, generation, now)?;
    } else {
        conditions.remove(STATUS_KEPT);
    }
    let halts = halted.map(halt).filter(|_| !conditions.is_true(ROLLOUT_HALTED));
    match halted {
        Some(names) => {
            let message = halt(names);
            conditions.set(ROLLOUT_HALTED, State::True, "NewRunsFail", &message, generation, now)?;
        }
        None => {
            conditions.remove(ROLLOUT_HALTED);
        }
    }
    let was_ready = known.conditions.iter().find(|condition| condition.type_ == "Ready");
    let is_news = was_ready.is_none_or(|known| known.reason != judged.ready.reason);
    let response = SyncResponse::from_status(StreamClassStatus {
        observed_generation: None,
        phase: judged.phase,
        streams: judged.streams,
        conditions: conditions.into(),
    })?;
    let response = match halts {
        Some(message) => response.with_event(Event::warning(ROLLOUT_HALTED, &message)),
        None => response,
    };
    Ok(if is_news { response.with_event(news(judged.phase, &judged.ready)) } else { response })
}

/// Why no more streams are restarted for a changed template or Secret.
fn halt(failing: &[String]) -> String {
    let some = failing.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let rest = failing.len().saturating_sub(NAMES_MAX);
    let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    format!(
        "streams that were restarted for a changed template or Secret fail: {some}{rest}; the others run on as they are until these are ready or suspended"
    )
}

fn news(phase: ClassPhase, ready: &Finding) -> Event {
    let severity =
        if phase == ClassPhase::Failed || (phase == ClassPhase::Pending && ready.state == State::False) {
            Severity::Warning
        } else {
            Severity::Normal
        };
    Event::new(severity, ready.reason, &ready.message)
}

/// What becomes of a class.
#[derive(Debug, PartialEq)]
struct Judged {
    phase: ClassPhase,
    permitted: Finding,
    watched: Finding,
    ready: Finding,
    streams: StreamCounts,
}

/// How the class stands, from what it claims and how the controller of its kind is doing. Pure.
fn judge(config: &StreamClassConfig, claim: &Claim, registered: Option<&Registered>) -> Judged {
    let not_watched = |reason, message: &str| Finding::bad(reason, message);
    let unknown = || Finding::unknown("NotTried", "nothing was asked for yet");
    let none = StreamCounts::default();
    if config.stopped {
        let why = || not_watched("Stopped", "the class is stopped; Jobs of its streams run on");
        return Judged {
            phase: ClassPhase::Stopped,
            permitted: unknown(),
            watched: why(),
            ready: why(),
            streams: none,
        };
    }
    if let Some((_, wrong)) = claim.findings().into_iter().find(|(_, finding)| !finding.is_good()) {
        let may_come = claim.may_come && claim.unclaimed.is_good() && claim.paths_fit.state != State::False;
        let phase = if may_come { ClassPhase::Pending } else { ClassPhase::Failed };
        let watched = not_watched(wrong.reason, &wrong.message);
        let ready = Finding { state: State::False, ..wrong.clone() };
        return Judged { phase, permitted: unknown(), watched, ready, streams: none };
    }
    let allowed = || Finding::good("Permitted", "streams can be listed and watched");
    let starting = || Finding::unknown("Starting", "not all streams have been seen yet");
    let streams = registered.map_or(none, |registered| StreamCounts {
        total: registered.parents,
        by_phase: registered.counts.clone(),
    });
    let (phase, permitted, watched) = match registered.map(|registered| &registered.state) {
        Some(RegisteredState::Ready) => {
            (ClassPhase::Ready, allowed(), Finding::good("Synced", "all streams have been seen"))
        }
        Some(RegisteredState::Stale(error)) => (
            ClassPhase::Ready,
            allowed(),
            Finding::unknown("Stale", format!("the server cannot be heard: {error}")),
        ),
        Some(RegisteredState::Forbidden(why)) => (
            ClassPhase::Failed,
            Finding::bad("Forbidden", why.clone()),
            not_watched("Forbidden", "streams may not be watched"),
        ),
        Some(RegisteredState::Missing(kind)) => (
            ClassPhase::Pending,
            unknown(),
            not_watched("Missing", &format!("the server does not know {kind} yet")),
        ),
        Some(RegisteredState::Taken) => {
            (ClassPhase::Failed, unknown(), not_watched("Taken", "another controller has the kind"))
        }
        Some(RegisteredState::Impossible(why)) => {
            (ClassPhase::Failed, unknown(), not_watched("Impossible", why))
        }
        Some(_) | None => (ClassPhase::Pending, unknown(), starting()),
    };
    let ready = match phase {
        ClassPhase::Ready => Finding::good("Ready", "its streams are run"),
        _ if permitted.state == State::False => permitted.clone(),
        _ => Finding { state: State::False, ..watched.clone() },
    };
    Judged { phase, permitted, watched, ready, streams }
}
