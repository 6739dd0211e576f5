#![expect(clippy::needless_pass_by_value, reason = "fixtures and expectations are literals")]

use super::allocate::{Allocations, Ranges, begin_create, begin_update};
use crate::status::ApiError;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn service(spec: Value) -> Value {
    let mut service = json!({"metadata": {"name": "a"}, "spec": spec});
    (super::RULES.default)(&mut service);
    service
}

fn create(spec: Value, taken: &Allocations) -> Result<Value, ApiError> {
    let mut service = service(spec);
    let mut bits = 0;
    let mut random = || {
        bits += 1;
        bits
    };
    begin_create(&mut service, &Ranges::default(), taken, &mut random, false)?;
    Ok(service)
}

fn check(spec: Value, taken: &Allocations, expect: Expect) {
    let outcome = match create(spec, taken) {
        Ok(service) => {
            let ports: Vec<&Value> =
                service["spec"]["ports"].as_array().unwrap().iter().map(|port| &port["nodePort"]).collect();
            format!("{} {ports:?} {}", service["spec"]["clusterIPs"], service["spec"]["healthCheckNodePort"])
        }
        Err(error) => format!("{} {}", error.code, error.message),
    };
    expect.assert_eq(&outcome);
}

#[test]
fn addresses_and_ports_come_from_the_upper_part_of_their_range() {
    let port = json!([{"port": 80}]);
    check(json!({"ports": port}), &Allocations::default(), expect![[r#"["10.0.0.18"] [Null] null"#]]);
    check(
        json!({"ports": port, "type": "NodePort"}),
        &Allocations::default(),
        expect![[r#"["10.0.0.18"] [Number(30088)] null"#]],
    );
    check(
        json!({"ports": port, "type": "LoadBalancer", "externalTrafficPolicy": "Local"}),
        &Allocations::default(),
        expect![[r#"["10.0.0.18"] [Number(30088)] 30089"#]],
    );
}

#[test]
fn what_is_taken_is_not_given_again() {
    let mut taken = Allocations::default();
    taken.claim(&json!({"spec": {"clusterIPs": ["10.0.0.18"], "ports": [{"nodePort": 30088}], "healthCheckNodePort": 30090}}));
    let port = json!([{"port": 80}]);
    check(
        json!({"ports": port, "type": "NodePort"}),
        &taken,
        expect![[r#"["10.0.0.19"] [Number(30089)] null"#]],
    );
    check(
        json!({"ports": port, "clusterIP": "10.0.0.18"}),
        &taken,
        expect![[
            r#"422 Service "a" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.18"]: failed to allocate IP 10.0.0.18: provided IP is already allocated"#
        ]],
    );
    check(
        json!({"ports": [{"port": 80, "nodePort": 30090}], "type": "NodePort"}),
        &taken,
        expect![[
            r#"422 Service "a" is invalid: spec.ports[0].nodePort: Invalid value: 30090: provided port is already allocated"#
        ]],
    );
    check(
        json!({"ports": [{"port": 80, "nodePort": 1}], "type": "NodePort"}),
        &taken,
        expect![[
            r#"422 Service "a" is invalid: spec.ports[0].nodePort: Invalid value: 1: provided port is not in the valid range. The range of valid ports is 30000-32767"#
        ]],
    );
    check(
        json!({"ports": port, "clusterIP": "10.0.0.255"}),
        &taken,
        expect![[
            r#"422 Service "a" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.255"]: failed to allocate IP 10.0.0.255: the provided network does not match the current range"#
        ]],
    );
}

#[test]
fn a_full_range_is_told() {
    let mut taken = Allocations::default();
    for last in 1..255 {
        taken.claim(&json!({"spec": {"clusterIPs": [format!("10.0.0.{last}")]}}));
    }
    check(
        json!({"ports": [{"port": 80}]}),
        &taken,
        expect![[
            r#"500 Internal error occurred: failed to allocate a serviceIP for Service "a": range is full"#
        ]],
    );
    taken.release(&json!({"spec": {"clusterIPs": ["10.0.0.3"]}}));
    check(json!({"ports": [{"port": 80}]}), &taken, expect![[r#"["10.0.0.3"] [Null] null"#]]);
}

#[test]
fn an_update_keeps_its_ports_and_takes_new_ones() {
    let old =
        create(json!({"type": "NodePort", "ports": [{"name": "a", "port": 1}]}), &Allocations::default());
    let old = old.unwrap();
    let mut taken = Allocations::default();
    taken.claim(&old);
    let mut new =
        service(json!({"type": "NodePort", "ports": [{"name": "a", "port": 2}, {"name": "b", "port": 3}]}));
    begin_update(&mut new, &old, &Ranges::default(), &taken, &mut || 1, false).unwrap();
    assert_eq!(new["spec"]["clusterIP"], old["spec"]["clusterIP"]);
    assert_eq!(new["spec"]["ports"][0]["nodePort"], old["spec"]["ports"][0]["nodePort"]);
    assert_ne!(new["spec"]["ports"][1]["nodePort"], new["spec"]["ports"][0]["nodePort"]);
}
