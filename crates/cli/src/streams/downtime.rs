//! `mainstay streams downtime`: many streams at once do not run for a while.
//!
//! A downtime is an annotation of each of its streams and nothing besides: `downtime.mainstay.dev/KEY`, with the time at which it
//! began. A stream may be in several; it runs again when the last one is over.

use super::change::{Changed, Many, annotate, show};
use super::find::{self, Found, Place};
use crate::failure::Failure;
use crate::output::{Format, OBJECTS, Paint, Table, age, count, json, patiently, print, say, yaml};
use jiff::Timestamp;
use mainstay_streams::kinds::annotations;
use serde::Serialize;
use serde_json::{Map, Value, json as object};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// The most characters of an annotation's name behind the slash.
const LONGEST: usize = 63;

/// How `mainstay streams downtime` is called.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Begin a downtime for streams. Streams that are made later are not in it.
    Start(Start),
    /// End a downtime.
    Stop(Stop),
    /// List downtimes.
    List(List),
}

#[derive(Debug, clap::Args)]
struct Start {
    /// What it is called: letters, digits, '-', '_', '.'.
    #[arg(value_parser = key, requires = "Many")]
    key: String,
    #[command(flatten)]
    many: Many,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct Stop {
    /// What it was called when it began.
    #[arg(value_parser = key)]
    key: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct List {
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(OBJECTS))]
    output: Format,
    #[command(flatten)]
    place: Place,
}

/// What an annotation's name can end with.
fn key(text: &str) -> Result<String, String> {
    let is_end = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if text.len() > LONGEST {
        return Err(format!("longer than {LONGEST} characters"));
    }
    if is_end(text.chars().next()) && is_end(text.chars().last()) && text.chars().all(is_inner) {
        return Ok(text.to_owned());
    }
    Err("expected letters, digits, '-', '_' and '.', with a letter or digit at both ends".to_owned())
}

/// Does what is asked.
pub(super) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    match &options.verb {
        Verb::Start(options) => start(options).await,
        Verb::Stop(options) => stop(options).await,
        Verb::List(options) => list(options).await,
    }
}

async fn start(options: &Start) -> Result<ExitCode, Failure> {
    let cluster = options.place.connection.open().await?;
    let streams = options.many.find(&cluster, &options.place).await?;
    let annotation = format!("{}{}", annotations::DOWNTIME, options.key);
    let since = format!("{:.0}", Timestamp::now());
    // Who begins it again does not make it younger.
    let wanted = |now: Option<&str>| now.is_none().then(|| object!(since));
    if options.many.only_shows() {
        return show(&streams, "suspended", |found| found.stream().annotation(&annotation).is_none());
    }
    let code =
        tell(annotate(&cluster, streams, &annotation, wanted).await, "suspended", "was in it already")?;
    say(&format!("next: mainstay streams downtime stop {} ends it\n", options.key));
    Ok(code)
}

async fn stop(options: &Stop) -> Result<ExitCode, Failure> {
    let cluster = options.place.connection.open().await?;
    let looking = find::streams(&cluster, &options.place, None);
    let mut streams = patiently("reading the cluster", looking).await?;
    say(&find::left_out(&streams.left_out));
    let annotation = format!("{}{}", annotations::DOWNTIME, options.key);
    streams.found.retain(|found| found.stream().annotation(&annotation).is_some());
    if streams.found.is_empty() {
        let (key, place) = (&options.key, options.place.told(&cluster));
        let error = anyhow::anyhow!("no stream{place} is in a downtime {key}");
        return Err(Failure::new(error).next("mainstay streams downtime list -A shows those that there are"));
    }
    let wanted = |now: Option<&str>| now.map(|_| Value::Null);
    tell(annotate(&cluster, streams.found, &annotation, wanted).await, "no longer in it", "was not in it")
}

fn tell(
    changed: Result<Changed, (Changed, Failure)>,
    done: &str,
    not_done: &str,
) -> Result<ExitCode, Failure> {
    let (changed, failure) = match changed {
        Ok(changed) => (changed, None),
        Err((changed, failure)) => (changed, Some(failure)),
    };
    let lines = changed.iter().map(|(stream, is_changed)| {
        format!("{} {}\n", stream.named(), if *is_changed { done } else { not_done })
    });
    print(&lines.collect::<String>())?;
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

async fn list(options: &List) -> Result<ExitCode, Failure> {
    let cluster = options.place.connection.open().await?;
    let looking = find::streams(&cluster, &options.place, None);
    let streams = patiently("reading the cluster", looking).await?;
    let downtimes = downtimes(&streams.found);
    print(&match options.output {
        Format::Json => json(&downtimes)?,
        Format::Yaml => yaml(&downtimes)?,
        Format::Name => downtimes.iter().flat_map(|downtime| [&downtime.key, "\n"]).collect(),
        Format::Table if downtimes.is_empty() => String::new(),
        Format::Table => table(&downtimes, Timestamp::now(), Paint::of_stdout()),
    })?;
    say(&find::left_out(&streams.left_out));
    if downtimes.is_empty() {
        say(&format!("no stream{} is in a downtime\n", options.place.told(&cluster)));
    }
    Ok(ExitCode::SUCCESS)
}

/// A downtime, as its streams tell.
#[derive(Debug, PartialEq, Serialize)]
struct Downtime {
    key: String,
    /// When its first stream was in it.
    since: String,
    /// By namespace and name.
    streams: Vec<String>,
}

fn downtimes(streams: &[Found]) -> Vec<Downtime> {
    let mut known: BTreeMap<&str, Downtime> = BTreeMap::new();
    for stream in streams {
        let annotated = stream.object["metadata"]["annotations"].as_object();
        for (name, since) in annotated.into_iter().flat_map(Map::iter) {
            let Some(key) = name.strip_prefix(annotations::DOWNTIME) else { continue };
            let since = since.as_str().unwrap_or_default();
            let downtime = known.entry(key).or_insert_with(|| Downtime {
                key: key.to_owned(),
                since: since.to_owned(),
                streams: Vec::new(),
            });
            downtime.streams.push(stream.key().to_string());
            if since < downtime.since.as_str() {
                since.clone_into(&mut downtime.since);
            }
        }
    }
    known.into_values().collect()
}

fn table(downtimes: &[Downtime], now: Timestamp, paint: Paint) -> String {
    let mut table = Table::new(["KEY", "SINCE", "STREAMS"]);
    for downtime in downtimes {
        // What somebody else wrote may be no time.
        let since =
            downtime.since.parse().map_or(downtime.since.clone(), |since| format!("{} ago", age(since, now)));
        table.row([
            downtime.key.clone().into(),
            since.into(),
            count(downtime.streams.len(), "stream").into(),
        ]);
    }
    table.render(paint)
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_key_is_what_an_annotation_can_be_called() {
        for good in ["a", "move-2026.03_x", &"k".repeat(63)] {
            assert_eq!(key(good).as_deref(), Ok(good));
        }
        for bad in ["", "-a", "a.", "a b", "a/b", "ä", &"k".repeat(64)] {
            assert!(key(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_downtime_is_as_old_as_its_first_stream() {
        let within = |name: &str, keys: Value| {
            found("feeds", object!({"metadata": {"name": name, "annotations": keys}}))
        };
        let streams = [
            within("a", object!({"downtime.mainstay.dev/move": "2026-01-01T00:05:00Z"})),
            within(
                "b",
                object!({"downtime.mainstay.dev/move": "2026-01-01T00:00:00Z", "downtime.mainstay.dev/disk": "soon"}),
            ),
            within("c", object!({"mainstay.dev/suspend": "true"})),
        ];
        let now = "2026-01-01T00:20:00Z".parse().unwrap();
        expect![[r#"
            KEY    SINCE     STREAMS
            disk   soon      1 stream
            move   20m ago   2 streams
        "#]]
        .assert_eq(&table(&downtimes(&streams), now, Paint::NONE));
    }
}
