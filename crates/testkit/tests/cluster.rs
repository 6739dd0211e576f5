//! What a test is given: a cluster that works, with a namespace of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{Api, ListParams, PostParams};
use mainstay::{Controller, Operator, SyncRequest, SyncResponse};
use mainstay_testkit::binaries::Binaries;
use mainstay_testkit::cluster::{report_missing, unique_name};
use mainstay_testkit::{RunningOperator, eventually, for_each_cluster};

#[tokio::test]
async fn each_test_has_a_namespace_with_its_service_account_and_nothing_else() {
    for_each_cluster(async |cluster| {
        let (first, second) = (cluster.again().await, cluster.again().await);
        assert_ne!(first.namespace(), second.namespace());
        let accounts: Api<ServiceAccount> = Api::namespaced(first.client(), first.namespace());
        let names: Vec<_> = accounts
            .list(&ListParams::default())
            .await
            .unwrap()
            .into_iter()
            .map(|it| it.metadata.name)
            .collect();
        assert_eq!(names, [Some("default".to_string())]);
    })
    .await;
}

#[tokio::test]
async fn the_client_creates_and_the_raw_request_reads() {
    for_each_cluster(async |cluster| {
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), cluster.namespace());
        let mut map = ConfigMap::default();
        map.metadata.name = Some("a".into());
        maps.create(&PostParams::default(), &map).await.unwrap();
        let path = format!("/api/v1/namespaces/{}/configmaps/a", cluster.namespace());
        let (status, body) = cluster.get(&path).await;
        assert_eq!((status.as_u16(), &body["metadata"]["name"]), (200, &"a".into()));
    })
    .await;
}

#[tokio::test]
async fn waiting_ends_when_it_is_true() {
    for_each_cluster(async |cluster| {
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        namespaces.delete(cluster.namespace(), &kube::api::DeleteParams::default()).await.unwrap();
        eventually("the namespace is gone", async || {
            namespaces.get_opt(cluster.namespace()).await.unwrap().is_none().then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
#[should_panic(expected = "give the operator .namespace(cluster.namespace())")]
async fn a_test_that_watches_a_shared_kind_in_all_namespaces_fails_at_once() {
    for_each_cluster(async |cluster| {
        let controller = Controller::of::<ConfigMap>().sync(|_: &SyncRequest| Ok(SyncResponse::new()));
        let operator = Operator::builder("wide", cluster.client()).controller(controller).build().unwrap();
        let _running = RunningOperator::start(operator);
        std::future::pending::<()>().await;
    })
    .await;
}

#[tokio::test]
#[should_panic(expected = "it belongs to all tests; give it a name from unique_name()")]
async fn a_test_that_changes_what_is_in_no_namespace_fails() {
    for_each_cluster(async |cluster| {
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view";
        let request = http::Request::delete(path).body(Vec::new()).unwrap();
        let (status, answer) = cluster.send(request).await;
        assert_eq!(status, 403, "{answer}");
    })
    .await;
}

#[tokio::test]
async fn an_own_kind_may_be_watched_in_all_namespaces() {
    for_each_cluster(async |cluster| {
        let plural = unique_name("things").replace('-', "");
        let (status, _) = cluster.get(&format!("/apis/test.mainstay.dev/v1/{plural}")).await;
        assert_eq!(status, 404, "the server was asked, and knows no such kind");
    })
    .await;
}

/// The directories of control planes that a process has started, by the arguments of what runs.
#[cfg(target_os = "linux")]
fn directories_of_children(pid: u32) -> Vec<PathBuf> {
    let parent = format!("PPid:\t{pid}\n");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    processes
        .filter(|path| std::fs::read_to_string(path.join("status")).is_ok_and(|text| text.contains(&parent)))
        .filter_map(|path| std::fs::read_to_string(path.join("cmdline")).ok())
        .filter_map(|line| {
            line.split('\0').find_map(|word| word.strip_prefix("--data-dir=").map(PathBuf::from))
        })
        .filter_map(|path| path.parent().map(Path::to_path_buf))
        .collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_control_plane_ends_with_the_process_that_started_it_even_when_that_is_killed() {
    if let Err(missing) = Binaries::find() {
        return report_missing("a control plane whose owner is killed", &missing);
    }
    let mut wrapper = Command::new(env!("CARGO_BIN_EXE_real-cluster"))
        .args(["sleep", "600"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let directory =
        eventually("etcd is supervised", async || directories_of_children(wrapper.id()).pop()).await;
    assert!(directory.exists());
    // As `kill -9` does: nothing of the process gets to run after it.
    wrapper.kill().unwrap();
    wrapper.wait().unwrap();
    eventually("its directory is gone", async || (!directory.exists()).then_some(())).await;
}
