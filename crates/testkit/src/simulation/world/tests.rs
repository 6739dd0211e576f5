use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::{Controller, Kind, Replicas, SyncRequest, SyncResponse};
use serde_json::json;

use super::super::{Entry, MAIN, Point, Trace, operator};
use super::*;
use crate::simulation::trace::{Answer, Fate};

/// Every `ConfigMap` of the namespace gets a Secret of its name.
fn pairs(replicas: Replicas) -> Program {
    operator("pairs", move |operator| {
        let controller = Controller::of::<ConfigMap>().owns::<Secret>().sync(|request: &SyncRequest| {
            SyncResponse::new().with_child(json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name()},
                "stringData": {"colour": request.parent_json()["data"]["colour"]},
            }))
        });
        operator.namespace("default").replicas(replicas.clone()).controller(controller)
    })
}

fn setup(subject: Program) -> Setup {
    Setup {
        subject,
        beside: Vec::new(),
        clusters: vec![MAIN.to_owned()],
        given: Vec::new(),
        properties: Arc::new([]),
        webhooks: Arc::default(),
        quiet: Duration::from_mins(2),
        limit: Duration::from_hours(1),
        silent: true,
        patient: false,
    }
}

fn paint(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"colour": "red"}})
}

fn script() -> Script {
    let kind = Kind::of::<ConfigMap>();
    Script::new()
        .create(paint("a"))
        .at_once()
        .create(paint("b"))
        .patch(&kind, "a", json!({"data": {"colour": "blue"}}))
        .delete(&kind, "b")
}

fn run(seed: u64, faults: &str) -> Run {
    let course = Course { seed, faults: faults.parse().unwrap(), script: script() };
    play(&setup(pairs(Replicas::single())), &course)
}

/// The lines of the subject that this is true of.
fn lines(trace: &Trace, wanted: impl Fn(&What) -> bool) -> Vec<String> {
    let wanted = trace.0.iter().filter(|entry| &*entry.actor.name == "pairs" && wanted(&entry.what));
    wanted.map(|entry| format!("{} {}", entry.actor, entry.what)).collect()
}

fn is_life(what: &What) -> bool {
    matches!(what, What::Started | What::Crashed | What::Mishap { .. })
}

fn ends_well(run: &Run) {
    assert_eq!(run.remains.violations, [], "{}", run.remains.trace);
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    for seed in [0, 1, 77] {
        for faults in ["nothing", "crash after write 2, hold event 7"] {
            let first = run(seed, faults).remains.trace.to_string();
            let others = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..3).map(|_| scope.spawn(|| run(seed, faults).remains.trace.to_string())).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            assert!(others.iter().all(|other| *other == first), "seed {seed}, {faults}");
        }
    }
}

#[test]
fn seeds_differ_in_the_order_of_what_happens_at_once() {
    let orders: std::collections::BTreeSet<String> =
        (1..8).map(|seed| run(seed, "nothing").remains.trace.to_string()).collect();
    assert!(orders.len() > 3, "{} orders", orders.len());
}

#[test]
fn a_crash_before_a_write_leaves_it_undone_and_one_after_it_done() {
    let before = run(0, "crash before write 1");
    let after = run(0, "crash after write 1");
    for run in [&before, &after] {
        ends_well(run);
        let lives = lines(&run.remains.trace, is_life);
        assert_eq!(lives[2..4], ["pairs crashes".to_owned(), "pairs#2 starts".to_owned()], "{lives:?}");
    }
    let created =
        |run: &Run| lines(&run.remains.trace, |what| matches!(what, What::Changed { .. }))[0].clone();
    assert!(created(&before).starts_with("pairs#2 "), "{}", created(&before));
    assert!(created(&after).starts_with("pairs   secrets default/"), "{}", created(&after));
}

#[test]
fn refusals_and_lost_answers_are_what_they_say() {
    for (fault, answer, done) in [
        ("answer 409 to write 1", Answer::Status(409), false),
        ("answer 429 to write 1", Answer::Status(429), false),
        ("answer 503 to write 1", Answer::Status(503), false),
        ("reset before write 1", Answer::None, false),
        ("lose the answer to write 1", Answer::None, true),
    ] {
        let run = run(0, fault);
        ends_well(&run);
        let entries = &run.remains.trace.0;
        let is_first =
            |entry: &&Entry| matches!(&entry.what, What::Asked { point: Some(Point::Write(1)), .. });
        let index = entries.iter().position(|entry| is_first(&entry)).unwrap();
        let What::Asked { answer: told, .. } = &entries[index].what else { unreachable!() };
        assert_eq!(*told, answer, "{fault}");
        assert_eq!(matches!(entries[index + 1].what, What::Changed { .. }), done, "{fault}");
    }
}

#[test]
fn events_are_held_cut_repeated_and_missed() {
    let fates = |fault: &str| {
        let run = run(0, fault);
        ends_well(&run);
        let told = |what: &What| matches!(what, What::Told { fate, .. } if *fate != Fate::Delivered);
        lines(&run.remains.trace, told)
    };
    assert!(fates("hold event 4")[0].contains(" s late"), "{:?}", fates("hold event 4"));
    assert!(fates("repeat event 4")[0].ends_with(", twice"));
    for fault in ["cut before event 4", "expire at event 4", "miss from event 4"] {
        let fates = fates(fault);
        assert!(fates[0].starts_with("pairs is not told ADDED"), "{fault}: {fates:?}");
    }
}

#[test]
fn a_missed_kind_is_listed_again_after_the_users_next_step() {
    let run = run(0, "miss from event 4");
    ends_well(&run);
    let refused = lines(&run.remains.trace, |what| {
        matches!(what, What::Asked { verb: "list" | "watch", answer: Answer::None, .. })
    });
    assert!(!refused.is_empty(), "nothing is answered while nothing can be seen\n{}", run.remains.trace);
}

#[test]
fn a_second_instance_takes_over_while_the_first_is_stalled() {
    let course = Course { seed: 0, faults: "two leaders at write 1".parse().unwrap(), script: script() };
    let run = play(&setup(pairs(Replicas::leader("default"))), &course);
    ends_well(&run);
    let writes = |actor: &str| {
        let trace = &run.remains.trace.0;
        trace
            .iter()
            .filter(|entry| entry.actor.to_string() == actor)
            .any(|entry| matches!(&entry.what, What::Changed { place, .. } if &*place.resource == "secrets"))
    };
    assert!(
        writes("pairs#2") && !writes("pairs"),
        "a fenced operator's late write is not carried out\n{}",
        run.remains.trace
    );
}

#[test]
fn the_clock_of_the_operator_alone_jumps() {
    let run = run(0, "clock +3600s at write 1");
    ends_well(&run);
    assert_eq!(lines(&run.remains.trace, is_life)[1], "pairs !! clock +3600s at write 1");
}

#[test]
fn a_clock_that_jumped_shows_another_time_than_the_servers() {
    let clerk = super::super::program("clerk", |seat| async move {
        let api: kube::Api<ConfigMap> = kube::Api::default_namespaced(seat.client());
        for name in ["before", "after"] {
            let stamp = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                "data": {"now": seat.clock().now().to_string()}});
            let stamp = serde_json::from_value(stamp).unwrap();
            let _ = api.create(&kube::api::PostParams::default(), &stamp).await;
        }
        std::future::pending::<()>().await;
    });
    let faults = "clock +3600s at write 1".parse().unwrap();
    let run = play(&setup(clerk), &Course { seed: 0, faults, script: Script::new() });
    let wrong_by = |name: &str| {
        let stamp = run.end.get(&Kind::of::<ConfigMap>(), "default", name).unwrap();
        let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        time(&stamp["data"]["now"]).duration_since(time(&stamp["metadata"]["creationTimestamp"])).as_secs()
    };
    assert_eq!((wrong_by("before"), wrong_by("after")), (0, 3600));
}

#[test]
fn who_panics_is_found_out() {
    let subject = operator("pairs", |operator| {
        operator.namespace("default").controller(Controller::of::<ConfigMap>().owns::<Secret>().sync(
            |request: &SyncRequest| {
                assert_ne!(request.parent_json()["data"]["colour"], "blue", "not that colour");
                Ok(SyncResponse::new())
            },
        ))
    });
    let run = play(&setup(subject), &Course { seed: 0, faults: Faults::default(), script: script() });
    let panicked = |violation: &Violation| matches!(violation, Violation::Ended { how, .. } if how.contains("not that colour"));
    assert!(run.remains.violations.iter().any(panicked), "{:?}", run.remains.violations);
}

#[test]
fn a_property_is_checked_after_every_change() {
    let property = Property {
        name: "no blue secrets".into(),
        holds: Arc::new(|state| {
            let blue = state.of(&Kind::of::<Secret>()).any(|secret| secret["data"]["colour"] == "Ymx1ZQ==");
            if blue { Err("there is one".into()) } else { Ok(()) }
        }),
    };
    let setup = Setup { properties: Arc::new([property]), ..setup(pairs(Replicas::single())) };
    let run = play(&setup, &Course { seed: 0, faults: Faults::default(), script: script() });
    assert_eq!(
        run.remains.violations,
        [Violation::Property { name: "no blue secrets".into(), why: "there is one".into() }]
    );
}

#[test]
fn what_a_user_may_not_do_is_told() {
    let script = Script::new().delete(&Kind::of::<ConfigMap>(), "nobody");
    let run = play(&setup(pairs(Replicas::single())), &Course { seed: 0, faults: Faults::default(), script });
    let told = run.remains.violations.first().map(Violation::to_string).unwrap_or_default();
    assert!(told.contains("configmaps \"nobody\" not found"), "{told}");
}

#[test]
fn worlds_may_have_several_clusters() {
    let copies = super::super::program("copies", |seat| async move {
        let east: kube::Api<ConfigMap> = kube::Api::default_namespaced(seat.client_of("east"));
        let copy = serde_json::from_value(paint("copy")).unwrap();
        let _ = east.create(&kube::api::PostParams::default(), &copy).await;
        std::future::pending::<()>().await;
    });
    let setup = Setup { clusters: vec![MAIN.to_owned(), "east".to_owned()], silent: false, ..setup(copies) };
    let script = Script::new().create(paint("own")).on("east");
    let run = play(&setup, &Course { seed: 0, faults: Faults::default(), script });
    ends_well(&run);
    let names: Vec<&str> = run
        .end
        .of_in("east", &Kind::of::<ConfigMap>())
        .filter_map(|map| map["metadata"]["name"].as_str())
        .collect();
    assert!(names.contains(&"copy") && names.contains(&"own"), "{names:?}");
    assert!(run.end.get(&Kind::of::<ConfigMap>(), "default", "copy").is_none());
}
