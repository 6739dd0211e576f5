//! What users write and read. Specs leave out whatever can have a default; [`config`](crate::config) has it all.

mod backfill;
mod class;
mod status;
mod template;

pub use backfill::{
    BackfillPhase, BackfillRange, BackfillRequest, BackfillRequestSpec, BackfillRequestStatus,
};
pub use class::{
    ClassPhase, ExitCodesSpec, PathsSpec, RestartSpec, RolloutSpec, StartRateSpec, StreamClass,
    StreamClassSpec, StreamClassStatus, StreamCounts,
};
use schemars::Schema;
use serde_json::{Value, json};
pub use status::{
    ActiveRun, BackfillOutcome, BegunBackfill, Hashes, Outcome, PastRun, Phase, Purpose, Rollout,
    StreamStatus,
};
pub use template::{StreamingJobTemplate, StreamingJobTemplateSpec};

/// The API group of all kinds that are not the user's own.
pub const GROUP: &str = "streams.mainstay.dev";

/// What a user or a command sets on a stream to have it do something. The operator only reads them.
pub mod annotations {
    /// `true`: the stream is suspended, whatever its spec says.
    pub const SUSPEND: &str = "mainstay.dev/suspend";
    /// Another value than at the start of the present run: it is stopped, and a new one started.
    pub const RESTART: &str = "mainstay.dev/restart";
    /// A value that was not seen before: the stream is backfilled, then goes on.
    pub const RELOAD: &str = "mainstay.dev/reload";
    /// The start of an annotation for each downtime that the stream is in: `downtime.mainstay.dev/KEY`. Its value is the time at which
    /// it began.
    pub const DOWNTIME: &str = "downtime.mainstay.dev/";
}

/// What the operator puts on the Jobs that it makes.
pub mod labels {
    /// The uid of the stream. On Jobs, `CronJob`s, their pods, and on requests for backfills.
    pub const STREAM_UID: &str = "mainstay.dev/stream-uid";
    /// The stream's name, shortened to what a label can hold.
    pub const STREAM: &str = "mainstay.dev/stream";
    /// The stream's kind.
    pub const STREAM_KIND: &str = "mainstay.dev/stream-kind";
    /// `true` on those that backfill.
    pub const BACKFILL: &str = "mainstay.dev/backfill";
    /// An annotation: which run of the stream this is, and what it was made from, as JSON of [`ActiveRun`](super::ActiveRun).
    pub const RUN: &str = "mainstay.dev/run";
    /// A finalizer: the Job stays until its outcome is in the stream's status.
    pub const OUTCOME: &str = "mainstay.dev/outcome";
}

/// The definitions of the operator's own kinds, as they are applied.
pub fn definitions() -> Vec<Value> {
    use kube::CustomResourceExt as _;
    let all = [StreamClass::crd(), StreamingJobTemplate::crd(), BackfillRequest::crd()];
    all.iter().map(|definition| json!(definition)).collect()
}

/// Kubernetes knows no formats of unsigned numbers, and warns of them. The least value says as much.
fn signed(schema: &mut Schema) {
    let format = match schema.get("format").and_then(Value::as_str) {
        Some("uint32") => "int32",
        Some("uint" | "uint64") => "int64",
        _ => return,
    };
    schema.insert("format".to_owned(), json!(format));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
        found.extend(schema["format"].as_str());
        let inner = schema.as_object().into_iter().flat_map(|fields| fields.values());
        let listed = schema.as_array().into_iter().flatten();
        inner.chain(listed).for_each(|inner| formats(inner, found));
    }

    #[test]
    fn all_formats_are_known_to_kubernetes() {
        let definitions = definitions();
        let mut found = Vec::new();
        for definition in &definitions {
            formats(definition, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, ["date-time", "int32", "int64"]);
    }
}
