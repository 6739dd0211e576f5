use std::sync::{Arc, mpsc};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::super::check::check;
use super::super::program::{Program, program};
use super::*;

/// Makes a mark, and a Secret if it was the one who made the mark. Who dies between the two never makes the Secret.
fn forgetful() -> Program {
    program("forgetful", |seat| async move {
        let object = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}});
        let marks: Api<ConfigMap> = Api::default_namespaced(seat.client());
        let mark = serde_json::from_value(object("ConfigMap")).unwrap();
        if marks.create(&PostParams::default(), &mark).await.is_ok() {
            let secrets: Api<Secret> = Api::default_namespaced(seat.client());
            let secret = serde_json::from_value(object("Secret")).unwrap();
            let _ = secrets.create(&PostParams::default(), &secret).await;
        }
        std::future::pending::<()>().await;
    })
}

fn idle() -> Program {
    program("idle", |_| std::future::pending())
}

/// Everything of a report but how long it took.
fn told(report: &Report) -> (String, Vec<(u64, Faults)>) {
    let found_with = report.failures.iter().map(|failure| failure.found_with.clone()).collect();
    (report.to_string(), found_with)
}

#[test]
fn the_first_failure_is_the_same_on_any_number_of_threads() {
    let on = |threads| forgetful_everywhere().threads(threads).report();
    let (one, four) = (on(1), on(4));
    assert_eq!(told(&one), told(&four));
    let first = &one.failures[0];
    assert_eq!(
        (first.part, first.faults.to_string()),
        (Part::Each(Family::CrashPoints), "crash after write 1".to_owned())
    );
    assert!(one.failures.len() > 2, "{one}");
}

fn forgetful_everywhere() -> Check {
    check(forgetful()).every_crash_point().every_failed_request().seeds(20)
}

#[test]
fn the_first_is_the_one_with_the_lowest_index_though_another_ends_before_it() {
    let (sender, receiver) = mpsc::channel();
    let (sender, receiver) = (Mutex::new(sender), Mutex::new(receiver));
    let tell = move |progress: &Progress| {
        if progress.failed == 1 {
            lock(&sender).send(()).unwrap();
        }
    };
    let all: Vec<usize> = (0..20).collect();
    let tally =
        each(&check(idle()).threads(4).progress(tell), Part::Combinations, &all, |index| match index {
            2 => {
                lock(&receiver).recv().unwrap();
                Verdict::Failed("second to end")
            }
            5 => Verdict::Failed("first to end"),
            11 => Verdict::LeftOut,
            _ => Verdict::Fine,
        });
    assert_eq!(tally, Tally { done: 20, left_out: 1, failed: 2, first: Some((2, "second to end")) });
}

#[test]
fn nothing_to_judge_is_nothing_found() {
    let tally = each(&check(idle()), Part::Combinations, &[], |(): &()| Verdict::Failed(()));
    assert_eq!(tally, Tally { done: 0, left_out: 0, failed: 0, first: None });
}

#[test]
fn progress_is_told_in_order_to_the_end_of_each_part() {
    for threads in [1, 4] {
        let heard: Arc<Mutex<Vec<Progress>>> = Arc::default();
        let hearing = Arc::clone(&heard);
        let report =
            forgetful_everywhere().threads(threads).progress(move |told| lock(&hearing).push(*told)).report();
        let heard = lock(&heard).clone();
        let parts = [Part::Each(Family::CrashPoints), Part::Each(Family::Requests), Part::Combinations];
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.part != Part::Baseline).collect();
        assert_eq!(rows.iter().map(|row| row.part).collect::<Vec<_>>(), parts);
        assert_eq!(heard.len(), rows.iter().map(|row| row.worlds).sum::<usize>());
        for row in rows {
            let of_part: Vec<&Progress> = heard.iter().filter(|told| told.part == row.part).collect();
            let done: Vec<usize> = of_part.iter().map(|told| told.done).collect();
            assert_eq!(done, (1..=row.worlds).collect::<Vec<_>>(), "{} on {threads}", row.part);
            assert!(of_part.iter().all(|told| told.total == row.worlds));
            assert!(of_part.is_sorted_by_key(|told| told.failed));
            assert_eq!(of_part.last().map(|told| told.failed), Some(row.failed));
        }
    }
}

#[tokio::test]
async fn a_check_can_be_made_inside_of_a_runtime() {
    let inside = check(forgetful()).every_crash_point();
    let (report, trace) = (inside.report(), inside.trace());
    let outside = std::thread::spawn(move || (inside.report(), inside.trace())).join().unwrap();
    assert_eq!(told(&report), told(&outside.0));
    assert_eq!(trace, outside.1);
    check(idle()).run();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_can_be_made_inside_of_a_runtime_with_threads() {
    let report = check(forgetful()).every_crash_point().report();
    assert_eq!(report.failures.len(), 1);
    assert!(!check(forgetful()).trace().0.is_empty());
}

#[test]
#[should_panic(expected = "forgetful is not right (crash points)")]
fn the_story_of_a_failure_is_what_a_test_panics_with() {
    check(forgetful()).every_crash_point().run();
}
