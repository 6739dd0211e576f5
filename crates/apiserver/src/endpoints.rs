//! What is served beside resources: health, version, discovery, `OpenAPI`.

use crate::body::Body;
use crate::builtin::tables;
use crate::discovery::{self, Catalog};
use crate::health;
use crate::kind::{Kind, Nature};
use crate::negotiate;
use crate::openapi;
use crate::registry::Registry;
use crate::request::Target;
use crate::respond::{Reply, order};
use crate::schema::{self, PublishedKind};
use crate::server::Server;
use crate::status::ApiError;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The Kubernetes release whose behaviour this server has.
pub const KUBERNETES_VERSION: &str = "v1.36.3";

/// Resources of that release that are not served here, by group.
const ABSENT: &[(&str, &[&str])] = &[
    ("", &["replicationcontrollers", "limitranges", "resourcequotas", "componentstatuses"]),
    ("apiregistration.k8s.io", &["apiservices"]),
    ("autoscaling/v1", &["horizontalpodautoscalers"]),
    ("certificates.k8s.io", &["certificatesigningrequests"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("node.k8s.io", &["runtimeclasses"]),
    ("networking.k8s.io", &["ipaddresses", "servicecidrs"]),
    ("resource.k8s.io", &["deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"]),
    (
        "storage.k8s.io",
        &["csidrivers", "csinodes", "csistoragecapacities", "volumeattachments", "volumeattributesclasses"],
    ),
    (
        "admissionregistration.k8s.io",
        &[
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ],
    ),
];

/// The refusal to write a resource that Kubernetes has and this server has not. Whoever looks for it, or wants it gone, is
/// answered as about any resource that is not there.
pub(crate) fn known_but_absent(target: &Target, method: &Method) -> Option<ApiError> {
    if matches!(*method, Method::GET | Method::HEAD | Method::DELETE) {
        return None;
    }
    let exact = format!("{}/{}", target.group, target.version);
    let known = ABSENT.iter().any(|(group, plurals)| {
        (*group == target.group || *group == exact) && plurals.contains(&target.resource.as_str())
    });
    known.then(|| {
        let group = if target.group.is_empty() { String::new() } else { format!(".{}", target.group) };
        ApiError::not_implemented(&format!("{}{group} {}", target.resource, target.version))
    })
}

/// Whether a group is one of Kubernetes' own, served or not. Requests for others are for a page that nobody knows.
pub(crate) fn is_known_group(group: &str) -> bool {
    Registry::has_builtin_group(group) || ABSENT.iter().any(|(absent, _)| *absent == group)
}

/// Answers a request for anything but a resource.
pub(crate) fn answer(
    server: &Server,
    parts: &[String],
    request: &Request<Bytes>,
) -> Result<Response<Body>, ApiError> {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let reading = matches!(*request.method(), Method::GET | Method::HEAD);
    let reply = match parts.as_slice() {
        [endpoint @ ("healthz" | "livez" | "readyz"), rest @ ..] if reading => {
            health::answer(server, endpoint, rest, request.uri().query())
        }
        ["version"] if reading => Reply::json(200, &version()),
        ["metrics", ..] => return Err(ApiError::not_implemented("metrics of the API server")),
        ["openapi", "v2"] if reading => openapi_v2(request),
        ["openapi", "v3", rest @ ..] if reading => return Ok(openapi(server, rest, request)),
        [] | ["api" | "apis", ..] if reading => return discovery(server, &parts, request),
        ["healthz" | "livez" | "readyz" | "version" | "api" | "apis" | "openapi", ..] | [] if !reading => {
            return Err(crate::service::method_not_allowed());
        }
        _ => not_found(),
    };
    Ok(reply.into_response())
}

/// The answer to a path of which nothing is known.
pub(crate) fn not_found() -> Reply {
    Reply::plain(404, "404 page not found\n")
}

fn version() -> Value {
    let number = KUBERNETES_VERSION.trim_start_matches('v');
    let mut numbers = number.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    json!({
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": "35",
        "gitVersion": format!("{KUBERNETES_VERSION}+mainstay"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// What discovery says of the served kinds.
pub(crate) fn resources(server: &Server) -> Vec<discovery::Resource> {
    server.registry.all().iter().map(|kind| resource(kind)).collect()
}

fn resource(kind: &Kind) -> discovery::Resource {
    let text = |text: &str| Cow::Owned::<'static, str>(text.to_owned());
    let texts = |all: &[String]| all.iter().map(|t| text(t)).collect::<Vec<_>>();
    let (storage_version_hash, definition, custom) = match &kind.nature {
        Nature::Builtin(builtin) => {
            let hash = (!builtin.storage_hash.is_empty()).then_some(Cow::Borrowed(builtin.storage_hash));
            let definition = tables::definition_of(&kind.group, &kind.version, &kind.kind);
            (hash, text(definition.map_or("", |d| &d.name)), false)
        }
        Nature::Custom(custom) => {
            let hash = discovery::storage_version_hash(&kind.group, &custom.storage_version, &kind.kind);
            (Some(Cow::Owned(hash)), Cow::Owned(schema::model_name(&published(kind), &kind.kind)), true)
        }
    };
    let verbs = if kind.custom().is_some_and(|custom| custom.terminating) {
        discovery::TERMINATING_VERBS.iter().map(|verb| Cow::Borrowed(*verb)).collect()
    } else {
        texts(&kind.verbs)
    };
    let subresources = kind.subresources.iter().map(|part| {
        let foreign = part.group != kind.group || part.version != kind.version;
        let builtin = tables::definition_of(&part.group, &part.version, &part.kind);
        discovery::Subresource {
            name: text(&part.name),
            kind: text(&part.kind),
            group_version: foreign.then(|| (text(&part.group), text(&part.version))),
            verbs: texts(&part.verbs),
            definition: builtin.map(|d| text(&d.name)),
        }
    });
    discovery::Resource {
        group: text(&kind.group),
        version: text(&kind.version),
        plural: text(&kind.plural),
        singular: text(&kind.singular),
        kind: text(&kind.kind),
        namespaced: kind.namespaced,
        verbs,
        short_names: texts(&kind.short_names),
        categories: texts(&kind.categories),
        subresources: subresources.collect(),
        storage_version_hash,
        definition,
        custom,
    }
}

fn discovery(server: &Server, parts: &[&str], request: &Request<Bytes>) -> Result<Response<Body>, ApiError> {
    let resources = resources(server);
    let catalog = Catalog::new(&resources);
    let aggregated = negotiate::aggregated_discovery(request.headers());
    let document = match (parts, aggregated) {
        (["api"], Some(version)) => return Ok(aggregated_document(&catalog, true, version, request)),
        (["apis"], Some(version)) => return Ok(aggregated_document(&catalog, false, version, request)),
        ([], _) => Some(paths(&catalog)),
        (["api"], None) => Some(catalog.api_versions(&authority(request))),
        (["apis"], None) => Some(catalog.group_list()),
        (["api", version], _) => catalog.resource_list("", version),
        (["apis", group], _) => catalog.group(group),
        (["apis", group, version], _) => catalog.resource_list(group, version),
        _ => None,
    };
    let reply = match (document, parts) {
        (Some(document), _) => Reply::json(200, &document),
        // A group that is not served is nobody's; one that is answers for its versions.
        (None, ["apis", group, ..]) if catalog.group(group).is_none() && !is_known_group(group) => {
            not_found()
        }
        (None, _) => return Err(ApiError::no_such_resource()),
    };
    Ok(reply.into_response())
}

fn authority(request: &Request<Bytes>) -> String {
    let host = request.headers().get(header::HOST).and_then(|h| h.to_str().ok());
    host.or_else(|| request.uri().authority().map(http::uri::Authority::as_str))
        .unwrap_or("localhost")
        .to_owned()
}

fn aggregated_document(
    catalog: &Catalog<'_>,
    core: bool,
    version: &str,
    request: &Request<Bytes>,
) -> Response<Body> {
    let mut document = catalog.aggregated(core);
    document["apiVersion"] = format!("apidiscovery.k8s.io/{version}").into();
    let text = order::text(&document);
    let content_type = format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
    Tagged::new(text.into()).answer(&content_type, request)
}

/// A document with its tag.
#[derive(Clone)]
struct Tagged {
    text: Bytes,
    tag: String,
}

impl Tagged {
    fn new(text: Bytes) -> Self {
        Tagged { tag: discovery::etag(&text), text }
    }

    /// The document; only its tag if the client has it already.
    fn answer(self, content_type: &str, request: &Request<Bytes>) -> Response<Body> {
        let known = request.headers().get(header::IF_NONE_MATCH);
        let known = known.is_some_and(|known| known.as_bytes() == self.tag.as_bytes());
        let mut response = if known {
            let mut response = Response::new(Body::whole(Bytes::new()));
            *response.status_mut() = http::StatusCode::NOT_MODIFIED;
            response
        } else {
            Reply::text(200, self.text).into_response()
        };
        let headers = response.headers_mut();
        if let Ok(value) = content_type.parse() {
            headers.insert(header::CONTENT_TYPE, value);
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        if let Ok(value) = self.tag.parse() {
            headers.insert(header::ETAG, value);
        }
        response
    }
}

/// How many documents a process keeps.
const DOCUMENTS_MAX: usize = 128;

/// A document, made once for all servers of the process that have the same. `hash` tells apart those of one path.
fn known_document(path: String, hash: String, make: impl FnOnce() -> Tagged) -> Tagged {
    static KNOWN: Mutex<BTreeMap<(String, String), Tagged>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (path, hash);
    if let Some(document) = known().get(&key) {
        return document.clone();
    }
    let document = make();
    let mut known = known();
    // Definitions that change all the time leave documents behind that nobody asks for again.
    if known.len() >= DOCUMENTS_MAX {
        known.clear();
    }
    known.entry(key).or_insert(document).clone()
}

/// `/`: what there is to ask for.
fn paths(catalog: &Catalog<'_>) -> Value {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            .map(str::to_owned)
            .into();
    for (group, version, _) in catalog.group_versions() {
        if group.is_empty() {
            paths.push(format!("/api/{version}"));
        } else {
            paths.push(format!("/apis/{group}"));
            paths.push(format!("/apis/{group}/{version}"));
        }
    }
    paths.sort();
    paths.dedup();
    json!({"paths": paths})
}

fn openapi_v2(request: &Request<Bytes>) -> Reply {
    let accept = request.headers().get(header::ACCEPT).and_then(|h| h.to_str().ok()).unwrap_or_default();
    if openapi::v2::wants_protobuf(accept) {
        let message: Bytes = openapi::v2::document_protobuf(KUBERNETES_VERSION).into();
        return Reply::new(200, Body::whole(message), openapi::v2::PROTOBUF);
    }
    Reply::json(200, &openapi::v2::document(KUBERNETES_VERSION))
}

/// `/openapi/v3`: the index, or the document of one group and version.
fn openapi(server: &Server, parts: &[&str], request: &Request<Bytes>) -> Response<Body> {
    let kinds = server.registry.all();
    let resources: Vec<discovery::Resource> = kinds.iter().map(|kind| resource(kind)).collect();
    let catalog = Catalog::new(&resources);
    let revision = |resource: &discovery::Resource| {
        let custom = kinds.iter().find(|kind| {
            kind.group == resource.group && kind.version == resource.version && kind.plural == resource.plural
        });
        let custom = custom.and_then(|kind| Some((&kind.list_kind, kind.custom()?)));
        custom.map_or_else(String::new, |(list_kind, custom)| {
            format!("{}\n{list_kind}\n{:?}", custom.open_api, custom.selectable)
        })
    };
    let wanted = match parts {
        [] => {
            let documents = catalog.group_versions().map(|(group, version, resources)| {
                (group, version, openapi::document_hash(resources, revision))
            });
            let index = openapi::index(documents).to_string();
            return Reply::new(200, Body::whole(index), "text/plain; charset=utf-8").into_response();
        }
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return not_found().into_response(),
    };
    let found = catalog.group_versions().find(|(group, version, _)| (*group, *version) == wanted);
    let Some((group, version, resources)) = found else {
        let mut response = Response::new(Body::whole(Bytes::new()));
        *response.status_mut() = http::StatusCode::NOT_FOUND;
        return response;
    };
    let make = || {
        let document = openapi::document(group, version, resources, |name| definition(&kinds, name));
        Tagged::new(document.to_string().into())
    };
    let is_custom = resources.iter().any(|resource| resource.custom);
    let hash = if is_custom { openapi::document_hash(resources, revision) } else { String::new() };
    let document = known_document(openapi::document_path(group, version), hash, make);
    let mut response = document.answer("application/json", request);
    if request.uri().query().is_some_and(|query| query.contains("hash=")) {
        let immutable = HeaderValue::from_static("public, immutable");
        response.headers_mut().insert(header::CACHE_CONTROL, immutable);
    }
    response
}

/// A schema by its name: a built-in one, or one of a custom kind or its list.
fn definition(kinds: &[Arc<Kind>], name: &str) -> Option<Value> {
    if let Some(found) = tables::definition(name) {
        return serde_json::from_str(tables::openapi(found)).ok();
    }
    kinds.iter().find_map(|kind| {
        let custom = kind.custom()?;
        let selectable: Vec<&str> = custom.selectable.iter().map(String::as_str).collect();
        let published = PublishedKind { selectable_fields: &selectable, ..published(kind) };
        let own = [&kind.kind, &kind.list_kind].iter().any(|of| schema::model_name(&published, of) == name);
        own.then(|| schema::publish(Some(&custom.open_api), &published).remove(name)).flatten()
    })
}

fn published(kind: &Kind) -> PublishedKind<'_> {
    PublishedKind {
        group: &kind.group,
        version: &kind.version,
        kind: &kind.kind,
        list_kind: &kind.list_kind,
        selectable_fields: &[],
    }
}
