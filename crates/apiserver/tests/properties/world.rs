//! A small world of objects, and requests that speak of it: most make sense, some nearly do.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::properties::answer::Sent;

/// The namespace of the objects that mark the end of a sequence. No request speaks of it.
pub(crate) const SENTINELS: &str = "sentinels";

/// A kind of object.
#[derive(Debug)]
pub(crate) struct Kind {
    /// `/api/v1`
    root: &'static str,
    api_version: &'static str,
    name: &'static str,
    plural: &'static str,
    namespaced: bool,
    /// What a valid object has besides its metadata.
    content: fn() -> Value,
}

pub(crate) const GADGETS: Kind = Kind {
    root: "/apis/example.com/v1",
    api_version: "example.com/v1",
    name: "Gadget",
    plural: "gadgets",
    namespaced: true,
    content: || json!({"spec": {"size": 1, "parts": [{"name": "a"}]}}),
};

/// The kinds that are followed.
pub(crate) static KINDS: &[&Kind] = &[
    &GADGETS,
    &Kind {
        root: "/api/v1",
        api_version: "v1",
        name: "ConfigMap",
        plural: "configmaps",
        namespaced: true,
        content: || json!({"data": {"a": "b"}}),
    },
    &Kind {
        root: "/api/v1",
        api_version: "v1",
        name: "Secret",
        plural: "secrets",
        namespaced: true,
        content: || json!({"stringData": {"a": "b"}}),
    },
    &Kind {
        root: "/api/v1",
        api_version: "v1",
        name: "Pod",
        plural: "pods",
        namespaced: true,
        content: || json!({"spec": {"containers": [{"name": "a", "image": "b"}]}}),
    },
    &Kind {
        root: "/api/v1",
        api_version: "v1",
        name: "Service",
        plural: "services",
        namespaced: true,
        content: || json!({"spec": {"ports": [{"port": 80}]}}),
    },
    &Kind {
        root: "/apis/apps/v1",
        api_version: "apps/v1",
        name: "Deployment",
        plural: "deployments",
        namespaced: true,
        content: || {
            json!({"spec": {
                "selector": {"matchLabels": {"app": "x"}},
                "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
            }})
        },
    },
    &Kind {
        root: "/apis/coordination.k8s.io/v1",
        api_version: "coordination.k8s.io/v1",
        name: "Lease",
        plural: "leases",
        namespaced: true,
        content: || json!({"spec": {"leaseDurationSeconds": 1}}),
    },
    &Kind {
        root: "/api/v1",
        api_version: "v1",
        name: "Namespace",
        plural: "namespaces",
        namespaced: false,
        content: || json!({}),
    },
];

impl Kind {
    pub(crate) fn collection(&self, namespace: &str) -> String {
        if self.namespaced {
            format!("{}/namespaces/{namespace}/{}", self.root, self.plural)
        } else {
            self.everywhere()
        }
    }

    /// The path of all of them.
    pub(crate) fn everywhere(&self) -> String {
        format!("{}/{}", self.root, self.plural)
    }

    /// A valid object.
    pub(crate) fn object(&self, name: &str, label: &str) -> Value {
        let mut object = (self.content)();
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.name.into();
        object["metadata"] = json!({"name": name, "labels": {"app": label}});
        object
    }
}

/// Requests that make the world.
pub(crate) fn setup() -> Vec<Sent> {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {
                            "size": {"type": "integer", "minimum": 0, "default": 1},
                            "name": {"type": "string", "maxLength": 8},
                            "when": {"type": "string", "format": "date-time", "nullable": true},
                            "port": {"x-kubernetes-int-or-string": true},
                            "parts": {
                                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "value": {"type": "number"}}},
                            },
                            "selector": {"type": "object", "additionalProperties": {"type": "string"}},
                            "template": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        },
                        "x-kubernetes-validations": [{"rule": "!has(self.size) || self.size < 100"}],
                    },
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    });
    let create = |path: &str, object: &Value| Sent::new("POST", path, "application/json", object.to_string());
    let namespaces = ["n1", "n2", SENTINELS].map(|name| {
        create(
            "/api/v1/namespaces",
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        )
    });
    let definition = create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    [definition].into_iter().chain(namespaces).collect()
}

/// Words that mean something somewhere.
const KEYS: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "data",
    "stringData",
    "labels",
    "annotations",
    "name",
    "namespace",
    "generateName",
    "finalizers",
    "ownerReferences",
    "resourceVersion",
    "uid",
    "deletionTimestamp",
    "managedFields",
    "template",
    "containers",
    "ports",
    "replicas",
    "selector",
    "matchLabels",
    "size",
    "parts",
    "when",
    "port",
    "value",
    "image",
    "type",
    "clusterIP",
    "immutable",
    "app",
    "apiVersion",
    "kind",
    "$patch",
    "$retainKeys",
    "$setElementOrder/ports",
    "$deleteFromPrimitiveList/finalizers",
    "x",
    "",
];

const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "x",
    "app",
    "example.com/hold",
    "delete",
    "replace",
    "1",
    "-1",
    "1Gi",
    "80%",
    "2025-01-01T00:00:00Z",
    "2025-01-01T00:00:00.123456Z",
    "ClusterIP",
    "None",
    "10.96.0.1",
    "Never",
    "Not Valid",
    "ünïcödé",
    "a/b",
    "../..",
    "{}",
    "*",
];

/// The ends of the integer types, and their neighbours.
pub(crate) const INTEGER_ENDS: &[i64] = &[
    i64::MIN,
    i64::MIN + 1,
    i32::MIN as i64 - 1,
    i32::MIN as i64,
    i32::MAX as i64,
    i32::MAX as i64 + 1,
    u32::MAX as i64,
    i64::MAX - 1,
    i64::MAX,
];

/// Any JSON, with a leaning towards words that mean something.
pub(crate) fn json_trees() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![Just(0i64), Just(1), Just(-1), Just(80), select(INTEGER_ENDS),].prop_map(Value::from),
        select(vec![i64::MAX.unsigned_abs() + 1, u64::MAX]).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(TEXTS).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((select(KEYS), inner), 0..4).prop_map(|entries| Value::Object(
                entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

/// An object that is valid, or was before something was put into it.
fn objects() -> impl Strategy<Value = (&'static Kind, Value)> {
    let change = proptest::option::weighted(0.4, (select(KEYS), select(KEYS), json_trees()));
    (select(KINDS), names(), labels(), change).prop_map(|(kind, name, label, change)| {
        let mut object = kind.object(name, label);
        if let Some((outer, inner, value)) = change {
            match object.get_mut(outer).and_then(Value::as_object_mut) {
                Some(map) => map.insert(inner.into(), value),
                None => object.as_object_mut().and_then(|map| map.insert(outer.into(), value)),
            };
        }
        (kind, object)
    })
}

fn names() -> impl Strategy<Value = &'static str> {
    select(&["a", "b", "c"][..])
}

fn labels() -> impl Strategy<Value = &'static str> {
    select(&["x", "y"][..])
}

fn namespaces() -> impl Strategy<Value = &'static str> {
    select(&["n1", "n2"][..])
}

fn subresources() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just(""), 1 => Just("/status"), 1 => Just("/scale")]
}

/// A patch: a tree that mostly changes what may be changed.
fn patches() -> impl Strategy<Value = Value> {
    let label = |label| json!({"metadata": {"labels": {"app": label}}});
    let finalizer = |on: bool| json!({"metadata": {"finalizers": if on { json!(["example.com/hold"]) } else { Value::Null }}});
    prop_oneof![
        3 => labels().prop_map(label),
        1 => any::<bool>().prop_map(finalizer),
        2 => (select(&["data", "spec", "status", "metadata"][..]), select(KEYS), json_trees()).prop_map(|(outer, inner, value)| {
            Value::Object(Map::from_iter([(outer.to_owned(), Value::Object(Map::from_iter([(inner.to_owned(), value)])))]))
        }),
        1 => json_trees(),
    ]
}

fn json_patches() -> impl Strategy<Value = Value> {
    let operation = select(&["add", "remove", "replace", "move", "copy", "test", "none"][..]);
    let paths = || {
        (select(KEYS), select(KEYS))
            .prop_map(|(outer, inner)| format!("/{outer}/{}", inner.replace('/', "~1")))
    };
    let one = (operation, paths(), paths(), json_trees())
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}));
    proptest::collection::vec(one, 0..3).prop_map(Value::from)
}

fn delete_options() -> impl Strategy<Value = String> {
    let policy = select(&["Background", "Foreground", "Orphan", "Nonsense"][..]);
    let grace = prop_oneof![-1i64..2, select(INTEGER_ENDS)];
    (proptest::option::of(policy), proptest::option::of(grace)).prop_map(|(policy, grace)| {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if let Some(policy) = policy {
            options["propagationPolicy"] = policy.into();
        }
        if let Some(grace) = grace {
            options["gracePeriodSeconds"] = grace.into();
        }
        options.to_string()
    })
}

/// Requests that change something, or try to.
pub(crate) fn requests() -> impl Strategy<Value = Sent> {
    let json = "application/json";
    let create = (namespaces(), objects()).prop_map(move |(namespace, (kind, object))| {
        Sent::new("POST", &kind.collection(namespace), json, object.to_string())
    });
    let replace =
        (namespaces(), objects(), subresources()).prop_map(move |(namespace, (kind, object), part)| {
            let name = object["metadata"]["name"].as_str().unwrap_or("a").to_owned();
            let name = if name.is_empty() || name.contains(['/', ' ', '.']) || !name.is_ascii() {
                "a".to_owned()
            } else {
                name
            };
            Sent::new(
                "PUT",
                &format!("{}/{name}{part}", kind.collection(namespace)),
                json,
                object.to_string(),
            )
        });
    let target = || {
        (select(KINDS), namespaces(), names())
            .prop_map(|(kind, namespace, name)| format!("{}/{name}", kind.collection(namespace)))
    };
    let types = select(&["application/merge-patch+json", "application/strategic-merge-patch+json"][..]);
    let patch = (target(), subresources(), types, patches()).prop_map(|(target, part, content, patch)| {
        Sent::new("PATCH", &format!("{target}{part}"), content, patch.to_string())
    });
    let json_patch = (target(), json_patches()).prop_map(|(target, patch)| {
        Sent::new("PATCH", &target, "application/json-patch+json", patch.to_string())
    });
    let managers = (select(&["m1", "m2"][..]), any::<bool>());
    let apply =
        (namespaces(), objects(), managers).prop_map(|(namespace, (kind, object), (manager, force))| {
            let target = format!("{}/a?fieldManager={manager}&force={force}", kind.collection(namespace));
            Sent::new("PATCH", &target, "application/apply-patch+yaml", object.to_string())
        });
    let delete = (target(), delete_options())
        .prop_map(move |(target, options)| Sent::new("DELETE", &target, json, options));
    let delete_all = (select(KINDS), namespaces(), labels(), delete_options()).prop_filter_map(
        "a collection of namespaces cannot be deleted",
        move |(kind, namespace, label, options)| {
            let target = format!("{}?labelSelector=app%3D{label}", kind.collection(namespace));
            kind.namespaced.then(|| Sent::new("DELETE", &target, json, options))
        },
    );
    prop_oneof![6 => create, 2 => replace, 6 => patch, 2 => json_patch, 3 => apply, 3 => delete, 1 => delete_all]
}
