//! `Ingress` and `IngressClass`: hosts, paths and what stands behind them.

use super::{check_meta_again, check_new_meta_again, default_pointer, is_unset};
use crate::builtin::rules::json::{
    bump_generation, int, keep, list, object_mut, put, set, set_generation, text,
};
use crate::builtin::rules::names::address::{parse_lenient, validate_legacy_ip};
use crate::builtin::rules::names::{
    complain, dns1123_label, dns1123_subdomain, form_error, path_segment_name, port_name, port_number,
    validate_immutable_text, wildcard_subdomain,
};
use crate::builtin::rules::{Env, Rules};
use crate::field::{FieldError, Path};
use serde_json::{Value, json};
use std::collections::HashSet;

const SPEC: Path<'static> = Path::of("spec");
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const CONTROLLER_MAX: usize = 250;

pub(super) static RULES: Rules = Rules {
    prepare_create: |object, _| {
        put(object, "status", json!({"loadBalancer": {}}));
        set_generation(object, 1);
    },
    prepare_update: |new, old, env| {
        keep(new, old, "status");
        bump_on_spec(new, old, env);
    },
    prepare_status: |new, old, _| keep(new, old, "spec"),
    validate,
    validate_update: |new, old, errors| {
        check_meta_again(new, old, errors);
        check_new_meta_again(new, true, dns1123_subdomain, errors);
        validate_spec(&new["spec"], errors);
    },
    validate_status,
    warnings,
    name: dns1123_subdomain,
    ..Rules::NONE
};

pub(super) static CLASS: Rules = Rules {
    default: |object| {
        if let Some(parameters) = object_mut(object, "spec").and_then(|spec| object_mut(spec, "parameters")) {
            default_pointer(parameters, "scope", "Cluster");
        }
    },
    prepare_create: |object, _| set_generation(object, 1),
    prepare_update: bump_on_spec,
    validate: validate_class,
    validate_update: |new, old, errors| {
        check_meta_again(new, old, errors);
        let (after, before) = (&new["spec"]["controller"], &old["spec"]["controller"]);
        validate_immutable_text(after, before, &SPEC.field("controller"), errors);
        check_new_meta_again(new, false, dns1123_subdomain, errors);
        validate_class(new, errors);
    },
    name: dns1123_subdomain,
    ..Rules::NONE
};

fn bump_on_spec(new: &mut Value, old: &Value, _env: &Env<'_>) {
    let changed = new["spec"] != old["spec"];
    bump_generation(new, old, changed);
}

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    validate_spec(&object["spec"], errors);
    let annotation = set(&object["metadata"]["annotations"], CLASS_ANNOTATION);
    let class = set(&object["spec"], "ingressClassName");
    if let (Some(annotation), Some(class)) = (annotation, class)
        && annotation != class
    {
        let path = Path::of("annotations");
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(&path.field(CLASS_ANNOTATION), annotation, detail));
    }
}

fn validate_spec(spec: &Value, errors: &mut Vec<FieldError>) {
    let rules = list(spec, "rules");
    let backend = set(spec, "defaultBackend");
    if rules.is_empty() && backend.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        let value = set(spec, "rules").cloned().unwrap_or(Value::Null);
        errors.push(FieldError::invalid(&SPEC, &value, detail));
    }
    if let Some(backend) = backend {
        validate_backend(backend, &SPEC.field("defaultBackend"), errors);
    }
    let path = SPEC.field("rules");
    for (index, rule) in rules.iter().enumerate() {
        validate_rule(rule, &path.index(index), errors);
    }
    let path = SPEC.field("tls");
    for (index, tls) in list(spec, "tls").iter().enumerate() {
        let path = path.index(index);
        let hosts = path.field("hosts");
        for (index, host) in list(tls, "hosts").iter().enumerate() {
            let host = host.as_str().unwrap_or("");
            complain(errors, &hosts.index(index), host, host_check(host));
        }
        let secret = text(tls, "secretName");
        if !secret.is_empty() {
            complain(errors, &path.field("secretName"), secret, dns1123_subdomain(secret));
        }
    }
    if let Some(class) = set(spec, "ingressClassName").and_then(Value::as_str) {
        complain(errors, &SPEC.field("ingressClassName"), class, dns1123_subdomain(class));
    }
}

fn host_check(host: &str) -> Vec<String> {
    if host.contains('*') { wildcard_subdomain(host) } else { dns1123_subdomain(host) }
}

fn validate_rule(rule: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let host = text(rule, "host");
    if !host.is_empty() {
        let path = path.field("host");
        if parse_lenient(host).is_some() {
            errors.push(FieldError::invalid(&path, &host.into(), "must be a DNS name, not an IP address"));
        }
        complain(errors, &path, host, host_check(host));
    }
    let Some(http) = set(rule, "http") else { return };
    let path = path.field("http");
    let path = path.field("paths");
    if is_unset(http, "paths") {
        errors.push(FieldError::required(&path, ""));
    }
    for (index, entry) in list(http, "paths").iter().enumerate() {
        validate_path(entry, &path.index(index), errors);
    }
}

fn validate_path(entry: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(kind) = set(entry, "pathType").and_then(Value::as_str) else {
        errors.push(FieldError::required(&path.field("pathType"), "pathType must be specified"));
        return;
    };
    let value = text(entry, "path");
    let mut refuse = |detail: String| {
        errors.push(FieldError::invalid(&path.field("path"), &value.into(), detail));
    };
    match kind {
        "Exact" | "Prefix" => {
            if !value.starts_with('/') {
                refuse("must be an absolute path".to_owned());
            }
            let sequences = ["//", "/./", "/../", "%2f", "%2F"].into_iter();
            sequences.filter(|s| value.contains(s)).for_each(|s| refuse(format!("must not contain '{s}'")));
            let endings = ["/..", "/."].into_iter();
            endings.filter(|s| value.ends_with(s)).for_each(|s| refuse(format!("cannot end with '{s}'")));
        }
        "ImplementationSpecific" => {
            if !value.is_empty() && !value.starts_with('/') {
                refuse("must be an absolute path".to_owned());
            }
        }
        _ => {
            let supported = &["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(FieldError::not_supported(&path.field("pathType"), &kind.into(), supported));
        }
    }
    validate_backend(&entry["backend"], &path.field("backend"), errors);
}

fn validate_backend(backend: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match (set(backend, "resource"), set(backend, "service")) {
        (Some(_), Some(_)) => {
            errors.push(FieldError::invalid(
                path,
                &"".into(),
                "cannot set both resource and service backends",
            ));
        }
        (Some(resource), None) => validate_reference(resource, &path.field("resource"), errors),
        (None, Some(service)) => validate_service(service, path, errors),
        (None, None) => {
            errors.push(FieldError::invalid(path, &"".into(), "resource or service backend is required"));
        }
    }
}

fn validate_service(service: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let service_path = path.field("service");
    match text(service, "name") {
        "" => errors.push(FieldError::required(&service_path.field("name"), "")),
        name => complain(errors, &service_path.field("name"), name, dns1123_label(name)),
    }
    let (name, number) = (text(&service["port"], "name"), int(&service["port"], "number").unwrap_or(0));
    let port_path = service_path.field("port");
    match (name, number) {
        ("", 0) => errors.push(FieldError::required(path, "port name or number is required")),
        (name, 0) => complain(errors, &port_path.field("name"), name, port_name(name)),
        ("", number) => {
            for why in port_number(number) {
                errors.push(FieldError::invalid(&port_path.field("number"), &number.into(), why));
            }
        }
        _ => errors.push(FieldError::invalid(path, &"".into(), "cannot set both port name & port number")),
    }
}

fn validate_reference(reference: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(group) = set(reference, "apiGroup").and_then(Value::as_str) {
        complain(errors, &path.field("apiGroup"), group, dns1123_subdomain(group));
    }
    for field in ["kind", "name"] {
        match text(reference, field) {
            "" => errors.push(FieldError::required(&path.field(field), "")),
            value => complain(errors, &path.field(field), value, path_segment_name(value)),
        }
    }
}

fn validate_status(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    let ingress = |object: &'_ Value| list(&object["status"]["loadBalancer"], "ingress").to_vec();
    let known: HashSet<String> = ingress(old).iter().map(|entry| text(entry, "ip").to_owned()).collect();
    let path = Path::of("status");
    let path = path.field("loadBalancer");
    let path = path.field("ingress");
    for (index, entry) in ingress(new).iter().enumerate() {
        let path = path.index(index);
        let (ip, host) = (text(entry, "ip"), text(entry, "hostname"));
        if !ip.is_empty() && !known.contains(ip) {
            validate_legacy_ip(ip, &path.field("ip"), true, errors);
        }
        if !host.is_empty() {
            let path = path.field("hostname");
            complain(errors, &path, host, dns1123_subdomain(host));
            if parse_lenient(host).is_some() {
                errors.push(FieldError::invalid(
                    &path,
                    &host.into(),
                    "must be a DNS name, not an IP address",
                ));
            }
        }
    }
}

fn validate_class(object: &Value, errors: &mut Vec<FieldError>) {
    let spec = &object["spec"];
    let controller = text(spec, "controller");
    let path = SPEC.field("controller");
    if controller.len() > CONTROLLER_MAX {
        errors.push(FieldError::too_long(&path, CONTROLLER_MAX));
    }
    validate_domain_path(controller, &path, errors);
    let Some(parameters) = set(spec, "parameters") else { return };
    let path = SPEC.field("parameters");
    validate_reference(parameters, &path, errors);
    let namespace = set(parameters, "namespace").and_then(Value::as_str);
    let path_of_namespace = path.field("namespace");
    match (text(parameters, "scope"), namespace) {
        ("Namespace", None) => {
            let detail = "`parameters.scope` is set to 'Namespace'";
            errors.push(FieldError::required(&path_of_namespace, detail));
        }
        ("Namespace", Some(name)) => complain(errors, &path_of_namespace, name, dns1123_label(name)),
        ("Cluster", Some(_)) => {
            let detail = "`parameters.scope` is set to 'Cluster'";
            errors.push(FieldError::forbidden(&path_of_namespace, detail));
        }
        ("Cluster", None) => {}
        (scope, _) => {
            let path = path.field("scope");
            errors.push(FieldError::not_supported(&path, &scope.into(), &["Cluster", "Namespace"]));
        }
    }
}

/// Checks a text such as `example.com/controller`.
fn validate_domain_path(text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if text.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let Some((host, rest)) = text.split_once('/').filter(|(host, rest)| !host.is_empty() && !rest.is_empty())
    else {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        errors.push(FieldError::invalid(path, &text.into(), detail));
        return;
    };
    complain(errors, path, host, dns1123_subdomain(host));
    let fine = |c: u8| c.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&c);
    if !rest.bytes().all(fine) {
        let detail = form_error("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
        errors.push(FieldError::invalid(path, &rest.into(), detail));
    }
}

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let annotated = new["metadata"]["annotations"].get(CLASS_ANNOTATION).is_some();
    if old.is_some() || !annotated || set(&new["spec"], "ingressClassName").is_some() {
        return Vec::new();
    }
    vec![format!(
        "annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
    )]
}
