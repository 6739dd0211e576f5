//! Requests that make no sense.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use std::fmt::Write as _;

use crate::properties::answer::Sent;
use crate::properties::world::{GADGETS, json_trees};

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT"];

const SEGMENTS: &[&str] = &[
    "api",
    "apis",
    "v1",
    "v2",
    "apps",
    "batch",
    "example.com",
    "apiextensions.k8s.io",
    "namespaces",
    "n1",
    "pods",
    "configmaps",
    "secrets",
    "services",
    "nodes",
    "deployments",
    "gadgets",
    "customresourcedefinitions",
    "gadgets.example.com",
    "a",
    "status",
    "scale",
    "log",
    "exec",
    "binding",
    "eviction",
    "token",
    "proxy",
    "finalize",
    "approval",
    "watch",
    "openapi",
    "v3",
    "version",
    "healthz",
    "readyz",
    "selfsubjectaccessreviews",
    "authorization.k8s.io",
    "kube-root-ca.crt",
    "-",
    "%2F",
    "%00",
    "%C3%BC",
    "..",
    ".",
    "%",
    "*",
    "",
];

const CONTENT_TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "application/cbor",
    "application/apply-patch+cbor",
    "text/plain",
    "application/json; charset=utf-8",
    ";;;",
    "",
];

const ACCEPTS: &[&str] = &[
    "application/json",
    "*/*",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/html",
    "",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1",
    "application/json;as=Nonsense;g=x;v=y",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
    "q=;,/",
    "application/json;q=0.1,*/*;q=2",
];

const QUERIES: &[&str] = &[
    "watch=true",
    "watch=maybe",
    "limit=1",
    "limit=-1",
    "limit=x",
    "continue=abc",
    "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJ4In0",
    "resourceVersion=0",
    "resourceVersion=1",
    "resourceVersion=x",
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=NotOlderThan",
    "resourceVersionMatch=Nonsense",
    "labelSelector=app",
    "labelSelector=app+in+(",
    "labelSelector=%00",
    "fieldSelector=metadata.name%3Da",
    "fieldSelector=spec.nodeName%21%3Da%2Cstatus.phase%3Db",
    "fieldSelector=%3D",
    "timeoutSeconds=0",
    "timeoutSeconds=-5",
    "timeoutSeconds=x",
    "sendInitialEvents=true",
    "allowWatchBookmarks=true",
    "dryRun=All",
    "dryRun=Some",
    "fieldManager=m",
    "fieldManager=%00",
    "force=true",
    "fieldValidation=Strict",
    "fieldValidation=Warn",
    "fieldValidation=Nonsense",
    "propagationPolicy=Orphan",
    "gracePeriodSeconds=0",
    "orphanDependents=true",
    "pretty=true",
    "includeObject=Object",
    "includeObject=None",
    "=",
    "&",
    "%",
    "a=b=c",
    "timeout=1s",
];

/// Parameters that are numbers.
const NUMBERS: &[&str] = &["timeoutSeconds", "limit", "gracePeriodSeconds", "resourceVersion", "timeout"];

/// The ends of what numbers can be, and what is past them.
const ENDS: &[&str] = &[
    "-9223372036854775809",
    "-9223372036854775808",
    "-2147483649",
    "-2147483648",
    "-1",
    "0",
    "1",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e300",
    "9223372036854775807s",
    "2562047h47m16.854775807s",
];

fn paths() -> impl Strategy<Value = String> {
    let made_up = vec(select(SEGMENTS), 0..8).prop_map(|segments| format!("/{}", segments.join("/")));
    let near = select(
        &[
            "/api/v1/namespaces/n1/configmaps",
            "/api/v1/namespaces/n1/pods/a",
            "/api/v1/namespaces/n1/pods/a/status",
            "/api/v1/namespaces/n1/pods/a/eviction",
            "/api/v1/namespaces/n1/services/a",
            "/api/v1/namespaces/n1/secrets",
            "/api/v1/nodes",
            "/api/v1/namespaces",
            "/apis/apps/v1/namespaces/n1/deployments/a/scale",
            "/apis/batch/v1/namespaces/n1/jobs",
            "/apis/batch/v1/namespaces/n1/cronjobs",
            "/apis/example.com/v1/namespaces/n1/gadgets",
            "/apis/example.com/v1/namespaces/n1/gadgets/a",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            "/apis/networking.k8s.io/v1/namespaces/n1/ingresses",
            "/apis/autoscaling/v2/namespaces/n1/horizontalpodautoscalers",
            "/apis/policy/v1/namespaces/n1/poddisruptionbudgets",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "/apis/storage.k8s.io/v1/storageclasses",
            "/apis/discovery.k8s.io/v1/namespaces/n1/endpointslices",
            "/apis/events.k8s.io/v1/namespaces/n1/events",
            "/api/v1/persistentvolumes",
            "/openapi/v3/apis/apps/v1",
            "/openapi/v2",
        ][..],
    );
    prop_oneof![1 => made_up, 2 => near.prop_map(str::to_owned)]
}

fn varint(mut number: usize, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    to.push(u8::try_from(number).unwrap_or_default());
}

/// A field of bytes.
fn field(number: u8, content: &[u8], to: &mut Vec<u8>) {
    to.push(number << 3 | 2);
    varint(content.len(), to);
    to.extend_from_slice(content);
}

/// An envelope as protobuf bodies have it, around anything.
fn protobuf(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut meta = Vec::new();
    field(1, api_version.as_bytes(), &mut meta);
    field(2, kind.as_bytes(), &mut meta);
    let mut body = b"k8s\0".to_vec();
    field(1, &meta, &mut body);
    field(2, raw, &mut body);
    body
}

fn kinds() -> impl Strategy<Value = (&'static str, &'static str)> {
    select(
        &[
            ("v1", "ConfigMap"),
            ("v1", "Pod"),
            ("v1", "Secret"),
            ("v1", "Service"),
            ("v1", "Node"),
            ("v1", "Namespace"),
            ("v1", "PersistentVolume"),
            ("apps/v1", "Deployment"),
            ("autoscaling/v1", "Scale"),
            ("batch/v1", "Job"),
            ("batch/v1", "CronJob"),
            ("example.com/v1", "Gadget"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
            ("networking.k8s.io/v1", "Ingress"),
            ("autoscaling/v2", "HorizontalPodAutoscaler"),
            ("policy/v1", "PodDisruptionBudget"),
            ("policy/v1", "Eviction"),
            ("rbac.authorization.k8s.io/v1", "ClusterRole"),
            ("storage.k8s.io/v1", "StorageClass"),
            ("discovery.k8s.io/v1", "EndpointSlice"),
            ("events.k8s.io/v1", "Event"),
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
            ("v1", "List"),
            ("", ""),
        ][..],
    )
}

fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let object = (kinds(), json_trees(), json_trees()).prop_map(|((api_version, kind), spec, metadata)| {
        let metadata = if metadata.is_object() { metadata } else { json!({"name": "a"}) };
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
            .to_string()
            .into_bytes()
    });
    let named = (kinds(), json_trees()).prop_map(|((api_version, kind), rest)| {
        let mut tree = if rest.is_object() { rest } else { json!({"spec": rest}) };
        tree["apiVersion"] = api_version.into();
        tree["kind"] = kind.into();
        tree["metadata"] = json!({"name": "a"});
        tree.to_string().into_bytes()
    });
    let cut = (json_trees(), any::<prop::sample::Index>()).prop_map(|(tree, at)| {
        let text = tree.to_string().into_bytes();
        text[..at.index(text.len() + 1)].to_vec()
    });
    let yaml = select(
        &[
            "a: [",
            "&a [*a, *b]",
            "---\n---\n",
            "%YAML 9\n---",
            "? - a\n: b",
            "a: !!binary x",
            "<<: {a: b}",
            "- a\n b",
            "\t",
            "a: |\n  b\n c",
            "{a: 0x10, b: 0o17, c: .nan}",
            "kind: ConfigMap\nkind: Pod",
        ][..],
    );
    let wire =
        (kinds(), vec(any::<u8>(), 0..60)).prop_map(|((version, kind), raw)| protobuf(version, kind, &raw));
    // Fields of the right wire type, one inside another.
    let nested = (kinds(), vec(1u8..16, 1..12)).prop_map(|((version, kind), numbers)| {
        let mut raw = Vec::new();
        for number in numbers {
            let inner = std::mem::take(&mut raw);
            field(number, &inner, &mut raw);
        }
        protobuf(version, kind, &raw)
    });
    prop_oneof![
        3 => object,
        3 => named,
        1 => json_trees().prop_map(|tree| tree.to_string().into_bytes()),
        1 => cut,
        1 => vec(any::<u8>(), 0..40),
        1 => yaml.prop_map(|text| text.as_bytes().to_vec()),
        1 => wire,
        1 => nested,
        1 => Just(Vec::new()),
    ]
}

pub(crate) fn requests() -> impl Strategy<Value = Sent> {
    let extreme = (select(NUMBERS), select(ENDS)).prop_map(|(name, number)| format!("{name}={number}"));
    let part = prop_oneof![4 => select(QUERIES).prop_map(str::to_owned), 1 => extreme];
    let query = vec(part, 0..4).prop_map(|parts| parts.join("&"));
    (select(METHODS), paths(), query, select(CONTENT_TYPES), select(ACCEPTS), bodies()).prop_map(
        |(method, path, query, content_type, accept, body)| {
            let target = if query.is_empty() { path } else { format!("{path}?{query}") };
            let mut sent = Sent::new(method, &target, content_type, body);
            sent.accept = accept.into();
            sent
        },
    )
}

/// Small to send, large to take in.
pub(crate) fn bombs() -> Vec<Sent> {
    const DEPTH: usize = 200_000;
    let maps = "/api/v1/namespaces/n1/configmaps";
    let gadgets = GADGETS.collection("n1");
    let deep_json = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let deep_objects = format!("{}1{}", r#"{"a":"#.repeat(DEPTH), "}".repeat(DEPTH));
    let mut laughs = "a0: &a0 [lol, lol]\n".to_owned();
    for level in 1..40 {
        let _ = writeln!(laughs, "a{level}: &a{level} [*a{0}, *a{0}, *a{0}, *a{0}]", level - 1);
    }
    let mut schema = Vec::new();
    for _ in 0..10_000 {
        let inner = std::mem::take(&mut schema);
        // The field `not` of a schema is a schema.
        field(26, &inner[..inner.len().min(60_000)], &mut schema);
    }
    vec![
        Sent::new("POST", maps, "application/json", deep_json.clone()),
        Sent::new("POST", maps, "application/json", deep_objects.clone()),
        Sent::new("POST", &gadgets, "application/json", deep_objects.clone()),
        Sent::new("POST", maps, "application/yaml", deep_json.clone()),
        Sent::new("POST", maps, "application/yaml", "- ".repeat(DEPTH)),
        Sent::new("POST", &gadgets, "application/yaml", laughs.clone()),
        Sent::new("PATCH", &format!("{maps}/a?fieldManager=m"), "application/apply-patch+yaml", laughs),
        Sent::new("PATCH", &format!("{maps}/kube-root-ca.crt"), "application/merge-patch+json", deep_objects),
        Sent::new("PATCH", &format!("{maps}/kube-root-ca.crt"), "application/json-patch+json", deep_json),
        Sent::new(
            "POST",
            maps,
            "application/vnd.kubernetes.protobuf",
            protobuf("v1", "ConfigMap", &[0x0a; 3000]),
        ),
        Sent::new(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "application/vnd.kubernetes.protobuf",
            protobuf("apiextensions.k8s.io/v1", "CustomResourceDefinition", &schema),
        ),
        Sent::get(&format!("{maps}?labelSelector={}", "a%2C".repeat(10_000) + "%28")),
        Sent::get(&format!("{maps}?fieldSelector={}", "metadata.name%3Da%2C".repeat(3_000) + "x%3Dy")),
    ]
}
