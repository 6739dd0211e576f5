//! `mainstay streams backfill`: a request, and what becomes of it.

use super::find::{self, Found, Place};
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::output::{print, say};
use futures::StreamExt as _;
use jiff::SignedDuration;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use mainstay_streams::job::check_payload;
use mainstay_streams::kinds::{BackfillPhase, BackfillRange, BackfillRequest, BackfillRequestSpec};
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;

/// A name is made of the stream's, a dash and five letters, and must be good for a label.
const LONGEST_PREFIX: usize = 57;

/// How `mainstay streams backfill` is called.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Which stream.
    #[arg(value_name = "STREAM", conflicts_with = "all_namespaces")]
    name: String,
    /// From here, in whatever terms its program has: a time, a version, an offset [default: the beginning].
    #[arg(long, value_name = "POINT")]
    from: Option<String>,
    /// Up to here [default: now].
    #[arg(long, value_name = "POINT")]
    to: Option<String>,
    /// Anything that its program understands, in JSON.
    #[arg(long, value_name = "JSON", value_parser = payload)]
    payload: Option<Value>,
    /// So many failed attempts are followed by another.
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Those with a higher one come first [default: 0].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Delete the request so many seconds after it has ended [default: never].
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u32>,
    /// Wait until it has ended. The exit code is 1 if it failed.
    #[arg(long)]
    wait: bool,
    /// Wait for so long at most: 30s, 10m.
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = patience)]
    timeout: Option<Duration>,
    #[command(flatten)]
    place: Place,
}

fn payload(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn patience(text: &str) -> Result<Duration, String> {
    let time = text.parse::<SignedDuration>().map_err(|_| "expected a time, as in 30s or 10m".to_owned())?;
    Duration::try_from(time).map_err(|_| "expected a time that is not over yet".to_owned())
}

/// Asks for a backfill.
pub(super) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let cluster = options.place.connection.open().await?;
    let stream = find::one(&cluster, &options.place, &options.name).await?;
    let asked = request(options, &stream);
    check(&asked, &stream)?;
    let requests: Api<BackfillRequest> = Api::namespaced(cluster.client.clone(), stream.stream().namespace());
    let made = requests.create(&PostParams::default(), &asked).await;
    let made = made.map_err(|error| {
        let doing = format!("request a backfill of {} {}", stream.class.kind.kind(), stream.key());
        cluster.failed(&doing, error).unchanged("the stream")
    })?;
    print(&format!("backfillrequest.streams.mainstay.dev/{}\n", made.name_any()))?;
    let (name, namespace) = (made.name_any(), stream.stream().namespace());
    if !options.wait {
        say(&format!("next: kubectl get backfillrequest {name} -n {namespace} -w follows it\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let following = follow(&cluster, &requests, made);
    let ended = match options.timeout {
        Some(patience) => tokio::time::timeout(patience, following).await,
        None => Ok(following.await),
    };
    if let Ok(ended) = ended {
        return Ok(u8::from(ended? != BackfillPhase::Completed).into());
    }
    say(&format!(
        "it has not ended yet, and goes on\nnext: kubectl get backfillrequest {name} -n {namespace}\n"
    ));
    Ok(ExitCode::from(1))
}

/// The operator would refuse it as well, but only after it was created.
fn check(asked: &BackfillRequest, stream: &Found) -> Result<(), Failure> {
    check_payload("", &asked.spec).map_err(|problem| {
        let doing = format!("cannot request a backfill of {} {}", stream.class.kind.kind(), stream.key());
        Failure::new(anyhow::anyhow!("--payload, --from and --to: {}", problem.message))
            .context(doing)
            .unchanged("the stream")
    })
}

fn request(options: &Options, stream: &Found) -> BackfillRequest {
    let name = stream.stream().name();
    let range = BackfillRange { from: options.from.clone(), to: options.to.clone() };
    let spec = BackfillRequestSpec {
        stream_class: stream.class.name.clone(),
        stream_id: name.to_owned(),
        range: Some(range).filter(|range| *range != BackfillRange::default()),
        payload: options.payload.clone(),
        retries: options.retries,
        priority: options.priority,
        cancelled: None,
        ttl_seconds_after_finished: options.ttl,
    };
    let mut request = BackfillRequest::new("", spec);
    request.metadata.name = None;
    let short: String = name.chars().take(LONGEST_PREFIX).collect();
    request.metadata.generate_name = Some(format!("{short}-"));
    request
}

/// Tells of each phase until the last.
async fn follow(
    cluster: &Cluster,
    requests: &Api<BackfillRequest>,
    mut known: BackfillRequest,
) -> Result<BackfillPhase, Failure> {
    let name = known.name_any();
    let failed = |error| cluster.failed(&format!("follow BackfillRequest {name}"), error);
    let mut told = String::new();
    loop {
        let version = known.resource_version().unwrap_or_default();
        let only = WatchParams::default().fields(&format!("metadata.name={name}"));
        let mut events = requests.watch(&only, &version).await.map_err(failed)?.boxed();
        loop {
            let news = tell(&known);
            if news != told {
                say(&news);
                told = news;
            }
            let phase = phase_of(&known);
            if phase.is_over() {
                return Ok(phase);
            }
            match events.next().await {
                Some(Ok(WatchEvent::Added(request) | WatchEvent::Modified(request))) => known = request,
                Some(Ok(WatchEvent::Deleted(request))) => {
                    let phase = phase_of(&request);
                    say(&tell(&request));
                    if phase.is_over() {
                        return Ok(phase);
                    }
                    say(&format!("BackfillRequest {name} was deleted before it ended\n"));
                    return Ok(BackfillPhase::Cancelled);
                }
                Some(Ok(WatchEvent::Bookmark(_))) => {}
                // The server ends watches as it likes.
                Some(Ok(WatchEvent::Error(_)) | Err(_)) | None => break,
            }
        }
        known = requests.get(&name).await.map_err(failed)?;
    }
}

fn phase_of(request: &BackfillRequest) -> BackfillPhase {
    request.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

/// How it stands: `Queued: 2 come first`.
fn tell(request: &BackfillRequest) -> String {
    let Some(status) = &request.status else { return String::new() };
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
    let why = ready.map(|ready| ready.message.as_str()).filter(|why| !why.is_empty());
    match why {
        Some(why) => format!("{:?}: {why}\n", status.phase),
        None => format!("{:?}\n", status.phase),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;
    use clap::Parser;
    use expect_test::expect;
    use serde_json::json;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parse(words: &[&str]) -> Result<Options, String> {
        let line = Line::try_parse_from(["backfill"].iter().chain(words));
        line.map(|line| line.options).map_err(|error| error.to_string())
    }

    #[test]
    fn a_request_says_what_was_asked_for_and_nothing_else() {
        let options =
            parse(&["orders", "--from", "5", "--payload", "{\"a\": 1}", "--ttl", "60", "--priority", "-1"]);
        let made = serde_json::to_value(request(&options.unwrap(), &found("feeds", json!({})))).unwrap();
        assert_eq!(made["metadata"], json!({"generateName": "orders-"}));
        let given: serde_json::Map<_, _> = made["spec"]
            .as_object()
            .unwrap()
            .clone()
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect();
        assert_eq!(
            Value::Object(given),
            json!({"streamClass": "feeds", "streamId": "orders", "range": {"from": "5"}, "payload": {"a": 1},
                "priority": -1, "ttlSecondsAfterFinished": 60})
        );
        let plain = request(&parse(&["orders"]).unwrap(), &found("feeds", json!({})));
        assert_eq!(plain.spec.range, None);
    }

    #[test]
    fn what_is_too_long_for_its_program_is_not_requested() {
        let check = |bytes: usize| {
            let payload = format!("\"{}\"", "x".repeat(bytes));
            let stream = found("feeds", json!({}));
            check(&request(&parse(&["orders", "--payload", &payload]).unwrap(), &stream), &stream)
        };
        assert!(check(1024).is_ok());
        let told = format!("{:?}", check(130 * 1024).unwrap_err());
        assert!(told.contains("is 133122 bytes long as JSON"), "{told}");
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        assert!(
            parse(&["orders", "--payload", "{"])
                .unwrap_err()
                .contains("invalid value '{' for '--payload <JSON>'")
        );
        assert!(parse(&["orders", "--wait", "--timeout", "soon"]).unwrap_err().contains("as in 30s or 10m"));
        assert!(parse(&["orders", "--timeout", "5m"]).is_err());
        assert_eq!(
            parse(&["orders", "--wait", "--timeout", "5m"]).unwrap().timeout,
            Some(Duration::from_mins(5))
        );
    }

    #[test]
    fn a_phase_is_told_with_its_reason() {
        let status = json!({"phase": "Queued", "conditions": [{"type": "Ready", "status": "False", "reason": "Queued",
            "message": "1 comes first", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        let mut request = request(&parse(&["orders"]).unwrap(), &found("feeds", json!({})));
        assert_eq!(tell(&request), "");
        request.status = serde_json::from_value(status).unwrap();
        expect![[r#"
            Queued: 1 comes first
        "#]]
        .assert_eq(&tell(&request));
    }
}
