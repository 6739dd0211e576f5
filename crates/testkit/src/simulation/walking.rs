//! Specs changed on the way: the end may depend on the last spec only, not on how the user came to it.
//!
//! Each property of a spec is changed alone and changed back, and then several in sequences. Each time the end is
//! compared with that of a world in which the user wrote the last spec at once.

use mainstay::{Kind, Scope};
use serde_json::Value;

use super::campaign::{Verdict, each, finish};
use super::check::Check;
use super::fault::Faults;
use super::report::{Part, Report, Row};
use super::script::{Action, Script, Step};
use super::violation::Violation;
use super::walk::{SpecWalk, merged, patch_between, sequences, spec_changes};
use super::world::{Course, Run, play};

/// How many changes a sequence has.
const SEQUENCE_LENGTH: usize = 4;

/// What the walk begins with.
struct Start {
    kind: Kind,
    object: Value,
    /// The script up to the object's creation.
    script: Script,
}

/// Whether a script comes to the end that it should.
pub(super) enum Ends {
    Same,
    /// The server refused one of the user's steps, so there is nothing to compare.
    Refused,
    Other(Box<(Run, Vec<Violation>)>),
}

/// See the [module](self).
pub(super) fn run(check: &Check, definition: &Value, count: usize, report: &mut Report) {
    let Some(start) = find_start(check, definition) else {
        report.left_out.push("spec changes: the script creates no object of the kind".to_owned());
        return;
    };
    let walk = spec_changes(definition, &start.object);
    report.left_out.extend(walk.untouched.iter().map(|why| format!("a change of {why}")));
    let scripts = walks(&start, &walk, count);
    let tally = each(check, Part::SpecChanges, &scripts, |script| match straight(script) {
        Some(other) => match compare(check, script, &other) {
            Ends::Same => Verdict::Fine,
            Ends::Refused => Verdict::LeftOut,
            Ends::Other(found) => Verdict::Failed(found),
        },
        None => Verdict::LeftOut,
    });
    if tally.left_out > 0 {
        report.left_out.push(format!("{} changes of the spec that the server refuses", tally.left_out));
    }
    report.rows.push(Row {
        part: Part::SpecChanges,
        worlds: 2 * scripts.len(),
        pruned: 0,
        failed: tally.failed,
    });
    if let Some((index, found)) = tally.first {
        let course = Course { seed: 0, faults: Faults::default(), script: scripts[index].clone() };
        let judge = |course: &Course| match compare(check, &course.script, &straight(&course.script)?) {
            Ends::Other(found) => Some(*found),
            Ends::Same | Ends::Refused => None,
        };
        report.failures.push(finish(check, Part::SpecChanges, course, *found, judge));
    }
}

/// Whether two scripts come to the same end.
pub(super) fn compare(check: &Check, script: &Script, other: &Script) -> Ends {
    let alone = |script: &Script| {
        play(&check.setup, &Course { seed: 0, faults: Faults::default(), script: script.clone() })
    };
    let refused = |run: &Run| {
        run.remains.violations.iter().any(|violation| matches!(violation, Violation::Refused { .. }))
    };
    let (expected, run) = (alone(other), alone(script));
    if refused(&expected) || refused(&run) {
        return Ends::Refused;
    }
    for run in [&run, &expected] {
        let found = run.remains.violations.clone();
        if !found.is_empty() {
            return Ends::Other(Box::new((run.clone(), found)));
        }
    }
    let differences = check.rules.differences(&expected, &run);
    if differences.is_empty() {
        return Ends::Same;
    }
    Ends::Other(Box::new((run, vec![Violation::WayThere { differences }])))
}

fn find_start(check: &Check, definition: &Value) -> Option<Start> {
    let text = |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (group, name) = (text("/spec/group"), text("/spec/names/kind"));
    let steps = &check.script.steps;
    let is_it = |step: &Step| match &step.action {
        Action::Create(object) => {
            let api_version = object["apiVersion"].as_str().unwrap_or_default();
            object["kind"] == name && api_version.split('/').next() == Some(group)
        }
        _ => false,
    };
    let index = steps.iter().position(is_it)?;
    let Action::Create(object) = &steps[index].action else { return None };
    let scope = if text("/spec/scope") == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = Kind::new(api_version, name, text("/spec/names/plural"), scope);
    Some(Start { kind, object: object.clone(), script: Script { steps: steps[..=index].to_vec() } })
}

/// Every script of the walk: each change, each change and back, sequences, and sequences and back.
fn walks(start: &Start, walk: &SpecWalk, count: usize) -> Vec<Script> {
    let name = match start.object.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(namespace) => {
            format!("{namespace}/{}", start.object["metadata"]["name"].as_str().unwrap_or_default())
        }
        None => start.object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
    };
    let then = |script: Script, patch: &Value| script.patch(&start.kind, &name, patch.clone());
    let mut scripts = Vec::new();
    for change in &walk.changes {
        let there = then(start.script.clone(), &change.patch);
        let back = patch_between(&merged(&start.object, &change.patch), &start.object);
        let back = then(there.clone(), &back);
        scripts.extend([there, back]);
    }
    for sequence in sequences(walk, 1, count, SEQUENCE_LENGTH) {
        let script = sequence.iter().fold(start.script.clone(), |script, index| {
            walk.changes
                .get(*index)
                .map_or_else(|| script.clone(), |change| then(script.clone(), &change.patch))
        });
        let last = sequence.iter().filter_map(|index| walk.changes.get(*index));
        let last = last.fold(start.object.clone(), |object, change| merged(&object, &change.patch));
        let back = then(script.clone(), &patch_between(&last, &start.object));
        scripts.extend([script, back]);
    }
    scripts
}

/// The script of a user who writes the last spec at once. None if the script creates nothing that it changes.
pub(super) fn straight(script: &Script) -> Option<Script> {
    let mut steps: Vec<Step> = Vec::new();
    for step in &script.steps {
        if let Action::Patch { key, patch, .. } = &step.action {
            let created = steps.iter_mut().rev().find_map(|step| match &mut step.action {
                Action::Create(object) if object["metadata"]["name"] == key.name() => Some(object),
                _ => None,
            })?;
            *created = merged(created, patch);
        } else {
            steps.push(step.clone());
        }
    }
    Some(Script { steps })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_straight_way_writes_the_last_spec_at_once() {
        let kind = Kind::new("example.com/v1", "Thing", "things", Scope::Namespaced);
        let thing = |spec: Value| json!({"kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
        let script = Script::new()
            .create(json!({"kind": "Other", "metadata": {"name": "b"}}))
            .create(thing(json!({"x": 1, "y": 2})))
            .patch(&kind, "a", json!({"spec": {"x": 3}}))
            .patch(&kind, "a", json!({"spec": {"y": null}}));
        let straight = straight(&script).unwrap();
        let expected = Script::new()
            .create(json!({"kind": "Other", "metadata": {"name": "b"}}))
            .create(thing(json!({"x": 3})));
        assert_eq!(straight, expected);
    }
}
