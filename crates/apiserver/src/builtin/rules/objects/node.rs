//! `Node`: taints, addresses, and what is set once and stays.

use super::service::range_warning;
use super::{check_meta_again, check_new_meta_again};
use crate::builtin::quantity::Quantity;
use crate::builtin::rules::json::{ensure_object, keep, list, object_mut, put, set, take, text};
use crate::builtin::rules::names::address::{Cidr, validate_legacy_cidr};
use crate::builtin::rules::names::{complain, dns1123_subdomain, label_key, label_value};
use crate::builtin::rules::{Env, Rules};
use crate::field::{FieldError, Path, Problem};
use serde_json::{Value, json};
use std::collections::HashSet;

const SPEC: Path<'static> = Path::of("spec");
const STATUS: Path<'static> = Path::of("status");
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) static RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status: |new, old, _| keep(new, old, "spec"),
    validate,
    validate_update: |new, old, errors| {
        check_new_meta_again(new, false, dns1123_subdomain, errors);
        validate(new, errors);
        validate_change(new, old, errors);
    },
    validate_status: validate_change,
    warnings,
    name: dns1123_subdomain,
};

fn default(object: &mut Value) {
    // The one block and the list of blocks are two spellings of one thing.
    if let Some(spec) = ensure_object(object, "spec") {
        let single = text(spec, "podCIDR").to_owned();
        let first = list(spec, "podCIDRs").first().and_then(Value::as_str).unwrap_or("").to_owned();
        if !single.is_empty() && first != single {
            put(spec, "podCIDRs", vec![single]);
        } else if single.is_empty() && !first.is_empty() {
            put(spec, "podCIDR", first);
        }
    }
    let Some(status) = object_mut(object, "status") else { return };
    if let (None, Some(capacity)) = (set(status, "allocatable"), set(status, "capacity")) {
        let capacity = capacity.clone();
        put(status, "allocatable", capacity);
    }
}

fn prepare_create(object: &mut Value, _env: &Env<'_>) {
    if let Some(status) = object_mut(object, "status") {
        take(status, "config");
    }
    let Some(spec) = ensure_object(object, "spec") else { return };
    take(spec, "configSource");
    // Nothing is scheduled on a node before it says that it is ready.
    let mut taints = list(spec, "taints").to_vec();
    let tainted = |taint: &Value| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule";
    if !taints.iter().any(tainted) {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        put(spec, "taints", taints);
    }
}

fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "status");
    if let (Some(spec), None) = (object_mut(new, "spec"), set(&old["spec"], "configSource")) {
        take(spec, "configSource");
    }
}

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    validate_taints(&object["spec"], errors);
    validate_resources(&object["status"], errors);
    let blocks = list(&object["spec"], "podCIDRs");
    let path = SPEC.field("podCIDRs");
    for (index, block) in blocks.iter().enumerate() {
        validate_legacy_cidr(block.as_str().unwrap_or(""), &path.index(index), true, errors);
    }
    if blocks.len() > 1 {
        let read = |block: &Value| Cidr::parse_lenient(block.as_str().unwrap_or(""));
        let unreadable = blocks.iter().position(|block| read(block).is_none());
        if let Some(index) = unreadable {
            let text = blocks[index].as_str().unwrap_or("");
            errors.push(FieldError {
                problem: Problem::Internal,
                field: path.to_string(),
                value: None,
                detail: format!(
                    "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> \
                     (invalid CIDR address: {text})"
                ),
            });
        }
        let v4 = blocks.iter().filter_map(read).filter(|block| block.address.is_ipv4()).count();
        if blocks.len() > 2 || v4 != 1 || unreadable.is_some() {
            let detail = "may specify no more than one CIDR for each IP family";
            errors.push(FieldError::invalid(&path, &blocks.to_vec().into(), detail));
        }
    }
}

fn validate_taints(spec: &Value, errors: &mut Vec<FieldError>) {
    let path = Path::of("metadata");
    let path = path.field("taints");
    let mut seen = HashSet::new();
    for (index, taint) in list(spec, "taints").iter().enumerate() {
        let path = path.index(index);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        complain(errors, &path.field("key"), key, label_key(key));
        let wrong = label_value(value);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&path.field("value"), &value.into(), wrong.join(";")));
        }
        super::one_of(effect, &path.field("effect"), EFFECTS, errors);
        if !seen.insert((effect, key)) {
            let added = set(taint, "timeAdded").cloned().unwrap_or(Value::Null);
            let [key, value, effect] = [key, value, effect].map(Value::from);
            errors.push(FieldError {
                problem: Problem::Duplicate,
                field: path.to_string(),
                value: Some(format!(
                    "{{\"Key\":{key},\"Value\":{value},\"Effect\":{effect},\"TimeAdded\":{added}}}"
                )),
                detail: "taints must be unique by key and effect pair".to_owned(),
            });
        }
    }
}

fn validate_resources(status: &Value, errors: &mut Vec<FieldError>) {
    for field in ["capacity", "allocatable"] {
        let path = STATUS.field(field);
        for (name, amount) in status[field].as_object().into_iter().flatten() {
            let negative = Quantity::read(amount).is_some_and(|amount| amount.is_negative());
            if negative {
                let detail = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(&path.field(name), amount, detail));
            }
        }
    }
}

fn validate_change(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    validate_resources(&new["status"], errors);
    let path = STATUS.field("addresses");
    let mut seen = HashSet::new();
    for (index, address) in list(&new["status"], "addresses").iter().enumerate() {
        let pair = (text(address, "type"), text(address, "address"));
        if !seen.insert(pair) {
            errors.push(FieldError {
                problem: Problem::Duplicate,
                field: path.index(index).to_string(),
                value: Some(format!(
                    "{{\"Type\":{},\"Address\":{}}}",
                    Value::from(pair.0),
                    Value::from(pair.1)
                )),
                detail: String::new(),
            });
        }
    }
    let before = list(&old["spec"], "podCIDRs");
    if !before.is_empty() && before != list(&new["spec"], "podCIDRs") {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&SPEC.field("podCIDRs"), detail));
    }
    let before = text(&old["spec"], "providerID");
    if !before.is_empty() && before != text(&new["spec"], "providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(&SPEC.field("providerID"), detail));
    }
    validate_taints(&new["spec"], errors);
    if text(&new["spec"], "externalID") != text(&old["spec"], "externalID") {
        errors.push(FieldError::forbidden(&SPEC.field("externalID"), "may not be updated"));
    }
}

fn warnings(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let spec = &new["spec"];
    let mut out = Vec::new();
    if set(spec, "configSource").is_some() {
        out.push("spec.configSource: the feature is removed".to_owned());
    }
    if !text(spec, "externalID").is_empty() {
        out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    let path = SPEC.field("podCIDRs");
    for (index, block) in list(spec, "podCIDRs").iter().enumerate() {
        out.extend(range_warning(&path.index(index), block.as_str().unwrap_or("")));
    }
    out
}
