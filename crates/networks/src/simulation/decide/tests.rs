use std::fmt::Write as _;

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::kinds::{Adapter, SimulationSpec};
use crate::simulation::report::{Latencies, WorkerReport};

/// A simulation among Jobs that do as they are told.
struct Story {
    now: Timestamp,
    spec: SimulationSpec,
    status: SimulationStatus,
    network: NetworkState,
    peers: Vec<Peer>,
    pods: BTreeMap<String, String>,
    jobs: Jobs,
    former: bool,
    kept: bool,
    progress: Option<Progress>,
    report: Option<Report>,
    log: String,
}

fn look(ready_peers: i32) -> Look {
    Look { ready_peers, missing_edges: 0, components: 1 }
}

impl Story {
    fn new(spec: &serde_json::Value) -> Self {
        let mut whole = json!({"scenario": "identity", "runTimeSeconds": 10});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let peers: Vec<Peer> = (0..2).map(peer).collect();
        Self {
            now: Timestamp::UNIX_EPOCH,
            spec: serde_json::from_value(whole).unwrap(),
            status: SimulationStatus::default(),
            network: NetworkState::Ready(look(2)),
            pods: peers.iter().map(|peer| (peer.name.clone(), format!("uid-{}", peer.name))).collect(),
            peers,
            jobs: Jobs::default(),
            former: false,
            kept: false,
            progress: None,
            report: None,
            log: String::new(),
        }
    }

    fn run(&self) -> String {
        crate::simulation::objects::run_of(&self.spec)
    }

    /// One look. Returns what was decided.
    fn look(&mut self) -> Decision {
        let (config, run) = (SimulationConfig::from(self.spec.clone()), self.run());
        let situation = Situation {
            now: self.now,
            config: &config,
            run: &run,
            status: &self.status,
            network: &self.network,
            peers: &self.peers,
            pods: &self.pods,
            jobs: &self.jobs,
            has_former_jobs: self.former,
            has_report: self.kept,
            progress: self.progress.as_ref(),
            report: self.report.as_ref(),
            outcomes: &[],
        };
        let due = steps(&situation);
        let outcomes: Vec<(Step, Outcome)> = due.iter().map(|step| (step.clone(), Outcome::Done)).collect();
        let decision = decide(&Situation { outcomes: &outcomes, ..situation });
        for step in &due {
            let told = format!("{} {step:?}\n", self.seconds());
            self.log += &told;
        }
        let news = decision.news.as_ref().map(|(reason, message)| format!("{}: {message}", reason.as_str()));
        let wake = decision.wake_at.map(|at| at.duration_since(self.now).as_millis());
        let (phase, desired) = (decision.status.phase, &decision.desired);
        let wake = wake.map_or("-".into(), |wake| format!("{wake}ms"));
        let at = self.seconds();
        writeln!(self.log, "{at} {phase:?} {desired:?} {wake} {}", news.unwrap_or_default()).unwrap();
        self.status = decision.status.clone();
        decision
    }

    fn seconds(&self) -> String {
        format!("{:.1}", self.now.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64())
    }

    fn after(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self
    }

    fn starts(&mut self) {
        self.look();
        self.jobs.manager = Some(JobState::Active(self.now));
        self.jobs.manager_url = Some("http://10.0.0.9:5115".into());
        self.look();
        self.jobs.workers = (0..2).map(|worker| (worker, JobState::Active(self.now))).collect();
    }

    fn runs(&mut self) {
        self.starts();
        self.says(Stage::Running, 0);
        self.look();
    }

    fn says(&mut self, stage: Stage, elapsed_milliseconds: u64) {
        let (run, reported) = (self.run(), if stage == Stage::Done { 2 } else { 0 });
        self.progress =
            Some(Progress { run, stage, expected: 2, registered: 2, reported, elapsed_milliseconds });
        self.report = (stage == Stage::Done).then(|| self.found(2));
    }

    fn found(&self, workers: usize) -> Report {
        let worker = |worker: usize| WorkerReport {
            run: self.run(),
            worker,
            peer: format!("peers-0-{worker}"),
            requests: 7,
            failures: BTreeMap::new(),
            duration_milliseconds: 10_000,
            latencies: Latencies::default(),
        };
        let told = (0..workers).map(|place| (place, worker(place))).collect();
        Report::of((&self.run(), self.spec.scenario, 1), (self.now, self.now), 2, &told)
    }

    fn check(&self, expect: &Expect) {
        expect.assert_eq(&self.log);
    }
}

fn peer(place: usize) -> Peer {
    let address = format!("10.0.0.{place}");
    Peer {
        tag: "ipfs".into(),
        name: format!("peers-0-{place}"),
        peer_id: format!("id-{place}"),
        adapter: Adapter::Kubo,
        rpc_addr: format!("http://{address}:5001"),
        p2p_addrs: vec![format!("/ip4/{address}/tcp/4001/p2p/id-{place}")],
        others: BTreeMap::new(),
    }
}

#[test]
fn a_run_from_its_beginning_to_the_verdict() {
    let mut story =
        Story::new(&json!({"criteria": [{"metric": "requests", "comparison": ">=", "threshold": 5}]}));
    story.runs();
    for _ in 0..3 {
        story.after(5).look();
    }
    story.says(Stage::Done, 15_000);
    story.after(1).look();
    assert_eq!(story.status.criteria.len(), 1);
    assert!(story.status.samples.len() >= 2);
    story.kept = true;
    assert!(story.after(1).look().dismiss);
    story.jobs.manager = Some(JobState::Succeeded);
    assert!(!story.after(1).look().dismiss);
    story.check(&expect![[r#"
        0.0 Starting Load(None) - StartingManager: a manager is started for 2 workers
        0.0 Starting Load(Some("http://10.0.0.9:5115")) 1000ms StartingWorkers: 2 workers are started
        0.0 Running Load(Some("http://10.0.0.9:5115")) 0ms Running: there is load on 2 peers
        5.0 Running Load(Some("http://10.0.0.9:5115")) 1000ms Running: there is load on 2 peers
        10.0 Running Load(Some("http://10.0.0.9:5115")) 1000ms Running: there is load on 2 peers
        15.0 Running Load(Some("http://10.0.0.9:5115")) 1000ms Running: there is load on 2 peers
        16.0 Finished LoadAndReport 0ms Judged: 1 of 1 criteria are met
        17.0 Finished AsIs 2000ms 
        18.0 Finished AsIs - 
    "#]]);
}

#[test]
fn a_simulation_says_what_it_waits_for() {
    let mut story = Story::new(&json!({}));
    story.network = NetworkState::Missing;
    story.look();
    story.network = NetworkState::NotReady("Assembling: 1 of 2 peers answer".into(), look(1));
    story.look();
    story.network = NetworkState::Ready(look(2));
    let peers = std::mem::take(&mut story.peers);
    story.look();
    story.peers = peers;
    assert!(story.look().status_first);
    story.check(&expect![[r#"
          0.0 Pending Nothing - NetworkMissing: this namespace is no network's: a simulation is made in that of its network, network-NAME
          0.0 Pending Nothing - NetworkNotReady: the network is not ready: Assembling: 1 of 2 peers answer
          0.0 Pending Nothing - NoPeers: no peer is told in peers.json
          0.0 Starting Load(None) - StartingManager: a manager is started for 2 workers
    "#]]);
}

#[test]
fn a_lost_worker_fails_the_run() {
    let mut story = Story::new(&json!({}));
    story.runs();
    story.jobs.workers.insert(1, JobState::Failed("BackoffLimitExceeded".into()));
    story.after(1).look();
    story.after(1).look();
    story.check(&expect![[r#"
          0.0 Starting Load(None) - StartingManager: a manager is started for 2 workers
          0.0 Starting Load(Some("http://10.0.0.9:5115")) 1000ms StartingWorkers: 2 workers are started
          0.0 Running Load(Some("http://10.0.0.9:5115")) 0ms Running: there is load on 2 peers
          1.0 Failed Ended 0ms WorkerLost: worker 1 of peers-0-1 failed: BackoffLimitExceeded
          2.0 Failed Ended - 
    "#]]);
}

#[test]
fn a_lost_manager_fails_the_run() {
    for (state, starting) in [
        (Some(JobState::Failed("killed".into())), true),
        (Some(JobState::Succeeded), false),
        (None, false),
        (None, true),
    ] {
        let mut story = Story::new(&json!({}));
        if starting {
            story.starts();
        } else {
            story.runs();
        }
        story.jobs.manager = state;
        story.look();
        assert_eq!(story.status.phase, SimulationPhase::Failed, "{}", story.log);
    }
}

#[test]
fn deadlines_end_what_nobody_tells_of() {
    let mut never = Story::new(&json!({}));
    never.look();
    never.jobs.manager = Some(JobState::Active(never.now));
    never.look();
    never.after(300).look();
    never.check(&expect![[r#"
        0.0 Starting Load(None) - StartingManager: a manager is started for 2 workers
        0.0 Starting Load(None) 300000ms StartingManager: a manager is started for 2 workers
        300.0 Failed Ended 0ms StartDeadlineExceeded: the manager did not start within 300 seconds
    "#]]);
    let mut silent = Story::new(&json!({}));
    silent.runs();
    silent.progress = None;
    silent.after(100).look();
    silent.after(40).look();
    silent.check(&expect![[r#"
        0.0 Starting Load(None) - StartingManager: a manager is started for 2 workers
        0.0 Starting Load(Some("http://10.0.0.9:5115")) 1000ms StartingWorkers: 2 workers are started
        0.0 Running Load(Some("http://10.0.0.9:5115")) 0ms Running: there is load on 2 peers
        100.0 Running Load(Some("http://10.0.0.9:5115")) 1000ms Running: there is load on 2 peers
        140.0 Failed Ended 0ms RunDeadlineExceeded: there was no report 60 seconds after the load was over
    "#]]);
}

#[test]
fn who_never_told_is_no_ground_for_a_verdict() {
    let mut story = Story::new(&json!({}));
    story.runs();
    story.after(20).says(Stage::Done, 20_000);
    story.report = Some(story.found(1));
    story.look();
    assert_eq!((story.status.phase, story.status.verdict), (SimulationPhase::Failed, None));
}

#[test]
fn the_answer_of_another_run_is_not_believed() {
    let mut story = Story::new(&json!({}));
    story.starts();
    story.says(Stage::Done, 20_000);
    story.spec.nonce = Some("again".into());
    let run = story.run();
    story.status.run = run;
    story.look();
    assert_eq!(story.status.phase, SimulationPhase::Starting);
}

#[test]
fn another_nonce_mends_stops_and_runs_anew_and_the_same_never() {
    let faults = json!([{"atSeconds": 0, "action": "partition", "durationSeconds": 100}]);
    let mut story = Story::new(&json!({"faults": faults}));
    story.runs();
    story.look();
    story.after(1).look();
    assert!(story.status.faults.iter().any(faults::is_parted));
    story.spec.nonce = Some("again".into());
    (story.former, story.progress, story.jobs) = (true, None, Jobs::default());
    story.look();
    story.former = false;
    story.look();
    story.check(&expect![[r#"
        0.0 Starting Load(None) - StartingManager: a manager is started for 2 workers
        0.0 Starting Load(Some("http://10.0.0.9:5115")) 1000ms StartingWorkers: 2 workers are started
        0.0 Running Load(Some("http://10.0.0.9:5115")) 0ms Running: there is load on 2 peers
        0.0 Running Load(Some("http://10.0.0.9:5115")) 0ms Running: there is load on 2 peers
        1.0 Disturb { fault: 0, peer: "peers-0-0", disturbance: Block { addresses: [10.0.0.1], lasts: 9s } }
        1.0 Disturb { fault: 0, peer: "peers-0-1", disturbance: Block { addresses: [10.0.0.0], lasts: 9s } }
        1.0 Running Load(Some("http://10.0.0.9:5115")) 1000ms Running: there is load on 2 peers
        1.0 Disturb { fault: 0, peer: "peers-0-0", disturbance: Unblock([10.0.0.0, 10.0.0.1]) }
        1.0 Disturb { fault: 0, peer: "peers-0-1", disturbance: Unblock([10.0.0.0, 10.0.0.1]) }
        1.0 Pending Nothing - StoppingFormerRun: manager and workers of a former run are stopped
        1.0 Starting Load(None) - StartingManager: a manager is started for 2 workers
    "#]]);
}

#[test]
fn a_run_that_fails_mends_its_partition() {
    let faults = json!([{"atSeconds": 0, "action": "partition", "durationSeconds": 100}]);
    let mut story = Story::new(&json!({"faults": faults}));
    story.runs();
    story.look();
    story.after(1).look();
    story.jobs.manager = None;
    story.after(1).look();
    story.after(1).look();
    assert!(!story.status.faults.iter().any(faults::is_parted), "{}", story.log);
    assert!(story.after(1).look().wake_at.is_none(), "{}", story.log);
}

#[test]
fn a_manager_that_claims_to_have_run_for_ever_is_believed_to_the_beginning_of_time() {
    let faults = json!([{"atSeconds": 0, "action": "churn", "durationSeconds": 5}]);
    for elapsed in [u64::MAX, u64::MAX / 2, 1 << 62] {
        let mut story = Story::new(&json!({"faults": faults}));
        story.starts();
        story.says(Stage::Running, elapsed);
        story.look();
        story.look();
        assert_eq!(story.status.phase, SimulationPhase::Failed, "{}", story.log);
    }
}

#[test]
fn times_of_a_status_that_somebody_wrote_do_no_harm() {
    for at in [Timestamp::MIN, Timestamp::MAX] {
        let faults = json!([{"atSeconds": 0, "action": "churn", "durationSeconds": 5}]);
        let mut story = Story::new(&json!({"faults": faults}));
        story.runs();
        story.look();
        story.status.started_at = Some(Time(at));
        for fault in &mut story.status.faults {
            (fault.started_at, fault.rounds) = (Some(Time(at)), i32::MAX);
        }
        for sample in &mut story.status.samples {
            sample.at = Time(at);
        }
        story.after(1).look();
        story.jobs.manager = Some(JobState::Active(at));
        story.after(1).look();
    }
}
