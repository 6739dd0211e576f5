//! `mainstay networks render`: all that networks would consist of. Needs no cluster.

use crate::failure::Failure;
use crate::fields::refuse_unknown;
use crate::input::read_file_or_stdin;
use crate::output::{Format, MANIFESTS, manifests, print};
use kube::{CustomResourceExt as _, ResourceExt as _};
use mainstay_networks::check::problems;
use mainstay_networks::config::NetworkConfig;
use mainstay_networks::graph::Edges;
use mainstay_networks::kinds::Network;
use mainstay_networks::objects::{self, Parts, pod_monitor};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What stands for the secret that the operator makes.
const SECRET: &str = "made by the operator";

/// How `mainstay networks render` is called.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Networks as they would be applied; - reads them from standard input.
    #[arg(short, long, value_name = "FILE", required = true)]
    file: PathBuf,
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", value_parser = Format::of(MANIFESTS))]
    output: Format,
}

/// Renders.
pub(super) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let shown = options.file.display().to_string();
    let mut rendered = Vec::new();
    for network in read(&options.file)? {
        let (name, config) = (network.name_any(), NetworkConfig::from(&network.spec));
        let wrong = problems(&network.spec, &config, &name);
        if !wrong.is_empty() {
            let all: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            return Err(Failure::new(anyhow::anyhow!(all.join("\n")))
                .context(format!("cannot render Network {name} of {shown}")));
        }
        let edges = Edges::new();
        let parts =
            Parts { secret: Some(SECRET), peers: Some((&[], &edges)), bootstrap: config.bootstrap.enabled };
        rendered.extend(objects::all(&name, &config, &parts));
        if config.monitoring.pod_monitor.enabled {
            rendered.extend((0..config.peers.len()).map(|place| pod_monitor(&name, &config, place)));
        }
    }
    if rendered.is_empty() {
        return Err(Failure::new(anyhow::anyhow!("there is no Network in {shown}")));
    }
    print(&manifests(&rendered, options.output)?)?;
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<Vec<Network>, Failure> {
    let doing = || format!("cannot read {}", file.display());
    let text = read_file_or_stdin(file).map_err(|error| Failure::new(error).context(doing()))?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| Failure::new(error).context(doing()))?;
    let networks = documents.into_iter().filter(|document| document["kind"] == "Network");
    let crds = [json!(Network::crd())];
    let read = networks.map(|document| {
        refuse_unknown(&document, &crds).map_err(|failure| failure.context(doing()))?;
        let read = serde_path_to_error::deserialize(document);
        read.map_err(|error| {
            let path = error.path().to_string();
            Failure::new(anyhow::anyhow!("{path}: {}", error.into_inner())).context(doing())
        })
    });
    read.collect()
}
