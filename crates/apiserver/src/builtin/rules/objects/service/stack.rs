//! Which families of addresses a service gets, on a cluster that has IPv4 alone.

use super::families::{family_of, printed, validate_addresses};
use super::{SPEC, kind};
use crate::builtin::rules::json::{list, object_mut, put, same_field, set, text};
use crate::builtin::rules::objects::is_unset;
use crate::field::FieldError;
use crate::status::{ApiError, Subject};
use serde_json::{Value, json};

/// The refusal of a service for these reasons.
pub(super) fn refuse(service: &Value, errors: &[FieldError]) -> ApiError {
    let name = text(&service["metadata"], "name");
    ApiError::invalid(&Subject { group: "", kind: "Service" }, name, errors)
}

fn policy(service: &Value) -> &str {
    text(&service["spec"], "ipFamilyPolicy")
}

/// Whether an update leaves alone a service that takes two families where there are two.
fn keeps_preferred_families(new: &Value, old: &Value) -> bool {
    let same = |field| same_field(&new["spec"], &old["spec"], field);
    matches!(kind(new), "ClusterIP" | "NodePort" | "LoadBalancer")
        && kind(new) == kind(old)
        && policy(new) == "PreferDualStack"
        && matches!(policy(old), "" | "PreferDualStack")
        && same("clusterIPs")
        && same("ipFamilies")
}

/// Fills in `ipFamilyPolicy` and `ipFamilies`, or says why the wishes cannot be met.
pub(super) fn choose_families(service: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    if kind(service) == "ExternalName" || old.is_some_and(|old| keeps_preferred_families(service, old)) {
        return Ok(());
    }
    let selectorless =
        text(&service["spec"], "clusterIP") == "None" && is_unset(&service["spec"], "selector");
    if set(&service["spec"], "ipFamilyPolicy").is_none() {
        let chosen = match old.map(policy) {
            Some(before) if !before.is_empty() => before,
            _ if selectorless => "RequireDualStack",
            _ => "SingleStack",
        };
        if let Some(spec) = object_mut(service, "spec") {
            put(spec, "ipFamilyPolicy", chosen);
        }
    }
    let mut errors = Vec::new();
    validate_addresses(service, old, &mut errors);
    if !errors.is_empty() {
        return Err(refuse(service, &errors));
    }
    if let Some(old) = old {
        release_second_family(service, old, &mut errors);
    }
    check_against_cluster(service, &mut errors);
    if !errors.is_empty() {
        return Err(refuse(service, &errors));
    }
    let mut families = list(&service["spec"], "ipFamilies").to_vec();
    if families.is_empty() {
        families.push("IPv4".into());
    }
    if selectorless {
        if families.len() < 2 && policy(service) != "SingleStack" {
            families.push(if families[0] == "IPv4" { "IPv6".into() } else { "IPv4".into() });
        }
    } else {
        check_families(service, &families, &mut errors);
    }
    if !errors.is_empty() {
        return Err(refuse(service, &errors));
    }
    if let Some(spec) = object_mut(service, "spec") {
        put(spec, "ipFamilies", families);
    }
    Ok(())
}

fn release_second_family(service: &mut Value, old: &Value, errors: &mut Vec<FieldError>) {
    let fields = [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")];
    if policy(service) == "SingleStack" {
        for (field, _) in fields {
            let same = same_field(&service["spec"], &old["spec"], field);
            let first = list(&service["spec"], field).first().cloned();
            if let (true, Some(first), Some(spec)) = (same, first, object_mut(service, "spec")) {
                put(spec, field, json!([first]));
            }
        }
        return;
    }
    for (field, what) in fields {
        let (before, after) = (list(&old["spec"], field).len(), list(&service["spec"], field).len());
        if after != 0 && after < before {
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            let path = SPEC.field("ipFamilyPolicy");
            errors.push(FieldError::invalid(&path, &printed(service, "ipFamilyPolicy"), detail));
        }
    }
}

fn check_against_cluster(service: &mut Value, errors: &mut Vec<FieldError>) {
    if policy(service) == "SingleStack" {
        for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if list(&service["spec"], field).len() == 2 {
                let detail = format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                );
                let path = SPEC.field("ipFamilyPolicy");
                errors.push(FieldError::invalid(&path, &printed(service, "ipFamilyPolicy"), detail));
            }
        }
    }
    let mut families = list(&service["spec"], "ipFamilies").to_vec();
    let given = families.len();
    for (index, address) in list(&service["spec"], "clusterIPs").iter().enumerate() {
        let address = address.as_str().unwrap_or("");
        if address == "None" {
            break;
        }
        if index < families.len() {
            continue;
        }
        match family_of(address) {
            "IPv4" => families.push("IPv4".into()),
            family => {
                let path = SPEC.field("clusterIPs");
                let detail = format!("{family} is not configured on this cluster");
                errors.push(FieldError::invalid(&path.index(index), &printed(service, "clusterIPs"), detail));
            }
        }
    }
    if families.len() > given
        && let Some(spec) = object_mut(service, "spec")
    {
        put(spec, "ipFamilies", families);
    }
}

fn check_families(service: &Value, families: &[Value], errors: &mut Vec<FieldError>) {
    if policy(service) == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        let path = SPEC.field("ipFamilyPolicy");
        errors.push(FieldError::invalid(&path, &printed(service, "ipFamilyPolicy"), detail));
    }
    let path = SPEC.field("ipFamilies");
    for (index, family) in families.iter().enumerate().filter(|(_, family)| *family != "IPv4") {
        errors.push(FieldError::invalid(&path.index(index), family, "not configured on this cluster"));
    }
}
