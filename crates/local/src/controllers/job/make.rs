//! New pods of a Job.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod};
use kube::ResourceExt as _;

use super::manage::NewPod;
use super::{COMPLETION_INDEX, FAILURE_COUNT, IGNORED_FAILURE_COUNT, TRACKING};
use crate::controllers::names::Names;
use crate::controllers::pods;

/// Characters of a generated name before its suffix.
const PREFIX_MAX: usize = 58;
/// In containers of indexed Jobs.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// The pods to be made, under names that are not taken.
pub(super) fn new_pods(
    job: &Job,
    new: &[NewPod],
    names: &Names,
    is_taken: impl Fn(&str) -> bool,
) -> Vec<Pod> {
    let prefix_of = |pod: &NewPod| prefix(&job.name_any(), pod.index);
    let free = names.new_names(|place| new.get(place).map(prefix_of).unwrap_or_default(), is_taken);
    new.iter().zip(free).filter_map(|(pod, name)| new_pod(job, pod, &name, &prefix_of(pod))).collect()
}

/// What names of pods begin with.
fn prefix(job: &str, index: Option<i32>) -> String {
    let ending = index.map_or_else(|| "-".to_owned(), |index| format!("-{index}-"));
    let room = PREFIX_MAX.saturating_sub(ending.len());
    format!("{}{ending}", &job[..job.floor_char_boundary(room)])
}

fn new_pod(job: &Job, new: &NewPod, name: &str, prefix: &str) -> Option<Pod> {
    let mut pod = pods::pod_from(&job.spec.as_ref()?.template, name);
    pod.metadata.generate_name = Some(prefix.to_owned());
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == TRACKING) {
        finalizers.push(TRACKING.to_owned());
    }
    let Some(index) = new.index else { return Some(pod) };
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(COMPLETION_INDEX.to_owned(), index.to_string());
    if let Some((counted, ignored)) = new.failures {
        annotations.insert(FAILURE_COUNT.to_owned(), counted.to_string());
        if ignored > 0 {
            annotations.insert(IGNORED_FAILURE_COUNT.to_owned(), ignored.to_string());
        }
    }
    pod.metadata.labels.get_or_insert_default().insert(COMPLETION_INDEX.to_owned(), index.to_string());
    if let Some(spec) = &mut pod.spec {
        spec.hostname = Some(format!("{}-{index}", job.name_any()));
        for container in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
            tell_index(container);
        }
    }
    Some(pod)
}

/// Gives a container its index, unless it has a variable of that name.
fn tell_index(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let field_ref = ObjectFieldSelector {
        field_path: format!("metadata.labels['{COMPLETION_INDEX}']"),
        api_version: None,
    };
    let source = EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() };
    variables.push(EnvVar { name: INDEX_VARIABLE.to_owned(), value: None, value_from: Some(source) });
}
