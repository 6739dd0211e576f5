//! What a URL asks for. Pure.

use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// A request path, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// A resource of an API group.
    Resource(Target),
    /// Anything else, split at its slashes.
    Other(Vec<String>),
}

/// A resource, an object, or a part of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    /// The plural name.
    pub resource: String,
    /// None across all namespaces and for cluster-scoped resources.
    pub namespace: Option<String>,
    pub name: Option<String>,
    /// `status`, `scale`, …; what follows it stays joined by slashes.
    pub subresource: Option<String>,
    /// The old `/watch/` prefix stood in the path.
    pub watch: bool,
}

impl Path {
    /// Reads a path. Every path means something; whether it is served is another question.
    pub(crate) fn parse(path: &str) -> Path {
        let parts = path.split('/').filter(|part| !part.is_empty());
        let parts: Vec<Cow<'_, str>> =
            parts.map(|part| percent_decode_str(part).decode_utf8_lossy()).collect();
        let text: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        let other = || Path::Other(text.iter().map(|part| (*part).to_owned()).collect());
        let (group, version, rest) = match text.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => return other(),
        };
        let (watch, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            _ => (false, rest),
        };
        let mut target = Target { group: group.into(), version: version.into(), watch, ..Target::default() };
        let rest = match rest {
            // The namespace itself, and parts of it.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => rest,
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
                target.namespace = Some((*namespace).to_owned());
                rest
            }
            _ => rest,
        };
        match rest {
            [] => return other(),
            [resource, rest @ ..] => {
                (*resource).clone_into(&mut target.resource);
                if let [name, subresource @ ..] = rest {
                    target.name = Some((*name).to_owned());
                    target.subresource = (!subresource.is_empty()).then(|| subresource.join("/"));
                }
            }
        }
        Path::Resource(target)
    }
}

/// The query part of a URL, decoded, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Query {
        let decode = |text: &str| {
            let spaced = text.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Query(
            pairs
                .map(|pair| match pair.split_once('=') {
                    Some((key, value)) => (decode(key), decode(value)),
                    None => (decode(pair), String::new()),
                })
                .collect(),
        )
    }

    /// The first value of a parameter; an empty one counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Every value of a parameter.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    /// A flag as the API reads them: set unless absent, `false` or `0`.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let value = &self.0.iter().find(|(key, _)| key == name)?.1;
        Some(!(value.is_empty() || value == "0" || value.eq_ignore_ascii_case("false")))
    }

    /// A whole number, or the sentence that refuses what stands there.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            let quoted = crate::field::go_quote(text);
            format!("strconv.ParseInt: parsing {quoted}: invalid syntax")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> String {
        match Path::parse(path) {
            Path::Resource(t) => format!(
                "{}/{} {} ns={} name={} sub={}{}",
                t.group,
                t.version,
                t.resource,
                t.namespace.unwrap_or_default(),
                t.name.unwrap_or_default(),
                t.subresource.unwrap_or_default(),
                if t.watch { " watch" } else { "" }
            ),
            Path::Other(parts) => format!("other {}", parts.join(" ")),
        }
    }

    #[test]
    fn paths_are_understood() {
        for (path, expected) in [
            ("/api/v1/pods", "/v1 pods ns= name= sub="),
            ("/api/v1/namespaces", "/v1 namespaces ns= name= sub="),
            ("/api/v1/namespaces/a", "/v1 namespaces ns= name=a sub="),
            ("/api/v1/namespaces/a/finalize", "/v1 namespaces ns= name=a sub=finalize"),
            ("/api/v1/namespaces/a/pods/p/log", "/v1 pods ns=a name=p sub=log"),
            ("/apis/apps/v1/namespaces/a/deployments", "apps/v1 deployments ns=a name= sub="),
            ("/apis/apps/v1/watch/deployments", "apps/v1 deployments ns= name= sub= watch"),
            ("/api/v1/nodes/n/proxy/a/b", "/v1 nodes ns= name=n sub=proxy/a/b"),
            ("/apis/apps/v1", "other apis apps v1"),
            ("/healthz", "other healthz"),
        ] {
            assert_eq!(target(path), expected, "{path}");
        }
    }

    #[test]
    fn flags_are_read_as_the_api_reads_them() {
        let query = Query::parse(Some("a=true&b=0&c&d=False&e=x%3Dy"));
        assert_eq!(query.flag("a"), Some(true));
        assert_eq!(query.flag("b"), Some(false));
        assert_eq!(query.flag("c"), Some(false));
        assert_eq!(query.flag("d"), Some(false));
        assert_eq!(query.flag("f"), None);
        assert_eq!(query.get("e"), Some("x=y"));
    }
}
