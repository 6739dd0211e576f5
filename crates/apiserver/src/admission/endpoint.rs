//! Where a webhook listens, from its `clientConfig`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

/// What is escaped in the path of a URL.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// How the address is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// A host name or address, without brackets.
    Host(String, u16),
    /// A Service, to be resolved.
    Service { namespace: String, name: String, port: u16 },
}

/// Where to post reviews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint<'a> {
    pub location: Location,
    /// The host, and the port if it is given, as the URL shows them.
    pub authority: String,
    /// Whose certificate is expected.
    pub server_name: String,
    /// Escaped, and cleaned of empty and dotted steps.
    pub path: String,
    /// The PEM bundle in base64; empty to trust what the system trusts.
    pub ca_bundle: &'a str,
}

impl<'a> Endpoint<'a> {
    /// Reads a `clientConfig`; the error is the rest of `could not get REST client: `.
    pub(super) fn of(config: &'a Value) -> Result<Self, String> {
        let ca_bundle = config.get("caBundle").and_then(Value::as_str).unwrap_or_default();
        if let Some(service) = config.get("service").filter(|service| service.is_object()) {
            return Ok(Self::of_service(service, ca_bundle));
        }
        match config.get("url").and_then(Value::as_str) {
            Some(url) if !url.is_empty() => Self::of_url(url, ca_bundle),
            _ => Err("webhook configuration must have either service or URL".to_owned()),
        }
    }

    fn of_service(service: &Value, ca_bundle: &'a str) -> Self {
        let text = |field: &str| service.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let port = service.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        let port = port.filter(|port| *port != 0).unwrap_or(443);
        let (namespace, name) = (text("namespace"), text("name"));
        let server_name = format!("{name}.{namespace}.svc");
        Endpoint {
            authority: format!("{server_name}:{port}"),
            location: Location::Service { namespace, name, port },
            server_name,
            path: clean_path(&text("path")),
            ca_bundle,
        }
    }

    fn of_url(url: &str, ca_bundle: &'a str) -> Result<Self, String> {
        let rest = url.strip_prefix("https://").ok_or_else(|| {
            "'https' is the only allowed URL scheme; desired format: https://host[/path]".to_owned()
        })?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let unparsable = || format!("Unparsable URL: parse \"{url}\": invalid port after host");
        let (host, port) = match authority.rsplit_once(':') {
            // A colon inside brackets belongs to the address.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| unparsable())?),
            _ => (authority, 443),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(format!("Unparsable URL: parse \"{url}\": host must be specified"));
        }
        Ok(Endpoint {
            authority: authority.to_owned(),
            location: Location::Host(host.to_owned(), port),
            server_name: host.to_owned(),
            path: clean_path(path),
            ca_bundle,
        })
    }
}

fn clean_path(path: &str) -> String {
    let path = percent_decode_str(path).decode_utf8_lossy();
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    format!("/{}", utf8_percent_encode(&steps.join("/"), ESCAPED))
}
