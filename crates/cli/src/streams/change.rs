//! `mainstay streams suspend`, `resume` and `restart`: annotations that the operator reads.

use super::find::{self, Found, Place};
use crate::cluster::{Cluster, merge};
use crate::failure::Failure;
use crate::output::{count, patiently, print, say};
use futures::StreamExt as _;
use jiff::Timestamp;
use mainstay_streams::kinds::annotations;
use mainstay_streams::wish::Suspension;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::ExitCode;

/// Requests under way at one time.
const AT_ONCE: usize = 16;
/// Who signs what is written.
const MANAGER: &str = "mainstay-streams-cli";

/// Which streams to change.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Streams by name.
    #[arg(
        value_name = "STREAM",
        required_unless_present_any = ["selector", "all"],
        conflicts_with_all = ["selector", "all", "all_namespaces"]
    )]
    names: Vec<String>,
    #[command(flatten)]
    many: Many,
    #[command(flatten)]
    place: Place,
}

/// Many streams at once.
#[derive(Debug, clap::Args)]
pub(super) struct Many {
    /// Those with these labels: team=sales.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// All of them.
    #[arg(long, conflicts_with = "selector")]
    all: bool,
    /// Stop all of them. Without this it is only shown which these are.
    #[arg(long, requires = "all")]
    yes: bool,
}

impl Many {
    /// Those that are meant. That there are none is an error: somebody meant some.
    pub(super) async fn find(&self, cluster: &Cluster, place: &Place) -> Result<Vec<Found>, Failure> {
        let looking = find::streams(cluster, place, self.selector.as_deref());
        let streams = patiently("reading the cluster", looking).await?;
        say(&find::left_out(&streams.left_out));
        if streams.found.is_empty() {
            let which = self.selector.as_ref().map_or_else(String::new, |labels| format!(" with {labels}"));
            let error = anyhow::anyhow!("there is no stream{which}{}", place.told(cluster));
            return Err(Failure::new(error).next("mainstay streams list -A shows those that there are"));
        }
        Ok(streams.found)
    }

    /// Whether it is only shown what would be done to streams that run.
    pub(super) fn only_shows(&self) -> bool {
        self.all && !self.yes
    }
}

/// Says what would be done to streams. The code is 1 if something would.
pub(super) fn show(
    streams: &[Found],
    would: &str,
    is_changed: impl Fn(&Found) -> bool,
) -> Result<ExitCode, Failure> {
    let (changed, text) = preview(streams, would, is_changed);
    print(&text)?;
    let all = count(streams.len(), "stream");
    say(&format!("nothing is changed yet: {changed} of {all} would be {would}\n"));
    say("next: --yes has it done\n");
    Ok(u8::from(changed > 0).into())
}

fn preview(streams: &[Found], would: &str, is_changed: impl Fn(&Found) -> bool) -> (usize, String) {
    let (mut changed, mut text) = (0, String::new());
    for stream in streams {
        let phase = stream.status().phase.map_or_else(|| "new".to_owned(), |phase| phase.to_string());
        let is_changed = is_changed(stream);
        changed += usize::from(is_changed);
        let told = if is_changed { format!("would be {would}") } else { "would stay as it is".to_owned() };
        let _ = writeln!(text, "{} {told} ({phase})", stream.named());
    }
    (changed, text)
}

async fn meant(cluster: &Cluster, options: &Options) -> Result<Vec<Found>, Failure> {
    if options.names.is_empty() {
        return options.many.find(cluster, &options.place).await;
    }
    let mut found = Vec::new();
    for name in &options.names {
        found.push(find::one(cluster, &options.place, name).await?);
    }
    Ok(found)
}

/// Has streams not run.
pub(super) async fn suspend(options: &Options) -> Result<ExitCode, Failure> {
    let code = change(options, Verb::Suspend, annotations::SUSPEND, |now| {
        (now != Some("true")).then(|| json!("true"))
    });
    let code = code.await?;
    if !options.many.only_shows() {
        say("next: mainstay streams resume has them run again\n");
    }
    Ok(code)
}

/// Has streams run again, as far as it is up to an annotation. The code is 1 if something else keeps one from running.
pub(super) async fn resume(options: &Options) -> Result<ExitCode, Failure> {
    change(options, Verb::Resume, annotations::SUSPEND, |now| now.map(|_| Value::Null)).await
}

/// Has streams run anew.
pub(super) async fn restart(options: &Options) -> Result<ExitCode, Failure> {
    // Two who ask in the same second have asked twice.
    let nonce = format!("{:.0}-{:06x}", Timestamp::now(), fastrand::u32(..1 << 24));
    let code = change(options, Verb::Restart, annotations::RESTART, |_| Some(json!(nonce))).await?;
    if !options.many.only_shows() {
        say("next: mainstay streams list shows what becomes of it\n");
    }
    Ok(code)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Suspend,
    Resume,
    Restart,
}

impl Verb {
    /// What becomes of a stream that runs, if that is stopped.
    fn stops(self) -> Option<&'static str> {
        match self {
            Verb::Suspend => Some("suspended"),
            Verb::Restart => Some("restarted"),
            Verb::Resume => None,
        }
    }
}

/// Sets the annotation of all streams that are meant to what `wanted` makes of its value. None leaves it.
async fn change(
    options: &Options,
    verb: Verb,
    annotation: &str,
    wanted: impl Fn(Option<&str>) -> Option<Value>,
) -> Result<ExitCode, Failure> {
    let cluster = options.place.connection.open().await?;
    let streams = meant(&cluster, options).await?;
    if let Some(would) = verb.stops().filter(|_| options.many.only_shows()) {
        return show(&streams, would, |found| wanted(found.stream().annotation(annotation)).is_some());
    }
    let (mut text, mut is_fine, mut advice) = (String::new(), true, Vec::new());
    let changed = annotate(&cluster, streams, annotation, wanted).await;
    let (done, failure) = match changed {
        Ok(done) => (done, None),
        Err((done, failure)) => (done, Some(failure)),
    };
    for (stream, is_changed) in &done {
        let told = tell(verb, stream, *is_changed);
        let _ = writeln!(text, "{} {}", stream.named(), told.text);
        is_fine &= told.is_fine;
        advice.extend(told.next.into_iter().filter(|next| !advice.contains(next)).collect::<Vec<_>>());
    }
    print(&text)?;
    for next in advice {
        say(&format!("next: {next}\n"));
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(u8::from(!is_fine).into()),
    }
}

/// Streams as they are after a change, and whether something was changed.
pub(super) type Changed = Vec<(Found, bool)>;

/// Sets or removes an annotation. If that fails for one, the others are changed nonetheless.
pub(super) async fn annotate(
    cluster: &Cluster,
    streams: Vec<Found>,
    annotation: &str,
    wanted: impl Fn(Option<&str>) -> Option<Value>,
) -> Result<Changed, (Changed, Failure)> {
    let all = streams.len();
    let wanted: Vec<_> = streams
        .into_iter()
        .map(|found| {
            let value = wanted(found.stream().annotation(annotation));
            (found, value)
        })
        .collect();
    let writing = futures::stream::iter(wanted).map(async |(mut found, value)| {
        let Some(value) = value else { return Ok((found, false)) };
        let fields = json!({"metadata": {"annotations": {annotation: value}}});
        let path = found.class.kind.object_path(&found.key());
        match merge(&cluster.client, &path, &fields, MANAGER).await {
            Ok(object) => {
                found.object = object;
                Ok((found, true))
            }
            Err(error) => Err((found, error)),
        }
    });
    let written: Vec<_> = patiently("writing annotations", writing.buffered(AT_ONCE).collect()).await;
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for one in written {
        match one {
            Ok(one) => done.push(one),
            Err(one) => failed.push(one),
        }
    }
    let left = failed.len();
    match failed.into_iter().next() {
        None => Ok(done),
        Some((found, error)) => {
            let doing = format!("annotate {} {}", found.class.kind.kind(), found.key());
            let failure = cluster.failed(&doing, error).unchanged(format!("{left} of {all} streams"));
            Err((done, failure))
        }
    }
}

/// What is told of a stream.
#[derive(Debug, PartialEq)]
struct Told {
    text: String,
    /// It is as it was asked for.
    is_fine: bool,
    next: Vec<String>,
}

fn tell(verb: Verb, after: &Found, is_changed: bool) -> Told {
    let fine = |text: &str| Told { text: text.to_owned(), is_fine: true, next: Vec::new() };
    let reasons = match after.stream().suspensions() {
        Ok(reasons) => reasons,
        Err(problem) => {
            let next = vec!["correct the field where the stream is written".to_owned()];
            return Told { text: format!("is changed, but {problem}"), is_fine: false, next };
        }
    };
    let told: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    let told = told.join(", ");
    match verb {
        Verb::Suspend if is_changed => fine("suspended"),
        Verb::Suspend => fine("unchanged: it was suspended by its annotation already"),
        Verb::Restart if reasons.is_empty() => fine("restarted"),
        Verb::Restart => fine(&format!("restarts when it is resumed: it is suspended {told}")),
        Verb::Resume if !reasons.is_empty() => Told {
            text: format!("stays suspended {told}"),
            is_fine: false,
            next: reasons.iter().map(|reason| undo(reason, after)).collect(),
        },
        Verb::Resume if is_changed => fine("resumed"),
        Verb::Resume => fine("unchanged: it was not suspended"),
    }
}

/// What ends a suspension.
pub(super) fn undo(reason: &Suspension, stream: &Found) -> String {
    let (name, namespace) = (stream.stream().name(), stream.stream().namespace());
    match reason {
        Suspension::Spec => {
            let path = &stream.class.config.paths.suspended;
            format!("set {path} to false where the stream is written: no command changes a spec")
        }
        Suspension::Annotation => format!("mainstay streams resume {name} -n {namespace}"),
        Suspension::Downtime(key) => format!("mainstay streams downtime stop {key} -n {namespace}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;
    use expect_test::{Expect, expect};

    fn check(verb: Verb, is_changed: bool, fields: Value, expected: &Expect) {
        let told = tell(verb, &found("feeds", fields), is_changed);
        let next: String = told.next.iter().flat_map(|next| ["next: ", next, "\n"]).collect();
        expected.assert_eq(&format!("{}{}\n{next}", if told.is_fine { "" } else { "NOT " }, told.text));
    }

    #[test]
    fn resuming_tells_what_else_suspends() {
        let fields = json!({"spec": {"suspended": true}, "metadata": {"annotations": {"downtime.mainstay.dev/move": "x"}}});
        check(
            Verb::Resume,
            true,
            fields,
            &expect![[r#"
                NOT stays suspended by its spec, by the downtime move
                next: set spec.suspended to false where the stream is written: no command changes a spec
                next: mainstay streams downtime stop move -n shop
            "#]],
        );
        check(Verb::Resume, true, json!({}), &expect!["resumed\n"]);
        check(Verb::Resume, false, json!({}), &expect!["unchanged: it was not suspended\n"]);
    }

    #[test]
    fn a_suspended_stream_restarts_later() {
        check(
            Verb::Restart,
            true,
            json!({"spec": {"suspended": true}}),
            &expect!["restarts when it is resumed: it is suspended by its spec\n"],
        );
        check(Verb::Restart, true, json!({}), &expect!["restarted\n"]);
    }

    #[test]
    fn a_spec_that_cannot_be_read_is_told() {
        check(
            Verb::Suspend,
            true,
            json!({"spec": {"suspended": 5}}),
            &expect![[r#"
                NOT is changed, but spec.suspended: is a number, must be true or false
                next: correct the field where the stream is written
            "#]],
        );
    }
}
