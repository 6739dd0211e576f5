//! One task for each process: it copies what the process prints, has its health watched, ends it when told to, and says what
//! became of it.

use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::runtime::{CannotStart, Launch};
use super::Shared;
use super::logs::capture::{LogFile, SharedLog, capture, drop_older, log_path};
use super::logs::line::Stream;
use super::prepare::{Prepared, cannot_run};
use super::probes::{Finding, Patient};
use super::record::{Exit, ROOT, Record};
use super::signals::{Ending, Mark, end_group, end_rest};
use super::state::{Attempt, Running, Stop};
use super::strays::{self, end_strays, waited_for};

/// A process that was started, and all that its supervisor needs.
struct Supervised {
    shared: Weak<Shared>,
    launch: Launch,
    since: Timestamp,
    child: Child,
    pid: u32,
    log: SharedLog,
    stop: watch::Receiver<Option<Stop>>,
    patient: Patient,
}

/// How long a pod has to end, if it does not say.
const GRACE: Duration = Duration::from_secs(30);

/// How long a process that has ended may leave its output to others before it is cut off.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Starts a process. From its start to its being known here nothing is waited for, so it cannot be lost on the way.
pub(super) fn spawn(shared: &Arc<Shared>, launch: Launch, prepared: Prepared) -> Result<(), CannotStart> {
    let fail = |what: &str, error: &dyn std::fmt::Display| cannot_run(format!("{what}: {error}"));
    let directory = shared.layout.pod(&launch.pod);
    let logs = directory.logs();
    drop_older(&logs, &launch.container, launch.attempt)
        .map_err(|error| fail("cannot remove old logs", &error))?;
    let path = log_path(&logs, &launch.container, launch.attempt);
    let (log, progress) = shared
        .write(&launch.pod, || LogFile::open(path, shared.options.log_bytes_max))
        .map_err(|error| fail("cannot open the log", &error))?;
    let hidden = prepared.line.first() != Some(&prepared.program);
    let about = format!("exec: {:?}", prepared.program);
    let unfound =
        |error: String| cannot_run(if hidden { format!("{about}: it cannot be found") } else { error });
    let mut command = prepared.invocation.command(&prepared.line).map_err(unfound)?;
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());

    let mut pods = shared.pods();
    let known = pods.0.get_mut(&launch.pod).filter(|_| !shared.is_closing());
    let pod = known.ok_or_else(|| cannot_run("the pod is being ended".into()))?;
    if pod.containers.get(&launch.container).is_some_and(|known| known.number >= launch.attempt) {
        return Ok(());
    }
    let mut child = strays::spawn(&mut command).map_err(|error| fail(&about, &error))?;
    let pid = child.id().unwrap_or_default();
    let since = Timestamp::now();
    let record = Record { attempt: launch.attempt, since, process: Some(Mark::of(pid)), exit: None };
    if let Err(error) = directory.record(&launch.container, &record) {
        end_group(pid, Ending::Forced);
        let _ = child.start_kill();
        waited_for(pid);
        return Err(fail("cannot write down the process", &error));
    }
    let (stop_now, stop) = watch::channel(None);
    let container = &prepared.container;
    let (started, ready) = (container.startup_probe.is_none(), container.readiness_probe.is_none());
    let patient = Patient {
        container: prepared.container,
        address: launch.address.clone(),
        invocation: prepared.invocation,
        since: Instant::now(),
    };
    let log = Arc::new(Mutex::new(log));
    let (name, number, object) = (launch.container.clone(), launch.attempt, launch.object.clone());
    let supervised =
        Supervised { shared: Arc::downgrade(shared), launch, since, child, pid, log, stop, patient };
    let supervisor = Some(shared.handle.spawn(supervised.supervise()));
    let running = Running { pid, started, ready, stop: stop_now, supervisor };
    let attempt = Attempt { number, since, running: Some(running), exit: None, progress: Some(progress) };
    pod.containers.insert(name, attempt);
    pod.object = Some(object);
    Ok(())
}

impl Supervised {
    async fn supervise(mut self) {
        let copies = self.copy_output();
        let health = self.watch_health();
        let status = self.wait(&health).await;
        health.abort();
        waited_for(self.pid);
        end_rest(self.pid);
        // Before its end is told: the next attempt has the same root. When the node ends, it looks for those of all containers at once.
        if self.shared.upgrade().is_some_and(|shared| !shared.is_closing()) {
            let root = self.patient.invocation.root.clone();
            let _ = tokio::task::spawn_blocking(move || end_strays(ROOT, &root)).await;
        }
        for mut copy in copies {
            // Somebody outside the group may hold the other end: what it prints is no longer the container's.
            if timeout(LAST_WORDS, &mut copy).await.is_err() {
                copy.abort();
            }
        }
        self.log.lock().unwrap_or_else(PoisonError::into_inner).end();
        self.finish(status.ok());
    }

    fn copy_output(&mut self) -> Vec<JoinHandle<()>> {
        let out =
            self.child.stdout.take().map(|out| tokio::spawn(capture(out, Stream::Stdout, self.log.clone())));
        let err =
            self.child.stderr.take().map(|err| tokio::spawn(capture(err, Stream::Stderr, self.log.clone())));
        out.into_iter().chain(err).collect()
    }

    fn watch_health(&self) -> JoinHandle<()> {
        let patient = Patient {
            container: self.patient.container.clone(),
            address: self.patient.address.clone(),
            invocation: self.patient.invocation.clone(),
            since: self.patient.since,
        };
        let (shared, launch) = (self.shared.clone(), self.launch.clone());
        tokio::spawn(patient.attend(move |finding: Finding| {
            if let Some(shared) = shared.upgrade() {
                let spec = launch.object.spec.as_ref();
                let grace = spec.and_then(|spec| u64::try_from(spec.termination_grace_period_seconds?).ok());
                let grace = grace.map_or(GRACE, Duration::from_secs);
                let (pod, name, number) = (&launch.pod, &launch.container, launch.attempt);
                if shared.pods().take(pod, name, number, finding, grace) {
                    shared.tell(pod);
                }
            }
        }))
    }

    /// Waits for the process to end, and sees to it that it does when it is told to.
    async fn wait(&mut self, health: &JoinHandle<()>) -> std::io::Result<ExitStatus> {
        let mut deadline = None;
        loop {
            let due = deadline.unwrap_or_else(Instant::now);
            tokio::select! {
                status = self.child.wait() => return status,
                Ok(()) = self.stop.changed() => {
                    let wanted = self.stop.borrow_and_update().as_ref().map(|stop| stop.deadline);
                    if deadline.is_none() {
                        // One that ends is not asked how it is.
                        health.abort();
                        end_group(self.pid, Ending::Asked);
                    }
                    deadline = wanted;
                }
                () = sleep_until(due), if deadline.is_some() => {
                    end_group(self.pid, Ending::Forced);
                    return self.child.wait().await;
                }
            }
        }
    }

    /// Writes down how it ended, and tells.
    fn finish(self, status: Option<ExitStatus>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let message = self.stop.borrow().as_ref().and_then(|stop| stop.message.clone());
        let code = exit_code(status);
        // What ends because the node does has not done its work, whatever it says.
        let by_node = shared.is_closing();
        let (code, message) = match (by_node, code) {
            (true, 0) => (ENDED_WITH_NODE, Some("The node was shut down".to_owned())),
            _ => (code, message),
        };
        let exit = Exit { code, until: Timestamp::now(), message, by_node };
        let (pod, name, number) = (&self.launch.pod, &self.launch.container, self.launch.attempt);
        let mut pods = shared.pods();
        if let Some(attempt) = pods.attempt_mut(pod, name, number) {
            let record =
                Record { attempt: number, since: self.since, process: None, exit: Some(exit.clone()) };
            if let Err(error) = shared.layout.pod(pod).record(name, &record) {
                tracing::warn!(pod = pod.name, container = name, %error, "cannot write down how a container ended");
            }
            attempt.running = None;
            attempt.exit = Some(exit);
        }
        drop(pods);
        shared.tell(pod);
    }
}

/// As if ended by the signal that asks for it.
const ENDED_WITH_NODE: i32 = 128 + 15;

/// The code that a status has for an ended process: its own, or 128 and the signal's number.
fn exit_code(status: Option<ExitStatus>) -> i32 {
    let Some(status) = status else { return 255 };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(255)
}
