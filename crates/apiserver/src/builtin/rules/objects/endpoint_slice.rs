//! `EndpointSlice`: a part of the addresses behind a service.

use super::endpoints::PROTOCOLS;
use super::service::{address_warning, validate_endpoint_ip};
use super::{check_new_meta_again, choice, default_pointer, one_of};
use crate::builtin::rules::json::{
    bump_generation, list, list_mut, put, same_field, set, set_generation, take, text,
};
use crate::builtin::rules::names::address::{parse_lenient, validate_ip, validate_legacy_ip};
use crate::builtin::rules::names::{
    complain, dns1123_label, dns1123_subdomain, label_key, label_value, validate_immutable_text,
};
use crate::builtin::rules::{Env, Rules};
use crate::field::{FieldError, Path};
use serde_json::Value;
use std::collections::HashSet;

const ENDPOINTS: Path<'static> = Path::of("endpoints");
const PORTS_MAX: usize = 20_000;
const ENDPOINTS_MAX: usize = 1_000;
const ADDRESSES_MAX: usize = 100;
const HINTS_MAX: usize = 8;

pub(super) static RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    warnings,
    name: dns1123_subdomain,
    ..Rules::NONE
};

fn default(object: &mut Value) {
    for port in list_mut(object, "ports") {
        if set(port, "name").is_none() {
            put(port, "name", "");
        }
        default_pointer(port, "protocol", "TCP");
    }
}

fn prepare_create(object: &mut Value, _env: &Env<'_>) {
    set_generation(object, 1);
    drop_topology(object);
}

fn drop_topology(object: &mut Value) {
    for endpoint in list_mut(object, "endpoints") {
        take(endpoint, "deprecatedTopology");
    }
}

fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    let fields = ["addressType", "endpoints", "ports"];
    let changed = fields.iter().any(|field| !same_field(new, old, field))
        || !same_field(&new["metadata"], &old["metadata"], "labels");
    bump_generation(new, old, changed);
    if !same_field(new, old, "endpoints") {
        drop_topology(new);
    }
}

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    one_of(text(object, "addressType"), &Path::of("addressType"), &["FQDN", "IPv4", "IPv6"], errors);
    validate_ports(list(object, "ports"), errors);
    validate_endpoints(object, errors);
}

fn validate_ports(ports: &[Value], errors: &mut Vec<FieldError>) {
    let path = Path::of("ports");
    if ports.len() > PORTS_MAX {
        errors.push(FieldError::too_many(&path, ports.len(), PORTS_MAX));
        return;
    }
    let mut names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            complain(errors, &path.field("name"), name, dns1123_label(name));
        }
        if !names.insert(name) {
            errors.push(FieldError::duplicate(&path.field("name"), &name.into()));
        }
        choice(port, "protocol", PROTOCOLS, &path, errors);
        if let Some(protocol) = set(port, "appProtocol").and_then(Value::as_str) {
            complain(errors, &path.field("appProtocol"), protocol, label_key(protocol));
        }
    }
}

fn validate_endpoints(object: &Value, errors: &mut Vec<FieldError>) {
    let endpoints = list(object, "endpoints");
    if endpoints.len() > ENDPOINTS_MAX {
        errors.push(FieldError::too_many(&ENDPOINTS, endpoints.len(), ENDPOINTS_MAX));
        return;
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = ENDPOINTS.index(index);
        let addresses = list(endpoint, "addresses");
        let list_path = path.field("addresses");
        if addresses.is_empty() {
            errors.push(FieldError::required(&list_path, "must contain at least 1 address"));
        } else if addresses.len() > ADDRESSES_MAX {
            errors.push(FieldError::too_many(&list_path, addresses.len(), ADDRESSES_MAX));
        }
        for (index, address) in addresses.iter().enumerate() {
            let address = address.as_str().unwrap_or("");
            validate_address(address, text(object, "addressType"), &list_path, index, errors);
        }
        if let Some(node) = set(endpoint, "nodeName").and_then(Value::as_str) {
            complain(errors, &path.field("nodeName"), node, dns1123_subdomain(node));
        }
        if let Some(host) = set(endpoint, "hostname").and_then(Value::as_str) {
            complain(errors, &path.field("hostname"), host, dns1123_label(host));
        }
        validate_hints(&endpoint["hints"], &path.field("hints"), errors);
    }
}

fn validate_address(text: &str, kind: &str, list: &Path<'_>, index: usize, errors: &mut Vec<FieldError>) {
    let path = list.index(index);
    let before = errors.len();
    match kind {
        "IPv4" => validate_legacy_ip(text, &path, true, errors),
        "IPv6" => validate_ip(text, &path, errors),
        "FQDN" => return validate_domain(text, &path, errors),
        _ => return,
    }
    if errors.len() > before {
        return;
    }
    let v4 = parse_lenient(text).is_some_and(|address| address.to_canonical().is_ipv4());
    if v4 != (kind == "IPv4") {
        errors.push(FieldError::invalid(list, &text.into(), format!("must be an {kind} address")));
    }
    validate_endpoint_ip(text, &path, errors);
}

fn validate_domain(text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if text.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let text = text.strip_suffix('.').unwrap_or(text);
    let wrong = dns1123_subdomain(text);
    if !wrong.is_empty() {
        errors.push(FieldError::invalid(path, &text.into(), wrong.join(",")));
    } else if !text.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, &text.into(), detail));
    } else if let Some(label) = text.split('.').find(|label| !dns1123_label(label).is_empty()) {
        errors.push(FieldError::invalid(path, &label.into(), dns1123_label(label).join(",")));
    }
}

fn validate_hints(hints: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (field, check) in
        [("forZones", label_value as fn(&str) -> Vec<String>), ("forNodes", dns1123_subdomain)]
    {
        let entries = list(hints, field);
        let path = path.field(field);
        if entries.len() > HINTS_MAX {
            errors.push(FieldError::too_many(&path, entries.len(), HINTS_MAX));
            return;
        }
        let mut seen = HashSet::new();
        for (index, entry) in entries.iter().enumerate() {
            let path = path.index(index);
            let path = path.field("name");
            let name = text(entry, "name");
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&path, &name.into()));
            }
            complain(errors, &path, name, check(name));
        }
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_new_meta_again(new, true, dns1123_subdomain, errors);
    one_of(text(new, "addressType"), &Path::of("addressType"), &["FQDN", "IPv4", "IPv6"], errors);
    validate_ports(list(new, "ports"), errors);
    if !same_field(new, old, "endpoints") {
        validate_endpoints(new, errors);
    }
    validate_immutable_text(&new["addressType"], &old["addressType"], &Path::of("addressType"), errors);
}

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    if old.is_none() && text(new, "addressType") == "FQDN" {
        out.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let manager = text(&new["metadata"]["labels"], "endpointslice.kubernetes.io/managed-by");
    if ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"].contains(&manager) {
        return out;
    }
    for (index, endpoint) in list(new, "endpoints").iter().enumerate() {
        let path = ENDPOINTS.index(index);
        let path = path.field("addresses");
        for (index, address) in list(endpoint, "addresses").iter().enumerate() {
            out.extend(address_warning(&path.index(index), address.as_str().unwrap_or("")));
        }
    }
    out
}
