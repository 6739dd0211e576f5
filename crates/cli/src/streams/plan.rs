//! `mainstay streams plan`: which streams a changed class or template would restart, and why. Nothing is written.
//!
//! ```text
//! FILE ─▶ documents ─┐
//! classes, templates, streams ─┴─▶ each stream read with what is there and with what would be ─▶ render
//! ```

mod compare;
mod documents;
mod render;

use super::find;
use crate::cluster::{Cluster, Connection, list};
use crate::failure::Failure;
use crate::output::{Format, OBJECTS, Paint, json, patiently, print, say, yaml};
use compare::{Planned, World};
use documents::Documents;
use mainstay::Kind;
use mainstay_streams::kinds::StreamingJobTemplate;
use std::path::PathBuf;
use std::process::ExitCode;

/// How `mainstay streams plan` is called.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Classes and templates as they would be applied; - reads them from standard input.
    #[arg(short, long, value_name = "FILE", required = true)]
    file: Vec<PathBuf>,
    /// Look at streams of this namespace only. Templates that name none are of it, or else of the context's.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// How to print it; name prints those that something would happen to.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(OBJECTS))]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

/// Plans. The code is 1 if something would happen to a stream.
pub(super) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let documents = documents::read(&options.file)?;
    let cluster = options.connection.open().await?;
    let world = patiently("reading the cluster", look(&cluster, options, documents)).await?;
    let planned =
        world.plan().map_err(|error| Failure::new(anyhow::anyhow!("{error}")).context("cannot plan"))?;
    print(&match options.output {
        Format::Json => json(&render::data(&planned))?,
        Format::Yaml => yaml(&render::data(&planned))?,
        Format::Name => {
            planned.iter().filter(|one| one.happens()).map(|one| one.named.clone() + "\n").collect()
        }
        Format::Table => render::table(&planned, Paint::of_stdout()),
    })?;
    say(&find::left_out(&world.left_out));
    say(&render::summary(&planned));
    Ok(u8::from(planned.iter().any(Planned::happens)).into())
}

async fn look(cluster: &Cluster, options: &Options, documents: Documents) -> Result<World, Failure> {
    let documents = documents.within(cluster.or_default(options.namespace.as_deref()));
    let now = find::classes(cluster).await?;
    let kind = Kind::of::<StreamingJobTemplate>();
    let path = kind.collection_path(options.namespace.as_deref());
    let found = list(&cluster.client, &path).await;
    let found = found.map_err(|error| cluster.failed("list streamingjobtemplates", error))?;
    let templates = found.into_iter().filter_map(|template| serde_json::from_value(template).ok()).collect();
    let mut world = World::new(now, templates, documents);
    let (mut streams, mut left_out) = (Vec::new(), Vec::new());
    for class in world.classes() {
        match list(&cluster.client, &class.kind.collection_path(options.namespace.as_deref())).await {
            Ok(found) => streams.extend(found.into_iter().map(|object| find::Found::new(&class, object))),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                let why = format!("the cluster does not have the kind {}", class.kind);
                left_out.push((class.name.clone(), why));
            }
            Err(error) => return Err(cluster.failed(&format!("list {}", class.kind.plural()), error)),
        }
    }
    world.streams = streams;
    world.left_out = left_out;
    Ok(world)
}
