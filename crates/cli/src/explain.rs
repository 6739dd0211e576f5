//! `mainstay explain`: why what happened for an object happened.
//!
//! ```text
//! KIND NAME ─▶ the object ─▶ which of its values were given ─────────────────┐
//!         └─▶ who runs its system (find) ─▶ /debug/parents: its last plans ──┴─▶ render
//! ```
//!
//! Only the operator itself knows what it did and why. It is found, in this order: where `--at` says; in the `ConfigMap` where
//! `mainstay run` and `mainstay up` leave their addresses; among the pods that `mainstay install` makes, through the API server.

mod find;
mod render;

use crate::cluster::{Cluster, Connection, get, missing};
use crate::failure::Failure;
use crate::output::{Format, Paint, REPORTS, json, patiently, print, say, yaml};
use crate::streams;
use crate::systems::{self, Parent, System};
use crate::token;
use jiff::Timestamp;
use mainstay::{Key, Scope};
use render::{Explained, Report};
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

/// How `mainstay explain` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A kind that users of a system write, by any of its names: webapp, webapps, wa; or a kind of streams.
    kind: String,
    /// Which object.
    name: String,
    /// In this namespace [default: the context's].
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Where its operator serves, if it cannot be found.
    #[arg(long, value_name = "URL")]
    at: Option<http::Uri>,
    /// A file with the token that its operator asks for. It is sent to no address but that of --at.
    #[arg(long, value_name = "FILE", requires = "at")]
    debug_token_file: Option<PathBuf>,
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(REPORTS))]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

/// Explains. The code is 1 if the last attempt for the object failed.
pub(crate) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let (cluster, system, parent) = match systems::meant(&options.kind, "explain") {
        Ok((system, parents)) => {
            let parent = only(&options.kind, parents)?;
            (options.connection.open().await?, system, parent)
        }
        // Kinds of streams are known to the cluster alone.
        Err(failure) => {
            let Ok(cluster) = options.connection.open().await else { return Err(failure) };
            let Some((system, parent)) = streams::kind_called(&cluster, &options.kind).await else {
                return Err(failure);
            };
            (cluster, system, parent)
        }
    };
    let namespaced = parent.kind.scope() == Scope::Namespaced;
    let namespace = namespaced.then(|| cluster.or_default(options.namespace.as_deref()));
    let key = Key::new(namespace, &options.name);
    let object = object(&cluster, system, &parent, &key).await?;
    let token = options.debug_token_file.as_deref().map(token::read).transpose()?;
    let asking = find::ask(&cluster, system, (options.at.as_ref(), token.as_deref()), &parent, &key);
    let asked = patiently("asking the operator", asking).await;
    let (report, failure) = match asked {
        Ok(report) => (Some(report), None),
        Err(failure) => (None, Some(failure)),
    };
    let told = Explained {
        object: format!("{} {key}", parent.kind.kind()),
        values: system.origins(&object),
        report,
    };
    // What the object itself tells is told even if nobody can be asked about it.
    if told.report.is_some() || told.values.is_some() {
        show(&told, options.output)?;
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(u8::from(told.report.is_some_and(|report| report.error.is_some())).into()),
    }
}

fn show(told: &Explained, format: Format) -> Result<(), Failure> {
    print(&match format {
        Format::Json => json(told)?,
        Format::Yaml => yaml(told)?,
        Format::Table | Format::Name => render::text(told, Timestamp::now(), Paint::of_stdout()),
    })?;
    if told.report.as_ref().is_some_and(Report::is_silent) {
        say("the operator that was asked has written nothing for it since it started\n");
    }
    Ok(())
}

async fn object(cluster: &Cluster, system: &System, parent: &Parent, key: &Key) -> Result<Value, Failure> {
    let doing = format!("read {} {key}", parent.kind.kind());
    let found = match get(&cluster.client, &parent.kind.object_path(key)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Err(parent.undefined(system)),
        found => found.map_err(|error| cluster.failed(&doing, error))?,
    };
    found.ok_or_else(|| missing(&parent.kind, key))
}

/// The one kind that is meant.
fn only(word: &str, mut parents: Vec<Parent>) -> Result<Parent, Failure> {
    match (parents.pop(), parents.is_empty()) {
        (Some(parent), true) => Ok(parent),
        _ => {
            Err(Failure::new(anyhow::anyhow!("{word} has several kinds")).next("name the kind of the object"))
        }
    }
}
