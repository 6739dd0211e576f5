//! What changes a hash, and what does not.

use k8s_openapi::ByteString;

use super::*;
use crate::config::StreamClassConfig;
use crate::kinds::StreamingJobTemplateSpec;

#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn spec_hash(spec: Value) -> String {
    let class = StreamClassConfig { secret_refs: vec!["login".into()], ..StreamClassConfig::default() };
    let stream = json!({"metadata": {"name": "eu", "namespace": "shop", "uid": "u1"}, "spec": spec});
    let stream = Stream::new(&stream, &class);
    of_spec(&stream, &stream.secrets().unwrap())
}

fn secret(uid: &str, data: &[(&str, &str)]) -> Secret {
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
    let mut secret = Secret { data: Some(data.collect()), ..Secret::default() };
    secret.metadata.uid = Some(uid.to_owned());
    secret
}

#[test]
fn the_order_of_fields_says_nothing() {
    let one: Value = serde_json::from_str(r#"{"b": [{"d": 1, "c": 2}], "a": 3}"#).unwrap();
    assert_eq!(canonical(&one), r#"{"a":3,"b":[{"c":2,"d":1}]}"#);
}

#[test]
fn every_field_of_a_spec_and_the_names_of_secrets_count() {
    let base = json!({"jobTemplateRef": "fast", "login": "a", "rows": 5});
    let hash = spec_hash(base.clone());
    assert_eq!(hash.len(), 16);
    for (field, value) in [
        ("rows", json!(6)),
        ("login", json!("b")),
        ("jobTemplateRef", json!("slow")),
        ("backfillJobTemplateRef", json!("slow")),
        ("schedule", json!("@daily")),
    ] {
        let mut other = base.clone();
        other[field] = value;
        assert_ne!(spec_hash(other), hash, "{field}");
    }
    let mut same = base;
    same["login"] = json!({"name": "a"});
    assert_eq!(spec_hash(same), hash, "the same Secret in other words");
}

#[test]
fn a_template_counts_by_its_spec_alone() {
    let template = |image: &str| {
        let template = json!({"spec": {"template": {"spec": {"containers": [{"image": image}]}}}});
        let template = template.as_object().unwrap().clone();
        StreamingJobTemplate::new("fast", StreamingJobTemplateSpec { template })
    };
    let mut labelled = template("work:1");
    labelled.metadata.labels = Some([("of".to_owned(), "us".to_owned())].into());
    assert_eq!(of_template(&labelled), of_template(&template("work:1")));
    assert_ne!(of_template(&labelled), of_template(&template("work:2")));
}

#[test]
fn equal_secrets_look_different_and_a_label_on_one_says_nothing() {
    let of = |stream: &str, secret: &Secret| of_secrets(stream, &[Some(secret.clone())], None);
    let one = secret("s1", &[("password", "x")]);
    let hash = of("u1", &one);
    assert_ne!(of("u2", &one), hash, "for another stream");
    assert_ne!(of("u1", &secret("s2", &[("password", "x")])), hash, "another Secret");
    let mut labelled = one;
    labelled.metadata.resource_version = Some("9".into());
    labelled.metadata.labels = Some([("of".to_owned(), "us".to_owned())].into());
    assert_eq!(of("u1", &labelled), hash);
}

#[test]
fn a_byte_that_moves_to_the_next_field_is_noticed() {
    let hash = |data: &[(&str, &str)]| of_secrets("u1", &[Some(secret("s1", data))], None);
    assert_ne!(hash(&[("ab", "c")]), hash(&[("a", "bc")]));
    assert_ne!(hash(&[("a", "b"), ("c", "d")]), hash(&[("a", "bc"), ("", "d")]));
}

#[test]
fn what_was_said_before_counts_only_for_secrets_that_are_gone() {
    assert_eq!(of_secrets("u1", &[], Some("x")), "");
    assert_eq!(of_secrets("u1", &[None, None], Some("x.y")), "x.y");
    assert_eq!(of_secrets("u1", &[None, None], Some("x")), "missing.missing");
    let there = Some(secret("s1", &[]));
    let found = of_secrets("u1", std::slice::from_ref(&there), None);
    assert_eq!(of_secrets("u1", &[there, None], Some("x.y")), format!("{found}.y"));
}
