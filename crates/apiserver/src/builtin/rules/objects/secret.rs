//! `Secret`: text data joins the bytes, types say which keys must be there.

use super::config_map::check_immutable;
use super::{byte_length, check_meta_again, check_new_meta_again};
use crate::builtin::rules::Rules;
use crate::builtin::rules::json::{default_to, ensure_object, put, take, text};
use crate::builtin::rules::names::{complain, config_key, dns1123_subdomain, validate_immutable};
use crate::field::{FieldError, Path};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const BYTES_MAX: usize = 1 << 20;
const DATA: Path<'static> = Path::of("data");
const ACCOUNT: &str = "kubernetes.io/service-account.name";

pub(super) static RULES: Rules =
    Rules { default, validate, validate_update, warnings, name: dns1123_subdomain, ..Rules::NONE };

fn default(object: &mut Value) {
    default_to(object, "type", "Opaque");
    let Some(Value::Object(text)) = take(object, "stringData") else { return };
    if text.is_empty() {
        return;
    }
    let Some(data) = ensure_object(object, "data") else { return };
    for (key, value) in text {
        put(data, &key, STANDARD.encode(value.as_str().unwrap_or("")));
    }
}

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let data = &object["data"];
    let mut bytes = 0;
    for (key, value) in data.as_object().into_iter().flatten() {
        complain(errors, &DATA.key(key), key, config_key(key));
        bytes += byte_length(value);
    }
    if bytes > BYTES_MAX {
        errors.push(FieldError::too_long(&DATA, BYTES_MAX));
    }
    let mut require = |key: &str| errors.push(FieldError::required(&DATA.key(key), ""));
    let has = |key: &str| data.get(key).is_some();
    match text(object, "type") {
        "kubernetes.io/service-account-token"
            if text(&object["metadata"]["annotations"], ACCOUNT).is_empty() =>
        {
            let annotations = Path::of("metadata");
            let annotations = annotations.field("annotations");
            errors.push(FieldError::required(&annotations.key(ACCOUNT), ""));
        }
        "kubernetes.io/dockercfg" => validate_docker(data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => validate_docker(data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" if text(data, "ssh-privatekey").is_empty() => require("ssh-privatekey"),
        "kubernetes.io/tls" => {
            ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)).for_each(require);
        }
        _ => {}
    }
}

fn validate_docker(data: &Value, key: &str, errors: &mut Vec<FieldError>) {
    let Some(encoded) = data.get(key) else {
        errors.push(FieldError::required(&DATA.key(key), ""));
        return;
    };
    let bytes = STANDARD.decode(encoded.as_str().unwrap_or("")).unwrap_or_default();
    if let Some(why) = json_object_error(&bytes) {
        errors.push(FieldError::invalid(&DATA.key(key), &"<secret contents redacted>".into(), why));
    }
}

/// Why these bytes are no JSON object, as Go's decoder says it.
fn json_object_error(bytes: &[u8]) -> Option<String> {
    let found = match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(Value::Array(_)) => "array",
        Ok(Value::String(_)) => "string",
        Ok(Value::Number(_)) => "number",
        Ok(Value::Bool(_)) => "bool",
        Err(error) if error.is_eof() => return Some("unexpected end of JSON input".to_owned()),
        Err(error) => {
            let line = bytes.split(|b| *b == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
            let wrong = line.get(error.column().saturating_sub(1)).map_or(' ', |b| char::from(*b));
            return Some(format!("invalid character '{wrong}' looking for beginning of value"));
        }
    };
    Some(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"))
}

fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    validate_immutable(&new["type"], &old["type"], &Path::of("type"), errors);
    check_immutable(new, old, &["data"], errors);
    check_new_meta_again(new, true, dns1123_subdomain, errors);
    validate(new, errors);
}

/// A TLS secret whose parts are not even PEM is stored, with a warning.
fn warnings(new: &Value, _old: Option<&Value>) -> Vec<String> {
    if text(new, "type") != "kubernetes.io/tls" {
        return Vec::new();
    }
    let is_pem = |key: &str| {
        let bytes = STANDARD.decode(text(&new["data"], key)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains("-----BEGIN ")
    };
    [("tls.crt", "certificate"), ("tls.key", "key")]
        .into_iter()
        .find(|(key, _)| !is_pem(key))
        .map(|(_, what)| format!("tls: failed to find any PEM data in {what} input"))
        .into_iter()
        .collect()
}
