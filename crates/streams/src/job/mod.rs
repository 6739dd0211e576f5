//! A run of a stream as the objects that it is made of, and back again from live ones.
//!
//! ```text
//! stream + template + run ─▶ Job, or CronJob for a schedule (+ ConfigMap, if the spec is too long for the environment)
//! live Job + its pods ─▶ how far it is
//! ```
//!
//! The same stream, template and run make the same objects, to the byte. There are no owner references in them: the framework adds these.

mod context;
mod health;
mod name;
mod read;
pub mod template;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub use context::{JOB_TOO_LARGE, PAYLOAD_TOO_LARGE, SPEC_TOO_LARGE};
pub use name::{run_name, spec_name};
pub use read::{JOB_NAME, has_failed, is_left_behind, needs_pods, read_job, read_schedule};

use crate::kinds::{ActiveRun, BackfillRequestSpec, Hashes, Purpose, StreamingJobTemplate, labels};
use crate::wish::{Problem, Stream};
use context::Context;

/// What Jobs are made with now. From 1 on, pods that are evicted, preempted, or end with their node do not count as failed, and a schedule
/// keeps more of its Jobs.
pub(crate) const LAYOUT: u32 = 1;
/// The most completed and the most failed Jobs that a schedule keeps: their outcomes are recorded even if nobody was there to see them end.
const SLOTS_KEPT: u32 = 10;

/// The objects of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// What the run needs comes before it.
    pub children: Vec<Value>,
    /// The spec is too long for the environment. It is in a `ConfigMap` of the name [`spec_name`], which has to stay as long as the Job.
    pub spec_in_file: bool,
}

/// Makes the objects of a run. The request is the one that a backfill is for.
pub fn job(
    stream: &Stream<'_>,
    template: &StreamingJobTemplate,
    run: &ActiveRun,
    request: Option<&BackfillRequestSpec>,
) -> Result<Made, Problem> {
    template::check(template)?;
    let context = Context::new(stream, run, request)?;
    let ours = our_labels(stream, run);
    let spec = job_spec(template, &context, &ours, run);
    let (template_labels, template_annotations) = told(&template.spec.template);
    let mut metadata = json!({
        "name": run.job,
        "namespace": stream.namespace(),
        "labels": with(template_labels.clone(), &ours),
        "annotations": with(template_annotations.clone(), &mark(run)),
    });
    let object = if let Purpose::Schedule = run.purpose {
        let mut of_jobs = json!({"labels": with(template_labels, &ours)});
        if !template_annotations.is_empty() {
            of_jobs["annotations"] = Value::Object(template_annotations);
        }
        let mut schedule = json!({
            "schedule": stream.schedule()?.unwrap_or_default(),
            "concurrencyPolicy": "Forbid",
            "suspend": false,
            "jobTemplate": {"metadata": of_jobs, "spec": spec},
        });
        if run.layout >= 1 {
            schedule["successfulJobsHistoryLimit"] = json!(SLOTS_KEPT);
            schedule["failedJobsHistoryLimit"] = json!(SLOTS_KEPT);
        }
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": schedule})
    } else {
        metadata["finalizers"] = json!([labels::OUTCOME]);
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    };
    context::check_size(&object)?;
    let spec_in_file = context.file.is_some();
    let file = context.file.map(|text| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": spec_name(&run.job), "namespace": stream.namespace(), "labels": ours},
            "data": {context::FILE: text},
        })
    });
    Ok(Made { children: file.into_iter().chain([object]).collect(), spec_in_file })
}

/// Finds what is wrong with what a request of this name passes on to the program.
pub fn check_payload(name: &str, request: &BackfillRequestSpec) -> Result<(), Problem> {
    context::check_payload(name, request).map(drop)
}

/// Finds why no Job can be made for a request although one could be made without it. What is wrong with the stream or the template is
/// no fault of the request.
pub fn check_request(
    stream: &Stream<'_>,
    template: &StreamingJobTemplate,
    name: &str,
    request: &BackfillRequestSpec,
) -> Result<(), Problem> {
    check_payload(name, request)?;
    let purpose = Purpose::Backfill { request: None, id: name.to_owned(), reload: None };
    let run = ActiveRun {
        number: 0,
        purpose,
        made_from: Hashes::default(),
        attempt: 0,
        job: String::new(),
        started_at: Timestamp::UNIX_EPOCH,
        layout: LAYOUT,
    };
    match job(stream, template, &run, Some(request)) {
        Err(problem) if job(stream, template, &run, None).is_ok() => {
            Err(Problem { path: format!("BackfillRequest {name}: spec.payload"), ..problem })
        }
        _ => Ok(()),
    }
}

/// The spec of the Job, or of those that a schedule makes.
fn job_spec(
    template: &StreamingJobTemplate,
    context: &Context,
    ours: &Map<String, Value>,
    run: &ActiveRun,
) -> Value {
    let mut spec = object(template.spec.template.get("spec"));
    if let Purpose::Schedule = run.purpose {
        // No finalizer holds these until their outcome is recorded: the controller of CronJobs does not pass it on. It keeps the last few
        // that have ended, unless they are to go by themselves.
        spec.remove("ttlSecondsAfterFinished");
    }
    say_defaults(&mut spec);
    let mut pod_template = object(spec.get("template"));
    let mut metadata = object(pod_template.get("metadata"));
    metadata.insert("labels".to_owned(), Value::Object(with(object(metadata.get("labels")), ours)));
    let mut pod = object(pod_template.get("spec"));
    let policy = pod.entry("restartPolicy").or_insert(Value::Null);
    if policy.is_null() {
        *policy = json!("Never");
    }
    let ends_with_its_container = *policy == "Never";
    context.give_to(&mut pod, &spec_name(&run.job));
    if run.layout >= 1 && ends_with_its_container && spec.get("podFailurePolicy").is_none_or(Value::is_null) {
        spec.insert("podFailurePolicy".to_owned(), ignore_disruptions());
    }
    pod_template.insert("metadata".to_owned(), Value::Object(metadata));
    pod_template.insert("spec".to_owned(), Value::Object(pod));
    spec.insert("template".to_owned(), Value::Object(pod_template));
    Value::Object(spec)
}

/// Pods that are evicted, preempted, or end with their node are replaced and do not count as failed. Only Jobs whose pods end with their
/// container can have this.
fn ignore_disruptions() -> Value {
    let condition = json!({"type": "DisruptionTarget", "status": "True"});
    json!({"rules": [{"action": "Ignore", "onPodConditions": [condition]}]})
}

/// Says what the server would fill in, of what can be changed in a Job that is there: what nobody has said is nobody's, and a change of
/// it would be let be.
fn say_defaults(spec: &mut Map<String, Value>) {
    let is_said =
        |spec: &Map<String, Value>, field: &str| spec.get(field).is_some_and(|value| !value.is_null());
    if !is_said(spec, "parallelism") {
        // With a parallelism of its own, a Job without a number of completions is of another sort.
        if !is_said(spec, "completions") {
            spec.insert("completions".to_owned(), json!(1));
        }
        spec.insert("parallelism".to_owned(), json!(1));
    }
    if !is_said(spec, "suspend") {
        spec.insert("suspend".to_owned(), json!(false));
    }
}

fn our_labels(stream: &Stream<'_>, run: &ActiveRun) -> Map<String, Value> {
    let mut all = vec![
        (labels::STREAM_UID, stream.uid()),
        (labels::STREAM, name::label(stream.name())),
        (labels::STREAM_KIND, name::label(&stream.class().kind_ref)),
    ];
    if let Purpose::Backfill { .. } = run.purpose {
        all.push((labels::BACKFILL, "true"));
    }
    all.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect()
}

/// The annotation that says which run this is.
fn mark(run: &ActiveRun) -> Map<String, Value> {
    Map::from_iter([(labels::RUN.to_owned(), Value::String(json!(run).to_string()))])
}

/// Labels and annotations that a template has for Jobs.
fn told(template: &Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
    let metadata = object(template.get("metadata"));
    (object(metadata.get("labels")), object(metadata.get("annotations")))
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn with(mut these: Map<String, Value>, over: &Map<String, Value>) -> Map<String, Value> {
    these.extend(over.clone());
    these
}
