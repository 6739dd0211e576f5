//! Expressions that Kubernetes' own libraries and ours evaluate, and must agree on: whether they compile, their types and values,
//! the texts of errors, what they cost, and what they can cost at most.
//!
//! Most expressions are generated from `grammar.txt`, about the objects of `objects.json` with the schema `schema.json`. Those
//! that were wrong once, or are easy to get wrong, are in `corpus.txt`. The other side is the program `hack/kubernetes/cel`.

mod grammar;
mod known;
mod oracle;
mod ours;

use std::env;
use std::fmt::Write as _;

use fastrand::Rng;
use mainstay_testkit::cluster::report_missing;
use serde_json::Value;

use crate::go_program;
use grammar::Grammar;
use oracle::{Answer, Question};

const GRAMMAR: &str = include_str!("grammar.txt");
const CORPUS: &str = include_str!("corpus.txt");
const SCHEMA: &str = include_str!("schema.json");
const OBJECTS: &str = include_str!("objects.json");

/// The expressions that one seed makes.
const GENERATED: usize = 4000;
/// A campaign tries this many seeds.
const CAMPAIGN_SEEDS: u64 = 20;
/// The stack of the thread that evaluates.
const STACK_BYTES: usize = 32 << 20;
/// Of this many differences, all is shown.
const SHOWN_MAX: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn expressions_mean_what_they_mean_in_kubernetes() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("cel");
    if let Err(why) = go_program::build("cel", &program).await {
        return report_missing("CEL of Kubernetes", &why);
    }
    let seed: u64 =
        env::var("MAINSTAY_SEED").map_or(1, |seed| seed.parse().expect("MAINSTAY_SEED is a number"));
    let campaign = env::var("MAINSTAY_SIMULATION").is_ok_and(|effort| effort == "campaign");
    let seeds = if campaign { CAMPAIGN_SEEDS } else { 1 };
    compare(&program, &corpus(), "corpus.txt").await;
    for seed in seed..seed + seeds {
        compare(&program, &generated(seed), &format!("MAINSTAY_SEED={seed}")).await;
    }
}

fn question(expression: String, object: &Value) -> Question {
    let schema = serde_json::from_str(SCHEMA).unwrap();
    Question { schema, expression, object: object.clone(), old_self: Some(objects()[0].clone()) }
}

fn objects() -> Vec<Value> {
    serde_json::from_str(OBJECTS).unwrap()
}

fn corpus() -> Vec<Question> {
    let written = CORPUS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned);
    let first = &objects()[0];
    written.chain(long()).map(|expression| question(expression, first)).collect()
}

/// Expressions that are too long to write down, below and above the limits on nesting.
fn long() -> Vec<String> {
    let mut expressions = Vec::new();
    for count in [100, 240, 260, 4000] {
        let repeated = |text: &str| text.repeat(count);
        expressions.extend([
            format!("{}self.number > 0", repeated("self.number + ")),
            format!("{}true", repeated("self.number > 0 && ")),
            format!("{}false", repeated("self.number < 0 || ")),
            format!("{}1{}", repeated("("), repeated(")")),
            format!("{}1{} == []", repeated("["), repeated("]")),
            format!("{}true", repeated("!")),
            format!("{}1", repeated("- ")),
            format!("{}1", repeated("true ? 1 : ")),
            format!("self.text{}", repeated(".trim()")),
            format!("[1]{}", repeated(".map(x, x)")),
            format!("'{}'.size()", repeated("a")),
        ]);
    }
    expressions.push(format!("'{}'.size()", "a".repeat(100_000)));
    // Loops whose cost ends the evaluation.
    let loops = "lists.range(200).all(a, lists.range(200).all(b, lists.range(200).all(c, a + b + c >= 0)))";
    expressions.push(loops.to_owned());
    expressions
}

fn generated(seed: u64) -> Vec<Question> {
    let grammar = Grammar::read(GRAMMAR);
    let objects = objects();
    let mut rng = Rng::with_seed(seed);
    let mut one = || {
        let expression = grammar.expression(&mut rng);
        // The first object has everything, so that most expressions have a value.
        let index = if rng.bool() { 0 } else { rng.usize(0..objects.len()) };
        question(expression, &objects[index])
    };
    std::iter::repeat_with(&mut one).take(GENERATED).collect()
}

async fn compare(program: &std::path::Path, questions: &[Question], from: &str) {
    let theirs = oracle::ask(program, questions).await;
    let ours = answers(questions);
    let mut report = String::new();
    let mut count = 0;
    for ((question, ours), theirs) in questions.iter().zip(&ours).zip(&theirs) {
        let differences = differences(ours, theirs);
        if differences.is_empty() {
            continue;
        }
        count += 1;
        if count <= SHOWN_MAX {
            let shown: String = question.expression.chars().take(500).collect();
            let _ = writeln!(report, "{shown}\n  about {}\n{differences}", question.object);
        }
    }
    assert!(count == 0, "{count} of {} expressions differ ({from}), among them:\n{report}", questions.len());
}

/// Our answers. A compiler that does not optimise needs much more stack for expressions that are nested as deeply as
/// they may be.
fn answers(questions: &[Question]) -> Vec<Answer> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let answers = thread.spawn_scoped(scope, || questions.iter().map(ours::answer).collect());
        answers.unwrap().join().unwrap()
    })
}

/// What differs between two answers, apart from what is known to.
fn differences(ours: &Answer, theirs: &Answer) -> String {
    let mut text = String::new();
    let mut compare = |what: &str, ours: String, theirs: String| {
        if ours != theirs {
            let _ = writeln!(text, "  {what}\n    ours:   {ours}\n    theirs: {theirs}");
        }
    };
    let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    if known::is_different(ours, theirs) {
        return text;
    }
    compare("compile error", shown(&ours.compile_error), shown(&theirs.compile_error));
    compare("type", shown(&ours.kind), shown(&theirs.kind));
    compare("value", format!("{:?}", ours.value), format!("{:?}", theirs.value));
    compare("error", shown(&ours.error), shown(&theirs.error));
    compare("cost", format!("{:?}", ours.cost), format!("{:?}", theirs.cost));
    compare("estimated cost", format!("{:?}", ours.estimated_max), format!("{:?}", theirs.estimated_max));
    text
}
