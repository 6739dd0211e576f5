//! `Endpoints`: addresses of pods as services of old find them.

use super::service::{address_warning, validate_endpoint_ip};
use super::{check_meta_again, check_new_meta_again, one_of};
use crate::builtin::rules::Rules;
use crate::builtin::rules::json::{default_to, int, list, list_mut, same_field, set, text};
use crate::builtin::rules::names::address::validate_legacy_ip;
use crate::builtin::rules::names::{complain, dns1123_label, dns1123_subdomain, label_key, port_number};
use crate::field::{FieldError, Path};
use serde_json::Value;

pub(super) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const SUBSETS: Path<'static> = Path::of("subsets");

pub(super) static RULES: Rules =
    Rules { default, validate, validate_update, warnings, name: dns1123_subdomain, ..Rules::NONE };

fn default(object: &mut Value) {
    for subset in list_mut(object, "subsets") {
        for port in list_mut(subset, "ports") {
            default_to(port, "protocol", "TCP");
        }
    }
}

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    for (index, subset) in list(object, "subsets").iter().enumerate() {
        let path = SUBSETS.index(index);
        let (ready, unready) = (list(subset, "addresses"), list(subset, "notReadyAddresses"));
        if ready.is_empty() && unready.is_empty() {
            errors.push(FieldError::required(&path, "must specify `addresses` or `notReadyAddresses`"));
        }
        for (field, addresses) in [("addresses", ready), ("notReadyAddresses", unready)] {
            let path = path.field(field);
            for (index, address) in addresses.iter().enumerate() {
                validate_address(address, &path.index(index), errors);
            }
        }
        let ports = list(subset, "ports");
        let path = path.field("ports");
        for (index, port) in ports.iter().enumerate() {
            validate_port(port, ports.len() > 1, &path.index(index), errors);
        }
    }
}

fn validate_address(address: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let ip = text(address, "ip");
    validate_legacy_ip(ip, &path.field("ip"), true, errors);
    let host = text(address, "hostname");
    if !host.is_empty() {
        complain(errors, &path.field("hostname"), host, dns1123_label(host));
    }
    if let Some(node) = set(address, "nodeName").and_then(Value::as_str) {
        complain(errors, &path.field("nodeName"), node, dns1123_subdomain(node));
    }
    validate_endpoint_ip(ip, &path.field("ip"), errors);
}

fn validate_port(port: &Value, named: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match text(port, "name") {
        "" if named => errors.push(FieldError::required(&path.field("name"), "")),
        "" => {}
        name => complain(errors, &path.field("name"), name, dns1123_label(name)),
    }
    let number = int(port, "port").unwrap_or(0);
    for why in port_number(number) {
        errors.push(FieldError::invalid(&path.field("port"), &number.into(), why));
    }
    one_of(text(port, "protocol"), &path.field("protocol"), PROTOCOLS, errors);
    if let Some(protocol) = set(port, "appProtocol").and_then(Value::as_str) {
        complain(errors, &path.field("appProtocol"), protocol, label_key(protocol));
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    check_new_meta_again(new, true, dns1123_subdomain, errors);
    // What was wrong before may stay as it is.
    if !same_field(new, old, "subsets") {
        validate(new, errors);
    }
}

/// What every answer about this kind warns of, reads included.
pub(crate) const DEPRECATED: &str =
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

fn warnings(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut out = vec![DEPRECATED.to_owned()];
    for (index, subset) in list(new, "subsets").iter().enumerate() {
        let path = SUBSETS.index(index);
        for field in ["addresses", "notReadyAddresses"] {
            let path = path.field(field);
            for (index, address) in list(subset, field).iter().enumerate() {
                let path = path.index(index);
                out.extend(address_warning(&path.field("ip"), text(address, "ip")));
            }
        }
    }
    out
}
