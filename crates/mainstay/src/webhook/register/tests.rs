use expect_test::expect;
use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::webhook::Operation;

fn webhooks() -> Webhooks {
    let kind = Kind::new("example.com/v1", "WebApp", "webapps", Scope::Namespaced);
    Webhooks::new("op")
        .with(Hook::validate_json(kind.clone(), |_| Ok(())).also_on_subresource("status"))
        .with(Hook::validate::<ConfigMap>(|_| Ok(())).on([Operation::Delete]).named("keep"))
        .with(Hook::mutate_json(kind.clone(), |_, _| Ok(())).asked_again())
        .convert(kind, |object, _| Ok(object))
}

fn service() -> Reach {
    Reach::Service { namespace: "shop".into(), name: "hooks".into(), port: 443 }
}

fn find<'a>(all: &'a [Registration], kind: &str) -> &'a Registration {
    all.iter().find(|registration| registration.kind.kind() == kind).unwrap()
}

#[test]
fn rules_come_from_the_hooks() {
    let all = plan_registrations(&webhooks(), &service(), Some("CA"));
    let validating = find(&all, "ValidatingWebhookConfiguration").wanted.as_ref().unwrap();
    expect![[r#"
        {
          "admissionReviewVersions": [
            "v1"
          ],
          "clientConfig": {
            "caBundle": "Q0E=",
            "service": {
              "name": "hooks",
              "namespace": "shop",
              "path": "/validate/webapps.example.com",
              "port": 443
            }
          },
          "failurePolicy": "Fail",
          "matchPolicy": "Equivalent",
          "name": "validate.webapps.example.com",
          "namespaceSelector": {},
          "objectSelector": {},
          "rules": [
            {
              "apiGroups": [
                "example.com"
              ],
              "apiVersions": [
                "v1"
              ],
              "operations": [
                "CREATE",
                "UPDATE"
              ],
              "resources": [
                "webapps",
                "webapps/status"
              ],
              "scope": "Namespaced"
            }
          ],
          "sideEffects": "None",
          "timeoutSeconds": 10
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&validating["webhooks"][0]).unwrap());
    let keep = &validating["webhooks"][1];
    assert_eq!(keep["name"], "keep.validate.configmaps.core");
    assert_eq!(keep["clientConfig"]["service"]["path"], "/validate/configmaps/keep");
    assert_eq!(keep["rules"][0]["operations"], json!(["DELETE"]));
    let mutating = find(&all, "MutatingWebhookConfiguration").wanted.as_ref().unwrap();
    assert_eq!(mutating["webhooks"][0]["reinvocationPolicy"], "IfNeeded");
}

#[test]
fn conversion_names_only_what_it_sets() {
    let reach = Reach::Url("https://127.0.0.1:9443".into());
    let all = plan_registrations(&webhooks(), &reach, None);
    let definition = find(&all, "CustomResourceDefinition");
    assert_eq!(definition.name, "webapps.example.com");
    assert_eq!(
        definition.wanted.as_ref().unwrap()["spec"],
        json!({"conversion": {"strategy": "Webhook", "webhook": {
            "clientConfig": {"url": "https://127.0.0.1:9443/convert/webapps.example.com"},
            "conversionReviewVersions": ["v1"],
        }}})
    );
    assert_eq!(plan_change(definition, None), Change::Wait);
}

#[test]
fn what_is_there_already_is_not_written() {
    let all = plan_registrations(&webhooks(), &service(), Some("CA"));
    let validating = find(&all, "ValidatingWebhookConfiguration");
    assert_eq!(plan_change(validating, None), Change::Apply);
    let mut live = validating.wanted.clone().unwrap();
    live["metadata"]["uid"] = json!("1");
    live["webhooks"][0]["somethingNew"] = json!("default");
    assert_eq!(plan_change(validating, Some(&live)), Change::Nothing);
    let rotated = plan_registrations(&webhooks(), &service(), Some("CA2"));
    let rotated = find(&rotated, "ValidatingWebhookConfiguration");
    assert_eq!(plan_change(rotated, Some(&live)), Change::Apply);
    live["webhooks"].as_array_mut().unwrap().pop();
    assert_eq!(plan_change(validating, Some(&live)), Change::Apply);
}

#[test]
fn a_configuration_without_hooks_is_removed_if_it_is_ours() {
    let all = plan_registrations(&Webhooks::new("op"), &service(), None);
    let validating = find(&all, "ValidatingWebhookConfiguration");
    assert_eq!(plan_change(validating, None), Change::Nothing);
    assert_eq!(plan_change(validating, Some(&json!({"metadata": {}}))), Change::Nothing);
    let ours = json!({"metadata": {"annotations": {APPLIED: "x"}}});
    assert_eq!(plan_change(validating, Some(&ours)), Change::Delete);
}

#[test]
fn trust_means_that_every_webhook_has_the_authority() {
    let all = plan_registrations(&webhooks(), &service(), Some("ONE\nTWO\n"));
    for registration in &all {
        let live = registration.wanted.as_ref().unwrap();
        assert!(trusts(live, "TWO\n"));
        assert!(!trusts(live, "THREE\n"));
    }
    assert!(!trusts(&json!({"webhooks": [{"clientConfig": {}}]}), "ONE"));
}

#[test]
fn certificates_are_for_the_names_that_callers_use() {
    assert_eq!(service().names(), ["hooks.shop", "hooks.shop.svc", "hooks.shop.svc.cluster.local"]);
    let names = |url: &str| Reach::Url(url.into()).names();
    assert_eq!(names("https://127.0.0.1:8443"), ["127.0.0.1"]);
    assert_eq!(names("https://[::1]:8443/base"), ["::1"]);
    assert_eq!(names("https://hooks.example.com"), ["hooks.example.com"]);
}
