//! Scripts: commands with their expected output.
//!
//! ```text
//! What this script shows. Everything before the first command is text.
//!
//! $ mainstay status           a command
//! > | cat                     its further lines
//! OBJECT   READY              its standard output
//! ! next: …                   its standard error
//! [exit 1]                    its exit code, unless zero
//! ```

use std::fmt::Write as _;

#[derive(Debug, Clone)]
pub(crate) struct Script {
    title: String,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// What a shell is given, lines and all.
    pub(crate) command: String,
    expected: String,
}

impl Script {
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = text.split("\n$ ");
        let title = parts.next().unwrap_or_default().trim_end().to_owned();
        let steps = parts.map(|part| {
            let mut lines = part.lines();
            let mut command = lines.next().unwrap_or_default().to_owned();
            let mut expected = Vec::new();
            for line in lines {
                match line.strip_prefix('>').filter(|_| expected.is_empty()) {
                    Some(more) => {
                        let _ = write!(command, "\n{}", more.strip_prefix(' ').unwrap_or(more));
                    }
                    None => expected.push(line),
                }
            }
            Step { command, expected: expected.join("\n").trim_end().to_owned() }
        });
        Script { title, steps: steps.collect() }
    }

    pub(crate) fn render(&self) -> String {
        let mut text = format!("{}\n", self.title);
        for Step { command, expected } in &self.steps {
            let _ = writeln!(text, "\n$ {}", command.replace('\n', "\n> "));
            if !expected.is_empty() {
                let _ = writeln!(text, "{expected}");
            }
        }
        text
    }

    pub(crate) fn record(&mut self, outputs: &[String]) {
        for (step, output) in self.steps.iter_mut().zip(outputs) {
            step.expected.clone_from(output);
        }
    }

    pub(crate) fn differences(&self, outputs: &[String]) -> Vec<String> {
        let wrong = self.steps.iter().zip(outputs).filter(|(step, output)| step.expected != **output);
        wrong
            .map(|(Step { command, expected }, output)| {
                format!("\n$ {command}\n--- expected\n{expected}\n--- answered\n{output}\n")
            })
            .collect()
    }
}

#[test]
fn a_script_is_read_as_it_is_written() {
    let text = "Title.\n\n$ a <<END\n> b\n> END\nout\n\n> more\n! err\n[exit 1]\n\n$ c\n";
    let script = Script::parse(text);
    assert_eq!(script.render(), text);
    assert_eq!(script.steps[0].command, "a <<END\nb\nEND");
    assert_eq!(script.steps[0].expected, "out\n\n> more\n! err\n[exit 1]");
}
