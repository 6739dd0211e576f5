//! The parent's status: the handler's, with `observedGeneration` and, while something is wrong, the framework's condition.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Action, Body, Memory, Plan, Precondition, RECONCILED, Reason, Situation, Step, Waiting};
use crate::controller::ProblemCondition;
use crate::diff::{self, CONDITIONS_GENERATION, Change, Extent, Rules};
use crate::handler::SyncResponse;
use crate::snapshot::Snapshot;

/// What a status is made of.
pub(crate) struct StatusOf<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) parent_json: &'a Value,
    pub(crate) has_status: bool,
    pub(crate) rules: &'a Rules,
    pub(crate) memory: &'a Memory,
    /// The handler's. Null: none.
    pub(crate) status: &'a Value,
    /// Annotations that are written with it.
    pub(crate) annotations: &'a Map<String, Value>,
    /// How the kind tells of problems, if it has a way of its own.
    pub(crate) told_as: Option<&'a ProblemCondition>,
    /// All that nothing is done about; the problems among them are told.
    pub(crate) waiting: &'a [Waiting],
    /// Whether there are steps still to be taken, so that nobody knows yet how it goes. What was told stays.
    pub(crate) undecided: bool,
}

impl<'a> StatusOf<'a> {
    pub(super) fn response(situation: &'a Situation<'a>, response: &'a SyncResponse, plan: &'a Plan) -> Self {
        Self {
            snapshot: situation.snapshot,
            parent_json: situation.parent_json,
            has_status: situation.has_status,
            rules: situation.rules(&situation.snapshot.kind),
            memory: situation.memory,
            status: &response.status,
            annotations: &response.annotations,
            told_as: situation.controller.options.problems.as_ref(),
            waiting: &plan.waiting,
            undecided: !plan.steps.is_empty(),
        }
    }
}

impl StatusOf<'_> {
    /// The type of the condition that tells of problems.
    fn condition_type(&self) -> &str {
        self.told_as.map_or(RECONCILED, |told_as| &told_as.type_)
    }
}

/// The write that is needed, if one is.
pub(crate) fn plan_status(of: &StatusOf<'_>) -> Option<Step> {
    if !of.has_status {
        return None;
    }
    let nothing = Value::Object(Map::new());
    let live = of.parent_json.get("status").unwrap_or(&nothing);
    let desired = desired_status(of, live)?;
    let parent = &of.snapshot.parent;
    let learned = of.memory.learned(parent.uid());
    let wrap = |status: &Value| json!({"status": status});
    let mut changes = diff::compare(&wrap(&desired), &wrap(live), of.rules, learned);
    if !of.annotations.is_empty() {
        let annotated = json!({"metadata": {"annotations": of.annotations}});
        // Most servers drop annotations that come with a status; those would be written for ever, if that were not learned.
        changes.extend(diff::compare(&annotated, of.parent_json, of.rules, learned));
    }
    if changes.is_empty() {
        // The status is ours alone, so what is there and not desired goes too, unless the server was seen to keep it.
        let surplus = surplus(live, &desired, of.rules);
        let settled = (diff::content_hash(&desired), diff::content_hash(live));
        if surplus.is_empty() || of.memory.status_settled.as_ref() == Some(&settled) {
            return None;
        }
        changes = surplus;
    }
    let kind = &of.snapshot.kind;
    let mut metadata = json!({"name": parent.key().name()});
    if let Some(namespace) = parent.key().namespace() {
        metadata["namespace"] = json!(namespace);
    }
    if !of.annotations.is_empty() {
        metadata["annotations"] = json!(of.annotations);
    }
    let mut value = json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": metadata});
    // A status from which an apply takes the last field becomes null, which no schema allows; one that is not named goes.
    if desired.as_object().is_none_or(|fields| !fields.is_empty()) {
        value["status"] = desired;
    }
    // A uid does not do: for a status the server takes all of the metadata from the object that is there, so that one of the
    // same name that was made anew would get the status of the old one.
    let precondition = Precondition::Unchanged {
        uid: parent.uid().to_owned(),
        resource_version: parent.resource_version().to_owned(),
    };
    let mut body = Body::new(value, precondition);
    // What is there is kept, but stays whose it is.
    body.only_condition = of.status.is_null().then(|| of.condition_type().to_owned());
    let object = of.snapshot.parent_ref();
    Some(Step { action: Action::WriteStatus, object, reason: Reason::StatusChanged, changes, body })
}

/// The fields of `live` that `desired` lacks. The order of a list's items is not looked at here: `compare` has done that.
fn surplus(live: &Value, desired: &Value, rules: &Rules) -> Vec<Change> {
    let (old, new) = (json!({"status": live}), json!({"status": desired}));
    let mut changes = diff::difference(&old, &new, rules, Extent::WithStatus);
    // Servers add fields without content to some statuses, and would do so again.
    let is_something =
        |value: &Value| !value.is_null() && value.as_object().is_none_or(|fields| !fields.is_empty());
    changes.retain(|change| change.to.is_none() && change.from.as_ref().is_none_or(is_something));
    changes
}

fn desired_status(of: &StatusOf<'_>, live: &Value) -> Option<Value> {
    // Where the schema has no place for a condition, events alone tell of problems.
    let tells = of.rules.has_in_status("conditions");
    let problems: Vec<_> = of.waiting.iter().filter(|waiting| tells && waiting.is_problem()).collect();
    let type_ = of.condition_type();
    let known = condition_of(live, type_);
    if of.status.is_null() && problems.is_empty() && known.is_none() {
        return None;
    }
    let mut desired = if of.status.is_null() { live.clone() } else { of.status.clone() };
    diff::drop_nulls(&mut desired);
    let Value::Object(fields) = &mut desired else { return Some(desired) };
    let generation = of.snapshot.parent.generation();
    if !of.status.is_null() && generation > 0 && of.rules.has_in_status("observedGeneration") {
        fields.insert("observedGeneration".into(), json!(generation));
    }
    // Without a problem of the framework's, what the handler says of its own counts.
    let given = of.told_as.and_then(|told_as| condition_of(of.status, &told_as.type_)).cloned();
    let condition = match known {
        _ if problems.is_empty() && given.is_some() => given,
        Some(known) if of.undecided && problems.is_empty() => Some(known.clone()),
        _ if problems.is_empty() => None,
        _ => match of.told_as {
            Some(told_as) => own_condition(told_as, &problems, known, of.snapshot.now),
            None => Some(condition(of, &problems, known)),
        },
    };
    tell(fields, type_, condition);
    Some(desired)
}

/// Puts the framework's condition into a status, or takes it out: a status does not tell of problems that are over, so that
/// it is the same whatever happened before.
fn tell(status: &mut Map<String, Value>, type_: &str, condition: Option<Value>) {
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        let told = conditions.len();
        conditions.retain(|condition| condition["type"] != type_);
        if conditions.is_empty() && told > 0 {
            status.remove("conditions");
        }
    }
    if let Some(condition) = condition
        && let Some(conditions) = status.entry("conditions").or_insert_with(|| json!([])).as_array_mut()
    {
        conditions.push(condition);
    }
}

fn condition_of<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    status.get("conditions")?.as_array()?.iter().find(|condition| condition["type"] == type_)
}

fn condition(of: &StatusOf<'_>, problems: &[&Waiting], known: Option<&Value>) -> Value {
    let reason = problems.first().map_or(RECONCILED, |problem| problem.reason());
    let message = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let mut condition = render_condition((RECONCILED, "False"), reason, &message, known, of.snapshot.now);
    let generation = of.snapshot.parent.generation();
    if generation > 0 && of.rules.has_in_status(CONDITIONS_GENERATION) {
        condition["observedGeneration"] = json!(generation);
    }
    condition
}

/// The condition that the kind has for problems. What it says of one stays the same for as long as the problem does.
fn own_condition(
    told_as: &ProblemCondition,
    problems: &[&Waiting],
    known: Option<&Value>,
    now: Timestamp,
) -> Option<Value> {
    let (reason, message) = problems.iter().find_map(|problem| (told_as.words)(problem))?;
    match known {
        Some(known) if known["status"] == "True" && known["reason"] == *reason => Some(known.clone()),
        _ => Some(render_condition((&told_as.type_, "True"), &reason, &message, known, now)),
    }
}

fn render_condition(
    (type_, status): (&str, &str),
    reason: &str,
    message: &str,
    known: Option<&Value>,
    now: Timestamp,
) -> Value {
    let since = known
        .filter(|known| known["status"] == status)
        .and_then(|known| known["lastTransitionTime"].as_str());
    let since = since.map_or_else(|| seconds(now), str::to_owned);
    json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
}

/// Kubernetes' times have whole seconds.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
