use super::super::Steps;
use super::super::{
    Attributes, Equivalents, Gvk, Gvr, NoServices, Notes, Operation, Served, ServiceResolver, Webhooks,
};
use super::server::Server;
use super::{config_map, create_config_map};
use crate::status::ApiError;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn webhooks(resolver: impl ServiceResolver + 'static) -> Webhooks {
    let count = AtomicUsize::new(0);
    let new_uid = move || format!("uid-{}", count.fetch_add(1, Ordering::SeqCst));
    Webhooks::new(Arc::new(resolver), None, Arc::new(new_uid))
}

/// A webhook for everything at this `clientConfig`.
fn hook(name: &str, client_config: &Value) -> Value {
    json!({
        "name": name,
        "clientConfig": client_config,
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}],
        "namespaceSelector": {}, "objectSelector": {}, "admissionReviewVersions": ["v1"],
        "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 10, "matchPolicy": "Exact",
    })
}

fn with(mut hook: Value, field: &str, value: impl Into<Value>) -> Value {
    hook[field] = value.into();
    hook
}

fn configuration(name: &str, hooks: &[Value]) -> Value {
    json!({"metadata": {"name": name}, "webhooks": hooks})
}

#[expect(clippy::unnecessary_wraps, reason = "one of the checks that may refuse")]
fn accept(_: &mut Value) -> Result<(), ApiError> {
    Ok(())
}

/// The `data` of the `ConfigMap` after mutation by these webhooks.
async fn mutate(hooks: &[Value], attributes: &Attributes<'_>) -> Result<Value, ApiError> {
    let mut object = config_map();
    let configurations = [configuration("c", hooks)];
    let hooks = webhooks(NoServices);
    hooks
        .mutate(
            &configurations,
            attributes,
            Some(&mut object),
            None,
            Steps::new(&accept),
            &mut Notes::default(),
        )
        .await?;
    Ok(object["data"].take())
}

async fn validate(hooks: &[Value], attributes: &Attributes<'_>) -> (Result<(), ApiError>, Notes) {
    let mut notes = Notes::default();
    let configurations = [configuration("c", hooks)];
    let object = config_map();
    let outcome =
        webhooks(NoServices).validate(&configurations, attributes, Some(&object), None, &mut notes).await;
    (outcome, notes)
}

async fn refusal(hooks: &[Value]) -> String {
    validate(hooks, &create_config_map()).await.0.unwrap_err().message
}

#[tokio::test]
async fn patches_are_applied_one_after_the_other() {
    let server = Server::start(&["127.0.0.1"]).await;
    let hooks = [hook("a", &server.at("/add-b")), hook("b", &server.at("/count"))];
    assert_eq!(mutate(&hooks, &create_config_map()).await, Ok(json!({"a": "1", "b": "2", "seen": "2"})));
    let (path, review) = server.seen.lock().unwrap()[1].clone();
    assert_eq!(path, "/count?timeout=10s");
    assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(review["request"]["uid"], "uid-1");
    assert_eq!(review["request"]["object"]["data"], json!({"a": "1", "b": "2"}));
    assert_eq!(server.connections.load(Ordering::SeqCst), 1, "the connection is used again");
}

#[tokio::test]
async fn a_changed_object_is_completed_before_the_next_webhook() {
    let server = Server::start(&["127.0.0.1"]).await;
    let configurations =
        [configuration("c", &[hook("a", &server.at("/add-b")), hook("b", &server.at("/count"))])];
    let mut object = config_map();
    let default = |object: &mut Value| {
        object["data"]["default"] = "d".into();
        Ok(())
    };
    let hooks = webhooks(NoServices);
    let mut notes = Notes::default();
    hooks
        .mutate(
            &configurations,
            &create_config_map(),
            Some(&mut object),
            None,
            Steps::new(&default),
            &mut notes,
        )
        .await
        .unwrap();
    assert_eq!(object["data"]["seen"], "3");
    let refuse = |_: &mut Value| Err(ApiError::internal("no object"));
    let refused = hooks
        .mutate(
            &configurations,
            &create_config_map(),
            Some(&mut object),
            None,
            Steps::new(&refuse),
            &mut notes,
        )
        .await;
    assert_eq!(refused.unwrap_err().message, "Internal error occurred: no object");
}

#[tokio::test]
async fn who_asks_for_it_looks_again_after_a_later_change() {
    let server = Server::start(&["127.0.0.1"]).await;
    let again = |name, path| with(hook(name, &server.at(path)), "reinvocationPolicy", "IfNeeded");
    let never = |name, path| with(hook(name, &server.at(path)), "reinvocationPolicy", "Never");
    let paths = || {
        let mut seen = server.seen.lock().unwrap();
        seen.drain(..).map(|(path, _)| path.trim_end_matches("?timeout=10s").to_owned()).collect::<Vec<_>>()
    };
    mutate(&[again("a", "/count"), never("b", "/add-b")], &create_config_map()).await.unwrap();
    assert_eq!(paths(), ["/count", "/add-b", "/count"]);
    mutate(&[never("a", "/count"), never("b", "/add-b")], &create_config_map()).await.unwrap();
    assert_eq!(paths(), ["/count", "/add-b"], "not without asking");
    mutate(&[again("a", "/add-b"), again("b", "/warn")], &create_config_map()).await.unwrap();
    assert_eq!(paths(), ["/add-b", "/warn"], "not for a change of its own, nor without a change");
    // In the second round a change makes those look again that were unaware of it, but there is no third.
    mutate(&[again("a", "/count"), again("b", "/add-b")], &create_config_map()).await.unwrap();
    assert_eq!(paths(), ["/count", "/add-b", "/count", "/add-b"]);
}

#[tokio::test]
async fn a_refusal_is_told_with_warnings() {
    let server = Server::start(&["127.0.0.1"]).await;
    let (outcome, notes) = validate(&[hook("x", &server.at("/deny"))], &create_config_map()).await;
    let error = outcome.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (403, "admission webhook \"x\" denied the request: no"));
    assert_eq!(notes.warnings, ["careful"]);
    // The policy forgives failures, not refusals.
    let forgiving = with(hook("x", &server.at("/deny")), "failurePolicy", "Ignore");
    assert!(validate(&[forgiving], &create_config_map()).await.0.is_err());
}

#[tokio::test]
async fn all_validating_webhooks_are_asked_and_the_first_refusal_counts() {
    let server = Server::start(&["127.0.0.1"]).await;
    let hooks =
        [hook("w", &server.at("/warn")), hook("x", &server.at("/deny")), hook("y", &server.at("/broken"))];
    let (outcome, notes) = validate(&hooks, &create_config_map()).await;
    assert_eq!(outcome.unwrap_err().message, "admission webhook \"x\" denied the request: no");
    assert_eq!(notes.warnings, ["one", "two", "careful"]);
    assert_eq!(notes.annotations.get("w/k").map(String::as_str), Some("v"));
    assert_eq!(server.paths().len(), 3);
}

#[tokio::test]
async fn failures_are_worded_like_kubernetes_words_them() {
    let server = Server::start(&["127.0.0.1"]).await;
    let other = Server::start(&["wrong.example"]).await;
    let at = server.address;
    let prefix = "Internal error occurred: failed calling webhook \"x\": ";
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let cases = [
        (
            server.at("/broken"),
            "failed to call webhook: an error on the server (\"unknown\") has prevented the request from succeeding"
                .to_owned(),
        ),
        (
            server.at("/bad-uid"),
            "received invalid webhook response: expected response.uid=\"uid-0\", got \"x\"".to_owned(),
        ),
        (
            json!({"url": format!("https://{unused}")}),
            format!(
                "failed to call webhook: Post \"https://{unused}/?timeout=10s\": dial tcp {unused}: connect: \
                 connection refused"
            ),
        ),
        (
            json!({"url": format!("https://{at}/x"), "caBundle": other.ca_bundle}),
            format!(
                "failed to call webhook: Post \"https://{at}/x?timeout=10s\": tls: failed to verify certificate: \
                 x509: certificate signed by unknown authority"
            ),
        ),
        (
            other.at("/x"),
            format!(
                "failed to call webhook: Post \"https://{}/x?timeout=10s\": tls: failed to verify certificate: \
                 x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
                other.address
            ),
        ),
        (
            json!({"url": format!("https://{at}/x"), "caBundle": "aGk="}),
            "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"
                .to_owned(),
        ),
        (
            json!({"service": {"namespace": "n", "name": "s", "path": "/p"}}),
            "failed to call webhook: Post \"https://s.n.svc:443/p?timeout=10s\": service \"s\" not found".to_owned(),
        ),
        (
            server.at("/huge"),
            "failed to call webhook: unexpected error when reading response body. Please retry. Original error: \
             more than 16777216 bytes"
                .to_owned(),
        ),
    ];
    for (client_config, expected) in cases {
        assert_eq!(refusal(&[hook("x", &client_config)]).await, format!("{prefix}{expected}"));
        let forgiving = with(hook("x", &client_config), "failurePolicy", "Ignore");
        assert_eq!(validate(&[forgiving], &create_config_map()).await.0, Ok(()), "{client_config}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_recognised() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let message = refusal(&[hook("x", &json!({"url": format!("https://{address}/x")}))]).await;
    assert!(message.ends_with("tls: first record does not look like a TLS handshake"), "{message}");
}

#[tokio::test]
async fn a_slow_webhook_is_given_up_and_may_be_ignored() {
    let server = Server::start(&["127.0.0.1"]).await;
    let slow = with(hook("x", &server.at("/slow")), "timeoutSeconds", 1);
    let started = std::time::Instant::now();
    assert_eq!(
        refusal(std::slice::from_ref(&slow)).await,
        format!(
            "Internal error occurred: failed calling webhook \"x\": failed to call webhook: Post \
             \"https://{}/slow?timeout=1s\": context deadline exceeded",
            server.address
        )
    );
    let ignored = [with(slow, "failurePolicy", "Ignore"), hook("y", &server.at("/add-b"))];
    assert_eq!(mutate(&ignored, &create_config_map()).await, Ok(json!({"a": "1", "b": "2"})));
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_patch_that_does_not_fit_is_never_forgiven() {
    let server = Server::start(&["127.0.0.1"]).await;
    let hooks = [with(hook("x", &server.at("/misfit")), "failurePolicy", "Ignore")];
    let error = mutate(&hooks, &create_config_map()).await.unwrap_err();
    assert_eq!(
        error.message,
        "Internal error occurred: error in remove for path: '/data/zzz': Unable to remove nonexistent key: zzz: \
         missing value"
    );
}

#[tokio::test]
async fn a_deletion_can_be_refused_but_not_changed() {
    let server = Server::start(&["127.0.0.1"]).await;
    let attributes = Attributes { operation: Operation::Delete, ..create_config_map() };
    let configurations = [configuration("c", &[hook("x", &server.at("/add-b"))])];
    let (old, mut notes) = (config_map(), Notes::default());
    let hooks = webhooks(NoServices);
    let outcome =
        hooks.mutate(&configurations, &attributes, None, Some(&old), Steps::new(&accept), &mut notes).await;
    assert_eq!(
        outcome.unwrap_err().message,
        "Internal error occurred: admission webhook \"x\" attempted to modify the object, which is not supported \
         for this operation"
    );
    assert_eq!(server.seen.lock().unwrap()[0].1["request"]["oldObject"], old);
}

#[tokio::test]
async fn dry_runs_are_only_told_to_webhooks_without_side_effects() {
    let server = Server::start(&["127.0.0.1"]).await;
    let attributes = Attributes { dry_run: true, ..create_config_map() };
    for (side_effects, expected) in [
        (json!("None"), Ok(())),
        (json!("NoneOnDryRun"), Ok(())),
        (json!("Some"), Err((400, "admission webhook \"x\" does not support dry run"))),
        (json!("Unknown"), Err((400, "admission webhook \"x\" does not support dry run"))),
        (
            Value::Null,
            Err((500, "Internal error occurred: failed calling webhook \"x\": Webhook SideEffects is nil")),
        ),
    ] {
        let hooks = [with(hook("x", &server.at("/ok")), "sideEffects", side_effects)];
        let outcome = validate(&hooks, &attributes).await.0;
        let outcome = outcome.as_ref().copied().map_err(|error| (error.code, error.message.as_str()));
        assert_eq!(outcome, expected);
    }
    assert!(server.seen.lock().unwrap().iter().all(|(_, review)| review["request"]["dryRun"] == true));
    assert_eq!(server.paths().len(), 2);
}

#[tokio::test]
async fn services_are_resolved_and_must_prove_their_name() {
    struct At(SocketAddr);
    impl ServiceResolver for At {
        fn resolve(&self, namespace: &str, name: &str, port: u16) -> Option<SocketAddr> {
            (namespace == "n" && port == 443 && name != "gone").then_some(self.0)
        }
    }
    let server = Server::start(&["s.n.svc"]).await;
    let hooks = webhooks(At(server.address));
    let object = config_map();
    for (name, expected) in [
        ("s", Ok(())),
        ("t", Err("tls: failed to verify certificate: x509: certificate is valid for s.n.svc, not t.n.svc")),
        ("gone", Err("service \"gone\" not found")),
    ] {
        let service = json!({"service": {"namespace": "n", "name": name}, "caBundle": server.ca_bundle});
        let configurations = [configuration("c", &[hook("x", &service)])];
        let outcome = hooks
            .validate(&configurations, &create_config_map(), Some(&object), None, &mut Notes::default())
            .await;
        match (outcome, expected) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(end)) => assert!(error.message.ends_with(end), "{}", error.message),
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn an_equivalent_form_is_converted_for_the_webhook_and_back() {
    let server = Server::start(&["127.0.0.1"]).await;
    let resource = |version| Gvr { group: "g", version, resource: "things" };
    let kind = |version| Gvk { group: "g", version, kind: "Thing" };
    let forms = [Served { resource: resource("v2"), kind: kind("v2") }];
    let convert = |object: &Value, to: Gvk<'_>| {
        let mut converted = object.clone();
        converted["apiVersion"] = format!("{}/{}", to.group, to.version).into();
        Ok(converted)
    };
    let attributes = Attributes {
        kind: kind("v1"),
        resource: resource("v1"),
        equivalents: Equivalents { served: &forms, convert: &convert },
        ..create_config_map()
    };
    let rule =
        json!([{"operations": ["*"], "apiGroups": ["g"], "apiVersions": ["v2"], "resources": ["things"]}]);
    let hooks = [with(with(hook("x", &server.at("/add-b")), "rules", rule), "matchPolicy", "Equivalent")];
    let configurations = [configuration("c", &hooks)];
    let mut object = json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {}, "data": {}});
    webhooks(NoServices)
        .mutate(
            &configurations,
            &attributes,
            Some(&mut object),
            None,
            Steps::new(&accept),
            &mut Notes::default(),
        )
        .await
        .unwrap();
    assert_eq!(object, json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {}, "data": {"b": "2"}}));
    let review = server.seen.lock().unwrap()[0].1.clone();
    assert_eq!(review["request"]["object"]["apiVersion"], "g/v2");
    assert_eq!(review["request"]["kind"]["version"], "v2");
    assert_eq!(review["request"]["requestKind"]["version"], "v1");
    assert_eq!(review["request"]["requestResource"]["version"], "v1");
}

#[tokio::test]
async fn conditions_decide_after_rules() {
    let server = Server::start(&["127.0.0.1"]).await;
    let when = |expression: &str| {
        let conditions = json!([{"name": "c", "expression": expression}]);
        [with(hook("x", &server.at("/deny")), "matchConditions", conditions)]
    };
    assert_eq!(validate(&when("object.data.a == '2'"), &create_config_map()).await.0, Ok(()));
    assert!(validate(&when("object.data.a == '1'"), &create_config_map()).await.0.is_err());
    let error = validate(&when("object.data.zzz == '1'"), &create_config_map()).await.0.unwrap_err();
    assert_eq!(
        error.message,
        "configmaps \"a\" is forbidden: expression 'object.data.zzz == '1'' resulted in error: no such key: zzz"
    );
    let error = validate(&when("authorizer.path('/').check('get').allowed()"), &create_config_map()).await;
    assert_eq!(error.0.unwrap_err().code, 501);
}

#[tokio::test]
async fn an_old_review_is_spoken_to_who_asks_for_it() {
    let server = Server::start(&["127.0.0.1"]).await;
    let old = |versions: Value| with(hook("x", &server.at("/ok")), "admissionReviewVersions", versions);
    assert_eq!(validate(&[old(json!(["v1beta1"]))], &create_config_map()).await.0, Ok(()));
    assert_eq!(server.seen.lock().unwrap()[0].1["apiVersion"], "admission.k8s.io/v1beta1");
    assert_eq!(
        refusal(&[old(json!(["v2"]))]).await,
        "Internal error occurred: failed calling webhook \"x\": could not create admission objects: webhook does \
         not accept known AdmissionReview versions (v1, v1beta1)"
    );
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_replaced() {
    let first = Server::start(&["127.0.0.1"]).await;
    let hooks = webhooks(NoServices);
    let object = config_map();
    let ask = |config: Value| {
        let (hooks, object) = (&hooks, &object);
        async move {
            let configurations = [configuration("c", &[hook("x", &config)])];
            let mut notes = Notes::default();
            hooks.validate(&configurations, &create_config_map(), Some(object), None, &mut notes).await
        }
    };
    let config = first.at("/ok");
    assert_eq!(ask(config.clone()).await, Ok(()));
    drop(first);
    let gone = ask(config).await.unwrap_err().message;
    assert!(gone.ends_with("connection refused"), "{gone}");
}

#[tokio::test]
async fn configurations_of_admission_are_not_sent_anywhere() {
    let kind =
        Gvk { group: "admissionregistration.k8s.io", version: "v1", kind: "MutatingWebhookConfiguration" };
    let attributes = Attributes { kind, ..create_config_map() };
    let hooks = [hook("x", &json!({"url": "https://127.0.0.1:1"}))];
    assert_eq!(validate(&hooks, &attributes).await.0, Ok(()));
    assert!(mutate(&hooks, &attributes).await.is_ok());
}

#[test]
fn asking_can_move_between_threads() {
    fn check<T: Send>(_: T) {}
    let (hooks, mut notes, mut object) = (webhooks(NoServices), Notes::default(), config_map());
    let (configurations, attributes): ([Value; 0], _) = ([], create_config_map());
    check(hooks.mutate(
        &configurations,
        &attributes,
        Some(&mut object),
        None,
        Steps::new(&accept),
        &mut notes,
    ));
    check(hooks.validate(&configurations, &attributes, None, None, &mut notes));
}
