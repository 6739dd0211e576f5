//! Scripts: commands with their expected output.
//!
//! ```text
//! What this script shows. Everything before the first command is text.
//!
//! $ kubectl apply -f - <<END
//! > kind: ConfigMap          a command's further lines
//! > END
//! configmap/a created        its standard output
//! ! Warning: …               its standard error
//! [exit 1]                   its exit code, unless zero
//! ? D1                       what follows is what the embedded server answers instead, for the reason D1
//! …
//! ```

use std::fmt::Write as _;

use mainstay_testkit::ClusterKind;

/// One script.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// The file's name.
    pub(crate) name: String,
    title: String,
    pub(crate) steps: Vec<Step>,
}

/// One command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    /// What a shell is given, lines and all.
    pub(crate) command: String,
    expected: String,
    /// The id of an accepted difference, and what the embedded server answers.
    embedded: Option<(String, String)>,
}

impl Script {
    pub(crate) fn parse(name: String, text: &str) -> Self {
        let mut script = Script { name, title: String::new(), steps: Vec::new() };
        for line in text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                script.steps.push(Step { command: command.into(), ..Step::default() });
                continue;
            }
            let Some(step) = script.steps.last_mut() else {
                push_line(&mut script.title, line);
                continue;
            };
            let no_output_yet = step.expected.is_empty() && step.embedded.is_none();
            if let Some(more) = line.strip_prefix('>').filter(|_| no_output_yet) {
                push_line(&mut step.command, more.strip_prefix(' ').unwrap_or(more));
            } else if let Some(id) = line.strip_prefix("? D") {
                step.embedded = Some((format!("D{id}"), String::new()));
            } else if let Some((_, output)) = &mut step.embedded {
                push_line(output, line);
            } else {
                push_line(&mut step.expected, line);
            }
        }
        for step in &mut script.steps {
            step.expected.truncate(step.expected.trim_end().len());
            if let Some((_, output)) = &mut step.embedded {
                output.truncate(output.trim_end().len());
            }
        }
        script.title.truncate(script.title.trim_end().len());
        script
    }

    pub(crate) fn render(&self) -> String {
        let mut text = format!("{}\n", self.title);
        for step in &self.steps {
            let _ = writeln!(text, "\n$ {}", step.command.replace('\n', "\n> "));
            let outputs = [
                Some(step.expected.clone()),
                step.embedded.as_ref().map(|(id, output)| format!("? {id}\n{output}")),
            ];
            for output in outputs.into_iter().flatten().filter(|output| !output.is_empty()) {
                let _ = writeln!(text, "{}", output.trim_end());
            }
        }
        text
    }

    /// The ids of accepted differences.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| step.embedded.as_ref()).map(|(id, _)| id.as_str())
    }

    /// Writes down what a cluster answered. For the embedded one only where a difference is accepted.
    pub(crate) fn record(&mut self, kind: ClusterKind, outputs: &[String]) {
        for (step, output) in self.steps.iter_mut().zip(outputs) {
            match (kind, &mut step.embedded) {
                (ClusterKind::Real, _) => step.expected.clone_from(output),
                (ClusterKind::Embedded, Some((_, expected))) => expected.clone_from(output),
                (ClusterKind::Embedded, None) => {}
            }
        }
    }

    /// Where a cluster's answers are not as the script says.
    pub(crate) fn differences(&self, kind: ClusterKind, outputs: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for (step, output) in self.steps.iter().zip(outputs) {
            let expected = match &step.embedded {
                Some((id, expected)) if kind == ClusterKind::Embedded => {
                    if *expected == step.expected {
                        found.push(format!(
                            "{}: {id} is accepted where nothing differs: $ {}",
                            self.name, step.command
                        ));
                    }
                    expected
                }
                _ => &step.expected,
            };
            if expected != output {
                found.push(format!(
                    "{} on the {kind} cluster:\n  $ {}\n{}",
                    self.name,
                    step.command.replace('\n', "\n  > "),
                    render_difference(expected, output)
                ));
            }
        }
        found
    }
}

/// The lines that differ, with those between the first and the last of them.
fn render_difference(expected: &str, output: &str) -> String {
    let (expected, output): (Vec<_>, Vec<_>) = (expected.lines().collect(), output.lines().collect());
    let before = expected.iter().zip(&output).take_while(|(a, b)| a == b).count();
    let (expected, output) = (&expected[before..], &output[before..]);
    let after = expected.iter().rev().zip(output.iter().rev()).take_while(|(a, b)| a == b).count();
    let mut text = format!("  from line {} on:\n", before + 1);
    for (mark, lines) in [("-", expected), ("+", output)] {
        for line in &lines[..lines.len() - after] {
            let _ = writeln!(text, "    {mark} {line}");
        }
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

#[test]
fn a_script_is_read_as_it_is_written() {
    let text = "Title.\n\n$ a <<END\n> b\n>\n> END\nout\n\nmore\n! err\n[exit 1]\n? D7\nother\n\n$ c\n";
    let script = Script::parse("x".into(), text);
    assert_eq!(script.render(), text.replace(">\n", "> \n"));
    assert_eq!(script.steps[0].command, "a <<END\nb\n\nEND");
    assert_eq!(script.steps[0].expected, "out\n\nmore\n! err\n[exit 1]");
    assert_eq!(script.accepted().collect::<Vec<_>>(), ["D7"]);
    assert_eq!(script.steps[1].expected, "");
}
