//! How a webhook is reached: a URL or a service, and the authorities to trust.

use crate::builtin::rules::json::{int, set, text};
use crate::builtin::rules::names::{dns1123_subdomain, port_number};
use crate::field::{FieldError, Path, go_quote};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const FORM: &str = "; desired format: https://host[/path]";

/// Checks how a webhook is reached: exactly one way.
pub(super) fn validate_client(config: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match (set(config, "url"), set(config, "service")) {
        (Some(url), None) => {
            validate_url(url.as_str().unwrap_or(""), &path.field("url"), errors);
        }
        (None, Some(service)) => {
            // The real server passes name and namespace the wrong way round here.
            let (name, namespace) = (text(service, "namespace"), text(service, "name"));
            validate_service(service, namespace, name, &path.field("service"), errors);
        }
        _ => errors.push(FieldError::required(path, "exactly one of url or service is required")),
    }
}

/// Checks the URL of a webhook.
fn validate_url(url: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if url.starts_with(':') {
        let detail =
            format!("url must be a valid URL: parse {}: missing protocol scheme{FORM}", go_quote(url));
        errors.push(FieldError::required(path, detail));
        return;
    }
    let mut refuse = |value: &str, detail: &str| {
        errors.push(FieldError::invalid(path, &value.into(), detail));
    };
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").map_or(("", rest), |(scheme, rest)| (scheme, rest));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or("") };
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if scheme != "https" {
        refuse(scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        refuse(host, &format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        refuse(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        refuse(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        refuse(query, "query parameters are not permitted in the URL");
    }
}

/// Checks the service of a webhook.
fn validate_service(
    service: &Value,
    namespace: &str,
    name: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (field, value) in [("name", name), ("namespace", namespace)] {
        if value.is_empty() {
            errors.push(FieldError::required(&path.field(field), ""));
        }
    }
    let port = int(service, "port").unwrap_or(0);
    let wrong = port_number(port);
    if !wrong.is_empty() {
        let detail = format!("port is not valid: {}", wrong.join(", "));
        errors.push(FieldError::invalid(&path.field("port"), &port.into(), detail));
    }
    let url_path = text(service, "path");
    if matches!(url_path, "" | "/") {
        return;
    }
    let path = path.field("path");
    let mut refuse = |detail: String| errors.push(FieldError::invalid(&path, &url_path.into(), detail));
    if url_path == "//" {
        return refuse("segment[0] may not be empty".to_owned());
    }
    if !url_path.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }
    // The first character goes whatever it is, as in the real server.
    let steps = url_path.char_indices().nth(1).map_or("", |(at, _)| &url_path[at..]);
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (index, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            refuse(format!("segment[{index}] may not be empty"));
            continue;
        }
        for why in dns1123_subdomain(step) {
            refuse(format!("segment[{index}]: {why}"));
        }
    }
}

/// Checks that the bundle of a client config holds certificates.
pub(super) fn validate_bundle(config: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(bundle) = set(config, "caBundle").filter(|bundle| *bundle != "") else { return };
    let bytes = STANDARD.decode(bundle.as_str().unwrap_or("")).unwrap_or_default();
    if !String::from_utf8_lossy(&bytes).contains("-----BEGIN CERTIFICATE-----") {
        let detail = "unable to load root certificates: unable to parse bytes as PEM block";
        errors.push(FieldError::invalid(&path.field("caBundle"), bundle, detail));
    }
}
