//! Bodies that are small to send and large to read.

use super::{JSON, Limited, WIDES, YAML, wide};
use serde_json::json;

const APPLY: &str = "application/apply-patch+yaml";
const HEAD: &str = "apiVersion: limits.test/v1\nkind: Wide\nmetadata: {name: bomb}\n";

#[tokio::test(flavor = "multi_thread")]
async fn yaml_bombs_are_refused() {
    let mut server = Limited::start().await;
    let long = "x".repeat(1 << 20);
    let anchors = (0..100).map(|at| format!("&a{at} [")).collect::<Vec<_>>().concat();
    let many = vec!["{a: 1}"; 100_000].join(",");
    let (open, close) = ("[".repeat(100), "]".repeat(100));
    let chain = (1..2000)
        .map(|at| format!("  a{at}: &a{at} {open}*a{}{close}\n", at - 1))
        .collect::<Vec<_>>()
        .concat();
    let excessive = "yaml: document contains excessive aliasing";
    let bombs = [
        (format!("spec:\n  a: &a {long}\n  b: [{}]\n", vec!["*a"; 20_000].join(",")), excessive),
        (
            format!("spec:\n  a: &a {{x: {long}}}\n  b: {{<<: [{}]}}\n", vec!["*a"; 20_000].join(",")),
            excessive,
        ),
        (format!("spec:\n  a: {anchors}{many}{}\n", "]".repeat(100)), excessive),
        (format!("spec:\n  a0: &a0 []\n{chain}"), "yaml: exceeded max depth of 120"),
        (format!("spec: {}", "[".repeat(1 << 20)), "yaml: "),
        (format!("spec: {}", "{".repeat(1 << 20)), "yaml: "),
        (format!("spec:\n{}", "- ".repeat(1 << 20)), "yaml: "),
    ];
    for (body, why) in bombs {
        let body = format!("{HEAD}{body}");
        for (method, path, form) in
            [("POST", WIDES.to_owned(), YAML), ("PATCH", format!("{WIDES}/bomb?fieldManager=m"), APPLY)]
        {
            let (code, message) = server.refused(method, &path, form, body.clone()).await;
            assert!(code == 400 && message.contains(why), "{code} {message}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_do_not_repeat_what_is_long() {
    let mut server = Limited::start().await;
    let key = "k".repeat(1 << 20);
    // Each of them is below the long key.
    let unknown: serde_json::Map<_, _> = (0..100_000).map(|at| (format!("u{at}"), json!(1))).collect();
    let object = wide("u", json!({"maps": {key.as_str(): unknown}})).to_string();
    let path = format!("{WIDES}?fieldValidation=Strict");
    let (code, message) = server.refused("POST", &path, JSON, object).await;
    assert!(code == 400 && message.contains("strict decoding error"), "{code} {message}");

    for wrong in [
        json!(vec!["no"; 100_000]),
        json!(vec![1; 100_000]),
        json!((0..50_000).map(|at| at / 2).collect::<Vec<_>>()),
    ] {
        let object = wide("w", json!({"maps": {key.as_str(): {"colours": wrong}}})).to_string();
        let (code, message) = server.refused("POST", WIDES, JSON, object).await;
        assert_eq!(code, 422, "{message}");
    }

    let twice = (0..50_000).map(|at| format!(r#","u{at}":1,"u{at}":2"#)).collect::<Vec<_>>().concat();
    let mut body = wide("d", json!({})).to_string();
    body.truncate(body.len() - 1);
    let body = format!(r#"{body},"spec":{{"{key}":{{"z":1{twice}}}}}}}"#);
    let (code, message) = server.refused("POST", &path, JSON, body).await;
    assert!(code == 400 && message.contains("duplicate field"), "{code} {message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_urls_are_answered() {
    let mut server = Limited::start().await;
    let parameters = "p=&".repeat(10_000);
    assert_eq!(server.ask("GET", &format!("{WIDES}?{parameters}"), JSON, "").await.0, 200);
    let terms = vec!["a%3Db"; 5_000].join(",");
    assert_eq!(server.ask("GET", &format!("{WIDES}?labelSelector={terms}"), JSON, "").await.0, 200);
    let terms = vec!["metadata.name%3Db"; 2_500].join(",");
    assert_eq!(server.ask("GET", &format!("{WIDES}?fieldSelector={terms}"), JSON, "").await.0, 200);
    let terms = "(".repeat(30_000);
    assert_eq!(server.ask("GET", &format!("{WIDES}?labelSelector={terms}"), JSON, "").await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_do_not_repeat_what_is_long() {
    let mut server = Limited::start().await;
    let key = "k".repeat(300_000);
    let fields = |value: u32| -> serde_json::Map<String, serde_json::Value> {
        (0..20_000).map(|at| (format!("u{at}"), json!(value))).collect()
    };
    let object = |value: u32| wide("c", json!({"spec": {key.as_str(): fields(value)}})).to_string();
    let path = |manager: &str| format!("{WIDES}/c?fieldManager={manager}");
    assert_eq!(server.ask("PATCH", &path("a"), APPLY, object(1)).await.0, 201);
    let (code, message) = server.refused("PATCH", &path("b"), APPLY, object(2)).await;
    assert!(code == 409 && message.starts_with("Apply failed with 20000 conflicts"), "{code} {message}");
}

const TOO_LARGE: &str = "etcdserver: request is too large";

/// As many of these as a body can have.
fn list_of(item: &str) -> String {
    vec![item; (3 << 20) / (item.len() + 1) - 100].join(",")
}

#[tokio::test(flavor = "multi_thread")]
async fn built_in_objects_do_not_become_much_larger_than_they_are_sent() {
    let mut server = Limited::start().await;
    let policies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
    let bombs = [
        ("/api/v1/namespaces/default/pods", r#"{"containers":[LIST]}"#, "{}"),
        ("/api/v1/namespaces/default/pods", r#"{"containers":[LIST]}"#, "null"),
        ("/api/v1/namespaces/default/pods", r#"{"containers":[LIST]}"#, r#"{"livenessProbe":{}}"#),
        ("/api/v1/namespaces/default/pods", r#"{"containers":[{"ports":[LIST]}]}"#, "{}"),
        ("/apis/apps/v1/namespaces/default/statefulsets", r#"{"volumeClaimTemplates":[LIST]}"#, "{}"),
        (policies, r#"{"podSelector":{},"ingress":[{"ports":[LIST]}]}"#, "{}"),
        ("/api/v1/namespaces/default/services", r#"{"ports":[LIST]}"#, "{}"),
    ];
    for (path, spec, item) in bombs {
        let body = format!(r#"{{"metadata":{{"name":"bomb"}},"spec":{spec}}}"#);
        let body = body.replace("LIST", &list_of(item));
        let (code, message) = server.refused("POST", path, JSON, body).await;
        assert_eq!((code, message.as_str()), (500, TOO_LARGE), "{path} {spec} {item}");
    }
    // A patch and an apply grow in the same way.
    let small = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "small"},
        "spec": {"podSelector": {}, "ingress": [{"ports": "LIST"}]},
    });
    let small = small.to_string();
    let object = |item: &str| small.replace("\"LIST\"", &format!("[{item}]"));
    assert_eq!(server.ask("POST", policies, JSON, object("{}")).await.0, 201);
    let path = format!("{policies}/small?fieldManager=m&force=true");
    for form in ["application/merge-patch+json", "application/strategic-merge-patch+json", APPLY] {
        let path = if form == APPLY { &path } else { path.split('?').next().unwrap_or_default() };
        let (code, message) = server.refused("PATCH", path, form, object(&list_of("{}"))).await;
        assert_eq!((code, message.as_str()), (500, TOO_LARGE), "{form}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn protobuf_of_tiny_messages_is_refused() {
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            out.push(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
            length >>= 7;
        }
        out.push(u8::try_from(length).unwrap_or_default());
        out.extend_from_slice(content);
        out
    }
    let mut server = Limited::start().await;
    for container in [&[][..], b"\x0a\x00"] {
        let container = field(2, container);
        let containers = container.repeat((3 << 20) / container.len() - 100);
        let pod = field(2, &containers);
        let mut body = b"k8s\0".to_vec();
        body.extend(field(1, &[field(1, b"v1"), field(2, b"Pod")].concat()));
        body.extend(field(2, &pod));
        let form = "application/vnd.kubernetes.protobuf";
        let (code, message) = server.refused("POST", "/api/v1/namespaces/default/pods", form, body).await;
        assert!(code == 400 && message.contains("too many values"), "{code} {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_tiny_values_is_read_or_refused() {
    let mut server = Limited::start().await;
    for tiny in [r#"{"":0}"#, "{}", "[[]]", "0", r#""""#] {
        let body = wide("tiny", json!({"spec": {"a": "LIST"}})).to_string();
        let list = list_of(tiny);
        let (code, answer) =
            server.ask("POST", WIDES, JSON, body.replace("\"LIST\"", &format!("[{list}]"))).await;
        assert_eq!((code, &answer["message"]), (500, &json!(TOO_LARGE)), "{tiny}");
    }
}
