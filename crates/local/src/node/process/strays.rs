//! Processes that a container's processes have started, wherever they have gone, and how they are ended.
//!
//! ```text
//! freeze what is found ─▶ look again ─▶ nothing new: kill all ─▶ look again ─▶ nothing there, or the time is up
//! ```
//!
//! A process is a container's if it has the container's `MAINSTAY_ROOT` in its environment, or is a descendant of one that has. One
//! that has left its session and emptied its environment (`setsid env -i`) has neither once its parent has ended. Where the node
//! [adopts orphans](adopt_orphans), such a process becomes a child of this program. Then it is a container's
//!
//! - if its working directory is the container's, or
//! - if every container that ran when it was started has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use super::signals::{Ending, Stat, end_process, stat};

/// How long processes are looked for that start others all the time.
const STRAYS_TIME_MAX: Duration = Duration::from_secs(10);
/// How long processes that were killed have to vanish before the next look.
const PAUSE: Duration = Duration::from_millis(2);
/// Between the end of a child and the look for others that have ended.
#[cfg(unix)]
const GATHERING: Duration = Duration::from_secs(1);

/// The children of this program that containers and probes were started as, and when each began. Children belong to a program,
/// whichever part of it has started them, so there is one list.
static STARTED: Mutex<BTreeMap<u32, u64>> = Mutex::new(BTreeMap::new());
/// Whether orphans become children of this program.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Makes this program the parent of all descendants whose own parent has ended, so that none of them is lost. For a program that starts
/// no processes but those of pods: it reaps every child that [`Processes`](super::Processes) has not started.
///
/// # Errors
/// If the system refuses, or is not Linux.
pub fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        ADOPTS.store(true, Ordering::SeqCst);
        Ok(())
    }
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether orphans become children of this program.
pub(super) fn adopts() -> bool {
    ADOPTS.load(Ordering::SeqCst)
}

fn started() -> MutexGuard<'static, BTreeMap<u32, u64>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a process. Whoever waits for it says so by [`waited_for`].
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    // Locked until it is listed, so that nobody takes it for an orphan.
    let mut started = started();
    let child = command.spawn()?;
    if let Some(pid) = child.id() {
        started.insert(pid, stat(pid).map_or(u64::MAX, |stat| stat.started));
    }
    Ok(child)
}

/// A process that [`spawn`] has started was waited for, or is left to tokio.
pub(super) fn waited_for(pid: u32) {
    started().remove(&pid);
}

/// Reaps orphans whenever children of this program end, for as long as the node is there.
#[cfg(unix)]
pub(super) async fn keep_reaping(node: Weak<impl Sized>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut ended) = signal(SignalKind::child()) else { return };
    while ended.recv().await.is_some() && node.strong_count() > 0 {
        // Many end together.
        tokio::time::sleep(GATHERING).await;
        let _ = tokio::task::spawn_blocking(reap_orphans).await;
    }
}

/// Reads the exit status of all orphans that have ended, for which nobody else waits.
#[cfg(unix)]
fn reap_orphans() {
    let own = std::process::id();
    // Locked meanwhile: a child that is started now is not in the list yet.
    let started = started();
    for (number, stat) in processes() {
        if stat.ended
            && stat.parent == own
            && !started.contains_key(&number)
            && let Some(pid) = super::signals::pid(number)
        {
            // Gone already, if tokio was faster.
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
        }
    }
}

/// All processes of the machine but this one.
fn processes() -> Vec<(u32, Stat)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = numbers.filter(|pid| *pid != std::process::id());
    others.filter_map(|pid| Some((pid, stat(pid)?))).collect()
}

/// The processes that were started with a variable that is this path, or one below it.
pub(super) fn with_variable(name: &str, path: &Path) -> Vec<u32> {
    let alive = processes().into_iter().filter(|(_, stat)| !stat.ended).map(|(pid, _)| pid);
    alive.filter(|pid| has_variable(*pid, name, Some(path)) == Some(true)).collect()
}

/// Whether a process was started with a variable that is this path, or one below it; or with any, if no path is given. `None` if its
/// environment cannot be read: then it is another user's, and not ours.
fn has_variable(pid: u32, name: &str, path: Option<&Path>) -> Option<bool> {
    let variables = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let is_it = |variable: &[u8]| {
        let value = variable.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(|value| path.is_none_or(|path| is_below(value, path)))
    };
    Some(variables.split(|byte| *byte == 0).any(is_it))
}

fn is_below(value: &[u8], path: &Path) -> bool {
    let rest = value.strip_prefix(path.as_os_str().as_encoded_bytes());
    // As Linux shows a directory that is gone.
    rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..] | b" (deleted)"))
}

/// The processes that are those of a path, and have not ended.
fn strays(name: &str, path: &Path) -> Vec<(u32, Stat)> {
    let own = std::process::id();
    let all: Vec<_> = processes().into_iter().filter(|(_, stat)| !stat.ended).collect();
    let session = stat(own).map(|own| own.session);
    let started = started().clone();
    let is_stray = |pid: u32, stat: &Stat| {
        let Some(has_it) = has_variable(pid, name, Some(path)) else { return false };
        // What was started here can leave its group, but not its session: it leads a group. So this is no child that is just being started.
        let is_orphan = stat.parent == own && Some(stat.session) != session && !started.contains_key(&pid);
        has_it || adopts() && is_orphan && (is_in(pid, path) || is_nobodys(pid, stat, name, &started))
    };
    let mut found: BTreeSet<u32> =
        all.iter().filter(|(pid, stat)| is_stray(*pid, stat)).map(|(pid, _)| *pid).collect();
    loop {
        let children = all.iter().filter(|(pid, stat)| found.contains(&stat.parent) && !found.contains(pid));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        if children.is_empty() {
            break;
        }
        found.extend(children);
    }
    all.into_iter().filter(|(pid, _)| found.contains(pid)).collect()
}

/// Whether a process works in a directory.
fn is_in(pid: u32, path: &Path) -> bool {
    let directory = std::fs::read_link(format!("/proc/{pid}/cwd"));
    directory.is_ok_and(|directory| is_below(directory.as_os_str().as_encoded_bytes(), path))
}

/// Whether nothing that runs can have started an orphan.
fn is_nobodys(pid: u32, orphan: &Stat, name: &str, started: &BTreeMap<u32, u64>) -> bool {
    has_variable(pid, name, None) == Some(false) && started.values().all(|start| *start > orphan.started)
}

/// Ends all processes that are those of a path, wherever they have gone. They may start others faster than they are killed, so they
/// are frozen first. Gives the number of those that are left when the time is up: one that does not end when killed waits for a disk.
pub(super) fn end_strays(name: &str, path: &Path) -> usize {
    let until = Instant::now() + STRAYS_TIME_MAX;
    let mut frozen = BTreeSet::new();
    loop {
        let strays = strays(name, path);
        if strays.is_empty() {
            return 0;
        }
        let is_over = Instant::now() > until;
        let new: Vec<u32> = strays
            .iter()
            .filter(|(pid, stat)| frozen.insert((*pid, stat.started)))
            .map(|(pid, _)| *pid)
            .collect();
        if new.is_empty() || is_over {
            for (pid, _) in &strays {
                end_process(*pid, Ending::Forced);
            }
            std::thread::sleep(PAUSE);
        } else {
            for pid in new {
                end_process(pid, Ending::Frozen);
            }
        }
        if is_over {
            let path = path.display();
            tracing::warn!(left = strays.len(), %path, "processes of a pod do not end");
            return strays.len();
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Stdio;

    use mainstay_testkit::eventually;

    use super::*;

    const ROOT: &str = "MAINSTAY_ROOT";
    const ALONE: &str = "MAINSTAY_TEST_ALONE";

    /// Whether this is a program that runs one test alone. If not, it starts one: whoever adopts orphans does so for the whole program.
    fn is_alone(test: &str) -> bool {
        if std::env::var_os(ALONE).is_some() {
            return true;
        }
        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        let path = format!("node::process::strays::tests::{test}");
        assert!(program.args(["--exact", &path]).env(ALONE, "yes").status().unwrap().success());
        false
    }

    /// A process of a container that works in this directory.
    fn contained(script: &str, directory: &Path) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env(ROOT, directory).current_dir(directory).process_group(0);
        spawn(command.stdin(Stdio::null()).stdout(Stdio::piped())).unwrap()
    }

    /// Runs a script to its end, with the exit code three. Gives the processes that it names, which sleep by then.
    async fn left_by(script: &str, directory: &Path) -> Vec<u32> {
        let child = contained(script, directory);
        let pid = child.id().unwrap();
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(output.status.code(), Some(3));
        waited_for(pid);
        let pids: Vec<u32> =
            String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        for pid in &pids {
            eventually("it sleeps", async || {
                let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
                command.starts_with(b"sleep\0").then_some(())
            })
            .await;
        }
        pids
    }

    fn runs(pid: u32) -> bool {
        stat(pid).is_some_and(|stat| !stat.ended)
    }

    #[tokio::test]
    async fn an_orphan_without_session_and_environment_ends_with_its_container() {
        if !is_alone("an_orphan_without_session_and_environment_ends_with_its_container") {
            return;
        }
        adopt_orphans().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (directory.path().join("one"), directory.path().join("other"));
        for path in [&one, &other] {
            std::fs::create_dir(path).unwrap();
        }
        let mut first = contained("exec sleep 600", &other);
        let number = first.id().unwrap();
        let escape = "setsid env -i sleep 600 > /dev/null 2>&1 & echo $!";
        let left = left_by(&format!("{escape}; cd /; {escape}; exit 3"), &one).await;
        let [near, far] = left[..] else { panic!("{left:?}") };
        assert_eq!(stat(near).map(|stat| stat.parent), Some(std::process::id()));

        assert_eq!(end_strays(ROOT, &other.join("nothing")), 0);
        assert!(runs(near) && runs(far), "they are another container's");
        assert_eq!(end_strays(ROOT, &one), 0);
        assert!(!runs(near));
        assert!(runs(far), "the other container could have started it");
        first.kill().await.unwrap();
        waited_for(number);
        assert_eq!(end_strays(ROOT, &other), 0);
        assert!(!runs(far));
        eventually("both are reaped", async || {
            reap_orphans();
            (stat(near).is_none() && stat(far).is_none()).then_some(())
        })
        .await;
    }

    #[tokio::test]
    async fn reaping_leaves_exit_codes_to_those_who_wait_for_them() {
        if !is_alone("reaping_leaves_exit_codes_to_those_who_wait_for_them") {
            return;
        }
        adopt_orphans().unwrap();
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..20 {
            let mut child = contained("exit 7", directory.path());
            let pid = child.id().unwrap();
            eventually("it has ended", async || {
                reap_orphans();
                stat(pid).is_none_or(|stat| stat.ended).then_some(())
            })
            .await;
            reap_orphans();
            assert_eq!(child.wait().await.unwrap().code(), Some(7));
            waited_for(pid);
        }
    }
}
