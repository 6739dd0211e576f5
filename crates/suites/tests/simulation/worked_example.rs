//! The bug of `docs/simulation.md`: found in an example of ours, and told there as it is told here.

use k8s_openapi::api::apps::v1::Deployment;
use mainstay::{Controller, Error, Kind, Scope, SyncRequest, SyncResponse};
use mainstay_testkit::simulation::{Check, Family, Fault, Part, Program, Script, Violation, check, operator};
use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("../../../../docs/simulation.md");

/// What should exist for an App: a Deployment of its image.
fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    deployment(request, &json!({"name": "app", "image": request.parent_json()["spec"]["image"]}))
}

fn deployment(request: &SyncRequest, container: &Value) -> Result<SyncResponse, Error> {
    let labels = json!({"app": request.name()});
    SyncResponse::new().with_child(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": request.name()},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }))
}

fn corrected(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let image = &request.parent_json()["spec"]["image"];
    deployment(request, &json!({"name": "app", "image": image, "imagePullPolicy": "IfNotPresent"}))
}

fn apps(sync: fn(&SyncRequest) -> Result<SyncResponse, Error>) -> Program {
    operator("apps", move |operator| {
        operator.controller(Controller::for_kind(app()).owns::<Deployment>().sync(sync))
    })
}

fn app() -> Kind {
    Kind::new("example.com/v1", "App", "apps", Scope::Namespaced)
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "apps.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "apps", "singular": "app", "kind": "App"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {
                    "type": "object",
                    "required": ["image"],
                    "properties": {"image": {"type": "string", "minLength": 1}},
                }},
            }}}],
        },
    })
}

fn change_every_property(apps: Program) -> Check {
    let shop = json!({"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "shop"},
        "spec": {"image": "example.com/shop:1"}});
    let script = Script::new().create(shop);
    check(apps).given(definition()).script(script).every_crash_point().every_spec_change(definition(), 5)
}

#[test]
fn the_bug_is_found_and_told_as_the_document_has_it() {
    let report = change_every_property(apps(sync)).report();
    let failure = report.failures.first().expect("it is found");
    assert_eq!(failure.part, Part::SpecChanges);
    assert!(matches!(failure.violations[..], [Violation::WayThere { .. }]), "{}", failure.story);
    let told: String =
        report.to_string().lines().map(|line| format!("    {line}\n").replace("    \n", "\n")).collect();
    assert!(DOCUMENT.contains(told.trim_end()), "docs/simulation.md does not have this:\n{told}");
}

/// The code that the story ends with, as it is printed.
#[rustfmt::skip]
fn pasted(program: Program) -> Check {
    check(program).given(definition())
    .script(
        Script::new()
            .create(json!({"apiVersion":"example.com/v1","kind":"App","metadata":{"name":"shop"},"spec":{"image":"example.com/shop:1"}}))
            .patch(&Kind::new("example.com/v1", "App", "apps", Scope::Namespaced), "default/shop", json!({"spec":{"image":"e"}})),
    )
    .same_end_as(
        Script::new()
            .create(json!({"apiVersion":"example.com/v1","kind":"App","metadata":{"name":"shop"},"spec":{"image":"e"}})),
    )
}

#[test]
fn the_code_that_is_printed_compiles_and_shows_it_again() {
    let told = |line: &str| DOCUMENT.lines().any(|told| told.trim() == line);
    let source = include_str!("worked_example.rs");
    let start = source.find("fn pasted").expect("the code is here");
    let printed = source[start..].lines().skip(2).take_while(|line| *line != "}").map(str::trim);
    assert!(printed.clone().count() > 8 && printed.clone().all(told), "the document has other code");
    let report = pasted(apps(sync)).report();
    assert!(matches!(report.failures[0].violations[..], [Violation::WayThere { .. }]), "{report}");
    pasted(apps(corrected)).run();
}

#[test]
fn the_document_names_every_family() {
    for family in Family::ALL {
        assert!(DOCUMENT.contains(&format!("| `{}` |", family.name())), "{family}");
    }
}

#[test]
fn the_document_writes_faults_as_they_are_read() {
    let table = DOCUMENT.lines().filter(|line| line.starts_with("| `"));
    let faults: Vec<&str> = table
        .flat_map(|line| line.rsplit(" | ").next().unwrap_or_default().trim_end_matches(" |").split(", "))
        .collect();
    assert!(faults.len() > 12, "{faults:?}");
    for fault in faults {
        let (write, event) =
            (format!("{} write 1", fault.trim_matches('`')), format!("{} event 1", fault.trim_matches('`')));
        let read = write.parse::<Fault>().or_else(|_| event.parse());
        let written = read.map(|fault| fault.to_string());
        assert!(written == Ok(write.clone()) || written == Ok(event), "{write}: {written:?}");
    }
}

#[test]
fn the_corrected_one_passes() {
    change_every_property(apps(corrected)).run();
}
