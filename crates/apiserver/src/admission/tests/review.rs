use super::super::endpoint::Endpoint;
use super::super::reply::Reply;
use super::super::review::{Mode, ReviewVersion, read_verdict, refusal, render_review};
use super::super::{Attributes, Gvk, Operation, Served};
use super::{config_map, create_config_map};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn review(attributes: &Attributes<'_>, object: Option<&Value>, old: Option<&Value>) -> String {
    let form = Served { resource: attributes.resource, kind: attributes.kind };
    let bytes = render_review(ReviewVersion::V1, "u", attributes, form, object, old).unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn creation_is_reviewed_as_kubernetes_does() {
    expect![[r#"
        {
          "apiVersion": "admission.k8s.io/v1",
          "kind": "AdmissionReview",
          "request": {
            "dryRun": false,
            "kind": {
              "group": "",
              "kind": "ConfigMap",
              "version": "v1"
            },
            "name": "a",
            "namespace": "test",
            "object": {
              "apiVersion": "v1",
              "data": {
                "a": "1"
              },
              "kind": "ConfigMap",
              "metadata": {
                "name": "a",
                "namespace": "test"
              }
            },
            "oldObject": null,
            "operation": "CREATE",
            "options": {
              "apiVersion": "meta.k8s.io/v1",
              "kind": "CreateOptions"
            },
            "requestKind": {
              "group": "",
              "kind": "ConfigMap",
              "version": "v1"
            },
            "requestResource": {
              "group": "",
              "resource": "configmaps",
              "version": "v1"
            },
            "resource": {
              "group": "",
              "resource": "configmaps",
              "version": "v1"
            },
            "uid": "u",
            "userInfo": {
              "groups": [
                "system:masters",
                "system:authenticated"
              ],
              "username": "admin"
            }
          }
        }"#]]
    .assert_eq(&review(&create_config_map(), Some(&config_map()), None));
}

#[test]
fn subresource_and_old_object_are_told_and_empty_names_left_out() {
    let attributes = Attributes {
        operation: Operation::Delete,
        kind: Gvk { group: "autoscaling", version: "v1", kind: "Scale" },
        subresource: "scale",
        name: "",
        dry_run: true,
        ..create_config_map()
    };
    let value: Value = serde_json::from_str(&review(&attributes, None, Some(&json!({})))).unwrap();
    let request = &value["request"];
    assert_eq!(request["subResource"], "scale");
    assert_eq!(request["requestSubResource"], "scale");
    assert_eq!(request["kind"]["kind"], "Scale");
    assert_eq!(request["resource"]["resource"], "configmaps");
    assert_eq!((&request["object"], &request["oldObject"]), (&Value::Null, &json!({})));
    assert_eq!((&request["operation"], &request["dryRun"]), (&json!("DELETE"), &json!(true)));
    assert!(request.get("name").is_none());
}

#[test]
fn the_first_known_review_version_is_spoken() {
    assert_eq!(ReviewVersion::first_known(["v2", "v1beta1", "v1"].into_iter()), Some(ReviewVersion::V1Beta1));
    assert_eq!(ReviewVersion::first_known(["v2"].into_iter()), None);
}

/// How an answer with this response reads.
fn verdict(mode: Mode, response: &Value) -> String {
    let review =
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
    let review = review.as_object().unwrap();
    match read_verdict(review, ReviewVersion::V1, "u", mode) {
        Ok(verdict) => format!("{} {} bytes", verdict.allowed, verdict.patch.len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn answers_are_read_strictly() {
    use Mode::{Mutating, Validating};
    let patch = "W10=";
    let check = |mode, response: Value, expected: Expect| expected.assert_eq(&verdict(mode, &response));
    check(Validating, json!({"uid": "u", "allowed": true}), expect!["true 0 bytes"]);
    check(Validating, json!({"uid": "u"}), expect!["false 0 bytes"]);
    check(
        Validating,
        json!({"uid": "x", "allowed": true}),
        expect![[r#"received invalid webhook response: expected response.uid="u", got "x""#]],
    );
    check(Validating, json!(null), expect!["received invalid webhook response: webhook response was absent"]);
    check(
        Validating,
        json!({"uid": "u", "allowed": "yes"}),
        expect![
            "failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool"
        ],
    );
    check(
        Validating,
        json!("yes"),
        expect![
            "failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionReview.response of type v1.AdmissionResponse"
        ],
    );
    check(
        Validating,
        json!({"uid": "u", "patch": patch}),
        expect!["received invalid webhook response: validating webhook may not return response.patch"],
    );
    check(
        Validating,
        json!({"uid": "u", "patchType": "JSONPatch"}),
        expect!["received invalid webhook response: validating webhook may not return response.patchType"],
    );
    check(
        Mutating,
        json!({"uid": "u", "patch": patch}),
        expect![
            "received invalid webhook response: webhook returned response.patch but not response.patchType"
        ],
    );
    check(
        Mutating,
        json!({"uid": "u", "patchType": "JSONPatch"}),
        expect![
            "received invalid webhook response: webhook returned response.patchType but not response.patch"
        ],
    );
    check(
        Mutating,
        json!({"uid": "u", "patch": patch, "patchType": ""}),
        expect![[r#"received invalid webhook response: webhook returned invalid response.patchType of """#]],
    );
    check(
        Mutating,
        json!({"uid": "u", "patch": "%%%", "patchType": "JSONPatch"}),
        expect!["failed to call webhook: illegal base64 data at input byte 0"],
    );
    check(
        Mutating,
        json!({"uid": "u", "allowed": true, "patch": patch, "patchType": "JSONPatch"}),
        expect!["true 2 bytes"],
    );
}

#[test]
fn an_old_review_is_read_leniently() {
    let review = json!({"response": {"allowed": true, "patch": "W10="}});
    let review = review.as_object().unwrap();
    let verdict = read_verdict(review, ReviewVersion::V1Beta1, "u", Mode::Mutating).unwrap();
    assert_eq!((verdict.patch.as_slice(), verdict.patch_type.as_deref()), (&b"[]"[..], Some("JSONPatch")));
}

fn reply(code: u16, content_type: &str, body: &str) -> Reply {
    let content_type = (!content_type.is_empty()).then(|| content_type.to_owned());
    Reply { code, content_type, body: body.to_owned().into() }
}

#[test]
fn responses_without_a_review_are_explained() {
    let check = |code, content_type, body: &str, expected: Expect| {
        let read = reply(code, content_type, body).read_review(ReviewVersion::V1);
        expected.assert_eq(&read.map_or_else(|why| why, |_| "a review".to_owned()));
    };
    check(
        200,
        "text/plain",
        r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}"#,
        expect!["a review"],
    );
    check(200, "", "{}", expect!["a review"]);
    check(200, "", "", expect!["0-length response with status code: 200 and content type: application/json"]);
    check(
        200,
        "text/html",
        "<html>",
        expect![[
            r#"couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#
        ]],
    );
    check(
        200,
        "",
        r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}"#,
        expect!["converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"],
    );
    check(
        200,
        "",
        r#"{"kind":"Status","apiVersion":"v1"}"#,
        expect!["converting (v1.Status) to (v1.AdmissionReview): unknown conversion"],
    );
    check(
        200,
        "",
        r#"{"kind":"Foo","apiVersion":"admission.k8s.io/v1"}"#,
        expect![[
            r#"no kind "Foo" is registered for version "admission.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111""#
        ]],
    );
    check(404, "text/plain", "nf", expect!["the server could not find the requested resource"]);
    check(403, "text/plain", "go away\n", expect!["go away"]);
    check(
        500,
        "text/plain",
        "boom",
        expect![[r#"an error on the server ("boom") has prevented the request from succeeding"#]],
    );
    check(
        500,
        "application/json",
        r#"{"a":1}"#,
        expect![[r#"an error on the server ("unknown") has prevented the request from succeeding"#]],
    );
    check(
        500,
        "application/json",
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"custom msg"}"#,
        expect!["custom msg"],
    );
    check(
        302,
        "",
        "",
        expect!["the server responded with the status code 302 but did not return more information"],
    );
}

#[test]
fn a_review_must_say_what_it_is() {
    let review = json!({"response": {"uid": "u", "allowed": true}});
    let error =
        read_verdict(review.as_object().unwrap(), ReviewVersion::V1, "u", Mode::Validating).unwrap_err();
    assert_eq!(
        error.to_string(),
        "received invalid webhook response: expected webhook response of admission.k8s.io/v1, \
         Kind=AdmissionReview, got /, Kind="
    );
}

#[test]
fn refusals_carry_the_webhooks_status() {
    let check = |status: Value, expected: Expect| {
        let refusal = refusal("x", status.as_object());
        expected.assert_eq(&serde_json::to_string(&refusal.to_status()).unwrap());
    };
    check(
        Value::Null,
        expect![[
            r#"{"apiVersion":"v1","code":400,"kind":"Status","message":"admission webhook \"x\" denied the request without explanation","metadata":{},"status":"Failure"}"#
        ]],
    );
    check(
        json!({"message": "nope", "code": 403, "reason": "Forbidden"}),
        expect![[
            r#"{"apiVersion":"v1","code":403,"kind":"Status","message":"admission webhook \"x\" denied the request: nope","metadata":{},"reason":"Forbidden","status":"Failure"}"#
        ]],
    );
    check(
        json!({"reason": "because of x", "code": 200, "status": "Success"}),
        expect![[
            r#"{"apiVersion":"v1","code":400,"kind":"Status","message":"admission webhook \"x\" denied the request: because of x","metadata":{},"reason":"because of x","status":"Failure"}"#
        ]],
    );
    check(
        json!({"message": "m", "code": 418, "reason": "Odd", "details": {"name": "a", "odd": 1,
            "causes": [{"field": "x", "message": "y", "reason": "z", "odd": 1}]}}),
        expect![[
            r#"{"apiVersion":"v1","code":418,"details":{"causes":[{"field":"x","message":"y","reason":"z"}],"name":"a"},"kind":"Status","message":"admission webhook \"x\" denied the request: m","metadata":{},"reason":"Odd","status":"Failure"}"#
        ]],
    );
}

#[test]
fn endpoints_are_read_like_urls_in_go() {
    let check = |config: Value, expected: &str| {
        let shown = match Endpoint::of(&config) {
            Ok(endpoint) => {
                format!("https://{}{} as {}", endpoint.authority, endpoint.path, endpoint.server_name)
            }
            Err(why) => why,
        };
        assert_eq!(shown, expected);
    };
    check(json!({"url": "https://127.0.0.1:1"}), "https://127.0.0.1:1/ as 127.0.0.1");
    check(json!({"url": "https://LOCALHOST/x/"}), "https://LOCALHOST/x as LOCALHOST");
    check(json!({"url": "https://[::1]:1//a//b"}), "https://[::1]:1/a/b as ::1");
    check(json!({"url": "https://h/a/../b%2Fc"}), "https://h/b/c as h");
    check(json!({"url": "https://h/x y/%20"}), "https://h/x%20y/%20 as h");
    check(
        json!({"url": "https://h/a+b:c@d;e=f,g&h$i~j_k-l.m(n)!*é"}),
        "https://h/a+b:c@d;e=f,g&h$i~j_k-l.m%28n%29%21%2A%C3%A9 as h",
    );
    check(json!({"service": {"namespace": "n", "name": "s"}}), "https://s.n.svc:443/ as s.n.svc");
    check(
        json!({"service": {"namespace": "n", "name": "s", "path": "/a/b", "port": 8443}}),
        "https://s.n.svc:8443/a/b as s.n.svc",
    );
    check(json!({}), "webhook configuration must have either service or URL");
    check(
        json!({"url": "http://h"}),
        "'https' is the only allowed URL scheme; desired format: https://host[/path]",
    );
}
