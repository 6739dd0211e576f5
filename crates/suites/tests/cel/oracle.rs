//! The program that evaluates expressions with Kubernetes' own libraries: `hack/kubernetes/cel`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::process::Command;

use mainstay_testkit::process::dies_with_us;

/// An expression, and what it is about.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question {
    pub schema: Value,
    pub expression: String,
    #[serde(rename = "self")]
    pub object: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_self: Option<Value>,
}

/// What came of an expression. Both evaluators are asked for the same.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Answer {
    pub compile_error: Option<String>,
    /// Type of the value, as the type checker finds it.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The value with its type: `render.go` says in which form.
    pub value: Option<Value>,
    /// Why there is no value.
    pub error: Option<String>,
    /// What the evaluation cost.
    pub cost: Option<u64>,
    /// What it could cost at most, by the schema.
    pub estimated_max: Option<u64>,
}

/// Answers to questions, in their order.
pub(super) async fn ask(program: &Path, questions: &[Question]) -> Vec<Answer> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("questions");
    let lines: Vec<String> =
        questions.iter().map(|question| serde_json::to_string(question).unwrap()).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let mut command = Command::from(dies_with_us(program));
    command.stdin(std::fs::File::open(&file).unwrap()).kill_on_drop(true);
    let output = command.output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    let answers: Vec<Answer> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    assert_eq!(answers.len(), questions.len(), "{errors}");
    answers
}
