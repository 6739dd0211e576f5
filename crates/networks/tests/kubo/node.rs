//! A peer that can be started, killed and started again at the same place: a process of Kubo, or a reference peer in this process.

use std::env;
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use mainstay_networks::runner::peer::{Running, Settings};
use mainstay_testkit::process::dies_with_us;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// The version that `hack/kubo/go.mod` pins.
const KUBO_VERSION: &str = "v0.42.0";

/// What a peer is.
#[derive(Clone)]
pub(crate) enum Make {
    Reference,
    /// With the path of `ipfs`.
    Kubo(PathBuf),
}

impl Make {
    pub(crate) fn is_real(&self) -> bool {
        matches!(self, Self::Kubo(_))
    }
}

/// Where `ipfs` is: what `MAINSTAY_KUBO` names, or what `make kubo` has built.
pub(crate) fn find_kubo() -> Result<PathBuf, String> {
    let given = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || {
        let users = given("XDG_CACHE_HOME").or_else(|| given("HOME").map(|home| home.join(".cache")));
        given("MAINSTAY_CACHE").or_else(|| users.map(|users| users.join("mainstay")))
    };
    let built = || cache().unwrap_or_default().join("kubo").join(KUBO_VERSION).join("ipfs");
    let path = given("MAINSTAY_KUBO").unwrap_or_else(built);
    if path.is_file() {
        return Ok(path);
    }
    let next =
        format!("next: run `make kubo` (builds Kubo {KUBO_VERSION} once), or set MAINSTAY_KUBO to an `ipfs`");
    Err(format!("no {}\n  {next}", path.display()))
}

pub(crate) struct Node {
    pub(crate) ip: IpAddr,
    name: String,
    home: PathBuf,
    pub(crate) make: Make,
    rpc_port: u16,
    p2p_port: u16,
    running: Option<Run>,
}

enum Run {
    // Killed when dropped.
    Process(Child),
    Task(Running),
}

impl Node {
    pub(crate) fn new(make: &Make, name: &str, ip: IpAddr, home: PathBuf) -> Self {
        let free = || TcpListener::bind((ip, 0)).unwrap().local_addr().unwrap().port();
        let (rpc_port, p2p_port) = (free(), free());
        Self { ip, name: name.into(), home, make: make.clone(), rpc_port, p2p_port, running: None }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}:{}", self.ip, self.rpc_port)
    }

    /// Starts it and waits until its RPC listens.
    pub(crate) async fn start(&mut self) {
        let run = match self.make.clone() {
            Make::Kubo(program) => Run::Process(self.start_kubo(&program).await),
            Make::Reference => {
                let (rpc, p2p) = (self.rpc_port.to_string(), self.p2p_port.to_string());
                let settings = Settings::read(|name| match name {
                    "NETWORK_SECRET" => Some("0123".into()),
                    "POD_NAME" => Some(self.name.clone()),
                    "POD_IP" => Some(self.ip.to_string()),
                    "RPC_PORT" => Some(rpc.clone()),
                    "P2P_PORT" => Some(p2p.clone()),
                    _ => None,
                });
                Run::Task(Running::start(&settings.unwrap()).await.unwrap())
            }
        };
        self.running = Some(run);
        let patience = Instant::now() + Duration::from_mins(2);
        while TcpStream::connect((self.ip, self.rpc_port)).await.is_err() {
            let log = || std::fs::read_to_string(self.home.join("log")).unwrap_or_default();
            assert!(Instant::now() < patience, "{} does not listen: {}", self.name, log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Kills it, and waits until it is gone.
    pub(crate) async fn kill(&mut self) {
        match self.running.take() {
            Some(Run::Process(mut process)) => process.kill().await.unwrap(),
            Some(Run::Task(running)) => running.stop().await,
            None => {}
        }
    }

    async fn start_kubo(&self, program: &PathBuf) -> Child {
        if !self.home.exists() {
            let made =
                self.kubo(program, &["init", "--profile=test", "--empty-repo"]).output().await.unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            let path = self.home.join("config");
            let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            self.keep_to_itself(&mut config);
            std::fs::write(&path, config.to_string()).unwrap();
        }
        let log = std::fs::File::create(self.home.join("log")).unwrap();
        let mut daemon = self.kubo(program, &["daemon"]);
        daemon.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
    }

    fn kubo(&self, program: &PathBuf, arguments: &[&str]) -> Command {
        let mut command = Command::from(dies_with_us(program));
        command.args(arguments).env("IPFS_PATH", &self.home).env("IPFS_TELEMETRY", "off");
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// It listens at its own address and nowhere else, and looks for nobody.
    fn keep_to_itself(&self, config: &mut Value) {
        let at = |port: u16| format!("/ip4/{}/tcp/{port}", self.ip);
        let addresses = json!({ "Swarm": [at(self.p2p_port)], "API": at(self.rpc_port), "Gateway": [] });
        let only_tcp = json!({
            "QUIC": false, "Relay": false, "WebTransport": false, "Websocket": false, "WebRTCDirect": false,
        });
        for (path, value) in [
            ("/Addresses", addresses),
            ("/Bootstrap", json!([])),
            ("/Discovery/MDNS/Enabled", json!(false)),
            ("/Routing", json!({ "Type": "none" })),
            ("/AutoConf", json!({ "Enabled": false })),
            ("/AutoTLS", json!({ "Enabled": false })),
            ("/AutoNAT", json!({ "ServiceMode": "disabled" })),
            ("/Plugins", json!({ "Plugins": { "telemetry": { "Config": { "Mode": "off" } } } })),
            ("/HTTPRetrieval", json!({ "Enabled": false })),
            ("/Provide", json!({ "Enabled": false })),
            ("/Swarm/DisableNatPortMap", json!(true)),
            ("/Swarm/RelayClient", json!({ "Enabled": false })),
            ("/Swarm/RelayService", json!({ "Enabled": false })),
            ("/Swarm/Transports/Network", only_tcp),
        ] {
            *config.pointer_mut(path).unwrap_or_else(|| panic!("Kubo has no {path}")) = value;
        }
    }
}
