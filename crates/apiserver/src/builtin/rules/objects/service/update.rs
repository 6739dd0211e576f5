//! What an update of a service may change, and what a change of its type takes with it.

use super::families::printed;
use super::validate::{validate_balancer_class, validate_with};
use super::{SPEC, externally_accessible, is_headless, kind, needs_health_check};
use crate::builtin::rules::json::{int, list, list_mut, object_mut, put, same_field, set, take, text};
use crate::builtin::rules::objects::check_meta_again;
use crate::field::FieldError;
use serde_json::{Value, json};
use std::collections::HashSet;

const KEPT: &str = "may not change once set";

fn needs_node_ports(service: &Value) -> bool {
    matches!(kind(service), "NodePort" | "LoadBalancer")
}

fn node_ports(service: &Value) -> HashSet<i64> {
    list(&service["spec"], "ports")
        .iter()
        .filter_map(|port| int(port, "nodePort"))
        .filter(|p| *p != 0)
        .collect()
}

/// Drops what only the old type had, if the update has left it as it was: whoever changes the type should
/// not have to know which fields came with it.
pub(super) fn drop_fields_of_old_type(new: &mut Value, old: &Value) {
    let same = |new: &Value, field: &str| same_field(&new["spec"], &old["spec"], field);
    let mut gone: Vec<&str> = Vec::new();
    if kind(old) != "ExternalName" && kind(new) == "ExternalName" {
        if same(new, "clusterIP") && same(new, "clusterIPs") {
            gone.extend(["clusterIP", "clusterIPs"]);
        }
        gone.extend(["ipFamilies", "ipFamilyPolicy"].into_iter().filter(|field| same(new, field)));
    }
    let drop_ports =
        needs_node_ports(old) && !needs_node_ports(new) && node_ports(old).is_superset(&node_ports(new));
    if needs_health_check(old) && !needs_health_check(new) && same(new, "healthCheckNodePort") {
        gone.push("healthCheckNodePort");
    }
    if kind(old) == "LoadBalancer" && kind(new) != "LoadBalancer" {
        let fields = ["allocateLoadBalancerNodePorts", "loadBalancerClass"];
        gone.extend(fields.into_iter().filter(|field| same(new, field)));
    }
    if externally_accessible(old) && !externally_accessible(new) && same(new, "externalTrafficPolicy") {
        gone.push("externalTrafficPolicy");
    }
    let balancer = kind(new) == "LoadBalancer";
    if let Some(spec) = object_mut(new, "spec") {
        for field in gone {
            take(spec, field);
        }
        if drop_ports {
            for port in list_mut(spec, "ports") {
                take(port, "nodePort");
            }
        }
    }
    if let (false, Some(status)) = (balancer, object_mut(new, "status")) {
        put(status, "loadBalancer", json!({}));
    }
}

pub(super) fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    if kind(new) != "ExternalName" && kind(old) != "ExternalName" {
        let (was_headless, headless) = (is_headless(old), is_headless(new));
        if !(was_headless && headless) {
            validate_addresses_kept(new, old, errors);
        }
        if !was_headless && !headless {
            validate_families_kept(new, old, errors);
        }
    }
    if kind(old) == "LoadBalancer"
        && kind(new) == "LoadBalancer"
        && !same_field(&new["spec"], &old["spec"], "loadBalancerClass")
    {
        let path = SPEC.field("loadBalancerClass");
        errors.push(FieldError::invalid(&path, &printed(new, "loadBalancerClass"), KEPT));
    }
    validate_balancer_class(new, errors);
    if needs_health_check(old)
        && needs_health_check(new)
        && !same_field(&new["spec"], &old["spec"], "healthCheckNodePort")
    {
        errors.push(FieldError::forbidden(&SPEC.field("healthCheckNodePort"), "field is immutable"));
    }
    validate_with(new, Some(old), errors);
}

fn validate_addresses_kept(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (before, after) = (list(&old["spec"], "clusterIPs"), list(&new["spec"], "clusterIPs"));
    let path = SPEC.field("clusterIPs");
    let value = printed(new, "clusterIPs");
    if before.len() == after.len() {
        for (index, _) in before.iter().zip(after).enumerate().filter(|(_, (a, b))| a != b) {
            errors.push(FieldError::invalid(&path.index(index), &value, KEPT));
        }
        return;
    }
    if after.is_empty() {
        errors.push(FieldError::invalid(&path.index(0), &value, "primary clusterIP can not be unset"));
    }
    if let (Some(a), Some(b)) = (before.first(), after.first())
        && a != b
    {
        errors.push(FieldError::invalid(&path.index(0), &value, KEPT));
    }
    if before.len() > after.len() && after.len() == 1 {
        require_single_stack(new, "clusterIP", errors);
    }
}

fn validate_families_kept(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (before, after) = (list(&old["spec"], "ipFamilies"), list(&new["spec"], "ipFamilies"));
    let path = SPEC.field("ipFamilies");
    let first = path.index(0);
    if before.len() == after.len() {
        for _ in before.iter().zip(after).filter(|(a, b)| a != b) {
            errors.push(FieldError::invalid(&first, &printed(new, "ipFamilies"), KEPT));
        }
        return;
    }
    if before.len() > after.len() && list(&new["spec"], "clusterIPs").is_empty() {
        let detail = "primary ipFamily can not be unset";
        errors.push(FieldError::invalid(&first, &printed(new, "ipFamilies"), detail));
    }
    if let (Some(a), Some(b)) = (before.first(), after.first())
        && a != b
    {
        errors.push(FieldError::invalid(&first, &printed(new, "clusterIPs"), KEPT));
    }
    if before.len() > after.len() && after.len() == 1 {
        require_single_stack(new, "ipFamily", errors);
    }
}

fn require_single_stack(new: &Value, released: &str, errors: &mut Vec<FieldError>) {
    if text(&new["spec"], "ipFamilyPolicy") != "SingleStack" {
        let policy = set(&new["spec"], "ipFamilyPolicy").cloned().unwrap_or(Value::Null);
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {released}");
        errors.push(FieldError::invalid(&SPEC.field("ipFamilyPolicy"), &policy, detail));
    }
}
