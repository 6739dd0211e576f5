//! A cluster with a plugin in it, and what a user does there.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use mainstay_local::controllers::{self, configure_only};
use mainstay_local::node::{self, Node};
use mainstay_streams::job::run_name;
use mainstay_streams::kinds::{Purpose, definitions};
use mainstay_testkit::simulation::{Check, Script, check, operator};
use serde_json::{Value, json};

use crate::simulation::plugin::{self, class, definition, streams, template, with};
use crate::simulation::properties;

const NODE: &str = "here";
/// The generation that a stream has if only the user changes its spec.
pub(crate) const GENERATION: &str = "example.com/generation";
/// Longer than anybody waits for anything who has only died, unless a test says otherwise.
const QUIET: Duration = Duration::from_secs(30);
/// The same where requests get no answer, which is noticed after half a minute. Classes count their streams every few seconds, so more would cost.
const QUIET_WITHOUT_ANSWERS: Duration = Duration::from_secs(45);

const SEEDS: u64 = 12;
/// Times are not compared.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// The kind of the streams.
pub(crate) fn feeds() -> Kind {
    streams("Feed")
}

/// The operator, with its own kinds and nothing else. Nobody runs Jobs.
pub(crate) fn alone() -> Check {
    let check = check(operator(mainstay_streams::NAME, mainstay_streams::configure))
        .quiet(QUIET)
        // Of two changes that are seen at once one run is made, of two that are seen one after the other two: the user waits.
        .patient();
    properties::always(definitions().into_iter().fold(check, Check::given))
}

/// The operator among Jobs and pods, with its own kinds and nothing else.
fn bare() -> Check {
    let jobs = operator(controllers::NAME, |operator| {
        configure_only(operator, |kind| ["CronJob", "Job", "Pod"].contains(&kind.kind()))
    });
    let pods = operator(node::NAME, |operator| node::configure(operator, &Node::new(NODE, "192.0.2.1")));
    alone()
        .beside(jobs)
        .beside(pods)
        .ignoring_in(&Kind::of::<Pod>(), "/status/podIP")
        .ignoring_in(&Kind::of::<Pod>(), "/status/podIPs/*/ip")
}

/// The same with a plugin: its kind, a class with these additions, and the template `feeds`, whose program runs until it is stopped.
pub(crate) fn with_class(spec: &Value) -> Check {
    installed(bare(), spec)
}

/// A plugin with such a class where nobody runs Jobs: what becomes of them is the script's to say.
pub(crate) fn without_pods(spec: &Value) -> Check {
    installed(alone(), spec)
}

fn installed(check: Check, class: &Value) -> Check {
    check.given(definition(&feeds())).given(class_with(class)).given(program("feeds", &runs()))
}

/// The same with a plain class.
pub(crate) fn with_plugin() -> Check {
    with_class(&json!({}))
}

pub(crate) fn class_with(spec: &Value) -> Value {
    class(&feeds(), &with(json!({"secretRefs": ["sinkSecretRef"]}), spec))
}

/// A template whose pods are on the node. They take a second to end when they are asked to.
pub(crate) fn program(name: &str, simulation: &Value) -> Value {
    let mut template = template(name, simulation);
    let pod = &mut template["spec"]["template"]["spec"]["template"]["spec"];
    pod["nodeName"] = json!(NODE);
    pod["automountServiceAccountToken"] = json!(false);
    pod["terminationGracePeriodSeconds"] = json!(10);
    template
}

/// A program that runs until it is stopped.
pub(crate) fn runs() -> Value {
    json!({"mainstay.dev/ends-after": "never"})
}

/// A program that is done after three seconds.
pub(crate) fn completes() -> Value {
    json!({"mainstay.dev/ends-after": "3s"})
}

/// A program that fails after three seconds.
pub(crate) fn fails() -> Value {
    json!({"mainstay.dev/ends-after": "3s", "mainstay.dev/exit-code": "7"})
}

/// What the controller of Jobs writes when one is done.
pub(crate) fn completed() -> Value {
    ended(&json!({"succeeded": 1, "completionTime": LONG_AGO}), ["SuccessCriteriaMet", "Complete"])
}

/// What the controller of Jobs writes when one has failed.
pub(crate) fn failed() -> Value {
    ended(&json!({"failed": 1}), ["FailureTarget", "Failed"])
}

fn ended(status: &Value, conditions: [&str; 2]) -> Value {
    let conditions = conditions.map(|kind| {
        json!({"type": kind, "status": "True", "reason": "Said", "message": "", "lastTransitionTime": LONG_AGO, "lastProbeTime": LONG_AGO})
    });
    json!({"status": with(json!({"startTime": LONG_AGO, "conditions": conditions}), status)})
}

/// The stream `orders` as it is made.
pub(crate) fn orders(spec: &Value) -> Value {
    stream("orders", spec)
}

pub(crate) fn stream(name: &str, spec: &Value) -> Value {
    let mut stream = plugin::stream(&feeds(), name, spec);
    stream["metadata"]["annotations"] = json!({GENERATION: "1"});
    stream
}

/// A change of a stream's spec, which makes it this generation.
pub(crate) fn change(generation: u32, spec: &Value) -> Value {
    json!({"metadata": {"annotations": {GENERATION: generation.to_string()}}, "spec": spec})
}

/// The name of a run of `orders`.
pub(crate) fn run_of_orders(number: u64) -> String {
    run_name("orders", "example.com", "Feed", &Purpose::Stream, number)
}

/// The name of a run of `orders` that is a backfill.
pub(crate) fn backfill_of_orders(number: u64) -> String {
    let purpose = Purpose::Backfill { request: None, id: String::new(), reload: None };
    run_name("orders", "example.com", "Feed", &purpose, number)
}

/// What a run was made from includes hashes of Secrets, which are salted with the stream's uid.
pub(crate) fn with_secrets(check: Check) -> Check {
    check
        .ignoring("/status/configurationHash")
        .ignoring("/status/run/madeFrom/secrets")
        .ignoring_in(&Kind::of::<Job>(), "/metadata/annotations/mainstay.dev~1run")
}

/// The operator dies before and after each of its writes.
pub(crate) fn killed(check: Check, script: Script) {
    check.script(script).every_crash_point().run();
}

/// The same, and a few times several things go wrong of all that can.
pub(crate) fn disturbed(check: Check, script: Script) {
    check.clone().script(script.clone()).every_crash_point().run();
    check.script(script).quiet(QUIET_WITHOUT_ANSWERS).seeds(SEEDS).run();
}

/// Whatever can go wrong does, at every place, and a few times several things at once.
pub(crate) fn plagued(check: Check, script: Script) {
    check.script(script).quiet(QUIET_WITHOUT_ANSWERS).every_fault().seeds(SEEDS).run();
}
