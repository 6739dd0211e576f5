//! The command, as a person calls it.

use regex::Regex;
use serde_json::Value;
use std::process::Stdio;
use tokio::process::Command;

use crate::networks::world::World;

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Told {
    /// All of it but what differs from run to run: ages, the width of columns, what was measured.
    pub(crate) fn shown(&self) -> String {
        let mut text = self.stdout.clone();
        text.extend(self.stderr.lines().map(|line| format!("! {line}\n")));
        if self.code != Some(0) {
            text.extend([format!("[exit {}]\n", self.code.unwrap_or(-1))]);
        }
        let patterns =
            [(r"\b(\d+m)?\d+s\b", "<s>"), (r"(\S)   +", "$1  "), (r"\bis \d+, which", "is <n>, which")];
        patterns.iter().fold(text, |text, (pattern, name)| {
            Regex::new(pattern).unwrap().replace_all(&text, *name).into_owned()
        })
    }
}

impl World {
    /// Runs `mainstay networks` with these words.
    pub(crate) async fn ask(&self, words: &str) -> Told {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
        command.arg("networks").args(words.split(' ')).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.env_clear().env("KUBECONFIG", &self.kubeconfig).output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Told { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The same in JSON.
    pub(crate) async fn ask_json(&self, words: &str) -> Value {
        let told = self.ask(&format!("{words} -o json")).await;
        assert!(told.stdout.ends_with("}\n") || told.stdout.ends_with("]\n"), "{words}: {told:?}");
        serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{words}: {error}: {told:?}"))
    }
}
