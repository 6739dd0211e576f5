//! Checks of `managedFields` that clients and webhooks have written.

use super::managers::Managers;
use super::name::validate_manager_name;
use super::{managed_fields, set_managed_fields};
use crate::field::{FieldError, Path};
use serde_json::Value;

const SUBRESOURCE_MAX: usize = 256;

/// What is wrong with the entries of an object that is to be stored; `path` is that of `managedFields`.
pub(crate) fn validate_managed_fields(entries: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (i, entry) in entries.as_array().into_iter().flatten().enumerate() {
        let path = path.index(i);
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut refuse = |name: &str, detail: &str| {
            errors.push(FieldError::invalid(&path.field(name), &text(name).into(), detail));
        };
        if !matches!(text("operation"), "Apply" | "Update") {
            refuse("operation", "must be `Apply` or `Update`");
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            refuse("fieldsType", "must be `FieldsV1`");
        }
        errors.extend(validate_manager_name(text("manager"), &path.field("manager")));
        if text("subresource").len() > SUBRESOURCE_MAX {
            errors.push(FieldError::too_long(&path.field("subresource"), SUBRESOURCE_MAX));
        }
    }
}

/// Puts back the entries from before mutating admission if they cannot be read after it, and gives the
/// warning for the client.
pub(crate) fn undo_unreadable(before: Option<Value>, object: &mut Value) -> Option<String> {
    let problem = Managers::decode(managed_fields(object)).err()?;
    set_managed_fields(object, before);
    Some(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an \
         outdated mutating admission controller; please fix your requests: {problem}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    #[test]
    fn entries_are_checked_field_by_field() {
        let entries = json!([
            {"operation": "Apply", "manager": "a", "fieldsType": "FieldsV1"},
            {"operation": "Guess", "manager": "a\u{7}", "fieldsType": "FieldsV2", "subresource": "s".repeat(257)},
            {},
        ]);
        let metadata = Path::of("metadata");
        let mut errors = Vec::new();
        validate_managed_fields(&entries, &metadata.field("managedFields"), &mut errors);
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        expect![[r#"
            metadata.managedFields[1].operation: Invalid value: "Guess": must be `Apply` or `Update`
            metadata.managedFields[1].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`
            metadata.managedFields[1].manager: Invalid value: "a\a": invalid character U+0007 (at position 1)
            metadata.managedFields[1].subresource: Too long: may not be more than 256 bytes
            metadata.managedFields[2].operation: Invalid value: "": must be `Apply` or `Update`"#]]
        .assert_eq(&errors.join("\n"));
    }

    #[test]
    fn entries_that_a_webhook_broke_are_put_back() {
        let before =
            json!([{"manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}]);
        let mut object = json!({"metadata": {"managedFields": before}});
        assert_eq!(undo_unreadable(None, &mut object), None);
        object["metadata"]["managedFields"][0]["apiVersion"] = json!("");
        let warning = undo_unreadable(Some(before.clone()), &mut object).unwrap();
        assert!(warning.ends_with("please fix your requests: apiVersion must not be empty"));
        assert_eq!(object["metadata"]["managedFields"], before);
    }
}
