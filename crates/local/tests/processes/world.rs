//! A node's processes beside an API server of their own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, Client};
use mainstay_apiserver::ApiServer;
use mainstay_local::node::process::{ApiAddress, Entrypoint, Images, LogEndpoint, Options, Processes};
use mainstay_local::node::rules::Glob;
use mainstay_local::node::runtime::{CannotStart, Launch, Observed, PodId, Runtime as _};
use mainstay_testkit::eventually;
use serde_json::{Value, json};

/// A node's directory, its processes and the server.
pub(crate) struct World {
    pub(crate) processes: Processes,
    pub(crate) server: ApiServer,
    pub(crate) client: Client,
    pub(crate) directory: Arc<tempfile::TempDir>,
    pub(crate) logs: LogEndpoint,
    pub(crate) told: Arc<Mutex<Vec<String>>>,
}

pub(crate) fn options(directory: &Path) -> Options {
    let shell = Entrypoint { command: vec!["/bin/sh".into(), "-c".into()], ..Entrypoint::default() };
    let own = Entrypoint { cluster_access: true, ..shell.clone() };
    let glob = |text: &str| Glob::try_from(text.to_owned()).unwrap();
    let images = Images::default().with(glob("mainstay:*"), own).with(glob("shell:*"), shell);
    let mut options = Options::new(directory, images);
    options.kubeconfig = Some("/the/kubeconfig".into());
    options.api = Some(ApiAddress { host: "127.0.0.1".into(), port: 6443 });
    options
}

impl World {
    pub(crate) async fn new() -> Self {
        let logs = LogEndpoint::default();
        let server = ApiServer::builder().loopback_endpoints();
        let server = server.subresource("", "pods", "log", logs.clone()).build().unwrap();
        let client = Client::new(server.clone(), "default");
        let directory = Arc::new(tempfile::tempdir().unwrap());
        Self::open(server, client, directory, logs).await
    }

    async fn open(
        server: ApiServer,
        client: Client,
        directory: Arc<tempfile::TempDir>,
        logs: LogEndpoint,
    ) -> Self {
        let processes = Processes::open(options(directory.path()), client.clone()).await.unwrap();
        logs.serve_from(&processes);
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = told.clone();
        processes.when_changed(move |pod| telling.lock().unwrap().push(pod.name.clone()));
        Self { processes, server, client, directory, logs, told }
    }

    /// The same directory and server in the hands of a further node.
    pub(crate) async fn again(&self) -> Self {
        Self::open(self.server.clone(), self.client.clone(), self.directory.clone(), LogEndpoint::default())
            .await
    }

    pub(crate) async fn create(&self, path: &str, object: Value) -> Value {
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        self.client.request(request).await.unwrap()
    }

    pub(crate) async fn patch(&self, path: &str, patch: Value) -> Value {
        let request = http::Request::patch(path).header("content-type", "application/merge-patch+json");
        self.client.request(request.body(patch.to_string().into_bytes()).unwrap()).await.unwrap()
    }

    /// Creates a pod of one container `main`, with further fields of its spec and of the container.
    pub(crate) async fn pod(&self, name: &str, container: Value, spec: Value) -> Pod {
        let mut main = json!({"name": "main", "image": "shell:1"});
        extend(&mut main, container);
        let mut whole = json!({"nodeName": "here", "restartPolicy": "Never", "containers": [main]});
        extend(&mut whole, spec);
        let pod = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": "web"}}, "spec": whole,
        }));
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        pods.create(&PostParams::default(), &pod.unwrap()).await.unwrap()
    }

    /// Starts an attempt of a pod's container `main`.
    pub(crate) async fn start(&self, pod: &Pod, attempt: u32) -> Result<PodId, CannotStart> {
        let id = id(pod);
        let address = self.processes.address(&id);
        let launch =
            Launch { pod: id.clone(), object: pod.clone(), container: "main".into(), attempt, address };
        self.processes.start(launch).await?;
        Ok(id)
    }

    /// Creates a pod that runs a script, and starts it. A dollar that is the shell's own pid is written `$$$$`, as in any pod.
    pub(crate) async fn run(&self, name: &str, script: &str) -> PodId {
        let pod = self.pod(name, json!({"args": [script]}), json!({})).await;
        self.start(&pod, 0).await.unwrap()
    }

    pub(crate) fn observe(&self, id: &PodId) -> Observed {
        self.processes.observe(id, "main")
    }

    /// Waits for the end of the container, and gives its code and why it ended.
    pub(crate) async fn ended(&self, id: &PodId) -> (i32, Option<String>) {
        eventually("the container ends", async || match self.observe(id) {
            Observed::Exited { code, message, .. } => Some((code, message)),
            _ => None,
        })
        .await
    }

    pub(crate) fn is_ready(&self, id: &PodId) -> bool {
        matches!(self.observe(id), Observed::Running { ready: true, .. })
    }

    /// The log of an attempt, without times and streams.
    pub(crate) fn log(&self, id: &PodId, attempt: u32) -> String {
        let path = self.pod_directory(id).join(format!("logs/main/{attempt}.log"));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().filter_map(|line| line.splitn(4, ' ').nth(3)).flat_map(|line| [line, "\n"]).collect()
    }

    /// Waits until the log has a line, and gives that.
    pub(crate) async fn line(&self, id: &PodId, beginning: &str) -> String {
        eventually(&format!("the log has {beginning:?}"), async || {
            let log = self.log(id, 0);
            log.lines().find(|line| line.starts_with(beginning)).map(str::to_owned)
        })
        .await
    }

    pub(crate) fn pod_directory(&self, id: &PodId) -> PathBuf {
        let name = format!("{}_{}_{}", id.namespace, id.name, id.uid);
        self.directory.path().canonicalize().unwrap().join("pods").join(name)
    }

    pub(crate) fn was_told_of(&self, name: &str) -> bool {
        self.told.lock().unwrap().iter().any(|told| told == name)
    }

    pub(crate) fn stop(&self, id: &PodId, grace_seconds: u64) {
        self.processes.stop(id, Duration::from_secs(grace_seconds));
    }
}

pub(crate) fn id(pod: &Pod) -> PodId {
    let text = |text: &Option<String>| text.clone().unwrap();
    PodId {
        namespace: text(&pod.metadata.namespace),
        name: text(&pod.metadata.name),
        uid: text(&pod.metadata.uid),
    }
}

fn extend(object: &mut Value, fields: Value) {
    let Value::Object(fields) = fields else { panic!("{fields} is no object") };
    object.as_object_mut().unwrap().extend(fields);
}

/// Whether a process of this number runs.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state =
        stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().next().map(str::to_owned));
    state.is_some_and(|state| state != "Z" && state != "X")
}
