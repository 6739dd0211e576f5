//! A failure told for people: what was wrong, who did what before it, and the code that does it again. Pure.

use std::fmt::Write as _;

use super::ask::is_aside;
use super::report::Part;
use super::script::Script;
use super::state::Place;
use super::trace::{Answer, Entry, Fate, Trace, What};
use super::violation::Violation;
use super::world::Course;

/// How many lines of what happened are told.
const LINES_MAX: usize = 60;

/// What there is to tell.
pub(super) struct Story<'a> {
    pub(super) program: &'a str,
    pub(super) part: Part,
    pub(super) course: &'a Course,
    pub(super) violations: &'a [Violation],
    pub(super) trace: &'a Trace,
    /// The script to whose end it should have come, if that is the question.
    pub(super) straight: Option<&'a Script>,
    /// How many worlds it took to find the shortest course.
    pub(super) tried: usize,
}

/// See the [module](self).
pub(super) fn tell(story: &Story<'_>) -> String {
    let Course { seed, faults, script } = story.course;
    let mut text = format!("{} is not right ({})\n", story.program, story.part);
    for violation in story.violations {
        let _ = writeln!(text, "  {}", violation.to_string().replace('\n', "\n  "));
    }
    let _ = writeln!(text, "  seed: {seed}\n  fault: {faults}");
    let lines = fold(story.trace.0.iter().filter(|entry| matters(entry)));
    let _ = writeln!(
        text,
        "\n  what happened, in seconds ({} of {} lines; shortened in {} worlds)",
        lines.len().min(LINES_MAX),
        story.trace.0.len(),
        story.tried
    );
    let left_out = lines.len().saturating_sub(LINES_MAX);
    if left_out > 0 {
        let _ = writeln!(text, "    … {left_out} lines before");
    }
    for (entry, times) in lines.iter().skip(left_out) {
        let times = if *times > 1 { format!(", {times} times") } else { String::new() };
        let _ = writeln!(text, "  {entry}{times}");
    }
    let _ = writeln!(text, "\n  to see it again, in the place of the script and the faults of this check:");
    let again = match story.straight {
        Some(other) => format!("    .same_end_as(\n        {},\n    )", render_script(other)),
        None => format!("    .replay({seed}, {:?})", faults.to_string()),
    };
    let _ = writeln!(text, "    .script(\n        {},\n    )\n{again}\n    .run();", render_script(script));
    text
}

/// Whether a line is part of the story. Reads that went well and events that arrived are not, nor is what has no bearing on anything.
fn matters(entry: &Entry) -> bool {
    let tells = |place: &Place| !is_aside(&place.resource);
    match &entry.what {
        What::Asked { verb: "get" | "list" | "watch", answer, place, .. } => {
            tells(place) && !matches!(answer, Answer::Status(code) if (200..300).contains(code))
        }
        What::Asked { place, .. } | What::Changed { place, .. } => tells(place),
        What::Told { fate, .. } => *fate != Fate::Delivered,
        _ => true,
    }
}

/// Lines that follow each other and say the same are told once, with how often.
fn fold<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<(&'a Entry, usize)> {
    let mut lines: Vec<(&Entry, usize)> = Vec::new();
    for entry in entries {
        match lines.last_mut() {
            Some((last, times)) if last.actor == entry.actor && says_the_same(&last.what, &entry.what) => {
                *times += 1;
            }
            _ => lines.push((entry, 1)),
        }
    }
    lines
}

fn says_the_same(one: &What, other: &What) -> bool {
    match (one, other) {
        (
            What::Asked { verb, place, part, answer, .. },
            What::Asked { verb: verb_too, place: place_too, part: part_too, answer: answer_too, .. },
        ) => (verb, place, part, answer) == (verb_too, place_too, part_too, answer_too),
        (one, other) => one == other,
    }
}

/// The code of a script.
fn render_script(script: &Script) -> String {
    let calls = script.code().into_iter().map(|call| format!("\n            {call}"));
    std::iter::once("Script::new()".to_owned()).chain(calls).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;
    use k8s_openapi::api::core::v1::ConfigMap;
    use mainstay::Kind;
    use serde_json::json;

    use super::super::fault::{Mishap, Point};
    use super::super::trace::{Actor, Change};
    use super::*;

    fn entry(seconds: u64, actor: &str, incarnation: u32, what: What) -> Entry {
        Entry { at: Duration::from_secs(seconds), actor: Actor { name: actor.into(), incarnation }, what }
    }

    #[test]
    fn a_story_tells_who_wrote_what_and_what_was_withheld() {
        let place = Place::new("secrets", "default", "paint");
        let asked = |verb, answer| What::Asked {
            point: None,
            verb,
            place: place.clone(),
            part: String::new(),
            answer,
        };
        let told = |fate| What::Told {
            point: Some(Point::Event(3)),
            event: "DELETED",
            place: place.clone(),
            revision: 7,
            fate,
        };
        let trace = Trace(vec![
            entry(0, "pairs", 1, What::Started),
            entry(0, "pairs", 1, asked("watch", Answer::Status(200))),
            entry(1, "user", 1, What::Step { number: 1, text: "create ConfigMap paint".into() }),
            entry(2, "pairs", 1, What::Mishap { mishap: Mishap::CrashAfter, point: Point::Write(1) }),
            entry(2, "pairs", 1, asked("apply", Answer::None)),
            entry(2, "pairs", 1, What::Changed { place: place.clone(), change: Change::Created }),
            entry(3, "pairs", 2, told(Fate::Delivered)),
            entry(4, "pairs", 2, told(Fate::Withheld)),
            entry(5, "pairs", 2, asked("get", Answer::Status(500))),
            entry(6, "pairs", 2, asked("get", Answer::Status(500))),
        ]);
        let script = Script::new()
            .create(json!({"kind": "ConfigMap", "metadata": {"name": "paint"}}))
            .at_once()
            .delete(&Kind::of::<ConfigMap>(), "paint");
        let course = Course { seed: 4, faults: "crash after write 1".parse().unwrap(), script };
        let violations = [Violation::Lost { what: place.to_string(), by: "pairs#2".into() }];
        let (part, tried) = (Part::Combinations, 12);
        let story = Story {
            program: "pairs",
            part,
            course: &course,
            violations: &violations,
            trace: &trace,
            straight: None,
            tried,
        };
        expect![[r#"
            pairs is not right (combinations)
              lost: secrets default/paint, removed by pairs#2
              seed: 4
              fault: crash after write 1

              what happened, in seconds (7 of 10 lines; shortened in 12 worlds)
                  0.000 pairs        starts
                  1.000 user         step 1: create ConfigMap paint
                  2.000 pairs        !! crash after write 1
                  2.000 pairs        apply secrets default/paint -> no answer
                  2.000 pairs          secrets default/paint: created
                  4.000 pairs#2      is not told DELETED secrets default/paint @7 (event 3)
                  5.000 pairs#2      get secrets default/paint -> 500, 2 times

              to see it again, in the place of the script and the faults of this check:
                .script(
                    Script::new()
                        .create(json!({"kind":"ConfigMap","metadata":{"name":"paint"}})).at_once()
                        .delete(&Kind::new("v1", "ConfigMap", "configmaps", Scope::Namespaced), "default/paint"),
                )
                .replay(4, "crash after write 1")
                .run();
        "#]].assert_eq(&tell(&story));
    }
}
