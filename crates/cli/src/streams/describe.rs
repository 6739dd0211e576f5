//! `mainstay streams describe`: all there is to know of a stream, on one screen.

mod render;

use super::find::{self, Found, Place};
use crate::cluster::{Cluster, list};
use crate::failure::Failure;
use crate::output::{Format, Paint, REPORTS, json, patiently, print, say, yaml};
use jiff::Timestamp;
use mainstay::Kind;
use mainstay_streams::kinds::BackfillRequest;
use serde_json::{Value, json as object};
use std::process::ExitCode;

/// How `mainstay streams describe` is called.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Which stream.
    #[arg(value_name = "STREAM", conflicts_with = "all_namespaces")]
    name: String,
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(REPORTS))]
    output: Format,
    #[command(flatten)]
    place: Place,
}

/// All that is told of a stream.
struct Described {
    stream: Found,
    /// Those for it, the newest first.
    requests: Vec<BackfillRequest>,
    /// The newest first.
    events: Vec<Value>,
}

/// Describes.
pub(super) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let cluster = options.place.connection.open().await?;
    let described = patiently("reading the cluster", look(&cluster, options)).await?;
    let data = || {
        object!({"class": described.stream.class.name, "stream": described.stream.object,
            "requests": described.requests, "events": described.events})
    };
    print(&match options.output {
        Format::Json => json(&data())?,
        Format::Yaml => yaml(&data())?,
        Format::Table | Format::Name => render::text(&described, Timestamp::now(), Paint::of_stdout()),
    })?;
    if options.output == Format::Table {
        say(&render::next(&described));
    }
    Ok(ExitCode::SUCCESS)
}

async fn look(cluster: &Cluster, options: &Options) -> Result<Described, Failure> {
    let stream = find::one(cluster, &options.place, &options.name).await?;
    let namespace = stream.stream().namespace();
    let path = Kind::of::<BackfillRequest>().collection_path(Some(namespace));
    let requests = list(&cluster.client, &path).await;
    let requests = requests.map_err(|error| cluster.failed("list backfillrequests", error))?;
    let requests = requests.into_iter().filter_map(|request| serde_json::from_value(request).ok());
    let is_for = |request: &BackfillRequest| {
        request.spec.stream_class == stream.class.name && request.spec.stream_id == stream.stream().name()
    };
    let mut requests: Vec<BackfillRequest> = requests.filter(is_for).collect();
    requests.sort_by(|one, other| other.metadata.creation_timestamp.cmp(&one.metadata.creation_timestamp));
    let events = cluster.events_about(Some(namespace), stream.stream().uid()).await?;
    Ok(Described { stream, requests, events })
}
