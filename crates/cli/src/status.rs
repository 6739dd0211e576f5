//! `mainstay status`: objects with all that is made for them, and whether it does its work.
//!
//! ```text
//! KIND [NAME] ─▶ roots ─┐
//! every kind there is ──┴─▶ gather: who owns whom ─▶ tree (pure) ─▶ render
//! ```

pub(crate) mod gather;
mod render;
pub(crate) mod state;
pub(crate) mod tree;

use crate::cluster::{Catalog, Cluster, Connection, Selection, get, list, missing};
use crate::failure::Failure;
use crate::output::{Format, OBJECTS, Paint, json, patiently, print, say, yaml};
use crate::streams;
use crate::systems;
use gather::Gathered;
use jiff::Timestamp;
use mainstay::{Key, Kind, Scope};
use serde_json::Value;
use std::process::ExitCode;

/// How `mainstay status` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Any kind of the cluster, or a system: wa, deployments, Job [default: all that users of the systems write].
    kind: Option<String>,
    #[command(flatten)]
    objects: Selection,
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(OBJECTS))]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

/// Shows how things stand. The code is 1 if something is not ready.
pub(crate) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let cluster = options.connection.open().await?;
    let (kinds, gathered) = patiently("reading the cluster", look(&cluster, options)).await?;
    let Gathered { trees, left_out } = &gathered;
    print(&match options.output {
        Format::Json => json(&render::data(trees))?,
        Format::Yaml => yaml(&render::data(trees))?,
        Format::Name => render::names(trees),
        Format::Table => {
            let (now, paint) = (Timestamp::now(), Paint::of_stdout());
            let namespaces = options.objects.all_namespaces;
            let mut text = render::table(trees, namespaces, now, paint);
            if options.objects.name.is_some() {
                for tree in trees {
                    text.push_str(&render::conditions(tree, now, paint));
                }
            }
            text
        }
    })?;
    say(&render::left_out(left_out));
    say(&if trees.is_empty() { empty(&kinds, options, &cluster) } else { render::summary(trees) });
    Ok(u8::from(!trees.iter().all(tree::Tree::is_fine)).into())
}

/// The kinds that were meant, and what there is of them.
async fn look(cluster: &Cluster, options: &Options) -> Result<(Vec<Kind>, Gathered), Failure> {
    let catalog = Catalog::fetch(&cluster.client).await;
    let catalog = catalog.map_err(|error| cluster.failed("ask which kinds there are", error))?;
    let mut kinds = match &options.kind {
        Some(name) => meant(&catalog, name)?,
        None => all_parents(&catalog)?,
    };
    // Streams belong to their system, whatever their kinds are.
    if options.kind.as_deref().is_none_or(|name| name == mainstay_streams::NAME) {
        kinds.extend(streams::kinds(cluster, &catalog).await);
    }
    let namespace = options.objects.namespace(cluster);
    let mut roots = Vec::new();
    let mut left_out = Vec::new();
    for kind in &kinds {
        let within = namespace.filter(|_| kind.scope() == Scope::Namespaced);
        match &options.objects.name {
            Some(name) => roots.extend(one(cluster, kind, &Key::new(within, name)).await?),
            None => match list(&cluster.client, &kind.collection_path(within)).await {
                Ok(found) => roots.extend(found),
                // Who asked for nothing in particular is shown what there is to see.
                Err(kube::Error::Api(status)) if status.code == 403 && options.kind.is_none() => {
                    left_out.push((kind.clone(), status.message));
                }
                Err(error) => return Err(cluster.failed(&format!("list {}", kind.plural()), error)),
            },
        }
    }
    if let (Some(name), Some(kind), true) = (&options.objects.name, kinds.first(), roots.is_empty()) {
        let within = namespace.filter(|_| kind.scope() == Scope::Namespaced);
        return Err(missing(kind, &Key::new(within, name)));
    }
    // What is made for an object in a namespace is in that namespace.
    let is_within = kinds.iter().all(|kind| kind.scope() == Scope::Namespaced);
    let mut gathered = gather::gather(cluster, &catalog, roots, namespace.filter(|_| is_within)).await?;
    gathered.left_out.splice(0..0, left_out);
    Ok((kinds, gathered))
}

/// The kinds that a word means.
fn meant(catalog: &Catalog, name: &str) -> Result<Vec<Kind>, Failure> {
    if let Some(resource) = catalog.find(name) {
        return Ok(vec![resource.kind.clone()]);
    }
    if let Some(system) = systems::ALL.iter().find(|system| system.name == name) {
        let parents = system.parents()?.into_iter().map(|parent| parent.kind);
        let served: Vec<Kind> = parents.filter(|kind| catalog.serves(kind)).collect();
        if !served.is_empty() {
            return Ok(served);
        }
    }
    let failure = Failure::new(anyhow::anyhow!("the cluster has no kind {name}"));
    if let Some((system, _)) = systems::of_kind(name)? {
        return Err(failure.next(system.define()));
    }
    Err(match catalog.similar(name) {
        Some(similar) => failure.next(format!("mainstay status {}", similar.kind.plural())),
        None => failure.next("kubectl api-resources lists the kinds"),
    })
}

/// What users of all systems write, as far as the cluster has it.
fn all_parents(catalog: &Catalog) -> Result<Vec<Kind>, Failure> {
    let mut kinds = Vec::new();
    for system in &systems::ALL {
        kinds.extend(
            system.parents()?.into_iter().map(|parent| parent.kind).filter(|kind| catalog.serves(kind)),
        );
    }
    Ok(kinds)
}

async fn one(cluster: &Cluster, kind: &Kind, key: &Key) -> Result<Option<Value>, Failure> {
    let found = get(&cluster.client, &kind.object_path(key)).await;
    found.map_err(|error| cluster.failed(&format!("read {} {key}", kind.kind()), error))
}

fn empty(kinds: &[Kind], options: &Options, cluster: &Cluster) -> String {
    if kinds.is_empty() {
        let names = systems::names();
        return format!("the cluster has no kind of {names}\nnext: mainstay check tells what is missing\n");
    }
    let plurals: Vec<&str> = kinds.iter().map(Kind::plural).collect();
    let plurals = plurals.join(" and no ");
    let is_within = kinds.iter().any(|kind| kind.scope() == Scope::Namespaced);
    match options.objects.namespace(cluster).filter(|_| is_within) {
        Some(namespace) => {
            format!("there are no {plurals} in namespace {namespace}\nnext: -A looks in all namespaces\n")
        }
        None => format!("there are no {plurals} in the cluster\n"),
    }
}
