use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;

use super::super::fault::Faults;
use super::super::lock;
use super::super::program::program;
use super::super::script::Script;
use super::super::trace::What;
use super::super::world::{Course, Run, play};
use super::super::{Program, Violation, check};
use super::*;

type Told = Arc<Mutex<Vec<String>>>;

/// Keeps a bucket outside of the cluster, and notes what each call came to.
fn keeper(told: &Told) -> Program {
    let told = Arc::clone(told);
    program("keeper", move |seat| {
        let told = Arc::clone(&told);
        async move {
            let external = seat.external();
            loop {
                let found = external.get("bucket").await;
                lock(&told).push(format!("get {found:?}"));
                if found == Ok(Some(json!("full"))) {
                    std::future::pending::<()>().await;
                }
                if found.is_ok() {
                    let put = external.put("bucket", json!("full")).await;
                    lock(&told).push(format!("put {put:?}"));
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    })
}

/// What each call came to until all was well, and the run.
fn keep(faults: &str) -> (Vec<String>, Run) {
    let told = Told::default();
    let course = Course { seed: 0, faults: faults.parse().unwrap(), script: Script::new() };
    let run = play(&check(keeper(&told)).setup, &course);
    assert_eq!(run.remains.violations, [], "{faults}\n{}", run.remains.trace);
    assert_eq!(run.end.external().get("bucket"), Some(&json!("full")), "{faults}");
    let full = r#"get Ok(Some(String("full")))"#;
    let told = lock(&told).split(|line| line == full).next().unwrap_or_default().to_vec();
    (told, run)
}

/// Who changed what is outside.
fn changes(run: &Run) -> Vec<String> {
    let entries = run.remains.trace.0.iter();
    let changed = entries.filter(|entry| matches!(&entry.what, What::Changed { .. }));
    changed.map(|entry| format!("{} {}", entry.actor, entry.what.to_string().trim())).collect()
}

#[test]
fn calls_are_points_of_the_world_and_what_is_there_belongs_to_its_end() {
    let (told, run) = keep("nothing");
    assert_eq!(told, ["get Ok(None)", "put Ok(())"]);
    assert_eq!(changes(&run).len(), 1, "{:?}", changes(&run));
    let points: Vec<String> = run.remains.passed.iter().map(|passed| passed.point.to_string()).collect();
    assert_eq!(points[..3], ["read 1", "write 1", "read 2"]);
}

#[test]
fn a_call_that_is_refused_or_lost_is_not_carried_out() {
    for (fault, error) in [
        ("answer 409 to write 1", "Refused(409)"),
        ("answer 429 to write 1", "Refused(429)"),
        ("answer 503 to write 1", "Refused(503)"),
        ("reset before write 1", "Broken"),
    ] {
        let (told, _) = keep(fault);
        let expected = ["get Ok(None)", &format!("put Err({error})"), "get Ok(None)", "put Ok(())"];
        assert_eq!(told, expected, "{fault}");
    }
    let (told, _) = keep("answer 500 to read 1");
    assert_eq!(told, ["get Err(Refused(500))", "get Ok(None)", "put Ok(())"]);
}

#[test]
fn a_call_whose_answer_is_lost_is_carried_out() {
    let (told, run) = keep("lose the answer to write 1");
    assert_eq!(told, ["get Ok(None)", "put Err(Broken)"], "after that it is there");
    assert_eq!(changes(&run).len(), 1);
}

#[test]
fn a_crash_before_a_call_leaves_it_undone_and_one_after_it_done() {
    let (told, run) = keep("crash before write 1");
    assert_eq!(told, ["get Ok(None)", "get Ok(None)", "put Ok(())"]);
    assert!(changes(&run)[0].starts_with("keeper#2 "), "{:?}", changes(&run));
    let (told, run) = keep("crash after write 1");
    assert_eq!(told, ["get Ok(None)"], "who has died learns nothing");
    assert!(changes(&run)[0].starts_with("keeper "), "{:?}", changes(&run));
}

#[test]
fn what_is_put_as_it_is_already_is_no_change() {
    let again = program("again", |seat| async move {
        for value in [1, 1, 2] {
            seat.external().put("row", json!(value)).await.unwrap();
        }
        seat.external().remove("nobody").await.unwrap();
        std::future::pending::<()>().await;
    });
    let course = Course { seed: 0, faults: Faults::default(), script: Script::new() };
    let run = play(&check(again).setup, &course);
    let first: Vec<&Violation> = run.remains.violations.iter().collect();
    // Only when it is started once more does it change anything that was there: 2 becomes 1, and 2 again.
    let [Violation::SecondPass { writes }] = first[..] else { panic!("{first:?}") };
    assert_eq!(writes.len(), 2, "{writes:?}");
    assert_eq!(changes(&run).len(), 4, "{:?}", changes(&run));
}

#[test]
fn what_is_removed_outside_against_the_script_is_lost() {
    // Who finds a bucket of an earlier life takes it for another's, and begins anew.
    let careless = program("careless", |seat| async move {
        let external = seat.external();
        if external.get("bucket").await != Ok(None) && external.get("done").await == Ok(None) {
            let _ = external.remove("bucket").await;
        }
        if external.get("bucket").await == Ok(None) {
            let _ = external.put("bucket", json!("full")).await;
        }
        if external.get("done").await == Ok(None) {
            let _ = external.put("done", json!(true)).await;
        }
        std::future::pending::<()>().await;
    });
    let report = check(careless).every_crash_point().report();
    let failure = &report.failures[0];
    let lost = Violation::Lost { what: "external bucket".to_owned(), by: "careless#2".to_owned() };
    assert_eq!(
        (failure.faults.to_string().as_str(), &failure.violations[..]),
        ("crash after write 1", &[lost][..])
    );
}
