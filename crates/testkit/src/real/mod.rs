//! A real control plane as child processes: etcd, kube-apiserver, kube-controller-manager, on loopback, with
//! certificates and ports of its own.
//!
//! It is disposable: all of its state is in a temporary directory that goes with it, and it ends when the
//! value is dropped or the process that started it dies.

mod certificates;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

pub use self::certificates::CertificateError;
use self::certificates::Certificates;
use crate::binaries::Binaries;
use crate::isolation::{IsolatedLayer, Isolation};
use crate::process::Process;

/// Cluster IPs come from here.
pub const SERVICE_CIDR: &str = "10.96.0.0/16";

/// A start that takes longer has failed. It takes about five seconds on two idle cores.
const START_PATIENCE: Duration = Duration::from_mins(2);

/// A port can be taken by somebody else between our finding and the program's using it, so starting is tried again.
const START_ATTEMPTS: usize = 3;

/// Which of the controller manager's loops run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Controllers {
    /// Those that belong to the API itself, as the embedded server has them: garbage collection, namespaces, the
    /// default service account, `kube-root-ca.crt`, protection of volumes in use. Objects of other kinds stay as written.
    #[default]
    Api,
    /// All that the controller manager runs by default: Deployments make replica sets, Jobs make Pods, and so on.
    All,
}

impl Controllers {
    fn flag(self) -> &'static str {
        match self {
            Self::Api => {
                "--controllers=garbage-collector-controller,namespace-controller,serviceaccount-controller,\
                 root-ca-certificate-publisher-controller,persistentvolume-protection-controller,\
                 persistentvolumeclaim-protection-controller"
            }
            Self::All => "--controllers=*",
        }
    }
}

/// How a control plane is started.
#[derive(Debug, Clone, Default)]
pub struct RealOptions {
    /// Whether etcd waits for the disk. Tests don't need it; a comparison of speeds does.
    pub fsync: bool,
    /// Which controllers run beside it.
    pub controllers: Controllers,
}

/// Why a control plane did not start, or could not be talked to.
#[derive(Debug, thiserror::Error)]
pub enum RealError {
    /// No temporary directory, file, or free port.
    #[error("preparing a real control plane")]
    Prepare(#[from] io::Error),
    /// No certificates.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// A program ended before the API was ready.
    #[error("{program} ended before the API was ready; its last words:\n{last_words}")]
    Ended {
        /// Which one.
        program: &'static str,
        /// The end of its log.
        last_words: String,
    },
    /// The API never became ready.
    #[error("the API was not ready after {START_PATIENCE:?}; kube-apiserver's last words:\n{last_words}")]
    NotReady {
        /// The end of kube-apiserver's log.
        last_words: String,
    },
    /// The kubeconfig cannot be used.
    #[error("reading {1}")]
    Kubeconfig(#[source] kube::config::KubeconfigError, PathBuf),
    /// No client can be made from it.
    #[error("making a client for {1}")]
    Client(#[source] Box<kube::Error>, PathBuf),
}

/// A running control plane.
#[derive(Debug)]
pub struct RealControlPlane {
    // Dropped in this order: who writes goes before what is written to, and the directory last.
    controller_manager: Process,
    apiserver: Process,
    etcd: Process,
    directory: TempDir,
    url: String,
}

impl RealControlPlane {
    /// Starts one and waits until it is ready.
    pub async fn start(binaries: &Binaries, options: &RealOptions) -> Result<Self, RealError> {
        let mut attempt = 1;
        loop {
            match Self::start_once(binaries, options).await {
                Err(RealError::Ended { .. }) if attempt < START_ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn start_once(binaries: &Binaries, options: &RealOptions) -> Result<Self, RealError> {
        let directory = tempfile::Builder::new().prefix("mainstay-real-").tempdir()?;
        let path = directory.path();
        let certificates = certificates::issue_certificates(path)?;
        let [client_port, peer_port, api_port] = free_ports()?;
        let url = format!("https://127.0.0.1:{api_port}");
        fs::write(path.join("kubeconfig"), render_kubeconfig(&url, &certificates))?;

        let start = |program: &str, arguments: &[String], remove| {
            Process::spawn(
                &binaries.program(program),
                arguments,
                path.join(program).with_extension("log"),
                remove,
            )
        };
        // etcd's supervisor also removes the directory, for the case that we die without cleaning up.
        let etcd = start("etcd", &etcd_arguments(path, client_port, peer_port, options), Some(path))?;
        let apiserver = start("kube-apiserver", &apiserver_arguments(path, client_port, api_port), None)?;
        // It waits for the API by itself.
        let controller_manager =
            start("kube-controller-manager", &controller_arguments(path, options), None)?;
        let mut control_plane = Self { controller_manager, apiserver, etcd, directory, url };
        control_plane.wait_until_ready().await?;
        Ok(control_plane)
    }

    async fn wait_until_ready(&mut self) -> Result<(), RealError> {
        let client = client_from(&self.kubeconfig()).await?;
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            self.check_alive()?;
            let request = http::Request::get("/readyz").body(Vec::new());
            // Refused connections are what not being ready looks like.
            if let Ok(request) = request
                && client.request_text(request).await.is_ok_and(|text| text == "ok")
            {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(RealError::NotReady { last_words: self.apiserver.last_words() });
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn check_alive(&mut self) -> Result<(), RealError> {
        for (program, process) in [
            ("etcd", &mut self.etcd),
            ("kube-apiserver", &mut self.apiserver),
            ("kube-controller-manager", &mut self.controller_manager),
        ] {
            if process.has_ended() {
                return Err(RealError::Ended { program, last_words: process.last_words() });
            }
        }
        Ok(())
    }

    /// The path of a kubeconfig with all rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// Where the API is served.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client with all rights, for the runtime it is called in.
    pub async fn client(&self) -> Result<kube::Client, RealError> {
        client_from(&self.kubeconfig()).await
    }
}

/// A client for the cluster that a kubeconfig names. It doesn't repeat requests: tests want to see the first answer.
pub async fn client_from(kubeconfig: &Path) -> Result<kube::Client, RealError> {
    client_for(kubeconfig, None).await
}

/// The same with all requests kept [isolated](crate::isolation).
pub(crate) async fn client_for(
    kubeconfig: &Path,
    isolation: Option<&Arc<Isolation>>,
) -> Result<kube::Client, RealError> {
    // The process may have set one, and any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let broken = |error| RealError::Kubeconfig(error, kubeconfig.to_path_buf());
    let parsed = Kubeconfig::read_from(kubeconfig).map_err(broken)?;
    let mut config =
        kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await.map_err(broken)?;
    config.default_retry = false;
    let builder = ClientBuilder::try_from(config)
        .map_err(|error| RealError::Client(Box::new(error), kubeconfig.to_path_buf()))?;
    Ok(match isolation {
        Some(isolation) => builder.with_layer(&IsolatedLayer(Arc::clone(isolation))).build(),
        None => builder.build(),
    })
}

/// Ports that were free a moment ago, all different because all are held until the last is found.
fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut ports = [0; N];
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn etcd_arguments(directory: &Path, client_port: u16, peer_port: u16, options: &RealOptions) -> Vec<String> {
    let client = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    let mut arguments = vec![
        format!("--data-dir={}", directory.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--log-level=warn".into(),
    ];
    if !options.fsync {
        arguments.push("--unsafe-no-fsync".into());
    }
    arguments
}

fn apiserver_arguments(directory: &Path, etcd_port: u16, port: u16) -> Vec<String> {
    let file = |name: &str| directory.join(name).display().to_string();
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", directory.display()),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        format!("--service-cluster-ip-range={SERVICE_CIDR}"),
        "--endpoint-reconciler-type=none".into(),
        "--authorization-mode=Node,RBAC".into(),
        "--allow-privileged=true".into(),
        "--profiling=false".into(),
    ]
}

fn controller_arguments(directory: &Path, options: &RealOptions) -> Vec<String> {
    let file = |name: &str| directory.join(name).display().to_string();
    vec![
        format!("--kubeconfig={}", file("kubeconfig")),
        format!("--service-account-private-key-file={}", file("accounts.key")),
        format!("--root-ca-file={}", file("ca.crt")),
        "--leader-elect=false".into(),
        "--secure-port=0".into(),
        // The default of 20 requests per second is for clusters that others use too.
        "--kube-api-qps=2000".into(),
        "--kube-api-burst=4000".into(),
        options.controllers.flag().into(),
    ]
}

fn render_kubeconfig(url: &str, certificates: &Certificates) -> String {
    // JSON is YAML, and here nobody has to quote anything.
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "real", "cluster": {
            "server": url,
            "certificate-authority-data": BASE64.encode(&certificates.ca),
        }}],
        "users": [{"name": "admin", "user": {
            "client-certificate-data": BASE64.encode(&certificates.admin.certificate),
            "client-key-data": BASE64.encode(&certificates.admin.key),
        }}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        "current-context": "real",
    })
    .to_string()
}
