//! `mainstay plan`: what a system would write now, and why. Nothing is written.
//!
//! ```text
//! SYSTEM or KIND ─▶ its operator, started but not running ─▶ caches filled ─▶ Operator::plan per parent ─▶ render
//! ```
//!
//! The plan is made by the code that would carry it out, on what the cluster holds now. A running operator may be ahead of
//! it by what has happened since.

mod ready;
mod render;

use crate::cluster::{Cluster, Connection, Selection, list, missing};
use crate::failure::Failure;
use crate::output::{Format, OBJECTS, Paint, patiently, print, say};
use crate::streams;
use crate::systems::{self, Parent, Reach, System};
use mainstay::plan::Plan;
use mainstay::{Key, Scope};
use render::Planned;
pub(crate) use render::tone;
use serde_json::Value;
use std::process::ExitCode;

/// How `mainstay plan` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A system, or a kind that its users write, by any of its names: webapp, webapps, wa.
    #[arg(value_name = "SYSTEM|KIND")]
    what: String,
    #[command(flatten)]
    objects: Selection,
    /// How to print it; name prints those for whom something would be written.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(OBJECTS))]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

/// Plans. The code is 1 if something is not as it should be.
pub(crate) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    match of(&options.what, &options.objects, options.output, &options.connection).await {
        Err(failure) if systems::meant(&options.what, "plan").is_err() => {
            Err(of_streams(options).await.unwrap_or(failure))
        }
        planned => planned,
    }
}

/// [`run`], for whoever knows what it is about.
pub(crate) async fn of(
    what: &str,
    objects: &Selection,
    output: Format,
    connection: &Connection,
) -> Result<ExitCode, Failure> {
    let (system, parents) = systems::meant(what, "plan")?;
    let cluster = connection.open().await?;
    let planned = patiently("reading the cluster", plan(system, &parents, &cluster, objects)).await?;
    print(&match output {
        Format::Json => crate::output::json(&render::data(&planned))?,
        Format::Yaml => crate::output::yaml(&render::data(&planned))?,
        Format::Name => render::names(&planned),
        Format::Table => render::text(&planned, Paint::of_stdout()),
    })?;
    let is_namespaced = parents.iter().any(|parent| parent.kind.scope() == Scope::Namespaced);
    let is_within = is_namespaced && objects.namespace(&cluster).is_some();
    say(&render::summary(&planned, system.name, is_within));
    Ok(render::code(&planned))
}

/// Why a kind of streams is not planned here. Which kinds are such is known to the cluster alone.
async fn of_streams(options: &Options) -> Option<Failure> {
    let cluster = options.connection.open().await.ok()?;
    let (_, parent) = streams::kind_called(&cluster, &options.what).await?;
    let error =
        anyhow::anyhow!("{} is a kind of streams, of which only a change is planned", parent.kind.kind());
    let next = "mainstay streams plan -f FILE shows which streams a changed class or template would restart";
    Some(Failure::new(error).next(next))
}

async fn plan(
    system: &'static System,
    parents: &[Parent],
    cluster: &Cluster,
    objects: &Selection,
) -> Result<Vec<Planned>, Failure> {
    let namespaced = parents.iter().all(|parent| parent.kind.scope() == Scope::Namespaced);
    let namespace = objects.namespace(cluster);
    // An operator for one namespace is enough if all is in there, and needs permissions only there.
    let reach = Reach { namespace: namespace.filter(|_| namespaced), leases: None };
    let operator = system.operator(cluster.client.clone(), reach).build();
    let operator =
        operator.map_err(|error| Failure::new(error).context(format!("cannot plan {}", system.name)))?;
    let mut planned = Vec::new();
    // Keeps the caches filled.
    let mut stepper = None;
    for parent in parents {
        let within = namespace.filter(|_| parent.kind.scope() == Scope::Namespaced);
        let keys = match &objects.name {
            Some(name) => vec![Key::new(within, name)],
            None => keys(parent, within, cluster, system).await?,
        };
        for key in keys {
            if stepper.is_none() {
                stepper = Some(ready::start(&operator, system)?);
            }
            ready::until_ready(&operator, system, &parent.kind).await?;
            let plan: Result<Plan, _> = ready::plan(&operator, &parent.kind, &key).await;
            if let Err(mainstay::PlanError::NoParent { .. }) = plan {
                return Err(missing(&parent.kind, &key));
            }
            planned.push(Planned { kind: parent.kind.clone(), key, plan });
        }
    }
    Ok(planned)
}

/// All parents of a kind.
async fn keys(
    parent: &Parent,
    namespace: Option<&str>,
    cluster: &Cluster,
    system: &System,
) -> Result<Vec<Key>, Failure> {
    let found = list(&cluster.client, &parent.kind.collection_path(namespace)).await;
    let objects = match found {
        Err(kube::Error::Api(status)) if status.code == 404 => return Err(parent.undefined(system)),
        found => found.map_err(|error| cluster.failed(&format!("list {}", parent.kind.plural()), error))?,
    };
    let text =
        |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let key = |object: &Value| {
        Some(Key::new(text(object, "/metadata/namespace").as_deref(), &text(object, "/metadata/name")?))
    };
    Ok(objects.iter().filter_map(key).collect())
}
