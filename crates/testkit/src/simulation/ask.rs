//! What a request is about, from its method and URL. Pure.

use http::request::Parts;
use http::{HeaderMap, Method, Uri};

use super::state::{Place, resource_of};

/// What a request counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It may change something.
    Write,
    /// It changes nothing.
    Read,
    /// It is about a lease or an event: nothing is decided by these, and renewals have no end.
    Aside,
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) verb: &'static str,
    /// Method, path and query.
    pub(super) text: String,
    pub(super) place: Place,
    /// The subresource.
    pub(super) part: String,
    pub(super) class: Class,
    /// It is a list that Kubernetes may answer from a cache that lags behind.
    pub(super) takes_old: bool,
}

/// Whether changes of this resource are of no account: leases are renewed for ever, events tell of other changes.
pub(super) fn is_aside(resource: &str) -> bool {
    matches!(resource, "leases.coordination.k8s.io" | "events" | "events.events.k8s.io")
}

impl Ask {
    pub(super) fn of(cluster: &str, head: &Parts) -> Self {
        Self::read(cluster, &head.method, &head.uri, &head.headers)
    }

    fn read(cluster: &str, method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let text = format!("{method} {uri}");
        let parts: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => ("", [].as_slice()),
        };
        let (namespace, plural, name, part) = match rest {
            // Parts of the namespace itself, and the namespace itself.
            ["namespaces", name, part @ ("status" | "finalize")] => ("", "namespaces", *name, *part),
            ["namespaces", namespace, plural, rest @ ..] => {
                let (name, part) = (rest.first().copied(), rest.get(1).copied());
                (*namespace, *plural, name.unwrap_or_default(), part.unwrap_or_default())
            }
            [plural, rest @ ..] => {
                let (name, part) = (rest.first().copied(), rest.get(1).copied());
                ("", *plural, name.unwrap_or_default(), part.unwrap_or_default())
            }
            [] => {
                let place = Place::new(uri.path(), "", "").in_cluster(cluster);
                return Self {
                    verb: "get",
                    text,
                    place,
                    part: String::new(),
                    class: Class::Read,
                    takes_old: false,
                };
            }
        };
        let option = |wanted: &str| {
            let query = uri.query().unwrap_or_default();
            query.split('&').find_map(|pair| pair.strip_prefix(wanted)?.strip_prefix('='))
        };
        let verb = match (method, name.is_empty()) {
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) if is_apply(headers) => "apply",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, false) => "delete",
            (&Method::DELETE, true) => "delete all",
            _ if matches!(option("watch"), Some("true" | "1")) => "watch",
            (_, false) => "get",
            (_, true) => "list",
        };
        let resource = resource_of(group, plural);
        let changes = !matches!(verb, "get" | "list" | "watch")
            && option("dryRun").is_none()
            && !plural.ends_with("reviews");
        let class = match () {
            () if is_aside(&resource) => Class::Aside,
            () if changes => Class::Write,
            () => Class::Read,
        };
        let takes_old = verb == "list"
            && option("resourceVersion") == Some("0")
            && option("resourceVersionMatch") != Some("Exact");
        let place = Place::new(&resource, namespace, name).in_cluster(cluster);
        Self { verb, text, place, part: part.to_owned(), class, takes_old }
    }
}

fn is_apply(headers: &HeaderMap) -> bool {
    let content_type = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|text| text.starts_with("application/apply-patch"))
}

/// The same list as of a revision.
pub(super) fn as_of(uri: &Uri, revision: u64) -> Option<Uri> {
    let kept = uri.query().unwrap_or_default().split('&');
    let kept = kept.filter(|pair| !pair.starts_with("resourceVersion") && !pair.starts_with("limit="));
    let mut query: Vec<String> = kept.filter(|pair| !pair.is_empty()).map(str::to_owned).collect();
    query.push(format!("resourceVersion={revision}"));
    query.push("resourceVersionMatch=Exact".to_owned());
    format!("{}?{}", uri.path(), query.join("&")).parse().ok()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(method: &Method, uri: &str, content_type: &str, expect: &Expect) {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, content_type.parse().unwrap());
        let ask = Ask::read("main", method, &uri.parse().unwrap(), &headers);
        let old = if ask.takes_old { ", may be old" } else { "" };
        expect.assert_eq(&format!("{} {} [{}] {:?}{old}", ask.verb, ask.place, ask.part, ask.class));
    }

    #[test]
    fn requests_are_told_apart() {
        let json = "application/json";
        check(
            &Method::PATCH,
            "/apis/apps/v1/namespaces/shop/deployments/web/status?fieldManager=x",
            "application/apply-patch+yaml",
            &expect!["apply deployments.apps shop/web [status] Write"],
        );
        check(&Method::POST, "/api/v1/namespaces/shop/pods", json, &expect!["create pods shop [] Write"]);
        check(&Method::DELETE, "/api/v1/namespaces/shop", json, &expect!["delete namespaces shop [] Write"]);
        check(
            &Method::PUT,
            "/api/v1/namespaces/shop/finalize",
            json,
            &expect!["update namespaces shop [finalize] Write"],
        );
        check(
            &Method::DELETE,
            "/api/v1/namespaces/shop/pods",
            json,
            &expect!["delete all pods shop [] Write"],
        );
        check(
            &Method::GET,
            "/api/v1/pods?watch=true&resourceVersion=7",
            json,
            &expect!["watch pods [] Read"],
        );
        check(
            &Method::GET,
            "/api/v1/pods?resourceVersion=0&limit=5",
            json,
            &expect!["list pods [] Read, may be old"],
        );
        check(&Method::GET, "/apis/apps/v1", json, &expect!["get /apis/apps/v1 [] Read"]);
        check(
            &Method::POST,
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            json,
            &expect!["create selfsubjectaccessreviews.authorization.k8s.io [] Read"],
        );
        check(
            &Method::PUT,
            "/apis/coordination.k8s.io/v1/namespaces/shop/leases/x",
            json,
            &expect!["update leases.coordination.k8s.io shop/x [] Aside"],
        );
    }

    #[test]
    fn an_old_list_is_asked_for_exactly() {
        let uri = "/api/v1/pods?limit=5&resourceVersion=0&labelSelector=a".parse().unwrap();
        let old = as_of(&uri, 12).unwrap().to_string();
        assert_eq!(old, "/api/v1/pods?labelSelector=a&resourceVersion=12&resourceVersionMatch=Exact");
    }
}
