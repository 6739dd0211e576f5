//! The cluster that a command is about: how it is found and reached, and what went wrong if it is not.

mod catalog;
mod objects;
mod selection;

use crate::failure::Failure;
use crate::home::default_directory;
use crate::output::happened;
use crate::up::narrate::quoted;
use k8s_openapi::api::core::v1::Event;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use mainstay::Kind;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use catalog::{Catalog, Resource};
pub(crate) use objects::{apply, encoded, get, list, list_metadata, merge, missing, selected};
pub(crate) use selection::Selection;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Which cluster.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Which cluster")]
pub(crate) struct Connection {
    /// The kubeconfig [default: $KUBECONFIG, then ~/.kube/config, then the account of the pod it runs in].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in it [default: the current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A cluster that can be asked. Whether it answers shows when it is asked.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// Where namespaced objects are if nobody says.
    pub(crate) namespace: String,
    pub(crate) url: String,
    /// Where the way to it was found.
    pub(crate) source: String,
}

impl Connection {
    /// Reads how to reach the cluster. Nothing is sent yet.
    pub(crate) async fn open(&self) -> Result<Cluster, Failure> {
        let (mut config, source) = self.config().await?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        // A person waits for the answer, and operators have their own patience.
        config.default_retry = false;
        let (namespace, url) = (config.default_namespace.clone(), config.cluster_url.to_string());
        let client = Client::try_from(config).map_err(|error| {
            Failure::new(error).context(format!("cannot use the credentials of {source}")).next(LOOK)
        })?;
        Ok(Cluster { client, namespace, url: url.trim_end_matches('/').to_owned(), source })
    }

    async fn config(&self) -> Result<(Config, String), Failure> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        if let Some(path) = &self.kubeconfig {
            let source = path.display().to_string();
            let read = Kubeconfig::read_from(path).map_err(|error| unreadable(error, &source))?;
            let config = Config::from_custom_kubeconfig(read, &options).await;
            return Ok((config.map_err(|error| unreadable(error, &source))?, source));
        }
        let named = std::env::var("KUBECONFIG").ok().filter(|path| !path.is_empty());
        let usual = std::env::home_dir().map(|home| home.join(".kube").join("config"));
        let source = named
            .clone()
            .or_else(|| usual.filter(|path| path.is_file()).map(|path| path.display().to_string()));
        if let Some(source) = source {
            let config = Config::from_kubeconfig(&options).await;
            return Ok((config.map_err(|error| unreadable(error, &source))?, source));
        }
        match Config::incluster() {
            Ok(config) => Ok((config, "the account of this pod".to_owned())),
            Err(_) => Err(nowhere()),
        }
    }
}

/// The end of most advice, but for that of the very command.
pub(crate) const LOOK: &str = "mainstay check looks further";

fn unreadable(error: KubeconfigError, source: &str) -> Failure {
    Failure::new(error)
        .context(format!("cannot use the kubeconfig {source}"))
        .next("mend it, or name another with --kubeconfig FILE or KUBECONFIG; --context chooses another context of it")
}

/// No kubeconfig, and no pod.
fn nowhere() -> Failure {
    let failure = Failure::new(
        anyhow::anyhow!(
            "neither --kubeconfig nor KUBECONFIG names one, ~/.kube/config is not there, and this is no pod"
        )
        .context("there is no kubeconfig to find a cluster by"),
    );
    // That `mainstay up` was started with its defaults is the most likely.
    let own = default_directory(|name| std::env::var_os(name).map(PathBuf::from));
    match own.map(|directory| directory.join("kubeconfig")).filter(|path| path.is_file()) {
        Some(path) => failure.next(format!("export KUBECONFIG={}", quoted(&path))),
        None => failure.next("mainstay up starts a cluster on this machine and prints its kubeconfig"),
    }
}

impl Cluster {
    /// What a failed request means for the command.
    pub(crate) fn failed(&self, doing: &str, error: kube::Error) -> Failure {
        match error {
            kube::Error::Api(status) => {
                let next = match status.code {
                    401 => "the server does not know who asks: renew the credentials in the kubeconfig",
                    403 => "ask for the permission, or choose another --context",
                    _ => LOOK,
                };
                let said = anyhow::anyhow!("{} (HTTP {})", status.message.trim(), status.code);
                Failure::new(said.context(format!("cannot {doing}"))).next(next)
            }
            other => Failure::new(anyhow::anyhow!(reason(&other)))
                .context(format!("cannot {doing}: the API server at {} does not answer", self.url))
                .next(format!("is it up, and is {} about it? {LOOK}", self.source)),
        }
    }

    /// Which kinds there are.
    pub(crate) async fn catalog(&self) -> Result<Catalog, Failure> {
        Catalog::fetch(&self.client).await.map_err(|error| self.failed("ask which kinds there are", error))
    }

    /// Applies an object of one of the catalog's kinds, as `mainstay up`.
    pub(crate) async fn apply(&self, catalog: &Catalog, object: &Value) -> Result<(), Failure> {
        let doing = || format!("apply {}", named(object));
        let path = catalog.path_of(object).ok_or_else(|| {
            Failure::new(anyhow::anyhow!("the cluster does not have its kind"))
                .context(format!("cannot {}", doing()))
        })?;
        let applied = apply(&self.client, &path, object, "mainstay-up").await;
        applied.map(drop).map_err(|error| self.failed(&doing(), error))
    }

    /// The events about an object, the newest first. Who may not see events may still see the rest.
    pub(crate) async fn events_about(
        &self,
        namespace: Option<&str>,
        uid: &str,
    ) -> Result<Vec<Value>, Failure> {
        let about = encoded(&format!("involvedObject.uid={uid}"));
        let path = format!("{}?fieldSelector={about}", Kind::of::<Event>().collection_path(namespace));
        let mut events = match list(&self.client, &path).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Vec::new(),
            events => events.map_err(|error| self.failed("list events", error))?,
        };
        events.sort_by_key(|event| std::cmp::Reverse(happened(event)));
        Ok(events)
    }

    /// A namespace, or the one that is used if nobody says.
    pub(crate) fn or_default<'a>(&'a self, namespace: Option<&'a str>) -> &'a str {
        namespace.unwrap_or(&self.namespace)
    }
}

/// An object as a sentence names it: `Deployment web`.
pub(crate) fn named(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// The innermost cause: those around it say only that something failed.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
