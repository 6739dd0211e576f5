//! Simulated worlds per second, on one thread: an operator that makes twenty objects, at all of its crash points and under
//! every other fault.

use crate::report::{Aim, Better, Row, render};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::{Controller, Error, SyncRequest, SyncResponse};
use mainstay_testkit::simulation::{self, Check, Family, Part, Report, Script};
use serde_json::{Value, json};

/// How many objects the operator makes, each with one write.
const WRITES: usize = 20;
/// All crash points in less than this.
const AIM_SECONDS: f64 = 2.0;
const SEEDS: u64 = 100;
const PARENT: &str = "paint";

fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let child = |index| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{}-{index}", request.name())},
            "stringData": {"colour": request.parent_json()["data"]["colour"]}})
    };
    // The server keeps a certificate for every namespace in a ConfigMap too.
    let writes = if request.name() == PARENT { WRITES } else { 0 };
    (0..writes).map(child).try_fold(SyncResponse::new(), |response, child: Value| response.with_child(child))
}

fn check() -> Check {
    let operator = simulation::operator("twenty", |operator| {
        operator.namespace("default").controller(Controller::of::<ConfigMap>().owns::<Secret>().sync(sync))
    });
    let parent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PARENT}, "data": {"colour": "red"}});
    simulation::check(operator).script(Script::new().create(parent)).silent().threads(1)
}

/// Runs and prints them.
pub(crate) fn measure() {
    let crashes = check().every_crash_point().report();
    let everything = check().every_fault().seeds(SEEDS).report();
    let seconds = crashes.took.as_secs_f64();
    let crash_points = crashes.rows.iter().filter(|row| row.part == Part::Each(Family::CrashPoints));
    let points: usize = crash_points.map(|row| row.worlds + row.pruned).sum();
    let rows = [
        Row {
            what: format!("all {points} crash points of {} writes", crashes.writes),
            unit: "s",
            real: None,
            ours: seconds,
            better: Better::Less,
            aim: Aim::Below(AIM_SECONDS),
        },
        rate("worlds with a crash", &crashes),
        rate("worlds with any fault", &everything),
    ];
    print!("{}", render(&rows));
    let (worlds, failed) = (crashes.worlds() + everything.worlds(), crashes.failed() + everything.failed());
    println!("\n{worlds} worlds on one thread, {failed} of them not as they should be");
}

#[expect(clippy::cast_precision_loss, reason = "far fewer worlds than a float can count")]
fn rate(what: &str, report: &Report) -> Row {
    let ours = report.worlds() as f64 / report.took.as_secs_f64();
    Row { what: what.to_owned(), unit: "1/s", real: None, ours, better: Better::More, aim: Aim::None }
}
