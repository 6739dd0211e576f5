//! What the walk makes of each keyword.

use expect_test::{Expect, expect};

use super::*;

/// The labels of all changes and, after a dash, what is untouched.
fn check(properties: &Value, spec: &Value, expect: &Expect) {
    let walk = walk_of(&json!({"type": "object", "properties": properties}), spec);
    let changes = walk.changes.into_iter().map(|change| change.label);
    let lines: Vec<String> =
        changes.chain(walk.untouched.into_iter().map(|line| format!("- {line}"))).collect();
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn an_integer_goes_to_its_bounds_to_zero_and_to_its_neighbours() {
    check(
        &json!({"level": {"type": "integer", "minimum": 1, "maximum": 9}}),
        &json!({"level": 3}),
        &expect![[r#"
            level: 3 -> 1 (minimum)
            level: 3 -> 9 (maximum)
            level: 3 -> nothing (removed)
            level: 3 -> 4 (one more)
            level: 3 -> 2 (one less)"#]],
    );
    check(
        &json!({"level": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "multipleOf": 5, "format": "int32"}}),
        &json!({"level": 2_147_483_645}),
        &expect![[r#"
            level: 2147483645 -> 5 (minimum)
            level: 2147483645 -> nothing (removed)
            level: 2147483645 -> 2147483640 (one less)"#]],
    );
    check(
        &json!({"replicas": {"type": "integer", "maximum": 100_000}}),
        &json!({"replicas": 3}),
        &expect![[r#"
            replicas: 3 -> 0 (none)
            replicas: 3 -> 1 (one)
            replicas: 3 -> nothing (removed)
            replicas: 3 -> 4 (one more)
            replicas: 3 -> 2 (one less)"#]],
    );
    check(
        &json!({"containerPort": {"type": "integer", "minimum": 1, "maximum": 65535}}),
        &json!({"containerPort": 80}),
        &expect![[r#"
            containerPort: 80 -> 81 (another port)
            containerPort: 80 -> 1 (first port)
            containerPort: 80 -> nothing (removed)
            containerPort: 80 -> 65535 (last port)
            containerPort: 80 -> 79 (one less)"#]],
    );
    check(
        &json!({"ratio": {"type": "number", "minimum": 0, "maximum": 1, "exclusiveMaximum": true}}),
        &json!({"ratio": 0.5}),
        &expect![[r#"
            ratio: 0.5 -> 0 (minimum)
            ratio: 0.5 -> 0.999 (maximum)
            ratio: 0.5 -> nothing (removed)"#]],
    );
}

#[test]
fn a_boolean_is_flipped() {
    check(
        &json!({"paused": {"type": "boolean"}}),
        &json!({"paused": true}),
        &expect![[r#"
        paused: true -> false (switched off)
        paused: true -> nothing (removed)"#]],
    );
    check(
        &json!({"paused": {"type": "boolean"}}),
        &json!({}),
        &expect![[r#"
        paused: nothing -> true (switched on)
        paused: nothing -> false (switched off)"#]],
    );
}

#[test]
fn every_other_choice_is_made() {
    check(
        &json!({"mode": {"type": "string", "enum": ["a", "b", "c", "d", "e", "f", "g", "h", "i"]}, "only": {"type": "string", "enum": ["x"]}}),
        &json!({"mode": "b", "only": "x"}),
        &expect![[r#"
            mode: "b" -> "a" (another choice)
            mode: "b" -> "c" (another choice)
            mode: "b" -> nothing (removed)
            mode: "b" -> "d" (another choice)
            mode: "b" -> "e" (another choice)
            mode: "b" -> "f" (another choice)
            mode: "b" -> "g" (another choice)
            mode: "b" -> "h" (another choice)
            mode: "b" -> "i" (another choice)
            only: "x" -> nothing (removed)"#]],
    );
}

#[test]
fn a_text_keeps_its_length_pattern_and_format() {
    check(
        &json!({"title": {"type": "string"}}),
        &json!({"title": "orders"}),
        &expect![[r#"
        title: "orders" -> "orders-walked" (another text)
        title: "orders" -> "" (empty)
        title: "orders" -> nothing (removed)"#]],
    );
    check(
        &json!({"title": {"type": "string", "minLength": 2, "maxLength": 6}}),
        &json!({"title": "orders"}),
        &expect![[r#"
            title: "orders" -> "ordert" (another text)
            title: "orders" -> nothing (removed)
            title: "orders" -> "or" (shortest)"#]],
    );
    check(
        &json!({"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]$"}}),
        &json!({"code": "AB-9"}),
        &expect![[r#"
            code: "AB-9" -> "AB-1" (another that matches)
            code: "AB-9" -> "AC-9" (another that matches)
            code: "AB-9" -> nothing (removed)
            code: "AB-9" -> "BB-9" (another that matches)"#]],
    );
    check(
        &json!({"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]$"}}),
        &json!({}),
        &expect!["- spec.code: no other value is known that its schema allows"],
    );
    check(
        &json!({
            "id": {"type": "string", "format": "uuid"}, "blob": {"type": "string", "format": "byte"},
            "since": {"type": "string", "format": "date-time"}, "address": {"type": "string", "format": "ipv6"},
        }),
        &json!({"since": "2031-02-03T04:05:06Z"}),
        &expect![[r#"
            address: nothing -> "2001:db8::7" (another of its format)
            address: nothing -> "2001:db8::8" (another of its format)
            blob: nothing -> "d2Fsa2Vk" (another of its format)
            blob: nothing -> "b3RoZXI=" (another of its format)
            id: nothing -> "5f2c1d1e-8d3b-4b0a-9c55-0a4d3c2b1a07" (another of its format)
            id: nothing -> "5f2c1d1e-8d3b-4b0a-9c55-0a4d3c2b1a08" (another of its format)
            since: "2031-02-03T04:05:06Z" -> "2001-02-03T04:05:06Z" (another of its format)
            since: "2031-02-03T04:05:06Z" -> nothing (removed)"#]],
    );
}

#[test]
fn a_name_tells_what_is_plausible() {
    check(
        &json!({
            "image": {"type": "string"}, "schedule": {"type": "string"}, "timeout": {"type": "string"},
            "storage": {"x-kubernetes-int-or-string": true},
            "limits": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}},
        }),
        &json!({"image": "nginx:1.25", "schedule": "0 3 * * *", "timeout": "1m", "storage": "10Gi", "limits": {"cpu": "250m"}}),
        &expect![[r#"
            image: "nginx:1.25" -> "nginx:1.26" (another tag)
            image: "nginx:1.25" -> "" (empty)
            image: "nginx:1.25" -> nothing (removed)
            limits: memory added as "256Mi"
            limits: emptied
            limits: removed
            limits.cpu: "250m" -> "500m" (twice as much)
            limits.cpu: "250m" -> 0 (zero)
            limits.cpu: "250m" -> nothing (removed)
            schedule: "0 3 * * *" -> "*/5 * * * *" (another schedule)
            schedule: "0 3 * * *" -> "" (empty)
            schedule: "0 3 * * *" -> nothing (removed)
            storage: "10Gi" -> "20Gi" (twice as much)
            storage: "10Gi" -> 0 (zero)
            storage: "10Gi" -> nothing (removed)
            timeout: "1m" -> "90s" (another duration)
            timeout: "1m" -> "10m" (another duration)
            timeout: "1m" -> nothing (removed)
            timeout: "1m" -> "" (empty)"#]],
    );
}

#[test]
fn an_object_loses_and_gains_its_optional_fields() {
    check(
        &json!({
            "tls": {
                "type": "object",
                "required": ["secret"],
                "properties": {"secret": {"type": "string"}, "strict": {"type": "boolean", "default": true}},
            },
            "auth": {"type": "object", "required": ["user"], "properties": {"user": {"type": "string"}}},
        }),
        &json!({"auth": {"user": "ann"}}),
        &expect![[r#"
            auth: removed
            auth.user: "ann" -> "ann-walked" (another text)
            auth.user: "ann" -> "" (empty)
            tls: set to {"secret":"walked"}
            tls.secret: nothing -> "walked-walked" (another text)
            tls.secret: nothing -> "" (empty)
            tls.strict: nothing -> true (switched on)
            tls.strict: nothing -> false (switched off)"#]],
    );
}

#[test]
fn a_default_is_the_present_value_of_what_is_not_set() {
    check(
        &json!({"level": {"type": "integer", "default": 3, "minimum": 0}}),
        &json!({}),
        &expect![[r#"
        level: 3 -> 0 (minimum)
        level: 3 -> 4 (one more)
        level: 3 -> 2 (one less)"#]],
    );
    check(
        &json!({"level": {"type": "integer", "default": 3, "minimum": 0}}),
        &json!({"level": 5}),
        &expect![[r#"
            level: 5 -> 0 (minimum)
            level: 5 -> nothing (removed, so 3 by default)
            level: 5 -> 6 (one more)
            level: 5 -> 4 (one less)
            level: 5 -> 3 (default)"#]],
    );
}

#[test]
fn lists_grow_and_shrink_within_their_bounds() {
    check(
        &json!({
            "args": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"], "minItems": 1,
                "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}, "name": {"type": "string"}}},
            },
            "zones": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "enum": ["a", "b"]}},
        }),
        &json!({"args": ["-v", "-x"], "ports": [{"port": 80}], "zones": ["a"]}),
        &expect![[r#"
            args: "-x" removed
            args: removed
            args: emptied
            args[0]: "-v" -> "-v-walked" (another text)
            args[0]: "-v" -> "" (empty)
            ports: {"port":81} added
            ports: removed
            ports[0].name: nothing -> "walked" (another text)
            ports[0].name: nothing -> "" (empty)
            ports[0].port: 80 -> 81 (another port)
            ports[0].port: 80 -> 1 (first port)
            ports[0].port: 80 -> 65535 (last port)
            ports[0].port: 80 -> 0 (zero)
            ports[0].port: 80 -> 79 (one less)
            zones: "b" added
            zones: "a" removed
            zones: removed
            zones[0]: "a" -> "b" (another choice)"#]],
    );
    check(
        &json!({"args": {"type": "array", "items": {"type": "string"}}}),
        &json!({}),
        &expect![[r#"
        args: set to ["walked"]
        args: set to []
        args[0]: nothing -> "walked-walked" (another text)
        args[0]: nothing -> "" (empty)"#]],
    );
}

#[test]
fn maps_gain_change_and_lose_entries() {
    let labels = json!({"labels": {"type": "object", "additionalProperties": {"type": "string"}}});
    check(
        &labels,
        &json!({"labels": {"example.org/app": "web"}}),
        &expect![[r#"
        labels: walked added as "walked"
        labels: emptied
        labels: removed
        labels["example.org/app"]: "web" -> "web-walked" (another text)
        labels["example.org/app"]: "web" -> "" (empty)
        labels["example.org/app"]: "web" -> nothing (removed)"#]],
    );
    check(
        &labels,
        &json!({}),
        &expect![[r#"
        labels: set to {"walked":"walked"}
        labels: set to {}
        labels.walked: nothing -> "walked-walked" (another text)
        labels.walked: nothing -> "" (empty)"#]],
    );
    check(
        &json!({"config": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}),
        &json!({"config": {"a": 1}}),
        &expect![[r#"
            config: walked added as "walked"
            config: removed"#]],
    );
}

#[test]
fn null_is_only_set_where_a_merge_patch_can() {
    let nullable = json!({"type": "boolean", "nullable": true});
    check(
        &json!({"flag": nullable, "flags": {"type": "array", "items": nullable}}),
        &json!({"flag": true, "flags": [true]}),
        &expect![[r#"
            flag: true -> false (switched off)
            flag: true -> nothing (removed)
            flags: true added
            flags: true removed
            flags: removed
            flags[0]: true -> false (switched off)
            flags[0]: true -> null (null)"#]],
    );
}

#[test]
fn a_choice_of_fields_stays_one() {
    let properties = json!({
        "from": {
            "type": "object",
            "properties": {"file": {"type": "string", "minLength": 1}, "secret": {"type": "string", "minLength": 1}},
            "oneOf": [{"required": ["file"]}, {"required": ["secret"]}],
        },
    });
    check(
        &properties,
        &json!({}),
        &expect![[r#"
            from: set to {"file":"walked"}
            from.file: nothing -> "walked-walked" (another text)
            from.file: nothing -> "w" (shortest)
            from.secret: nothing -> "walked" (another text)
            from.secret: nothing -> "w" (shortest)"#]],
    );
    check(
        &properties,
        &json!({"from": {"file": "a"}}),
        &expect![[r#"
            from: removed
            from.file: "a" -> "a-walked" (another text)
            from.secret: nothing -> "walked" (another text)
            from.secret: nothing -> "w" (shortest)"#]],
    );
}

#[test]
fn what_may_not_change_is_told_with_the_rule() {
    let frozen = json!([{"rule": "self == oldSelf"}]);
    let once = json!([{"rule": "!has(oldSelf.b.c) || self.b.c == oldSelf.b.c"}]);
    check(
        &json!({
            "kind": {"type": "string", "x-kubernetes-validations": frozen},
            "a": {
                "type": "object",
                "x-kubernetes-validations": once,
                "properties": {
                    "b": {"type": "object", "properties": {"c": {"type": "boolean"}, "d": {"type": "boolean"}}},
                },
            },
        }),
        &json!({"kind": "x", "a": {"b": {"c": true}}}),
        &expect![[r#"
            a: removed
            a.b: removed
            a.b.d: nothing -> true (switched on)
            a.b.d: nothing -> false (switched off)
            - spec.a.b.c: immutable (!has(oldSelf.b.c) || self.b.c == oldSelf.b.c)
            - spec.kind: immutable (self == oldSelf)"#]],
    );
}

#[test]
fn too_deep_is_told_and_not_walked() {
    let deep = (0..10)
        .fold(json!({"type": "boolean"}), |below, _| json!({"type": "object", "properties": {"a": below}}));
    let walk = walk_of(&deep, &json!({}));
    expect!["spec.a.a.a.a.a.a.a.a.a: deeper than 8 properties"].assert_eq(&walk.untouched.join("\n"));
    assert_eq!(walk.changes.last().unwrap().path, "spec.a.a.a.a.a.a.a.a");
}

#[test]
fn a_kind_without_a_schema_is_told() {
    let object = json!({"apiVersion": "example.org/v1alpha1", "kind": "Thing", "spec": {}});
    let walk = spec_changes(&definition(&json!({"type": "object"})), &object);
    assert_eq!(walk.untouched, ["spec: its kind has no schema for it"]);
}

#[test]
fn patches_set_lists_as_a_whole_and_specs_are_whole() {
    let image = json!({"type": "object", "properties": {"image": {"type": "string", "enum": ["x", "y"]}}});
    let walk = walk_of(
        &json!({"type": "object", "properties": {"containers": {"type": "array", "items": image}, "z": {"type": "boolean"}}}),
        &json!({"containers": [{"image": "x"}, {"image": "y"}], "z": true}),
    );
    let change = walk.changes.iter().find(|change| change.path == "spec.containers[0].image").unwrap();
    let containers = json!([{"image": "y"}, {"image": "y"}]);
    assert_eq!(change.patch, json!({"spec": {"containers": containers}}));
    assert_eq!(change.spec, json!({"containers": containers, "z": true}));
}
