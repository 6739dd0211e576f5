//! Objects made from a stream and a template, and live ones read.

mod making;
mod names;
mod reading;

use serde_json::{Value, json};

use crate::config::StreamClassConfig;
use crate::kinds::{ActiveRun, Hashes, Purpose, StreamingJobTemplate, StreamingJobTemplateSpec};

fn class() -> StreamClassConfig {
    StreamClassConfig {
        api_group_ref: "example.com".into(),
        kind_ref: "Orders".into(),
        secret_refs: vec!["login".into()],
        ..StreamClassConfig::default()
    }
}

fn stream() -> Value {
    json!({
        "metadata": {"name": "eu", "namespace": "shop", "uid": "u1"},
        "spec": {"jobTemplateRef": {"name": "fast"}, "login": {"name": "eu-login"}, "price": "5 $(EUR)"},
    })
}

#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn template(template: Value) -> StreamingJobTemplate {
    let template = template.as_object().unwrap().clone();
    StreamingJobTemplate::new("fast", StreamingJobTemplateSpec { template })
}

fn bare_template() -> StreamingJobTemplate {
    template(json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "work"}]}}}}))
}

fn run(purpose: Purpose) -> ActiveRun {
    let made_from = Hashes { spec: "a1".into(), template: "b2".into(), ..Hashes::default() };
    ActiveRun {
        number: 3,
        purpose,
        made_from,
        attempt: 0,
        job: "eu-0123456789-3".into(),
        started_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        layout: 0,
    }
}

fn backfill() -> Purpose {
    Purpose::Backfill { request: Some("r1".into()), id: "again".into(), reload: None }
}
