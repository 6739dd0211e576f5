//! A run of a stream as the objects that it is made of, and back again from live ones.
//!
//! ```text
//! stream + template + run ─▶ Job, or CronJob for a schedule (+ ConfigMap, if the spec is too long for the environment)
//! live Job + its pods ─▶ how far it is
//! ```
//!
//! The same stream, template and run make the same objects, to the byte. There are no owner references in them: the framework adds these.

mod context;
mod name;
mod read;
pub mod template;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

pub use context::{PAYLOAD_TOO_LARGE, SPEC_TOO_LARGE};
pub use name::{run_name, spec_name};
pub use read::{JOB_NAME, has_failed, is_left_behind, read_job, read_schedule};

use crate::kinds::{ActiveRun, BackfillRequestSpec, Purpose, StreamingJobTemplate, labels};
use crate::wish::{Problem, Stream};
use context::Context;

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
        json!({
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": metadata,
            "spec": {
                "schedule": stream.schedule()?.unwrap_or_default(),
                "concurrencyPolicy": "Forbid",
                "suspend": false,
                "jobTemplate": {"metadata": of_jobs, "spec": spec},
            },
        })
    } else {
        metadata["finalizers"] = json!([labels::OUTCOME]);
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    };
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
    context.give_to(&mut pod, &spec_name(&run.job));
    pod_template.insert("metadata".to_owned(), Value::Object(metadata));
    pod_template.insert("spec".to_owned(), Value::Object(pod));
    spec.insert("template".to_owned(), Value::Object(pod_template));
    Value::Object(spec)
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
