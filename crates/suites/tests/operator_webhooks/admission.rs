//! What handlers say reaches clients.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use mainstay::webhook::{AdmissionRequest, Denied, Hook, Operation, Serving, Webhooks};
use mainstay::{Kind, Scope};
use mainstay_testkit::{Cluster, eventually, for_each_cluster};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::operator_webhooks::{Running, clear, delete, dry_run, here, in_force, map, maps, refusal};

/// Refuses some values, and says so in every way there is.
fn check(request: &AdmissionRequest<ConfigMap>) -> Result<(), Denied> {
    let value = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("key").cloned());
    let new = value(request.object()).unwrap_or_default();
    match new.as_str() {
        "probe" => Err("this is a probe".into()),
        "bad" => Err(Denied::invalid("data.key", "must not be bad").and("data", "is not good")),
        "panic" => panic!("asked to"),
        "warn" => {
            request.warn("this value is old-fashioned");
            Ok(())
        }
        _ => match request.old().and_then(value) {
            Some(old) if old == "fixed" => Err(Denied::new(format!("{old} stays, not {new}")).code(409)),
            _ => Ok(()),
        },
    }
}

fn webhooks(cluster: &Cluster) -> Webhooks {
    let guard = Hook::validate::<ConfigMap>(|request| {
        assert_eq!(request.operation(), Operation::Delete);
        match request.name() {
            "kept" => Err("is to be kept".into()),
            _ => Ok(()),
        }
    });
    let label =
        Hook::mutate_async(|request: Arc<AdmissionRequest<ConfigMap>>, mut map: ConfigMap| async move {
            tokio::task::yield_now().await;
            let by = request.user().username.clone().is_some_and(|name| !name.is_empty());
            map.metadata.labels.get_or_insert_default().insert("by-somebody".into(), by.to_string());
            if let Some(data) = &mut map.data {
                data.retain(|key, _| key != "secret");
            }
            Ok(map)
        });
    Webhooks::new(cluster.namespace())
        .with(here(cluster, Hook::validate(check)))
        .with(here(cluster, guard).on([Operation::Delete]).named("guard"))
        .with(here(cluster, label))
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_validate_and_mutate() {
    for_each_cluster(async |cluster| {
        let mut running = Running::start(&cluster, webhooks(&cluster), Serving::on_loopback()).await;
        running.ready().await;
        in_force(&cluster).await;
        denials_are_told(&cluster).await;
        changes_are_stored(&cluster).await;
        deletions_are_guarded(&cluster).await;
        running.end().await;
        clear(&cluster).await;
    })
    .await;
}

async fn denials_are_told(cluster: &Cluster) {
    let api = maps(cluster);
    let create = async |value: &str| api.create(&PostParams::default(), &map("a", value)).await;
    let (code, reason, message) = refusal(create("bad").await);
    assert_eq!((code, reason.as_str()), (422, "Invalid"));
    let name = "validate.configmaps.core";
    assert_eq!(
        message,
        format!(
            "admission webhook \"{name}\" denied the request: data.key: must not be bad, data: is not good"
        )
    );
    let Err(kube::Error::Api(status)) = create("bad").await else { panic!("not refused") };
    let details = status.details.unwrap();
    assert_eq!(details.causes[0].field, "data.key");
    assert_eq!(details.causes[1].message, "is not good");
    let (code, _, message) = refusal(create("panic").await);
    assert_eq!(code, 500);
    assert!(message.contains("the webhook's handler panicked"), "{message}");
    // Others are not harmed by it.
    create("fixed").await.unwrap();
    let patch = Patch::Merge(json!({"data": {"key": "other"}}));
    let (code, reason, message) = refusal(api.patch("a", &PatchParams::default(), &patch).await);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.ends_with("fixed stays, not other"), "{message}");
    warnings_are_shown(cluster).await;
}

async fn warnings_are_shown(cluster: &Cluster) {
    let request = http::Request::post(format!("/api/v1/namespaces/{}/configmaps", cluster.namespace()))
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&map("warned", "warn")).unwrap().into())
        .unwrap();
    let response = cluster.client().send(request).await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["warning"], "299 - \"this value is old-fashioned\"");
}

async fn changes_are_stored(cluster: &Cluster) {
    let api = maps(cluster);
    let mut with_secret = map("b", "1");
    with_secret.data.as_mut().unwrap().insert("secret".into(), "x".into());
    let created = api.create(&PostParams::default(), &with_secret).await.unwrap();
    assert_eq!(created.metadata.labels, Some([("by-somebody".into(), "true".into())].into()));
    assert_eq!(created.data, map("b", "1").data);
    assert_eq!(api.get("b").await.unwrap(), created);
    delete(cluster, "b").await;
}

async fn deletions_are_guarded(cluster: &Cluster) {
    let api = maps(cluster);
    api.create(&PostParams::default(), &map("kept", "1")).await.unwrap();
    let (_, _, message) = refusal(api.delete("kept", &kube::api::DeleteParams::default()).await);
    assert_eq!(
        message,
        "admission webhook \"guard.validate.configmaps.core\" denied the request: is to be kept"
    );
}

/// A part of a config map, with a type of its own that not every map fits.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Strict {
    data: StrictData,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StrictData {
    key: Colour,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Red,
    Green,
}

/// As a derived kind has it.
impl kube::Resource for Strict {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        "ConfigMap".into()
    }

    fn group((): &()) -> std::borrow::Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        "configmaps".into()
    }

    fn meta(&self) -> &kube::api::ObjectMeta {
        unreachable!("no handler of this test asks")
    }

    fn meta_mut(&mut self) -> &mut kube::api::ObjectMeta {
        unreachable!("no handler of this test asks")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_does_not_fit_the_type_is_refused_with_the_field() {
    for_each_cluster(async |cluster| {
        let strict = Hook::validate::<Strict>(|_| Ok(()));
        let webhooks = Webhooks::new(cluster.namespace()).with(here(&cluster, strict));
        let mut running = Running::start(&cluster, webhooks, Serving::on_loopback()).await;
        running.ready().await;
        in_force(&cluster).await;
        let (code, _, message) = refusal(maps(&cluster).create(&dry_run(), &map("a", "blue")).await);
        assert_eq!(code, 422);
        assert!(
            message.ends_with("data.key: unknown variant `blue`, expected `red` or `green`"),
            "{message}"
        );
        maps(&cluster).create(&dry_run(), &map("a", "red")).await.unwrap();
        running.end().await;
        clear(&cluster).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_change_keeps_fields_that_the_type_does_not_know() {
    for_each_cluster(async |cluster| {
        let kind = Kind::new("v1", "ConfigMap", "configmaps", Scope::Namespaced);
        let green = Hook::mutate::<Strict>(|_, map| {
            map.data.key = Colour::Green;
            Ok(())
        });
        let probe = Hook::validate_json(kind, |request| match request.name() {
            "probe" => Err("this is a probe".into()),
            _ => Ok(()),
        });
        let webhooks =
            Webhooks::new(cluster.namespace()).with(here(&cluster, green)).with(here(&cluster, probe));
        let mut running = Running::start(&cluster, webhooks, Serving::on_loopback()).await;
        running.ready().await;
        let changed = eventually("the webhooks are in force", async || {
            let mut sent = map("a", "red");
            sent.data.as_mut().unwrap().insert("other".into(), "kept".into());
            sent.immutable = Some(true);
            let made = maps(&cluster).create(&dry_run(), &sent).await.unwrap();
            (made.data.as_ref().unwrap()["key"] == "green").then_some(made)
        })
        .await;
        assert_eq!(changed.data.unwrap()["other"], "kept");
        assert_eq!(changed.immutable, Some(true));
        running.end().await;
        clear(&cluster).await;
    })
    .await;
}
