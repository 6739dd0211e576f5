use super::*;
use serde_json::{Value, json};

fn sources() -> Sources {
    let config: ConfigMap = serde_json::from_value(json!({
        "data": {"app.conf": "colour=blue", "b": "B"}, "binaryData": {"raw": "AAEC"},
    }))
    .unwrap();
    let secret: Secret = serde_json::from_value(json!({"data": {"password": "aHVudGVyMg=="}})).unwrap();
    Sources {
        config_maps: [("settings".to_owned(), Some(config))].into(),
        secrets: [("keys".to_owned(), Some(secret))].into(),
    }
}

fn files(volume: Value) -> Result<Vec<String>, String> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]},
    }))
    .unwrap();
    let mut fields = json!({"name": "v"});
    fields.as_object_mut().unwrap().extend(volume.as_object().unwrap().clone());
    let volume: Volume = serde_json::from_value(fields).unwrap();
    let allocatable = BTreeMap::new();
    let downward = Downward { pod: &pod, address: "127.4.5.6", host: "127.0.0.1", allocatable: &allocatable };
    Ok(match content(&pod, &volume, &sources(), &downward)? {
        Content::Scratch => vec!["scratch".into()],
        Content::Claim(name) => vec![format!("claim {name}")],
        Content::Files(files) => files
            .iter()
            .map(|(path, file)| {
                format!("{path} {:o} {}", file.mode, String::from_utf8_lossy(&file.data).escape_debug())
            })
            .collect(),
    })
}

fn check(volume: Value, expected: &[&str]) {
    assert_eq!(files(volume).unwrap(), expected);
}

fn fails(volume: Value, expected: &str) {
    let expected = format!("MountVolume.SetUp failed for volume \"v\" : {expected}");
    assert_eq!(files(volume).unwrap_err(), expected);
}

#[test]
fn keys_of_a_config_map_are_files() {
    check(
        json!({"configMap": {"name": "settings"}}),
        &["app.conf 644 colour=blue", "b 644 B", "raw 644 \\0\\u{1}\\u{2}"],
    );
}

#[test]
fn items_pick_keys_and_give_paths_and_modes() {
    let items =
        json!([{"key": "b", "path": "deep/er/b", "mode": 0o755}, {"key": "app.conf", "path": "conf"}]);
    check(
        json!({"configMap": {"name": "settings", "defaultMode": 0o600, "items": items}}),
        &["conf 600 colour=blue", "deep/er/b 755 B"],
    );
}

#[test]
fn keys_of_a_secret_are_files() {
    check(json!({"secret": {"secretName": "keys", "defaultMode": 0o400}}), &["password 400 hunter2"]);
}

#[test]
fn absent_sources_and_keys_are_named() {
    let item = json!([{"key": "x", "path": "x"}]);
    fails(json!({"configMap": {"name": "absent"}}), "configmap \"absent\" not found");
    fails(json!({"secret": {"secretName": "absent"}}), "secret \"absent\" not found");
    fails(
        json!({"configMap": {"name": "settings", "items": item}}),
        "configmap references non-existent config key: x",
    );
    fails(json!({"secret": {"secretName": "keys", "items": item}}), "references non-existent secret key: x");
}

#[test]
fn optional_sources_and_keys_may_be_absent() {
    let item = json!([{"key": "x", "path": "x"}]);
    check(json!({"configMap": {"name": "absent", "optional": true}}), &[]);
    check(json!({"configMap": {"name": "settings", "optional": true, "items": item}}), &[]);
    check(json!({"secret": {"secretName": "absent", "optional": true}}), &[]);
}

#[test]
fn files_tell_of_the_pod() {
    let items = json!([
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}, "mode": 0o444},
    ]);
    check(json!({"downwardAPI": {"items": items}}), &["cpu 444 2", "labels 644 app=\\\"web\\\""]);
}

#[test]
fn projected_sources_share_a_volume_and_tokens_are_left_out() {
    let sources = json!([
        {"configMap": {"name": "settings", "items": [{"key": "b", "path": "b"}]}},
        {"secret": {"name": "keys"}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]);
    check(json!({"projected": {"sources": sources}}), &["b 644 B", "name 644 web-0", "password 644 hunter2"]);
    let token =
        json!([{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "kube-root-ca.crt"}}]);
    check(json!({"projected": {"sources": token}}), &[]);
    let absent = json!([{"configMap": {"name": "absent"}}]);
    fails(json!({"projected": {"sources": absent}}), "configmap \"absent\" not found");
}

#[test]
fn directories_are_scratch_or_claims() {
    check(json!({"emptyDir": {}}), &["scratch"]);
    check(json!({"persistentVolumeClaim": {"claimName": "data-web-0"}}), &["claim data-web-0"]);
    check(json!({"ephemeral": {}}), &["claim web-0-v"]);
}

#[test]
fn references_are_those_of_volumes_and_variables() {
    let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": {
        "volumes": [
            {"name": "a", "configMap": {"name": "c1"}},
            {"name": "b", "projected": {"sources": [{"secret": {"name": "s1"}}, {"downwardAPI": {}}]}},
        ],
        "containers": [{"name": "main",
            "envFrom": [{"secretRef": {"name": "s2"}}],
            "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c2", "key": "k"}}}],
        }],
    }}))
    .unwrap();
    let container = pod.spec.as_ref().unwrap().containers[0].clone();
    let of_volumes = References::of_volumes(&pod);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!((&of_volumes.config_maps, &of_volumes.secrets), (&names(&["c1"]), &names(&["s1"])));
    assert!(of_volumes.downward);
    let all = of_volumes.with_variables(&container);
    assert_eq!((all.config_maps, all.secrets), (names(&["c1", "c2"]), names(&["s1", "s2"])));
}
