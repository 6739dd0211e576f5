//! `NetworkPolicy`: who may talk to whom.

use super::service::range_warning;
use super::{check_meta_again, choice, default_pointer};
use crate::builtin::rules::Rules;
use crate::builtin::rules::json::{
    bump_generation, ensure_object, int, list, list_mut, put, set, set_generation, text,
};
use crate::builtin::rules::names::address::{Cidr, validate_legacy_cidr};
use crate::builtin::rules::names::{dns1123_subdomain, port_name, port_number, validate_label_selector};
use crate::field::{FieldError, Path};
use serde_json::Value;
use std::collections::HashSet;

const SPEC: Path<'static> = Path::of("spec");
/// Each direction and the field that names its peers.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

pub(super) static RULES: Rules = Rules {
    default,
    prepare_create: |object, _| set_generation(object, 1),
    prepare_update: |new, old, _| {
        let changed = new["spec"] != old["spec"];
        bump_generation(new, old, changed);
    },
    validate: |object, errors| validate_spec(&object["spec"], &HashSet::new(), errors),
    validate_update: |new, old, errors| {
        check_meta_again(new, old, errors);
        validate_spec(&new["spec"], &blocks(&old["spec"]), errors);
    },
    warnings,
    name: dns1123_subdomain,
    ..Rules::NONE
};

fn default(object: &mut Value) {
    let Some(spec) = ensure_object(object, "spec") else { return };
    for (direction, _) in DIRECTIONS {
        for rule in list_mut(spec, direction) {
            for port in list_mut(rule, "ports") {
                default_pointer(port, "protocol", "TCP");
            }
        }
    }
    if list(spec, "policyTypes").is_empty() {
        let mut types = vec!["Ingress"];
        if !list(spec, "egress").is_empty() {
            types.push("Egress");
        }
        put(spec, "policyTypes", types);
    }
}

/// Visits every address block with the rule it stands in.
fn each_block<'a>(spec: &'a Value, mut visit: impl FnMut(&Path<'_>, &'a Value)) {
    for (direction, peers) in DIRECTIONS {
        let path = SPEC.field(direction);
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let path = path.index(index);
            let path = path.field(peers);
            for (index, peer) in list(rule, peers).iter().enumerate() {
                let path = path.index(index);
                if let Some(block) = set(peer, "ipBlock") {
                    visit(&path.field("ipBlock"), block);
                }
            }
        }
    }
}

/// The blocks a policy has already; they stay valid whatever they look like.
fn blocks(spec: &Value) -> HashSet<&str> {
    let mut found = HashSet::new();
    each_block(spec, |_, block| {
        found.insert(text(block, "cidr"));
        found.extend(list(block, "except").iter().filter_map(Value::as_str));
    });
    found
}

fn validate_spec(spec: &Value, known: &HashSet<&str>, errors: &mut Vec<FieldError>) {
    validate_label_selector(&spec["podSelector"], &SPEC.field("podSelector"), errors);
    for (direction, peers) in DIRECTIONS {
        let path = SPEC.field(direction);
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let path = path.index(index);
            let ports = path.field("ports");
            for (index, port) in list(rule, "ports").iter().enumerate() {
                validate_port(port, &ports.index(index), errors);
            }
            let path = path.field(peers);
            for (index, peer) in list(rule, peers).iter().enumerate() {
                validate_peer(peer, known, &path.index(index), errors);
            }
        }
    }
    let types = list(spec, "policyTypes");
    let path = SPEC.field("policyTypes");
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(&path, &types.to_vec().into(), detail));
        return;
    }
    for (index, kind) in types.iter().enumerate().filter(|(_, kind)| *kind != "Ingress" && *kind != "Egress")
    {
        errors.push(FieldError::not_supported(&path.index(index), kind, &["Ingress", "Egress"]));
    }
}

fn validate_port(port: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    choice(port, "protocol", &["TCP", "UDP", "SCTP"], path, errors);
    let end = int(port, "endPort");
    let end_path = path.field("endPort");
    let refuse_end = |errors: &mut Vec<FieldError>, value: i64, detail: &str| {
        errors.push(FieldError::invalid(&end_path, &value.into(), detail));
    };
    match set(port, "port") {
        Some(Value::String(name)) => {
            if let Some(end) = end {
                refuse_end(errors, end, "may not be specified when `port` is non-numeric");
            }
            for why in port_name(name) {
                errors.push(FieldError::invalid(&path.field("port"), &name.as_str().into(), why));
            }
        }
        Some(number) => {
            let number = number.as_i64().unwrap_or(0);
            for why in port_number(number) {
                errors.push(FieldError::invalid(&path.field("port"), &number.into(), why));
            }
            if let Some(end) = end {
                if end < number {
                    refuse_end(errors, number, "must be greater than or equal to `port`");
                }
                for why in port_number(end) {
                    refuse_end(errors, end, &why);
                }
            }
        }
        None => {
            if let Some(end) = end {
                refuse_end(errors, end, "may not be specified when `port` is not specified");
            }
        }
    }
}

fn validate_peer(peer: &Value, known: &HashSet<&str>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut peers = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = set(peer, field) {
            peers += 1;
            validate_label_selector(selector, &path.field(field), errors);
        }
    }
    let block = set(peer, "ipBlock");
    if let Some(block) = block {
        validate_block(block, known, &path.field("ipBlock"), errors);
    }
    if peers == 0 && block.is_none() {
        errors.push(FieldError::required(path, "must specify a peer"));
    } else if peers > 0 && block.is_some() {
        errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"));
    }
}

fn validate_block(block: &Value, known: &HashSet<&str>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let cidr = text(block, "cidr");
    if cidr.is_empty() {
        errors.push(FieldError::required(&path.field("cidr"), ""));
        return;
    }
    let check = |text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>| {
        if !known.contains(text) {
            validate_legacy_cidr(text, path, true, errors);
        }
    };
    check(cidr, &path.field("cidr"), errors);
    let Some(outer) = Cidr::parse_lenient(cidr) else { return };
    let path = path.field("except");
    for (index, value) in list(block, "except").iter().enumerate() {
        let text = value.as_str().unwrap_or("");
        let path = path.index(index);
        check(text, &path, errors);
        let Some(inner) = Cidr::parse_lenient(text) else { continue };
        if !outer.covers(&inner) || outer.prefix == inner.prefix {
            errors.push(FieldError::invalid(&path, value, "must be a strict subset of `cidr`"));
        }
    }
}

fn warnings(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    each_block(&new["spec"], |path, block| {
        out.extend(range_warning(&path.field("cidr"), text(block, "cidr")));
        let path = path.field("except");
        for (index, value) in list(block, "except").iter().enumerate() {
            out.extend(range_warning(&path.index(index), value.as_str().unwrap_or("")));
        }
    });
    out
}
