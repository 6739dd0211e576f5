//! What the tests of sets of pods share.

use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Script, check, pods};

use crate::simulation::controllers_of;

/// The controllers in a world in which pods run.
pub(crate) fn world(script: Script) -> Check {
    let pod = Kind::of::<Pod>();
    // The stand-in for the kubelet gives pods addresses by their names, which may differ.
    check(controllers_of(&["StatefulSet", "DaemonSet"]))
        .beside(pods())
        .script(script)
        .ignoring_in(&pod, "/status/podIP")
        .ignoring_in(&pod, "/status/podIPs/*/ip")
}

/// The operator dies at every place, and some things go wrong at once. Scripts in which all that can go wrong does are shorter.
pub(crate) fn disturbed(check: Check) -> Check {
    check.silent().patient().every_crash_point().seeds(3)
}

/// Which objects came and went, and what the user did, without faults.
pub(crate) fn course(check: &Check) -> String {
    let trace = check.trace().to_string();
    let told = trace.lines().filter_map(|line| {
        let line = line.get(10..)?.trim_start();
        let (actor, what) = line.split_once(' ')?;
        let what = what.trim();
        let is_step = actor == "user" && what.starts_with("step");
        let of_interest = ["pods ", "persistentvolumeclaims ", "controllerrevisions."];
        let is_change = of_interest.iter().any(|kind| what.starts_with(kind))
            && (what.ends_with(": created") || what.ends_with(": removed"));
        (is_step || is_change).then(|| what.replace(" default/", " "))
    });
    told.collect::<Vec<_>>().join("\n")
}
