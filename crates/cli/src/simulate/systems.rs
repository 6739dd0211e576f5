//! The systems that come with Mainstay, each with a user who does all that users do: create, change, scale, meddle with
//! what the operator made, delete, and create again under the same name before everything old is gone.

use crate::failure::Failure;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::CustomResourceExt as _;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Script, check, operator};
use serde_json::{Value, json};
use webapp::kinds::WebApp;

/// Systems that are to come. Asking for one of them is no slip of the finger, and is told so.
const TO_COME: [&str; 4] = ["streams", "networks", "resources", "fleet"];

/// A system that can be simulated.
pub(super) struct System {
    pub(super) name: &'static str,
    /// What it does, in a line.
    pub(super) about: &'static str,
    /// What defines its kind.
    definition: fn() -> Result<Value, Failure>,
    check: fn() -> Check,
}

/// All of them.
pub(super) const ALL: [System; 2] = [
    System {
        name: echo_server::NAME,
        about: "an operator in plain JSON: a Pod and a Service for every EchoServer",
        definition: || {
            let read = serde_saphyr::from_str(echo_server::kinds::CRD);
            read.map_err(|error| Failure::new(error).context("cannot read the definition of EchoServer"))
        },
        check: check_echo_server,
    },
    System {
        name: webapp::NAME,
        about: "an operator with Rust types: a Deployment, a Service and a ConfigMap for every WebApp",
        definition: || Ok(json!(WebApp::crd())),
        check: check_webapp,
    },
];

impl System {
    /// Its program, what it needs, and what its user does. Nothing goes wrong yet.
    pub(super) fn check(&self) -> Result<Check, Failure> {
        Ok((self.check)().given((self.definition)()?).silent())
    }
}

/// The system of this name.
pub(super) fn find(name: &str) -> Result<&'static System, Failure> {
    const SYSTEMS: &[System] = &ALL;
    if let Some(system) = SYSTEMS.iter().find(|system| system.name == name) {
        return Ok(system);
    }
    let there =
        format!("there are {}", SYSTEMS.iter().map(|system| system.name).collect::<Vec<_>>().join(" and "));
    let error = if TO_COME.contains(&name) {
        anyhow::anyhow!(there).context(format!("cannot simulate {name}: it is not there yet"))
    } else {
        anyhow::anyhow!(there).context(format!("cannot simulate {name}: no system has this name"))
    };
    Err(Failure::new(error).next("mainstay simulate lists the systems"))
}

fn check_echo_server() -> Check {
    use echo_server::kinds::{echo_server, pod, service};
    let hello = |message: &str| {
        json!({
            "apiVersion": echo_server().api_version(), "kind": echo_server().kind(),
            "metadata": {"name": "hello"}, "spec": {"message": message},
        })
    };
    let script = Script::new()
        .create(hello("hello"))
        .patch(&echo_server(), "hello", json!({"spec": {"port": 8080}}))
        .patch(&echo_server(), "hello", json!({"spec": {"message": "good day"}}))
        .delete(&pod(), "hello")
        .patch(&service(), "hello", json!({"spec": {"selector": {"app.kubernetes.io/instance": "astray"}}}))
        .patch(&service(), "hello", json!({"metadata": {"annotations": {"example.com/note": "mine"}}}))
        .delete(&echo_server(), "hello")
        .at_once()
        .create(hello("hello again"));
    check(operator(echo_server::NAME, echo_server::configure)).script(script)
}

fn check_webapp() -> Check {
    let (app, settings) = (Kind::of::<WebApp>(), Kind::of::<ConfigMap>());
    let (deployment, service) = (Kind::of::<Deployment>(), Kind::of::<Service>());
    let shop = |image: &str| {
        json!({
            "apiVersion": app.api_version(), "kind": app.kind(),
            "metadata": {"name": "shop"}, "spec": {"image": image, "settings": {"COLOUR": "blue"}},
        })
    };
    let script = Script::new()
        .create(shop("example.com/shop:1"))
        .patch(&app, "shop", json!({"spec": {"settings": {"COLOUR": null, "SIZE": "large"}}}))
        .patch(&app, "shop", json!({"spec": {"replicas": 5}}))
        .delete(&service, "shop")
        .patch(&deployment, "shop", json!({"spec": {"replicas": 1}}))
        .patch(&settings, "shop", json!({"data": {"SIZE": "small"}}))
        .patch(&settings, "shop", json!({"metadata": {"annotations": {"example.com/note": "mine"}}}))
        .delete(&app, "shop")
        .at_once()
        .create(shop("example.com/shop:2"));
    check(operator(webapp::NAME, webapp::configure)).script(script)
}
