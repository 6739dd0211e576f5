use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes as Body;
use axum::extract::State;
use axum::routing::post;
use expect_test::expect;
use futures::future::BoxFuture;
use http::Method;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::settings::{Load, ManagerSettings, WorkerSettings};
use super::{FAILED, manager, worker};
use crate::config::{SimulationConfig, Throttle};
use crate::fetch::Fetch;
use crate::kinds::{Adapter, Scenario};
use crate::peers::{self, Peer};
use crate::rpc::{Disturbance, Ending, Endpoint, Identity, Rpc, RpcError};
use crate::simulation::report::{FailureKind, Progress, Report, Stage};
use crate::simulation::{HttpManagers, ManagerClient as _, ManagerPlace};

const LIMITS: (Duration, usize) = (Duration::from_secs(5), 1_000_000);

/// Asks for the id, as Kubo has it, and for nothing else.
struct Asks(Fetch);

impl Rpc for Asks {
    fn identity<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Identity, RpcError>> {
        Box::pin(async move {
            let url = format!("{}/api/v0/id", peer.url);
            let answer =
                self.0.ask(&Method::POST, &url, &crate::fetch::Body::default(), (peer.timeout, 1000)).await?;
            let read: serde_json::Value =
                serde_json::from_slice(&answer).map_err(|error| RpcError::Garbage(error.to_string()))?;
            Ok(Identity { peer_id: read["ID"].to_string(), addresses: Vec::new() })
        })
    }

    fn connections<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Vec<String>, RpcError>> {
        Box::pin(async { Err(RpcError::Unsupported("tell")) })
    }

    fn connect<'a>(&'a self, _: &'a Endpoint, _: &'a [String]) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(async { Err(RpcError::Unsupported("connect")) })
    }

    fn disturb<'a>(&'a self, _: &'a Endpoint, _: &'a Disturbance) -> BoxFuture<'a, Result<Ending, RpcError>> {
        Box::pin(async { Err(RpcError::Unsupported("suffer")) })
    }
}

/// How a peer answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Well,
    Never,
    Oddly,
}

/// Under this key there is a byte for each block that was got.
const GOT: &str = "got";

type Stored = Arc<std::sync::Mutex<BTreeMap<String, Vec<u8>>>>;

/// A peer on loopback. All of them share what is stored, as if they were connected.
async fn peer(manner: Manner, stored: Stored) -> (SocketAddr, JoinHandle<()>) {
    async fn id(State(manner): State<Manner>) -> String {
        match manner {
            Manner::Well => json!({"ID": "12D3"}).to_string(),
            Manner::Never => std::future::pending().await,
            Manner::Oddly => "<html>".into(),
        }
    }
    let put = |State(stored): State<Stored>, body: Body| async move {
        let form = String::from_utf8(body.to_vec()).unwrap();
        let content = form.split("\r\n\r\n").nth(1).unwrap().split("\r\n").next().unwrap().to_owned();
        let key = mainstay::diff::content_hash(&json!(content));
        stored.lock().unwrap().insert(key.clone(), content.into_bytes());
        json!({"Key": key, "Size": 1}).to_string()
    };
    let get = |State(stored): State<Stored>, uri: http::Uri| async move {
        let key = uri.query().unwrap().trim_start_matches("arg=").to_owned();
        let mut stored = stored.lock().unwrap();
        stored.entry(GOT.to_owned()).or_default().push(0);
        stored.get(&key).cloned().unwrap()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let blocks = Router::new().route("/api/v0/block/put", post(put)).route("/api/v0/block/get", post(get));
    let router =
        Router::new().route("/api/v0/id", post(id)).with_state(manner).merge(blocks.with_state(stored));
    let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, server)
}

/// A run of a second on loopback.
struct Run {
    manager: JoinHandle<u8>,
    url: String,
    peers_path: PathBuf,
    load: Load,
    servers: Vec<JoinHandle<()>>,
    stored: Stored,
}

impl Run {
    async fn of(scenario: Scenario, manners: &[Manner], directory: &std::path::Path) -> Self {
        let stored = Stored::default();
        let (mut listed, mut servers) = (Vec::new(), Vec::new());
        for (place, manner) in manners.iter().enumerate() {
            let (address, server) = peer(*manner, Arc::clone(&stored)).await;
            servers.push(server);
            listed.push(Peer {
                tag: "ipfs".into(),
                name: format!("peers-0-{place}"),
                peer_id: format!("id-{place}"),
                adapter: Adapter::Kubo,
                rpc_addr: format!("http://{address}"),
                p2p_addrs: Vec::new(),
                others: BTreeMap::new(),
            });
        }
        let peers_path = directory.join("peers.json");
        std::fs::write(&peers_path, peers::write(&listed)).unwrap();
        let run_time = Duration::from_millis(if scenario == Scenario::Blocks { 3000 } else { 600 });
        let load = Load { run: "r".into(), scenario, users: 2, run_time };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let settings = ManagerSettings {
            load: load.clone(),
            workers: manners.len(),
            start: Duration::from_secs(3),
            grace: Duration::from_secs(2),
            linger: Duration::from_secs(20),
            address,
            collector: None,
        };
        let manager = tokio::spawn(manager::run_on(listener, settings, |_| {}));
        Self { manager, url: format!("http://{address}"), peers_path, load, servers, stored }
    }

    fn worker(&self, place: usize) -> JoinHandle<u8> {
        let settings = WorkerSettings {
            load: self.load.clone(),
            worker: place,
            peer: format!("peers-0-{place}"),
            manager: self.url.clone(),
            peers_path: self.peers_path.clone(),
            throttle: Throttle::PerSecond(100),
            seed: 1,
            timeout: Duration::from_millis(200),
        };
        tokio::spawn(worker::run(settings, Arc::new(Asks(Fetch::default())), |_| {}))
    }

    fn place(&self) -> ManagerPlace {
        ManagerPlace { url: self.url.clone(), is_simulated: false }
    }

    async fn progress(&self) -> Progress {
        HttpManagers::default().progress(&self.place()).await.unwrap()
    }

    async fn report(&self) -> Report {
        loop {
            match HttpManagers::default().report(&self.place()).await {
                Ok(report) => return report,
                Err(RpcError::Refused { status: 409, .. }) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Sends the manager home.
    async fn end(self) -> u8 {
        HttpManagers::default().dismiss(&self.place()).await.unwrap();
        self.servers.iter().for_each(JoinHandle::abort);
        self.manager.await.unwrap()
    }
}

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("mainstay-simulate-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

#[tokio::test]
async fn a_peer_that_hangs_and_one_that_talks_nonsense_are_measured_beside_a_good_one() {
    let directory = directory("manners");
    let run = Run::of(Scenario::Identity, &[Manner::Well, Manner::Never, Manner::Oddly], &directory).await;
    let workers: Vec<_> = (0..2).map(|place| run.worker(place)).collect();
    assert_eq!(run.progress().await.stage, Stage::Waiting);
    let last = run.worker(2);
    let report = run.report().await;
    for worker in workers.into_iter().chain([last]) {
        assert_eq!(worker.await.unwrap(), 0);
    }
    let [well, never, oddly] = &report.peers[..] else { panic!("{report:?}") };
    assert!(well.requests > 10 && well.failed() == 0, "{well:?}");
    assert!(well.requests <= 61, "100 a second at most, for 0.6 seconds: {well:?}");
    assert_eq!(never.failures.get(&FailureKind::Timeout), Some(&never.requests), "{never:?}");
    assert!(never.requests >= 2, "{never:?}");
    assert_eq!(oddly.failures.get(&FailureKind::Garbage), Some(&oddly.requests), "{oddly:?}");
    assert_eq!(report.latencies.count(), well.requests);
    let metrics = format!("{}/metrics", run.url);
    let text =
        Fetch::default().ask(&Method::GET, &metrics, &crate::fetch::Body::default(), LIMITS).await.unwrap();
    let text = String::from_utf8(text.to_vec()).unwrap();
    let line = format!("mainstay_simulation_requests_total {}", report.total.requests);
    assert!(text.contains(&line) && text.contains("kind=\"garbage\""), "{text}");
    assert_eq!(run.end().await, 0);
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn blocks_are_put_and_got_by_others() {
    let directory = directory("blocks");
    let run = Run::of(Scenario::Blocks, &[Manner::Well, Manner::Well], &directory).await;
    let workers = [run.worker(0), run.worker(1)];
    let report = run.report().await;
    for worker in workers {
        assert_eq!(worker.await.unwrap(), 0);
    }
    assert_eq!(report.total.failures, BTreeMap::new());
    assert!(run.stored.lock().unwrap()[GOT].len() > 5);
    assert!(report.total.requests > 20, "{report:?}");
    assert_eq!(run.end().await, 0);
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn a_worker_that_dies_is_named_in_the_report() {
    let directory = directory("dies");
    let run = Run::of(Scenario::Identity, &[Manner::Well, Manner::Well], &directory).await;
    let (lives, dies) = (run.worker(0), run.worker(1));
    while run.progress().await.stage != Stage::Running {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    dies.abort();
    let report = run.report().await;
    assert_eq!((report.lost.as_slice(), report.peers.len()), (&[1][..], 1));
    assert_eq!(lives.await.unwrap(), 0);
    assert_eq!(run.end().await, 0);
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn a_run_without_all_of_its_workers_does_not_begin() {
    let directory = directory("lacks");
    let run = Run::of(Scenario::Identity, &[Manner::Well, Manner::Well], &directory).await;
    let only = run.worker(0);
    assert_eq!(run.manager.await.unwrap(), FAILED);
    only.abort();
    run.servers.iter().for_each(JoinHandle::abort);
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn a_worker_of_another_run_is_refused_and_says_so() {
    let directory = directory("other");
    let mut run = Run::of(Scenario::Identity, &[Manner::Well], &directory).await;
    run.load.run = "another".into();
    assert_eq!(run.worker(0).await.unwrap(), FAILED);
    run.load.run = "r".into();
    assert_eq!(run.worker(7).await.unwrap(), FAILED);
    run.manager.abort();
    run.servers.iter().for_each(JoinHandle::abort);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn jobs_have_the_environment_that_programs_read() {
    use crate::kinds::{SimulationSpec, SimulationStatus};
    use crate::simulation::objects::{Run, run_of};
    let spec: SimulationSpec =
        serde_json::from_value(json!({"scenario": "blocks", "users": 3, "throttleRequests": 9, "seed": -4}))
            .unwrap();
    let status = SimulationStatus {
        run: run_of(&spec),
        peers: vec!["peers-0-0".into(), "peers-0-1".into()],
        ..SimulationStatus::default()
    };
    let config: SimulationConfig = spec.into();
    let run = Run { name: "s", network: "n", peers_config_map: "peers", config: &config, status: &status };
    let read = |job: serde_json::Value| {
        let env = job["spec"]["template"]["spec"]["containers"][0]["env"].clone();
        move |name: &str| {
            let found = env.as_array()?.iter().find(|variable| variable["name"] == name)?;
            Some(found["value"].as_str().unwrap_or("127.0.0.1").to_owned())
        }
    };
    let sent = SimulationConfig { otlp_endpoint: "http://collector:4318".into(), ..config.clone() };
    let collector =
        ManagerSettings::read(read(Run { config: &sent, ..run }.manager())).unwrap().collector.unwrap();
    assert_eq!(collector.endpoint, "http://collector:4318");
    let of: Vec<String> = collector.resource.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(of[..3], ["service.name=mainstay-simulation", "mainstay.network=n", "mainstay.simulation=s"]);
    let manager = ManagerSettings::read(read(run.manager())).unwrap();
    let worker = WorkerSettings::read(read(run.worker(1, "http://127.0.0.1:1"))).unwrap();
    expect![[r#"
        (
            ManagerSettings {
                load: Load {
                    run: "e70468e71dd77936",
                    scenario: Blocks,
                    users: 3,
                    run_time: 60s,
                },
                workers: 2,
                start: 300s,
                grace: 60s,
                linger: 600s,
                address: 127.0.0.1:5115,
                collector: None,
            },
            WorkerSettings {
                load: Load {
                    run: "e70468e71dd77936",
                    scenario: Blocks,
                    users: 3,
                    run_time: 60s,
                },
                worker: 1,
                peer: "peers-0-1",
                manager: "http://127.0.0.1:1",
                peers_path: "/network/peers.json",
                throttle: PerSecond(
                    9,
                ),
                seed: -4,
                timeout: 5s,
            },
        )
    "#]]
    .assert_debug_eq(&(manager, worker));
    let wrong = |name: &'static str, value: &'static str| {
        let whole = read(run.worker(1, "http://127.0.0.1:1"));
        let told = move |asked: &str| if asked == name { Some(value.to_owned()) } else { whole(asked) };
        WorkerSettings::read(told).unwrap_err().to_string()
    };
    assert_eq!(
        wrong("SIMULATE_SCENARIO", "dance"),
        "SIMULATE_SCENARIO: `dance` is not one of identity, peers, blocks"
    );
    assert_eq!(wrong("SIMULATE_WORKER", ""), "SIMULATE_WORKER is not set");
}
