//! The state machines of the operator that this one follows, row by row: what it does, what ours does, and why if that differs.

mod v0;
mod v1;

use std::fmt::Write;

use expect_test::expect_file;

use super::world::World;
use crate::lifecycle::render_table;

/// A table of the original.
struct Table {
    title: &'static str,
    rows: &'static [Row],
}

/// A row of it.
struct Row {
    /// The original's event or phase, and its condition.
    given: &'static str,
    /// What the original does.
    theirs: &'static str,
    /// The same situation here. None: nothing is decided about a stream that is gone.
    world: Option<fn() -> World>,
    /// The rule that decides here, and where that ends if nothing more happens: the phase, and what is there.
    ours: (&'static str, &'static str),
    /// Why ours is another.
    deviates: Option<&'static str>,
}

const TABLES: [Table; 3] = [
    Table { title: "First generation: an event of the stream", rows: v0::STREAM },
    Table { title: "First generation: an event of the Job", rows: v0::JOB },
    Table { title: "Second generation: a stream by its phase", rows: v1::STREAM },
];

/// A stream at rest, then what happens to it.
fn world(before: fn(&mut World), then: fn(&mut World)) -> World {
    let mut world = World::default();
    before(&mut world);
    world.settle();
    then(&mut world);
    world
}

fn nothing(_: &mut World) {}

/// A stream that nobody has looked at.
fn new(then: fn(&mut World)) -> World {
    let mut world = World::default();
    then(&mut world);
    world
}

/// A stream whose Job runs.
fn running(then: fn(&mut World)) -> World {
    world(nothing, then)
}

/// A stream with a `CronJob`.
fn scheduled(then: fn(&mut World)) -> World {
    world(|world| world.user.is_scheduled = true, then)
}

/// A stream whose backfill runs, for a request.
fn backfilling(then: fn(&mut World)) -> World {
    world(|world| world.request("r", 0), then)
}

/// A stream that is suspended.
fn suspended(then: fn(&mut World)) -> World {
    world(|world| world.user.is_suspended = true, then)
}

/// A stream in a crash loop.
fn crashed(then: fn(&mut World)) -> World {
    let mut world = running(|world| world.fail(1));
    world.settle();
    then(&mut world);
    world
}

/// The Job is gone, and nobody has looked since.
fn lose_job(world: &mut World) {
    world.jobs.clear();
}

fn observe(make: fn() -> World) -> (String, String) {
    let mut world = make();
    let rule = world.decide().rule;
    let end = world.settle();
    let mut rest = end.phase().to_string();
    let names = world.jobs.iter().map(|job| &job.name).chain(world.schedule.iter().map(|on| &on.name));
    for name in names {
        let what = match name.as_bytes()[0] {
            b's' => "Job",
            b'c' => "CronJob",
            _ => "backfill Job",
        };
        write!(rest, ", {what}").unwrap();
    }
    (rule.to_owned(), rest)
}

#[test]
fn each_row_of_the_original_is_followed_or_deviated_from_for_a_reason() {
    for Table { title, rows } in TABLES {
        for row in rows {
            if let Some(make) = row.world {
                let (rule, rest) = observe(make);
                assert_eq!((rule.as_str(), rest.as_str()), row.ours, "{title}: {}", row.given);
            }
        }
    }
}

#[test]
fn the_documentation_has_the_rules_and_the_deviations_as_they_are() {
    let mut text = String::from(
        "# The states of a stream\n\n\
         Made from the code: `UPDATE_EXPECT=1 cargo test -p mainstay-streams lifecycle` writes it anew.\n\n\
         A decision about a stream rests on its status so far, on what its user asks for, on its Jobs as they are and on the requests \
         for backfills. The first of these rules that fits decides. *Stop* means that whatever is there is deleted with its pods, and \
         waited for before anything else is started. Pods that somebody has parted from their Job by deleting it alone are deleted as soon as \
         nothing shall be there.\n\n",
    );
    text.push_str(&render_table());
    text.push_str("\n## Compared with the original\n\nEach row of the original's state machines, what the rules above do in the same \
                   situation, and where that ends if nothing more happens. A number refers to the reasons below.\n");
    let mut reasons: Vec<&str> = Vec::new();
    for Table { title, rows } in TABLES {
        write!(
            text,
            "\n### {title}\n\n| Situation | Original | Rule | At rest | Differs |\n|---|---|---|---|---|\n"
        )
        .unwrap();
        for Row { given, theirs, ours: (rule, rest), deviates, .. } in rows {
            let number = deviates.map(|why| {
                let known = reasons.iter().position(|reason| *reason == why);
                known.unwrap_or_else(|| {
                    reasons.push(why);
                    reasons.len() - 1
                }) + 1
            });
            let number = number.map(|number| number.to_string()).unwrap_or_default();
            let rule = if rule.is_empty() { String::new() } else { format!("`{rule}`") };
            writeln!(text, "| {given} | {theirs} | {rule} | {rest} | {number} |").unwrap();
        }
    }
    text.push_str("\n## Why it differs\n\n");
    for (index, reason) in reasons.iter().enumerate() {
        writeln!(text, "{}. {reason}", index + 1).unwrap();
    }
    expect_file!["../../../../../../docs/streams-states.md"].assert_eq(&text);
}
