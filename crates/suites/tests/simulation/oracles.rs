//! What a check finds without being asked for a particular bug, and what it does not hold against anybody.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use mainstay::{Controller, Kind, SyncRequest, SyncResponse};
use mainstay_testkit::simulation::{
    Check, Family, Part, Program, Report, Script, Violation, check, operator, program,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

fn pairs() -> Program {
    operator("pairs", |operator| {
        operator.namespace("default").controller(Controller::of::<ConfigMap>().owns::<Secret>().sync(
            |request: &SyncRequest| {
                SyncResponse::new().with_child(
                    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name()}}),
                )
            },
        ))
    })
}

fn object(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
}

fn paint(program: Program) -> Check {
    check(program).script(Script::new().create(object("ConfigMap", "paint")))
}

fn found(report: &Report) -> Vec<&Violation> {
    report.failures.iter().flat_map(|failure| &failure.violations).collect()
}

fn secrets(client: Client) -> Api<Secret> {
    Api::default_namespaced(client)
}

#[test]
fn fault_that_never_comes_about_is_told() {
    let report = paint(pairs()).replay(0, "crash after write 99").report();
    let expected = Violation::Unreached { faults: "crash after write 99".into() };
    assert_eq!(found(&report), [&expected], "{report}");
}

#[test]
fn who_removes_what_the_user_made_loses_it_without_faults_too() {
    let eater = || {
        program("eater", |seat| async move {
            loop {
                let _ = secrets(seat.client()).delete("mine", &DeleteParams::default()).await;
                sleep(Duration::from_mins(1)).await;
            }
        })
    };
    let script = Script::new().create(object("Secret", "mine"));
    let report = check(eater()).script(script.clone()).report();
    assert!(matches!(found(&report)[..], [Violation::Lost { .. }]), "{report}");
    check(eater()).script(script).may_remove(&Kind::of::<Secret>()).run();
}

#[test]
fn what_is_left_out_is_left_out_of_combinations_too() {
    let report = paint(pairs()).but(Family::TwoLeaders).every_fault().seeds(30).report();
    assert!(report.rows.iter().all(|row| row.part != Part::Each(Family::TwoLeaders)), "{report}");
    let only = Family::ALL
        .into_iter()
        .filter(|family| *family != Family::TwoLeaders)
        .fold(paint(pairs()), Check::but);
    let report = only.seeds(5).report();
    let combined =
        report.rows.iter().find(|row| row.part == Part::Combinations).expect("there are combinations");
    assert_eq!((combined.worlds, combined.failed), (5, 0));
}

#[test]
fn writes_without_end_that_change_nothing_are_no_rest() {
    let hammer = program("hammer", |seat| async move {
        let secret: Secret = serde_json::from_value(object("Secret", "nail")).expect("a secret");
        loop {
            let _ = secrets(seat.client()).create(&PostParams::default(), &secret).await;
            sleep(Duration::from_millis(100)).await;
        }
    });
    let report = paint(hammer).report();
    assert!(matches!(found(&report)[..], [Violation::Unsettled { .. }]), "{report}");
}

#[test]
fn assertion_in_a_property_is_an_answer() {
    let report = paint(pairs())
        .always("no secrets", |state| {
            assert_eq!(state.of(&Kind::of::<Secret>()).count(), 0, "there are secrets");
            Ok(())
        })
        .report();
    let [Violation::Property { name, why }] = found(&report)[..] else { panic!("{report}") };
    assert_eq!(name, "no secrets");
    assert!(why.contains("there are secrets"), "{why}");
}

#[test]
fn what_happens_in_kube_system_counts() {
    let halves = program("halves", |seat| async move {
        let all: Api<ConfigMap> = Api::namespaced(seat.client(), "kube-system");
        let make = async |name: &str| {
            let map: ConfigMap = serde_json::from_value(object("ConfigMap", name)).expect("a map");
            all.create(&PostParams::default(), &map).await
        };
        // Only who made the first makes the second.
        if make("first").await.is_ok() {
            let _ = make("second").await;
        }
        std::future::pending::<()>().await;
    });
    let report = check(halves).every_crash_point().report();
    let [Violation::EndState { differences }] = found(&report)[..] else { panic!("{report}") };
    assert_eq!(differences, &["configmaps kube-system/second: missing"]);
}

#[test]
fn webhooks_that_are_not_there_are_said_not_to_be() {
    let report = paint(pairs()).every_webhook_outage().report();
    assert_eq!(report.left_out, ["webhooks down: the world has none"]);
}

#[test]
fn the_same_question_in_two_places_is_refused_in_both() {
    // The second look takes an error for absence.
    let careless = program("careless", |seat| async move {
        loop {
            let all = secrets(seat.client());
            if let Ok(Some(_)) = all.get_opt("ledger").await
                && all.get_opt("ledger").await.unwrap_or(None).is_none()
            {
                let _ = all.delete("ledger", &DeleteParams::default()).await;
            }
            sleep(Duration::from_secs(30)).await;
        }
    });
    let script = Script::new().create(object("Secret", "ledger"));
    let report = check(careless).script(script).every_failed_request().report();
    assert!(found(&report).iter().any(|found| matches!(found, Violation::Lost { .. })), "{report}");
}
