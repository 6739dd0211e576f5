//! A user of each system who does all that users do: create, change, scale, meddle with what the operator made, delete,
//! and create again under the same name before everything old is gone.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Script, check, operator};
use serde_json::json;
use webapp::kinds::WebApp;

pub(super) fn echo_server_check() -> Check {
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

pub(super) fn webapp_check() -> Check {
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
