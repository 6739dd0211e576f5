//! `mainstay streams list`.

use super::find::{self, Found, Place};
use crate::failure::Failure;
use crate::output::{Cell, Paint, Table, Tone, age, count, json, patiently, print, say, yaml};
use jiff::Timestamp;
use mainstay_streams::kinds::{Outcome, PastRun, Phase};
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// How `mainstay streams list` is called.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Only those in this phase.
    #[arg(long, value_name = "PHASE", ignore_case = true, value_parser = Phase::ALL.map(Phase::as_str))]
    phase: Option<String>,
    /// Only those with these labels: team=sales.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    /// With kind, Job and reason.
    Wide,
    Json,
    Yaml,
    Name,
}

/// Lists.
pub(super) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let cluster = options.place.connection.open().await?;
    let looking = find::streams(&cluster, &options.place, options.selector.as_deref());
    let mut streams = patiently("reading the cluster", looking).await?;
    if let Some(phase) = &options.phase {
        let is_in =
            |found: &Found| found.status().phase.is_some_and(|p| p.as_str().eq_ignore_ascii_case(phase));
        streams.found.retain(is_in);
    }
    let rows: Vec<Row> = streams.found.iter().map(Row::new).collect();
    print(&match options.output {
        Format::Json => json(&rows)?,
        Format::Yaml => yaml(&rows)?,
        Format::Name => streams.found.iter().map(|found| found.named() + "\n").collect(),
        Format::Table | Format::Wide => {
            let shown =
                Shown { namespaces: options.place.all_namespaces, wide: options.output == Format::Wide };
            table(&rows, shown, Timestamp::now(), Paint::of_stdout())
        }
    })?;
    say(&find::left_out(&streams.left_out));
    say(&if rows.is_empty() {
        let elsewhere = if options.place.all_namespaces { "" } else { "next: -A looks in all namespaces\n" };
        format!("there are no such streams{}\n{elsewhere}", options.place.told(&cluster))
    } else {
        summary(&rows)
    });
    Ok(ExitCode::SUCCESS)
}

/// What a list tells of a stream.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    namespace: String,
    name: String,
    class: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    restarts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_run: Option<PastRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
    /// That runs now.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Why it is as it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
}

impl Row {
    fn new(found: &Found) -> Self {
        let status = found.status();
        let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
        Row {
            namespace: found.stream().namespace().to_owned(),
            name: found.stream().name().to_owned(),
            class: found.class.name.clone(),
            kind: found.class.kind.kind().to_owned(),
            phase: status.phase,
            restarts: status.restarts,
            last_run: status.history.first().cloned(),
            created: found.created(),
            job: status.run.map(|run| run.job),
            why: ready.map(|ready| ready.message.clone()).unwrap_or_default(),
        }
    }
}

/// Whether a phase is good news.
pub(super) fn tone(phase: Option<Phase>) -> Tone {
    match phase {
        Some(Phase::Running | Phase::Backfilling | Phase::Scheduled) => Tone::Good,
        Some(Phase::Failed | Phase::CrashLoopDetected) => Tone::Bad,
        Some(Phase::Pending | Phase::Suspended) => Tone::Note,
        None => Tone::Quiet,
    }
}

/// How a run ended: `Failed (1)`.
pub(super) fn outcome(run: &PastRun) -> Cell {
    let tone = if run.outcome == Outcome::Failed { Tone::Bad } else { Tone::Plain };
    let text = match run.exit_code {
        Some(code) => format!("{:?} ({code})", run.outcome),
        None => format!("{:?}", run.outcome),
    };
    Cell::new(text, tone)
}

#[derive(Clone, Copy)]
struct Shown {
    namespaces: bool,
    wide: bool,
}

fn table(rows: &[Row], shown: Shown, now: Timestamp, paint: Paint) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let headings =
        ["NAMESPACE", "NAME", "CLASS", "PHASE", "RESTARTS", "LAST-RUN", "AGE", "KIND", "JOB", "WHY"];
    let mut table = Table::new(headings);
    for row in rows {
        let phase = row.phase.map_or("(new)", Phase::as_str);
        let last = row
            .last_run
            .as_ref()
            .map_or_else(String::new, |run| format!("{:?} {} ago", run.outcome, age(run.ended_at, now)));
        let wide = |text: &str| Cell::from(if shown.wide { text } else { "" });
        table.row([
            Cell::from(if shown.namespaces { row.namespace.as_str() } else { "" }),
            row.name.clone().into(),
            row.class.clone().into(),
            Cell::new(phase, tone(row.phase)),
            row.restarts.to_string().into(),
            last.into(),
            row.created.map_or_else(String::new, |created| age(created, now)).into(),
            wide(&row.kind),
            wide(row.job.as_deref().unwrap_or_default()),
            wide(&row.why),
        ]);
    }
    table.render(paint)
}

fn summary(rows: &[Row]) -> String {
    let mut phases: BTreeMap<Phase, usize> = BTreeMap::new();
    for phase in rows.iter().filter_map(|row| row.phase) {
        *phases.entry(phase).or_default() += 1;
    }
    let counted: Vec<String> = phases.iter().map(|(phase, number)| format!("{number} {phase}")).collect();
    let mut text = count(rows.len(), "stream");
    if !counted.is_empty() {
        text = format!("{text}: {}", counted.join(", "));
    }
    let troubled = rows.iter().find(|row| tone(row.phase) == Tone::Bad);
    let next = troubled.map_or_else(String::new, |row| {
        format!("next: mainstay streams describe {} -n {}\n", row.name, row.namespace)
    });
    format!("{text}\n{next}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    fn rows() -> Vec<Row> {
        let crashed = json!({
            "metadata": {"name": "invoices"},
            "status": {"phase": "CrashLoopDetected", "restarts": 3,
                "conditions": [{"type": "Ready", "status": "False", "reason": "CrashLoop", "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "message": "run 4 has failed"}],
                "history": [{"number": 4, "kind": "Stream", "job": "invoices-4", "startedAt": "2026-01-01T00:00:00Z",
                    "endedAt": "2026-01-01T00:05:00Z", "outcome": "Failed", "exitCode": 1, "reason": "BackoffLimitExceeded"}]},
        });
        let running = json!({"status": {"phase": "Running", "restarts": 0}});
        let new = json!({"metadata": {"name": "new"}});
        [crashed, running, new].into_iter().map(|fields| Row::new(&found("feeds", fields))).collect()
    }

    #[test]
    fn streams_are_rows() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let shown = Shown { namespaces: false, wide: false };
        expect![[r#"
            NAME       CLASS   PHASE               RESTARTS   LAST-RUN        AGE
            invoices   feeds   CrashLoopDetected   3          Failed 5m ago   10m
            orders     feeds   Running             0                          10m
            new        feeds   (new)               0                          10m
        "#]]
        .assert_eq(&table(&rows(), shown, now, Paint::NONE));
        let shown = Shown { namespaces: true, wide: true };
        let wide = table(&rows(), shown, now, Paint::NONE);
        let line = wide.lines().nth(1).unwrap();
        assert!(line.starts_with("shop ") && line.ends_with("run 4 has failed"), "{line}");
    }

    #[test]
    fn a_summary_counts_and_leads_to_trouble() {
        expect![[r#"
            3 streams: 1 Running, 1 CrashLoopDetected
            next: mainstay streams describe invoices -n shop
        "#]]
        .assert_eq(&summary(&rows()));
    }
}
