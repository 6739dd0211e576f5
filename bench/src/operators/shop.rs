//! The operator that both contenders implement: a `Shop` has a `ConfigMap`, a `Service` and a `Deployment`.
//!
//! What a shop's children look like is said once, here. The contenders differ only in how they bring it about.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a user asks for.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "operators.example.com", version = "v1", kind = "Shop", namespaced, status = "ShopStatus")]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShopSpec {
    /// What runs.
    pub image: String,
    /// How many of it.
    pub replicas: i32,
    /// Where it listens.
    pub port: u16,
    /// What it is told.
    pub level: String,
}

/// What the operator tells.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShopStatus {
    /// The generation that the children were made for.
    pub observed_generation: Option<i64>,
    /// How many children there are.
    pub children: usize,
}

pub(crate) fn shop_name(number: usize) -> String {
    format!("shop-{number:05}")
}

/// The shop of this number.
pub(crate) fn shop(number: usize) -> Shop {
    let spec = ShopSpec {
        image: "registry.example.com/shop/web:1.4.2".into(),
        replicas: 3,
        port: 8080,
        level: "info".into(),
    };
    Shop::new(&shop_name(number), spec)
}

/// The children of a shop.
pub(crate) struct Children {
    pub config_map: Value,
    pub service: Value,
    pub deployment: Value,
}

/// What should exist for a shop. `owner` is the reference to it, where the contender has to give one itself.
pub(crate) fn children(shop: &Shop, owner: Option<&OwnerReference>) -> Children {
    let name = shop.name_any();
    let labels = json!({"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": name});
    let mut metadata = json!({"name": name, "labels": labels});
    if let Some(namespace) = shop.namespace() {
        metadata["namespace"] = namespace.into();
    }
    if let Some(owner) = owner {
        metadata["ownerReferences"] = json!([owner]);
    }
    let settings = format!("server.port={}\nserver.threads=16\ncache.size=1000\n", shop.spec.port);
    Children {
        config_map: json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": metadata,
            "data": {
                "application.properties": settings,
                "database.properties": "host=db.example.com\nport=5432\nuser=shop\npool=20\ntimeout=5s\n",
                "log.level": shop.spec.level,
            },
        }),
        service: json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": metadata,
            "spec": {
                "selector": labels,
                "ports": [{"name": "http", "port": 80, "targetPort": shop.spec.port}],
            },
        }),
        deployment: json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": shop.spec.replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod(shop)},
            },
        }),
    }
}

fn pod(shop: &Shop) -> Value {
    json!({
        "containers": [{
            "name": "web", "image": shop.spec.image,
            "args": ["--config=/etc/shop/application.properties"],
            "ports": [{"name": "http", "containerPort": shop.spec.port}],
            "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/shop"}],
        }],
        "volumes": [{"name": "config", "configMap": {"name": shop.name_any()}}],
    })
}
