//! A user of each system who does all that users do: create, change, scale, meddle with what the operator made, delete,
//! and create again under the same name before everything old is gone.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use mainstay::{Kind, Scope};
use mainstay_networks::config::NetworkConfig;
use mainstay_networks::kinds::Network;
use mainstay_streams::kinds::annotations;
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

/// A stream's own kind, its class and its template are there; the user suspends, resumes and changes a stream.
pub(super) fn streams_check() -> Check {
    let feed = Kind::new("feeds.examples.mainstay.dev/v1", "Feed", "feeds", Scope::Namespaced);
    let class = json!({
        "apiVersion": "streams.mainstay.dev/v1alpha1", "kind": "StreamClass", "metadata": {"name": "feeds"},
        "spec": {"apiGroupRef": feed.group(), "apiVersion": feed.version(), "kindRef": feed.kind(), "pluralName": feed.plural()},
    });
    let container = json!({"name": "feed", "image": "example.com/feed:1"});
    let template = json!({
        "apiVersion": "streams.mainstay.dev/v1alpha1", "kind": "StreamingJobTemplate", "metadata": {"name": "feed"},
        "spec": {"template": {"spec": {"template": {"spec": {"containers": [container]}}}}},
    });
    let orders = json!({
        "apiVersion": feed.api_version(), "kind": feed.kind(), "metadata": {"name": "orders"},
        "spec": {"source": "shop", "sink": "warehouse", "jobTemplateRef": {"name": "feed"}},
    });
    let suspended = |value| json!({"metadata": {"annotations": {annotations::SUSPEND: value}}});
    let script = Script::new()
        .create(class)
        .create(template)
        .create(orders)
        .patch(&feed, "orders", suspended(json!("true")))
        .patch(&feed, "orders", suspended(json!(null)))
        .patch(&feed, "orders", json!({"spec": {"sink": "lake"}}))
        .delete(&feed, "orders");
    // It is part of the program that it can be read.
    let definition = serde_saphyr::from_str(feed_plugin::CRD).unwrap_or_default();
    check(operator(mainstay_streams::NAME, mainstay_streams::configure)).given(definition).script(script)
}

/// Nothing runs pods here: the user changes a network, and meddles with what it consists of.
pub(super) fn networks_check() -> Check {
    let network = Kind::of::<Network>();
    let lab = |replicas: i32| {
        json!({
            "apiVersion": network.api_version(), "kind": network.kind(), "metadata": {"name": "lab"},
            "spec": {"replicas": replicas, "peers": [{"image": "example.com/peer:1"}]},
        })
    };
    let namespace = NetworkConfig::namespace("lab");
    let (sets, maps) = (Kind::of::<StatefulSet>(), Kind::of::<ConfigMap>());
    let script = Script::new()
        .create(lab(3))
        .patch(&network, "lab", json!({"spec": {"replicas": 5}}))
        .patch(&network, "lab", json!({"spec": {"networkType": "test", "ttlSeconds": 864_000}}))
        .patch(&sets, &format!("{namespace}/peers-0"), json!({"spec": {"replicas": 1}}))
        .delete(&maps, &format!("{namespace}/keramik-peers"))
        .patch(&network, "lab", json!({"spec": {"replicas": 1}}))
        .patch(&network, "lab", json!({"spec": {"replicas": 2}}));
    check(operator(mainstay_networks::NAME, mainstay_networks::configure))
        // It is made by chance.
        .ignoring_in(&Kind::of::<Secret>(), "/data/secret")
        .script(script)
}
