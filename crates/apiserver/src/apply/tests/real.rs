//! Scenarios on built-in kinds, with what kube-apiserver v1.36.3 answered.

use super::kind::{Kind, World, atomic, built_in, check, integer, keyed, list, map, object, text, typed};
use crate::apply::{managers_of_scale, managers_of_scaled};
use crate::schema::{Member, Presence, Schema, Type};
use expect_test::expect;
use serde_json::{Value, json};
use std::sync::LazyLock;

static CONFIG_MAP: LazyLock<Schema> = LazyLock::new(|| {
    let immutable = Schema { kind: Some(Type::Boolean), ..Schema::default() };
    built_in(&["metadata"], typed([("data", map(text())), ("immutable", immutable)]))
});

fn config_map() -> Kind {
    Kind { api_version: "v1", name: "ConfigMap", schema: &CONFIG_MAP }
}

fn with_default(name: &str, default: &Value, mut schema: Schema) -> Schema {
    let member = Member { presence: Presence::OmitZero, default: Some(default.clone()), ..Member::default() };
    schema.members.get_or_insert_default().insert(name.to_owned(), member);
    schema
}

static DEPLOYMENT: LazyLock<Schema> = LazyLock::new(|| {
    let int_or_string = || Schema { int_or_string: true, ..Schema::default() };
    let port = object([("containerPort", integer()), ("protocol", text()), ("name", text())]);
    let port = with_default("protocol", &json!("TCP"), built_in(&["containerPort"], port));
    let env = built_in(&["name"], object([("name", text()), ("value", text())]));
    let resources = built_in(&[], object([("limits", map(text())), ("requests", map(text()))]));
    let container = object([
        ("name", text()),
        ("image", text()),
        ("imagePullPolicy", text()),
        ("ports", keyed(&["containerPort", "protocol"], port)),
        ("env", keyed(&["name"], env)),
        ("args", list(text())),
        ("resources", resources),
    ]);
    let container = built_in(&["name", "resources"], container);
    let pod = built_in(
        &["containers"],
        object([
            ("containers", keyed(&["name"], container)),
            ("restartPolicy", text()),
            ("securityContext", object([("runAsUser", integer())])),
        ]),
    );
    let meta = built_in(&[], object([("labels", map(text()))]));
    let template = built_in(&["metadata", "spec"], object([("metadata", meta), ("spec", pod)]));
    let rolling = object([("maxSurge", int_or_string()), ("maxUnavailable", int_or_string())]);
    let strategy = built_in(&[], object([("type", text()), ("rollingUpdate", rolling)]));
    let selector = atomic(object([("matchLabels", map(text()))]));
    let spec = object([
        ("replicas", integer()),
        ("selector", selector),
        ("strategy", strategy),
        ("template", template),
    ]);
    let spec = built_in(&["selector", "strategy", "template"], spec);
    let status = built_in(&[], object([("replicas", integer())]));
    built_in(&["metadata", "spec", "status"], typed([("spec", spec), ("status", status)]))
});

fn deployment() -> Kind {
    Kind { api_version: "apps/v1", name: "Deployment", schema: &DEPLOYMENT }
}

/// A deployment as it is after defaulting.
fn defaulted() -> Value {
    json!({"spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"a": "b"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{
                "name": "c",
                "image": "i",
                "imagePullPolicy": "Always",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "env": [{"name": "E", "value": "1"}],
                "resources": {},
            }],
            "restartPolicy": "Always",
            "securityContext": {},
        }},
    }, "status": {}})
}

fn applied(container: &Value) -> Value {
    json!({"spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
    }})
}

#[test]
fn config_maps() {
    check(
        config_map(),
        &[
            ("=m1", json!({"data": {"x": "1", "y": "2"}})),
            ("m2", json!({"data": {"x": "1"}})),
            ("m3", json!({"data": {"x": "9"}})),
            ("m3", json!({"data": {"x": "9", "y": "8"}})),
            ("m3!", json!({"data": {"x": "9", "y": "8"}})),
            ("m3", json!({"data": {"x": "9"}})),
            ("m3", json!({"data": null})),
        ],
        &expect![[r#"
            =m1: ok
            m2: ok
            m3: Apply failed with 2 conflicts: conflicts with "m1" using v1:
            - .data.x
            conflicts with "m2":
            - .data.x
            m3: Apply failed with 3 conflicts: conflicts with "m1" using v1:
            - .data.x
            - .data.y
            conflicts with "m2":
            - .data.x
            m3!: ok
            m3: ok
            m3: ok
            data: null
            m3 Apply @7 {"f:data":{}}
            m1 Update @1 {"f:data":{}}
        "#]],
    );
}

#[test]
fn config_maps_that_are_wrong() {
    check(
        config_map(),
        &[
            ("m", json!({"foo": 1})),
            ("m", json!({"data": {"x": 1}})),
            ("m", json!({"data": "x"})),
            ("m", json!({"immutable": "yes"})),
            ("m", json!({"data": {"x": 1, "y": [1]}})),
            ("m", json!({"kind": "Secret"})),
            ("m", json!({"apiVersion": null, "kind": null})),
        ],
        &expect![[r"
            m: failed to create typed patch object (ns/it; /v1, Kind=ConfigMap): .foo: field not declared in schema
            m: failed to create typed patch object (ns/it; /v1, Kind=ConfigMap): .data.x: expected string, got &value.valueUnstructured{Value:1}
            m: failed to create typed patch object (ns/it; /v1, Kind=ConfigMap): .data: expected map, got &{x}
            m: failed to create typed patch object (ns/it; /v1, Kind=ConfigMap): .immutable: expected boolean, got &{yes}
            m: failed to create typed patch object (ns/it; /v1, Kind=ConfigMap): errors:
              .data.x: expected string, got &value.valueUnstructured{Value:1}
              .data.y: expected string, got &value.valueUnstructured{Value:[]interface {}{1}}
            m: invalid object type: /v1, Kind=Secret
            m: invalid object type: /, Kind=
            nothing
        "]],
    );
}

#[test]
fn a_created_deployment_belongs_to_its_creator_defaults_included() {
    check(
        deployment(),
        &[("=m1", defaulted())],
        &expect![[r#"
        =m1: ok
        spec: {"replicas":0,"selector":{"matchLabels":{"a":"b"}},"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"env":[{"name":"E","value":"1"}],"image":"i","imagePullPolicy":"Always","name":"c","ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{}}],"restartPolicy":"Always","securityContext":{}}}}
        status: {}
        m1 Update @1 {"f:spec":{"f:replicas":{},"f:selector":{},"f:strategy":{"f:rollingUpdate":{".":{},"f:maxSurge":{},"f:maxUnavailable":{}},"f:type":{}},"f:template":{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"E\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{}}},"f:restartPolicy":{},"f:securityContext":{}}}}}
    "#]],
    );
}

#[test]
fn containers_ports_and_variables_are_told_apart_by_key() {
    let ports = json!([{"containerPort": 81}, {"containerPort": 80, "protocol": "UDP"}]);
    let container = json!({"name": "c", "image": "j", "ports": ports, "env": [{"name": "E", "value": "1"}]});
    let twice = json!([{"name": "E", "value": "1"}, {"name": "E", "value": "2"}]);
    check(
        deployment(),
        &[
            ("=m1", defaulted()),
            ("m2", applied(&container)),
            ("m2!", applied(&container)),
            ("m2", applied(&json!({"name": "c", "image": "j", "env": twice}))),
        ],
        &expect![[r#"
            =m1: ok
            m2: Apply failed with 1 conflict: conflict with "m1" using apps/v1: .spec.template.spec.containers[name="c"].image
            m2!: ok
            m2: failed to create typed patch object (ns/it; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="c"].env: duplicate entries for key [name="E"]
            spec: {"replicas":0,"selector":{"matchLabels":{"a":"b"}},"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"env":[{"name":"E","value":"1"}],"image":"j","imagePullPolicy":"Always","name":"c","ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":81},{"containerPort":80,"protocol":"UDP"}],"resources":{}}],"restartPolicy":"Always","securityContext":{}}}}
            status: {}
            m2 Apply @3 {"f:spec":{"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:env":{"k:{\"name\":\"E\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"UDP\"}":{".":{},"f:containerPort":{},"f:protocol":{}},"k:{\"containerPort\":81,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}
            m1 Update @1 {"f:spec":{"f:replicas":{},"f:selector":{},"f:strategy":{"f:rollingUpdate":{".":{},"f:maxSurge":{},"f:maxUnavailable":{}},"f:type":{}},"f:template":{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"E\"}":{".":{},"f:name":{},"f:value":{}}},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{}}},"f:restartPolicy":{},"f:securityContext":{}}}}}
        "#]],
    );
}

#[test]
fn a_key_that_is_always_written_may_be_left_out() {
    let mut world = World::new(deployment());
    let told = world.step("m", &applied(&json!({"name": "c", "env": [{"value": "1"}]})));
    assert_eq!(told, "m: ok\n");
    expect![[r#"
        spec: {"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"env":[{"value":"1"}],"name":"c"}]}}}
        m Apply @1 {"f:spec":{"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:env":{"k:{\"name\":\"\"}":{".":{},"f:value":{}}},"f:name":{}}}}}}}
    "#]].assert_eq(&world.state());
}

#[test]
fn kubectl_takes_over_from_its_client_side_apply() {
    let last = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "namespace": "ns",
        "annotations": {}}, "data": {"a": "1", "b": "2"}});
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": last.to_string() + "\n"});
    let created = json!({"metadata": {"annotations": annotations}, "data": {"a": "1", "b": "2", "c": "3"}});
    check(
        config_map(),
        &[
            ("=kubectl-client-side-apply", created.clone()),
            ("other", json!({"data": {"a": "9"}})),
            ("kubectl", json!({"data": {"a": "9", "c": "4", "d": "<&"}})),
            ("kubectl", json!({"data": {"a": "9", "c": "3", "d": "<&"}})),
        ],
        &expect![[r#"
            =kubectl-client-side-apply: ok
            other: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.a
            kubectl: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.c
            kubectl: ok
            data: {"a":"9","b":"2","c":"3","d":"<&"}
            metadata: {"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"data\":{\"a\":\"9\",\"c\":\"3\",\"d\":\"\\u003c\\u0026\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"it\",\"namespace\":\"ns\"}}\n"}}
            kubectl Apply @4 {"f:data":{"f:a":{},"f:c":{},"f:d":{}}}
            kubectl-client-side-apply Update @1 {"f:data":{".":{},"f:b":{},"f:c":{}},"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}
        "#]],
    );
}

#[test]
fn replicas_are_owned_through_the_scale_too() {
    let paths: &[(&str, &[&str])] = &[("apps/v1", &["spec", "replicas"])];
    let entry = |manager: &str, version: &str, fields: Value| {
        json!({"manager": manager, "operation": "Update", "apiVersion": version, "fieldsType": "FieldsV1",
            "fieldsV1": fields, "time": "2026-01-01T00:00:00Z"})
    };
    let scaled = json!([entry("m1", "apps/v1", json!({"f:spec": {"f:replicas": {}, "f:selector": {}}}))]);
    let scale = managers_of_scale(Some(&scaled), paths).unwrap();
    assert_eq!(scale, json!([entry("m1", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}))]));

    let mut written = entry("sc", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}));
    written["subresource"] = json!("scale");
    let after = managers_of_scaled(Some(&scaled), Some(&json!([written])), paths, "apps/v1").unwrap();
    let mut taken = entry("sc", "apps/v1", json!({"f:spec": {"f:replicas": {}}}));
    taken["subresource"] = json!("scale");
    taken.as_object_mut().unwrap().remove("time");
    assert_eq!(after, json!([taken, entry("m1", "apps/v1", json!({"f:spec": {"f:selector": {}}}))]));
}
