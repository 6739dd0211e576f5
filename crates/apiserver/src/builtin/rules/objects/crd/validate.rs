//! What a definition must look like, and what an update may change.

use super::versions::{validate_columns, validate_selectable, validate_subresources};
use super::{SPEC, STATUS, Shared, approval, condition_is_true, print};
use crate::builtin::rules::json::{flag, list, set, text};
use crate::builtin::rules::names::{dns1035_label, dns1123_subdomain, validate_immutable_text};
use crate::builtin::rules::objects::webhook_client::{validate_bundle, validate_client};
use crate::builtin::rules::objects::{check_meta_again, is_unset, one_of};
use crate::field::{FieldError, Path, Problem};
use serde_json::Value;
use std::collections::HashSet;

/// Checks one schema: the `openAPIV3Schema`, where it stands, and whether the status subresource is on.
pub(crate) type SchemaCheck<'a> = &'a dyn Fn(&Value, &Path<'_>, bool, &mut Vec<FieldError>);

const METADATA: Path<'static> = Path::of("metadata");

/// Checks a definition, or an update of `old`.
pub(crate) fn validate_with(
    crd: &Value,
    old: Option<&Value>,
    check: SchemaCheck<'_>,
    errors: &mut Vec<FieldError>,
) {
    match old {
        None => validate_name(crd, errors),
        Some(old) => check_meta_again(crd, old, errors),
    }
    let shared = Shared::of(crd);
    validate_identity(crd, errors);
    validate_versions(crd, shared, check, errors);
    validate_required_names(&crd["spec"]["names"], errors);
    validate_names(&crd["spec"]["names"], &SPEC.field("names"), errors);
    validate_shared(crd, shared, check, errors);
    let lenient_bundle = old.is_none_or(|old| !condition_is_true(old, "Established"));
    validate_conversion(&crd["spec"], lenient_bundle, errors);
    if let Some(old) = old {
        validate_kept(&crd["spec"], old, errors);
    }
    validate_names(&crd["status"]["acceptedNames"], &STATUS.field("acceptedNames"), errors);
    validate_stored_versions(crd, errors);
    approval::validate_approval(crd, old, errors);
    if flag(&crd["spec"], "preserveUnknownFields")
        && !old.is_some_and(|old| flag(&old["spec"], "preserveUnknownFields"))
    {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&SPEC.field("preserveUnknownFields"), &true.into(), detail));
    }
}

fn validate_name(crd: &Value, errors: &mut Vec<FieldError>) {
    let name = text(&crd["metadata"], "name");
    let expected = format!("{}.{}", text(&crd["spec"]["names"], "plural"), text(&crd["spec"], "group"));
    if !name.is_empty() && name != expected {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid(&METADATA.field("name"), &name.into(), detail));
    }
}

fn validate_identity(crd: &Value, errors: &mut Vec<FieldError>) {
    let spec = &crd["spec"];
    let path = SPEC.field("group");
    match text(spec, "group") {
        "" => errors.push(FieldError::required(&path, "")),
        group => {
            let wrong = dns1123_subdomain(group);
            if !wrong.is_empty() {
                errors.push(FieldError::invalid(&path, &group.into(), wrong.join(",")));
            } else if !group.contains('.') {
                let detail = "should be a domain with at least one dot";
                errors.push(FieldError::invalid(&path, &group.into(), detail));
            }
        }
    }
    one_of(text(spec, "scope"), &SPEC.field("scope"), &["Cluster", "Namespaced"], errors);
    let versions = list(spec, "versions");
    let schemaless = |version: &Value| set(&version["schema"], "openAPIV3Schema").is_none();
    let path = SPEC.field("versions");
    for (index, _) in versions.iter().enumerate().filter(|(_, version)| schemaless(version)) {
        let path = path.index(index);
        let path = path.field("schema");
        errors.push(FieldError::required(&path.field("openAPIV3Schema"), ""));
    }
}

fn has_status(version: &Value) -> bool {
    !version["subresources"]["status"].is_null()
}

fn validate_versions(crd: &Value, shared: Shared, check: SchemaCheck<'_>, errors: &mut Vec<FieldError>) {
    let versions = list(&crd["spec"], "versions");
    let path = SPEC.field("versions");
    let mut names = HashSet::new();
    let mut unique = true;
    for (index, version) in versions.iter().enumerate() {
        let path = path.index(index);
        let name = text(version, "name");
        unique &= names.insert(name);
        let wrong = dns1035_label(name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&path.field("name"), &name.into(), wrong.join(",")));
        }
        validate_deprecation(version, &path, errors);
        let schema = set(&version["schema"], "openAPIV3Schema");
        if let (false, Some(schema)) = (shared.schema, schema) {
            let path = path.field("schema");
            check(schema, &path.field("openAPIV3Schema"), has_status(version), errors);
        }
        if !shared.subresources {
            validate_subresources(&version["subresources"], &path.field("subresources"), errors);
        }
        if !shared.columns {
            validate_columns(version, &path, errors);
        }
        if !shared.selectable && !is_unset(version, "selectableFields") {
            let path = path.field("selectableFields");
            if let Some(schema) = schema.filter(|_| !shared.schema) {
                validate_selectable(version, schema, &path, errors);
            } else {
                let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
                errors.push(FieldError::invalid(&path, &"".into(), detail));
            }
        }
    }
    let mut refuse = |detail: &str| {
        errors.push(FieldError {
            problem: Problem::Invalid,
            field: path.to_string(),
            value: Some(print::versions(crd)),
            detail: detail.to_owned(),
        });
    };
    if !unique {
        refuse("must contain unique version names");
    }
    if versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
        refuse("must have exactly one version marked as storage version");
    }
    // The real server still has the field of old that named the first version.
    if let Some(name) = versions.first().map(|version| text(version, "name")).filter(|name| !name.is_empty())
    {
        let wrong = dns1035_label(name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&SPEC.field("version"), &name.into(), wrong.join(",")));
        }
    }
}

fn validate_deprecation(version: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(warning) = set(version, "deprecationWarning").and_then(Value::as_str) else { return };
    let path = path.field("deprecationWarning");
    let mut refuse = |detail: String| errors.push(FieldError::invalid(&path, &warning.into(), detail));
    if !flag(version, "deprecated") {
        return refuse("can only be set for deprecated versions".to_owned());
    }
    if warning.len() > 256 {
        refuse("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        refuse("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        let sentence = "must only contain printable UTF-8 characters; non-printable character found at index";
        refuse(format!("{sentence} {at}"));
    }
}

fn validate_required_names(names: &Value, errors: &mut Vec<FieldError>) {
    let path = SPEC.field("names");
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(names, field).is_empty() {
            errors.push(FieldError::required(&path.field(field), ""));
        }
    }
}

/// Checks the names that are given.
pub(super) fn validate_names(names: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut refuse = |path: &Path<'_>, name: &str, prefix: &str, wrong: &[String]| {
        if !name.is_empty() && !wrong.is_empty() {
            let detail = format!("{prefix}{}", wrong.join(","));
            errors.push(FieldError::invalid(path, &name.into(), detail));
        }
    };
    for field in ["plural", "singular"] {
        let name = text(names, field);
        refuse(&path.field(field), name, "", &dns1035_label(name));
    }
    for field in ["kind", "listKind"] {
        let name = text(names, field);
        let wrong = dns1035_label(&name.to_lowercase());
        refuse(&path.field(field), name, "may have mixed case, but should otherwise match: ", &wrong);
    }
    let each = |field: &str, errors: &mut Vec<FieldError>| {
        let path = path.field(field);
        for (index, name) in list(names, field).iter().enumerate() {
            let wrong = dns1035_label(name.as_str().unwrap_or(""));
            if !wrong.is_empty() {
                errors.push(FieldError::invalid(&path.index(index), name, wrong.join(",")));
            }
        }
    };
    each("shortNames", errors);
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.field("listKind"), &kind.into(), detail));
    }
    each("categories", errors);
}

/// Checks what all versions share, where the real server keeps it.
fn validate_shared(crd: &Value, shared: Shared, check: SchemaCheck<'_>, errors: &mut Vec<FieldError>) {
    let versions = list(&crd["spec"], "versions");
    let Some(first) = versions.first() else { return };
    let schema = set(&first["schema"], "openAPIV3Schema").filter(|_| shared.schema);
    if let Some(schema) = schema {
        let path = SPEC.field("validation");
        check(schema, &path.field("openAPIV3Schema"), versions.iter().any(has_status), errors);
    }
    if shared.subresources {
        validate_subresources(&first["subresources"], &SPEC.field("subresources"), errors);
    }
    if shared.columns {
        validate_columns(first, &SPEC, errors);
    }
    if shared.selectable && !is_unset(first, "selectableFields") {
        let path = SPEC.field("selectableFields");
        if let Some(schema) = schema {
            validate_selectable(first, schema, &path, errors);
        } else {
            let detail = "may only be set when validations.schema is included";
            errors.push(FieldError::invalid(&path, &"".into(), detail));
        }
    }
}

fn validate_conversion(spec: &Value, lenient_bundle: bool, errors: &mut Vec<FieldError>) {
    let Some(conversion) = set(spec, "conversion") else { return };
    let path = SPEC.field("conversion");
    let strategy = text(conversion, "strategy");
    if strategy != "None" && flag(spec, "preserveUnknownFields") {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&path.field("strategy"), &strategy.into(), detail));
    }
    one_of(strategy, &path.field("strategy"), &["None", "Webhook"], errors);
    let config = set(&conversion["webhook"], "clientConfig");
    let versions = list(&conversion["webhook"], "conversionReviewVersions");
    let config_path = path.field("webhookClientConfig");
    let versions_path = path.field("conversionReviewVersions");
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            errors.push(FieldError::forbidden(&config_path, detail));
        }
        if !versions.is_empty() {
            errors.push(FieldError::forbidden(&versions_path, detail));
        }
        return;
    }
    match config {
        None => errors.push(FieldError::required(&config_path, "required when strategy is set to Webhook")),
        Some(config) => {
            validate_client(config, &config_path, errors);
            if !lenient_bundle {
                validate_bundle(config, &config_path, errors);
            }
        }
    }
    validate_review_versions(versions, &["v1", "v1beta1"], &versions_path, errors);
}

/// Checks the versions of review objects that a webhook understands.
pub(in crate::builtin::rules::objects) fn validate_review_versions(
    versions: &[Value],
    known: &[&str],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if versions.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut seen = HashSet::new();
    let mut understood = false;
    for (index, version) in versions.iter().enumerate() {
        let name = version.as_str().unwrap_or("");
        if !seen.insert(name) {
            errors.push(FieldError::invalid(&path.index(index), version, "duplicate version"));
            continue;
        }
        for why in dns1035_label(name) {
            errors.push(FieldError::invalid(&path.index(index), version, why));
        }
        understood |= known.contains(&name);
    }
    if !understood {
        let detail = format!("must include at least one of {}", known.join(", "));
        errors.push(FieldError::invalid(path, &versions.to_vec().into(), detail));
    }
}

fn validate_kept(spec: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let names = SPEC.field("names");
    if condition_is_true(old, "Established") {
        validate_immutable_text(&spec["scope"], &old["spec"]["scope"], &SPEC.field("scope"), errors);
        let before = &old["spec"]["names"]["kind"];
        validate_immutable_text(&spec["names"]["kind"], before, &names.field("kind"), errors);
    }
    validate_immutable_text(&spec["group"], &old["spec"]["group"], &SPEC.field("group"), errors);
    let before = &old["spec"]["names"]["plural"];
    validate_immutable_text(&spec["names"]["plural"], before, &names.field("plural"), errors);
}

fn validate_stored_versions(crd: &Value, errors: &mut Vec<FieldError>) {
    let path = STATUS.field("storedVersions");
    let stored = list(&crd["status"], "storedVersions");
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid(&path, &Value::Null, detail));
        return;
    }
    let mut missing: Vec<Option<&str>> = stored.iter().map(Value::as_str).collect();
    for version in list(&crd["spec"], "versions") {
        let name = text(version, "name");
        let found = missing.iter_mut().find(|stored| **stored == Some(name));
        if found.is_none() && flag(version, "storage") {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(&path, &stored.to_vec().into(), detail));
        }
        if let Some(found) = found {
            *found = None;
        }
    }
    for (index, name) in missing.iter().enumerate().filter_map(|(index, name)| Some((index, (*name)?))) {
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in \
             spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
             {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(&path.index(index), &name.into(), detail));
    }
}
