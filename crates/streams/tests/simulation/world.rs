//! A cluster with a plugin in it, and what a user does there.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use mainstay_local::controllers::{self, configure_only};
use mainstay_local::node::{self, Node};
use mainstay_streams::job::run_name;
use mainstay_streams::kinds::{Purpose, definitions};
use mainstay_testkit::simulation::{Check, Script, check, operator};
use serde_json::{Value, json};

use crate::plugin::{class, definition, feed, template};
use crate::properties;

const NODE: &str = "here";
/// The generation that a stream has if only the user changes its spec.
pub(crate) const GENERATION: &str = "example.com/generation";

/// The operator among Jobs and pods, with its own kinds and nothing else.
pub(crate) fn bare() -> Check {
    let jobs = operator(controllers::NAME, |operator| {
        configure_only(operator, |kind| ["CronJob", "Job", "Pod"].contains(&kind.kind()))
    });
    let pods = operator(node::NAME, |operator| node::configure(operator, &Node::new(NODE, "192.0.2.1")));
    let check = check(operator(mainstay_streams::NAME, mainstay_streams::configure))
        .beside(jobs)
        .beside(pods)
        .ignoring_in(&Kind::of::<Pod>(), "/status/podIP")
        .ignoring_in(&Kind::of::<Pod>(), "/status/podIPs/*/ip");
    properties::always(definitions().into_iter().fold(check, Check::given))
}

/// The same with a plugin: its kind, a class with these additions, and the template `feed`, whose program runs until it is stopped.
pub(crate) fn with_class(spec: &Value) -> Check {
    bare().given(definition()).given(class_with(spec)).given(program("feed", &runs()))
}

/// The same with a plain class.
pub(crate) fn with_plugin() -> Check {
    with_class(&json!({}))
}

pub(crate) fn class_with(spec: &Value) -> Value {
    let mut class = class("feeds");
    class["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    class
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

/// The stream `orders` as it is made.
pub(crate) fn orders(spec: &Value) -> Value {
    stream("orders", spec)
}

pub(crate) fn stream(name: &str, spec: &Value) -> Value {
    let mut stream = feed(name, spec);
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

/// What a run was made from includes hashes of Secrets, which are salted with the stream's uid.
pub(crate) fn with_secrets(check: Check) -> Check {
    check
        .ignoring("/status/configurationHash")
        .ignoring("/status/run/madeFrom/secrets")
        .ignoring_in(&Kind::of::<Job>(), "/metadata/annotations/mainstay.dev~1run")
}

/// The operator dies before and after each of its writes; and a few times several things go wrong at once.
pub(crate) fn disturbed(check: Check, script: Script) {
    check.script(script).every_crash_point().run();
}
