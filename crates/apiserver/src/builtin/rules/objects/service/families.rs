//! Cluster IPs and their families: how the four fields that hold them must agree.

use super::{SPEC, is_headless, kind};
use crate::builtin::rules::json::{list, set, text};
use crate::builtin::rules::names::address::{parse_lenient, validate_legacy_ip};
use crate::field::FieldError;
use serde_json::Value;
use std::collections::HashSet;

pub(super) const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];

fn is_v6(text: &str) -> bool {
    parse_lenient(text).is_some_and(|address| address.to_canonical().is_ipv6())
}

/// The family of an address.
pub(super) fn family_of(text: &str) -> &'static str {
    if is_v6(text) { "IPv6" } else { "IPv4" }
}

/// `clusterIPs` as the real server prints it in a refusal: none at all is `null`.
pub(super) fn printed(service: &Value, field: &str) -> Value {
    set(&service["spec"], field).cloned().unwrap_or(Value::Null)
}

/// Checks `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` together.
pub(super) fn validate_addresses(service: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if kind(service) == "ExternalName" {
        return;
    }
    let spec = &service["spec"];
    let addresses = list(spec, "clusterIPs");
    let path = SPEC.field("clusterIPs");
    let refuse_all = |errors: &mut Vec<FieldError>, detail: &str| {
        errors.push(FieldError::invalid(&path, &printed(service, "clusterIPs"), detail));
    };
    match (text(spec, "clusterIP"), addresses.first()) {
        ("", None) => {}
        ("", Some(_)) => refuse_all(errors, "must be empty when `clusterIP` is not specified"),
        (_, None) => errors.push(FieldError::required(&path, "")),
        (single, Some(first)) if first == single => {}
        _ => refuse_all(errors, "first value must match `clusterIP`"),
    }
    validate_families(spec, errors);
    let known = old.map_or(&[][..], |old| list(&old["spec"], "clusterIPs"));
    let mut unreadable = false;
    for (index, value) in addresses.iter().enumerate() {
        if index == 0 && value == "None" {
            if addresses.len() > 1 {
                unreadable = true;
                refuse_all(errors, "'None' must be the first and only value");
            }
        } else if !known.contains(value) {
            let before = errors.len();
            validate_legacy_ip(value.as_str().unwrap_or(""), &path.index(index), true, errors);
            unreadable |= errors.len() > before;
        }
    }
    if addresses.len() > 2 {
        refuse_all(errors, "may only hold up to 2 values");
    }
    if unreadable {
        return;
    }
    if addresses.len() > 1 {
        let v6 = addresses.iter().filter(|a| is_v6(a.as_str().unwrap_or(""))).count();
        if v6 == 0 || v6 == addresses.len() {
            refuse_all(errors, "may specify no more than one IP for each IP family");
        }
    }
    if is_headless(service) {
        return;
    }
    for (index, (address, family)) in addresses.iter().zip(list(spec, "ipFamilies")).enumerate() {
        let actual = family_of(address.as_str().unwrap_or(""));
        if let Some(family @ ("IPv4" | "IPv6")) = family.as_str()
            && family != actual
        {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.push(FieldError::invalid(&path.index(index), address, detail));
        }
    }
}

fn validate_families(spec: &Value, errors: &mut Vec<FieldError>) {
    let path = SPEC.field("ipFamilies");
    let mut seen = HashSet::new();
    for (index, family) in list(spec, "ipFamilies").iter().enumerate() {
        if family != "IPv4" && family != "IPv6" {
            errors.push(FieldError::not_supported(&path.index(index), family, &["IPv4", "IPv6"]));
        }
        if !seen.insert(family.as_str()) {
            errors.push(FieldError::duplicate(&path.index(index), family));
        }
    }
    if let Some(policy) = set(spec, "ipFamilyPolicy")
        && !policy.as_str().is_some_and(|policy| POLICIES.contains(&policy))
    {
        errors.push(FieldError::not_supported(&SPEC.field("ipFamilyPolicy"), policy, POLICIES));
    }
}
