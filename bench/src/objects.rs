//! The objects that are written: of the size and shape that operators write.

use serde_json::{Value, json};

/// Where everything happens.
pub(crate) const NAMESPACE: &str = "bench";

/// A `ConfigMap` of about 500 bytes as sent, about a kilobyte as stored.
pub(crate) fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": {"app.kubernetes.io/name": "shop", "app.kubernetes.io/part-of": "bench"},
            "annotations": {"example.com/owner": "team-a"},
        },
        "data": {
            "application.properties": "server.port=8080\nserver.threads=16\ncache.size=1000\ncache.ttl=300s\n",
            "database.properties": "host=db.example.com\nport=5432\nuser=shop\npool=20\ntimeout=5s\n",
            "log.level": "info",
            "features": "checkout=on,search=on,recommendations=off",
        },
    })
}

/// A pod with two containers, probes, resources and volumes.
pub(crate) fn pod(name: &str) -> Value {
    let container = |name: &str, port: u16| {
        json!({
            "name": name, "image": format!("registry.example.com/shop/{name}:1.4.2"),
            "args": ["--config=/etc/shop/config.yaml", "--verbose"],
            "ports": [{"name": "http", "containerPort": port}],
            "env": [
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "LEVEL", "value": "info"},
            ],
            "resources": {
                "requests": {"cpu": "100m", "memory": "128Mi"},
                "limits": {"memory": "256Mi"},
            },
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
            "livenessProbe": {"httpGet": {"path": "/livez", "port": "http"}},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/shop"}],
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "shop", "tier": "front"}},
        "spec": {
            "containers": [container("web", 8080), container("proxy", 9090)],
            "volumes": [{"name": "config", "configMap": {"name": "shop"}}],
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
        },
    })
}

/// A definition with defaults, lists by key, formats, and rules in CEL.
pub(crate) fn definition() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": spec_schema(),
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.bench.example.com"},
        "spec": {
            "group": "bench.example.com", "scope": "Namespaced",
            "names": {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

fn spec_schema() -> Value {
    let port = json!({
        "type": "object", "required": ["name", "port"],
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 15},
            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            "protocol": {"type": "string", "default": "TCP"},
        },
    });
    let strategy = json!({
        "type": "object", "default": {},
        "properties": {
            "type": {"type": "string", "default": "Rolling", "enum": ["Rolling", "Recreate"]},
            "maxSurge": {"x-kubernetes-int-or-string": true, "default": "25%"},
        },
    });
    json!({
        "type": "object", "required": ["image", "replicas"],
        "x-kubernetes-validations": [
            {"rule": "self.minReplicas <= self.replicas", "message": "too few replicas"},
            {"rule": "self.ports.all(p, p.port != 22)", "message": "no remote shells"},
        ],
        "properties": {
            "image": {"type": "string", "minLength": 1, "maxLength": 200},
            "replicas": {"type": "integer", "minimum": 0, "maximum": 1000},
            "minReplicas": {"type": "integer", "default": 1},
            "paused": {"type": "boolean", "default": false},
            "strategy": strategy,
            "ports": {
                "type": "array", "maxItems": 16, "default": [], "items": port,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            },
            "settings": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    })
}

/// An object of that definition.
pub(crate) fn shop(name: &str) -> Value {
    json!({
        "apiVersion": "bench.example.com/v1", "kind": "Shop",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "shop"}},
        "spec": {
            "image": "registry.example.com/shop/web:1.4.2", "replicas": 3,
            "ports": [{"name": "http", "port": 8080}, {"name": "metrics", "port": 9090}],
            "settings": {"level": "info", "cache": "1000", "timeout": "5s"},
        },
    })
}
