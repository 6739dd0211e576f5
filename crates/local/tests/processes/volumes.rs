//! Volumes as processes see them.

use serde_json::json;

use crate::processes::world::World;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn volumes_are_found_below_the_root() {
    let world = World::new().await;
    world.create(MAPS, json!({"metadata": {"name": "settings"}, "data": {"a": "1", "b": "2"}})).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    world.create(secrets, json!({"metadata": {"name": "keys"}, "stringData": {"password": "hunter2"}})).await;
    let script = "cd $MAINSTAY_ROOT; cat etc/app/a conf/b keys/password about/labels; echo; stat -L -c %a keys/password; \
                  echo x > scratch/x; cat scratch/x; pwd -P | grep -c roots/main";
    let container = json!({
        "args": [script], "workingDir": "/scratch",
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app"},
            {"name": "config", "mountPath": "/conf/b", "subPath": "b"},
            {"name": "keys", "mountPath": "/keys"},
            {"name": "about", "mountPath": "/about"},
            {"name": "scratch", "mountPath": "/scratch"},
        ],
    });
    let volumes = json!([
        {"name": "config", "configMap": {"name": "settings"}},
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o400}},
        {"name": "about", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "scratch", "emptyDir": {}},
    ]);
    let pod = world.pod("web", container, json!({"volumes": volumes})).await;
    let id = world.start(&pod, 0).await.unwrap();
    let ended = world.ended(&id).await;
    assert_eq!((world.log(&id, 0).as_str(), ended.0), ("12hunter2app=\"web\"\n400\nx\n1\n", 0));
}

#[tokio::test]
async fn files_follow_their_config_map() {
    let world = World::new().await;
    world.create(MAPS, json!({"metadata": {"name": "settings"}, "data": {"a": "old\n", "gone": ""}})).await;
    let script = "cd $MAINSTAY_ROOT/etc; cat a; until grep -q new a; do sleep 0.05; done; ls; cat a";
    let container = json!({"args": [script], "volumeMounts": [{"name": "config", "mountPath": "/etc"}]});
    let volumes = json!([{"name": "config", "configMap": {"name": "settings"}}]);
    let pod = world.pod("web", container, json!({"volumes": volumes})).await;
    let id = world.start(&pod, 0).await.unwrap();
    world.line(&id, "old").await;
    world.patch(&format!("{MAPS}/settings"), json!({"data": {"a": "new\n", "gone": null}})).await;
    assert_eq!(world.ended(&id).await.0, 0);
    assert_eq!(world.log(&id, 0), "old\na\nnew\n");
}

#[tokio::test]
async fn claim_is_a_directory_that_outlives_the_pod() {
    let world = World::new().await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv-1",
    });
    world.create(claims, json!({"metadata": {"name": "data"}, "spec": spec})).await;
    world.patch(&format!("{claims}/data/status"), json!({"status": {"phase": "Bound"}})).await;
    let run = async |name: &str, script: &str| {
        let container = json!({"args": [script], "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
        let pod = world.pod(name, container, json!({"volumes": volumes})).await;
        let id = world.start(&pod, 0).await.unwrap();
        assert_eq!(world.ended(&id).await.0, 0);
        mainstay_local::node::runtime::Runtime::forget(&world.processes, &id);
        mainstay_testkit::eventually("the pod is gone", async || {
            (!world.pod_directory(&id).exists()).then_some(())
        })
        .await;
    };
    run("first", "echo kept > $MAINSTAY_ROOT/data/file").await;
    run("second", "grep kept $MAINSTAY_ROOT/data/file").await;
    world.processes.forget_volume("pv-1").unwrap();
    run("third", "test ! -e $MAINSTAY_ROOT/data/file").await;
}

#[tokio::test]
async fn volume_that_was_made_by_hand_is_refused_by_its_source() {
    let world = World::new().await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let ours = json!({"pv.kubernetes.io/provisioned-by": "mainstay.dev/local"});
    let path = json!({"path": "/srv/data"});
    for (name, annotations, field, source, why) in [
        ("ours", ours, "hostPath", path.clone(), None),
        ("path", json!({}), "hostPath", path, Some("hostPath")),
        ("net", json!({}), "nfs", json!({"path": "/", "server": "s"}), Some("nfs")),
    ] {
        let volume = json!({
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, field: source},
        });
        world.create("/api/v1/persistentvolumes", volume).await;
        let spec = json!({
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": name,
        });
        world.create(claims, json!({"metadata": {"name": name}, "spec": spec})).await;
        world.patch(&format!("{claims}/{name}/status"), json!({"status": {"phase": "Bound"}})).await;
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}]);
        let pod = world.pod(name, json!({"args": ["true"]}), json!({"volumes": volumes})).await;
        let refused = world.start(&pod, 0).await.err().map(|refused| refused.message);
        let expected = why.map(|why| {
            format!("volume \"data\": persistentvolume {name:?} with {why} is not possible for a pod that runs as a local process")
        });
        assert_eq!(refused, expected);
    }
}

#[tokio::test]
async fn container_waits_for_its_volumes() {
    let world = World::new().await;
    let volumes = |source: serde_json::Value| json!({"volumes": [source]});
    for (name, volume, message) in [
        (
            "a",
            json!({"name": "v", "configMap": {"name": "absent"}}),
            "MountVolume.SetUp failed for volume \"v\" : configmap \"absent\" not found",
        ),
        (
            "b",
            json!({"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}),
            "persistentvolumeclaim \"absent\" not found",
        ),
    ] {
        let pod = world.pod(name, json!({"args": ["true"]}), volumes(volume)).await;
        let refused = world.start(&pod, 0).await.unwrap_err();
        assert_eq!((refused.reason.as_str(), refused.message.as_str()), ("ContainerCreating", message));
    }
    let pod = world
        .pod("c", json!({"args": ["true"]}), volumes(json!({"name": "h", "hostPath": {"path": "/"}})))
        .await;
    let refused = world.start(&pod, 0).await.unwrap_err();
    assert_eq!(
        refused.message,
        "volume \"h\": hostPath is not possible for a pod that runs as a local process"
    );
}
