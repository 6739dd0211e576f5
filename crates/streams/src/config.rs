//! What code uses of a class: every field is there. The defaults are here and nowhere else.

use mainstay::Config;
use serde::Serialize;

use crate::kinds::{ExitCodesSpec, PathsSpec, RestartSpec, RolloutSpec, StartRateSpec, StreamClassSpec};

/// A [`StreamClassSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = StreamClassSpec, rename_all = "camelCase")]
pub struct StreamClassConfig {
    /// The API group of the kind.
    #[config(required)]
    pub api_group_ref: String,
    /// The version of it that is watched.
    #[config(required)]
    pub api_version: String,
    /// The kind.
    #[config(required)]
    pub kind_ref: String,
    /// Its plural, as in URLs.
    #[config(required)]
    pub plural_name: String,
    /// Fields of a stream's spec that refer to Secrets.
    pub secret_refs: Vec<String>,
    /// Where in a stream things are.
    #[config(nested)]
    pub paths: PathsConfig,
    /// What happens when a Job ends.
    #[config(nested)]
    pub restart: RestartConfig,
    /// How fast Jobs are started.
    #[config(nested)]
    pub start_rate: StartRateConfig,
    /// How many streams are restarted at once when a template or a Secret changes.
    #[config(nested)]
    pub rollout: RolloutConfig,
    /// Whether a new stream is backfilled before it runs.
    pub initial_backfill: InitialBackfill,
    /// How many past runs a stream's status tells of.
    pub history: u32,
    /// Streams of the kind are not looked at.
    pub stopped: bool,
}

impl Default for StreamClassConfig {
    fn default() -> Self {
        Self {
            api_group_ref: String::new(),
            api_version: String::new(),
            kind_ref: String::new(),
            plural_name: String::new(),
            secret_refs: Vec::new(),
            paths: PathsConfig::default(),
            restart: RestartConfig::default(),
            start_rate: StartRateConfig::default(),
            rollout: RolloutConfig::default(),
            initial_backfill: InitialBackfill::IfTemplate,
            history: 5,
            stopped: false,
        }
    }
}

/// Whether a new stream is backfilled before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum InitialBackfill {
    /// If it names a template for backfills.
    IfTemplate,
    /// Yes.
    Always,
    /// No.
    Never,
}

impl From<bool> for InitialBackfill {
    fn from(wanted: bool) -> Self {
        if wanted { Self::Always } else { Self::Never }
    }
}

/// A [`PathsSpec`] with nothing left out: paths from the object's root.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = PathsSpec, rename_all = "camelCase")]
pub struct PathsConfig {
    /// The reference to a template.
    pub job_template_ref: String,
    /// The same for streams with a schedule. Empty: as the other.
    pub scheduled_job_template_ref: String,
    /// The same for backfills.
    pub backfill_job_template_ref: String,
    /// Whether the stream is suspended.
    pub suspended: String,
    /// A cron schedule.
    pub schedule: String,
}

impl Default for PathsConfig {
    fn default() -> Self {
        Self {
            job_template_ref: "spec.jobTemplateRef".into(),
            scheduled_job_template_ref: String::new(),
            backfill_job_template_ref: "spec.backfillJobTemplateRef".into(),
            suspended: "spec.suspended".into(),
            schedule: "spec.schedule".into(),
        }
    }
}

/// A [`RestartSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = RestartSpec, rename_all = "camelCase")]
pub struct RestartConfig {
    /// So many failed Jobs in a row are followed by another.
    pub budget: u32,
    /// The seconds before the first of these; each further one waits twice as long.
    pub backoff_seconds: u32,
    /// The most seconds to wait.
    pub max_backoff_seconds: u32,
    /// A Job that ran for so many seconds before it failed is the first failure again.
    pub healthy_seconds: u32,
    /// The least seconds between the starts of two Jobs of a stream that completes.
    pub minimum_interval_seconds: u32,
    /// What exit codes mean.
    #[config(nested)]
    pub exit_codes: ExitCodesConfig,
}

impl Default for RestartConfig {
    fn default() -> Self {
        Self {
            budget: 0,
            backoff_seconds: 10,
            max_backoff_seconds: 300,
            healthy_seconds: 600,
            minimum_interval_seconds: 10,
            exit_codes: ExitCodesConfig::default(),
        }
    }
}

/// An [`ExitCodesSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Default, Config)]
#[config(spec = ExitCodesSpec, rename_all = "camelCase")]
pub struct ExitCodesConfig {
    /// Tried again, without end and without being counted.
    pub retryable: Vec<i32>,
    /// A crash loop at once.
    pub fatal: Vec<i32>,
    /// The program asks for a backfill.
    pub backfill: Vec<i32>,
}

/// A [`StartRateSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = StartRateSpec, rename_all = "camelCase")]
pub struct StartRateConfig {
    /// So many at once.
    pub burst: u32,
    /// So many per minute after that.
    pub per_minute: u32,
}

impl Default for StartRateConfig {
    fn default() -> Self {
        Self { burst: 100, per_minute: 600 }
    }
}

/// A [`RolloutSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = RolloutSpec, rename_all = "camelCase")]
pub struct RolloutConfig {
    /// The number of streams that may be stopped, or restarted and not ready, on account of a changed template or Secret.
    pub max_unavailable: u32,
    /// The seconds that the pods of a restarted stream must be ready before another takes its turn.
    pub min_ready_seconds: u32,
}

impl Default for RolloutConfig {
    fn default() -> Self {
        Self { max_unavailable: 10, min_ready_seconds: 10 }
    }
}
