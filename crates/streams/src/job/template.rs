//! Whether a Job can be made from a template.

use k8s_openapi::api::batch::v1::JobTemplateSpec;
use kube::ResourceExt as _;
use serde_json::Value;

use crate::kinds::StreamingJobTemplate;
use crate::wish::Problem;

/// A template is there, and no Job can be made from it.
pub const TEMPLATE_INVALID: &str = "TemplateInvalid";
const POD: &str = "spec.template.spec";
/// The restart policies that a Job's pods can have. Without one, they get the first.
const RESTART_POLICIES: [&str; 2] = ["Never", "OnFailure"];

/// Finds what is wrong with a template: fields of another type than a Job's, no containers, and a restart policy that no Job can have. The
/// server finds the rest.
pub fn check(template: &StreamingJobTemplate) -> Result<(), Problem> {
    let problem = |field: &str, message: String| Problem {
        reason: TEMPLATE_INVALID,
        path: format!("StreamingJobTemplate {}: spec.template{field}", template.name_any()),
        message,
    };
    let value = Value::Object(template.spec.template.clone());
    let job: JobTemplateSpec = serde_path_to_error::deserialize(&value).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { format!(".{path}") };
        problem(&path, error.inner().to_string())
    })?;
    let pod = job.spec.and_then(|job| job.template.spec).unwrap_or_default();
    if pod.containers.is_empty() {
        return Err(problem(&format!(".{POD}.containers"), "is empty, must have at least one".to_owned()));
    }
    if let Some(policy) = pod.restart_policy.as_deref().filter(|policy| !RESTART_POLICIES.contains(policy)) {
        let message = format!("is {policy:?}, must be {}", RESTART_POLICIES.join(" or "));
        return Err(problem(&format!(".{POD}.restartPolicy"), message));
    }
    let lists =
        [("containers", Some(pod.containers.as_slice())), ("initContainers", pod.init_containers.as_deref())];
    for (list, containers) in lists {
        for (place, container) in containers.into_iter().flatten().enumerate() {
            if container.name.is_empty() {
                let path = format!(".{POD}.{list}[{place}].name");
                return Err(problem(&path, "is not there, must be the container's name".to_owned()));
            }
        }
    }
    Ok(())
}
