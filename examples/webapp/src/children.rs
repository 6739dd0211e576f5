//! What a web application consists of. Only fields that matter are named; the others are left to Kubernetes and to
//! whoever else has a say in them.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapEnvSource, Container, ContainerPort, EnvFromSource, HTTPGetAction, PodSpec,
    PodTemplateSpec, Probe, Service, ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use mainstay::diff::content_hash;
use serde_json::json;

use crate::config::WebAppConfig;

/// On pods: what the settings were when they started.
const SETTINGS: &str = "examples.mainstay.dev/settings";
/// The container's port, by name.
const HTTP: &str = "http";

/// The settings, as pods read them.
pub(crate) fn config_map(name: &str, config: &WebAppConfig) -> ConfigMap {
    ConfigMap { metadata: metadata(name), data: Some(config.settings.clone()), ..ConfigMap::default() }
}

/// The pods.
pub(crate) fn deployment(name: &str, config: &WebAppConfig) -> Deployment {
    let hash = content_hash(&json!(config.settings));
    let annotations = BTreeMap::from([(SETTINGS.to_owned(), hash)]);
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels(name)),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec { containers: vec![container(name, config)], ..PodSpec::default() }),
    };
    Deployment {
        metadata: metadata(name),
        spec: Some(DeploymentSpec {
            replicas: Some(config.replicas),
            selector: LabelSelector { match_labels: Some(labels(name)), ..LabelSelector::default() },
            template,
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn container(name: &str, config: &WebAppConfig) -> Container {
    let settings = ConfigMapEnvSource { name: name.to_owned(), ..ConfigMapEnvSource::default() };
    let ask = HTTPGetAction {
        path: Some(config.probe.path.clone()),
        port: IntOrString::String(HTTP.into()),
        ..HTTPGetAction::default()
    };
    Container {
        name: "web".into(),
        image: Some(config.image.clone()),
        // Kubernetes chooses by the tag that the image has at first, and does not choose again when it gets another.
        image_pull_policy: Some("IfNotPresent".into()),
        ports: Some(vec![ContainerPort {
            name: Some(HTTP.into()),
            container_port: config.port,
            ..ContainerPort::default()
        }]),
        env_from: Some(vec![EnvFromSource { config_map_ref: Some(settings), ..EnvFromSource::default() }]),
        readiness_probe: Some(Probe {
            http_get: Some(ask),
            period_seconds: Some(config.probe.period_seconds),
            ..Probe::default()
        }),
        ..Container::default()
    }
}

/// Where the pods are reached.
pub(crate) fn service(name: &str) -> Service {
    let port = ServicePort {
        port: 80,
        target_port: Some(IntOrString::String(HTTP.into())),
        ..ServicePort::default()
    };
    let spec =
        ServiceSpec { selector: Some(labels(name)), ports: Some(vec![port]), ..ServiceSpec::default() };
    Service { metadata: metadata(name), spec: Some(spec), ..Service::default() }
}

fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels(name)), ..ObjectMeta::default() }
}

fn labels(name: &str) -> BTreeMap<String, String> {
    let labels = [("app.kubernetes.io/name", "webapp"), ("app.kubernetes.io/instance", name)];
    labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}
