//! `mainstay up`: a cluster on this machine.
//!
//! ```text
//! directory ─▶ credentials, API server ─▶ controllers, scheduler, node ─▶ systems ─▶ ready ─▶ until a signal
//! ```

mod demo;
mod kubeconfig;
pub(crate) mod narrate;
mod refuse;
mod temporary;

use crate::cluster::{Catalog, Cluster};
use crate::failure::Failure;
use crate::home::{ClaimError, Holder, Home, default_directory};
use crate::input::{FILE_BYTES_MAX, read_file};
use crate::output::patiently;
use crate::run::serve_until;
use crate::systems::{self, Reach, System};
use kubeconfig::Claim;
use mainstay::Operator;
use mainstay_apiserver::{ApiServer, Credentials, KUBERNETES_VERSION, Served};
use mainstay_local::cluster::{LocalCluster, Settings};
use mainstay_local::node::process::{ApiAddress, LogEndpoint, adopt_orphans};
use mainstay_local::node::rules::Rules;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use temporary::Temporary;
use tokio::runtime::Runtime;

/// How `mainstay up` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The directory that keeps the state [default: mainstay in the user's data directory].
    #[arg(long, value_name = "DIR", conflicts_with = "memory")]
    data: Option<PathBuf>,
    /// Keep the state in memory only: nothing is left when it ends.
    #[arg(long)]
    memory: bool,
    /// Where to listen; port 0 takes any free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6443", value_parser = loopback)]
    listen: SocketAddr,
    /// The file to write the kubeconfig to [default: kubeconfig in the state's directory].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// A YAML file that says which images are programs of this machine, and how pods of all others behave.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// How long each Event is kept after it was last written, as in 30m or 2h; 0s keeps them for ever.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    event_ttl: Duration,
    /// Load a small example of everything, and follow it until all is ready.
    #[arg(long)]
    demo: bool,
}

/// An address that the server's certificate names.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| "expected an address and a port, as in 127.0.0.1:6443".to_owned())?;
    let ip = address.ip().to_string();
    if ip == "127.0.0.1" || ip == "::1" {
        Ok(address)
    } else {
        Err("only 127.0.0.1 and [::1] can be listened on, the certificate names no other address".into())
    }
}

/// A time as Kubernetes writes one: `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Option<jiff::SignedDuration> = text.parse().ok();
    let parsed = parsed.and_then(|duration| Duration::try_from(duration).ok());
    parsed.ok_or_else(|| "expected a time that is not negative, as in 30m or 2h".to_owned())
}

/// What keeps the state, and what goes when the command ends.
enum Keeping {
    Directory(Home),
    /// The directory holds files of pods, and the kubeconfig if no other file was named for that.
    Memory(Temporary),
}

impl Keeping {
    fn prepare(options: &Options) -> Result<Self, Failure> {
        if options.memory {
            return Temporary::make()
                .map(Keeping::Memory)
                .map_err(|error| Failure::new(error).context("cannot make a temporary directory"));
        }
        let named = options.data.clone();
        let found = named.or_else(|| default_directory(|name| std::env::var_os(name).map(PathBuf::from)));
        let directory = found.ok_or_else(refuse::no_directory)?;
        Home::claim(absolute(&directory)).map(Keeping::Directory).map_err(refuse::claim)
    }

    fn credentials(&self) -> Result<Credentials, Failure> {
        match self {
            Keeping::Directory(home) => {
                Credentials::load_or_generate(&home.credentials()).map_err(|e| refuse::credentials(e, home))
            }
            Keeping::Memory(_) => Credentials::generate().map_err(Failure::new),
        }
    }

    fn build(&self, ca: &str, logs: LogEndpoint, event_ttl: Duration) -> Result<ApiServer, Failure> {
        let builder = ApiServer::builder().ca_bundle(ca).event_ttl(event_ttl).loopback_endpoints();
        let builder = builder.subresource("", "pods", "log", logs);
        match self {
            Keeping::Directory(home) => {
                builder.directory(home.directory()).build().map_err(|error| refuse::store(error, home))
            }
            Keeping::Memory(_) => builder.build().map_err(Failure::new),
        }
    }

    /// Where files of pods are.
    fn pods(&self) -> PathBuf {
        match self {
            Keeping::Directory(home) => home.pods(),
            Keeping::Memory(directory) => directory.path().join("pods"),
        }
    }

    fn kubeconfig(&self) -> PathBuf {
        match self {
            Keeping::Directory(home) => home.kubeconfig(),
            Keeping::Memory(directory) => directory.path().join("kubeconfig"),
        }
    }

    fn directory(&self) -> Option<&Path> {
        match self {
            Keeping::Directory(home) => Some(home.directory()),
            Keeping::Memory(_) => None,
        }
    }
}

/// Serves until a signal ends it.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let started = Instant::now();
    let runtime = Runtime::new().map_err(|error| Failure::new(error).context("cannot start"))?;
    let rules = options.rules.as_deref().map_or_else(|| Ok(Rules::default()), read_rules)?;
    let mut keeping = Keeping::prepare(options)?;
    let named = options.kubeconfig.as_deref().map(absolute);
    let is_named = named.is_some();
    let mut claim = Claim::new(&named.unwrap_or_else(|| keeping.kubeconfig()), is_named)?;
    let kubeconfig = claim.path().to_owned();
    let rules_from =
        options.rules.as_deref().map(absolute).and_then(|file| file.parent().map(Path::to_owned));
    let rules_from = rules_from.unwrap_or_default();
    let systems = systems_of(options.demo);
    let credentials = keeping.credentials()?;
    let logs = LogEndpoint::default();
    let server = keeping.build(&credentials.ca, logs.clone(), options.event_ttl)?;
    let stopped = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let listening = server.serve_https_with(options.listen, credentials).await;
        let listening =
            listening.map_err(|error| refuse::serve(error, options.listen, keeping.directory()))?;
        publish(&mut keeping, &listening, &mut claim)?;
        temporary::tidy_up().await;
        // This command starts no processes but those of pods. Without it, some that leave their session outlive their pod.
        if let Err(error) = adopt_orphans() {
            tracing::debug!(%error, "orphans cannot be adopted");
        }
        let client = kube::Client::new(server.clone(), "default");
        let settings = Settings { rules, rules_from, ..settings(&keeping, &listening, &kubeconfig) };
        let local = LocalCluster::start(client.clone(), &logs, settings).await.map_err(refuse::cluster)?;
        narrate::quarantined(local.quarantined());
        let is_ready = tokio::select! {
            biased;
            () = signals.ended() => false,
            () = patiently("starting the controllers", local.ready()) => true,
        };
        if !is_ready {
            local.stop().await;
            return Ok(());
        }
        let cluster = Cluster {
            client,
            namespace: "default".into(),
            url: listening.url(),
            source: kubeconfig.display().to_string(),
        };
        let operators = start_systems(&systems, &cluster).await?;
        narrate::serving(&listening.url(), keeping.directory(), &kubeconfig, started.elapsed());
        let demo = options.demo.then(|| tokio::spawn(demo::show(cluster.clone(), systems)));
        let ended = serve_until(&operators, &cluster, signals.ended()).await;
        if let Some(demo) = demo {
            demo.abort();
        }
        patiently("ending the pods", local.stop()).await;
        ended
    });
    // Ends every task and with the last of them the store, which closes its file in good order.
    drop(server);
    drop(runtime);
    if stopped.is_ok() {
        if options.memory {
            // Its keys went with the server.
            claim.remove();
        }
        narrate::stopped(keeping.directory());
    }
    stopped
}

/// Examples are there for a demonstration only.
fn systems_of(demo: bool) -> Vec<&'static System> {
    systems::ALL.iter().filter(|system| demo || !system.is_example).collect()
}

/// What the cluster around the API server is to know.
fn settings(keeping: &Keeping, served: &Served, kubeconfig: &Path) -> Settings {
    let address = served.address();
    Settings {
        directory: keeping.pods(),
        rules: Rules::default(),
        rules_from: PathBuf::new(),
        // Without it, pods of this project's images are simulated like all others.
        program: std::env::current_exe().ok(),
        kubeconfig: Some(kubeconfig.to_owned()),
        api: Some(ApiAddress { host: address.ip().to_string(), port: address.port() }),
        version: KUBERNETES_VERSION.to_owned(),
    }
}

fn read_rules(path: &Path) -> Result<Rules, Failure> {
    let text = read_file(path, FILE_BYTES_MAX).map_err(|error| refuse::rules(error, path))?;
    text.parse().map_err(|error: mainstay_local::node::rules::RulesError| refuse::rules(error, path))
}

/// Defines the kinds of all systems and makes their operators, yet to be run.
async fn start_systems(
    systems: &[&'static System],
    cluster: &Cluster,
) -> Result<Vec<(&'static System, Operator)>, Failure> {
    let mut operators = Vec::new();
    let catalog = if systems.is_empty() { Catalog::default() } else { cluster.catalog().await? };
    for system in systems {
        for definition in system.definitions()? {
            cluster.apply(&catalog, &definition).await?;
        }
        let serve = SocketAddr::from(([127, 0, 0, 1], 0));
        let operator = system.operator(cluster.client.clone(), Reach::default()).serve(serve).build();
        let operator =
            operator.map_err(|error| Failure::new(error).context(format!("cannot run {}", system.name)))?;
        operators.push((*system, operator));
    }
    Ok(operators)
}

/// Lets clients find the way in.
fn publish(keeping: &mut Keeping, served: &Served, claim: &mut Claim) -> Result<(), Failure> {
    claim.write(&served.kubeconfig())?;
    if let Keeping::Directory(home) = keeping {
        let kubeconfig = claim.path().to_owned();
        let holder = Holder { process: std::process::id(), url: served.url(), kubeconfig };
        let path = home.directory().to_owned();
        home.announce(&holder).map_err(|source| refuse::claim(ClaimError::Unusable { path, source }))?;
    }
    Ok(())
}

/// The requests to end.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    /// The terminal was closed.
    #[cfg(unix)]
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    /// From here on they no longer kill the process.
    #[cfg(unix)]
    fn listen() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let cannot = |error: std::io::Error| Failure::new(error).context("cannot wait for signals");
        Ok(Signals {
            terminate: signal(SignalKind::terminate()).map_err(cannot)?,
            interrupt: signal(SignalKind::interrupt()).map_err(cannot)?,
            hang_up: signal(SignalKind::hangup()).map_err(cannot)?,
        })
    }

    #[cfg(unix)]
    async fn ended(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn listen() -> Result<Self, Failure> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    async fn ended(&mut self) {
        // Without a way to be told, it runs until it is killed, which loses nothing.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The path as it is from any directory; as it was given if that cannot be told.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_the_certificate_names_are_taken() {
        assert!(loopback("127.0.0.1:0").is_ok());
        assert!(loopback("[::1]:6443").is_ok());
        assert!(loopback("127.0.0.2:6443").unwrap_err().starts_with("only 127.0.0.1"));
        assert!(loopback("0.0.0.0:6443").unwrap_err().starts_with("only 127.0.0.1"));
        assert!(loopback("6443").unwrap_err().starts_with("expected an address"));
    }
}
