//! Processes from outside: signals to them and to their groups, and how one is known again.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// A process, such that another one of the same number is not taken for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Its number, and that of its group.
    pub(super) pid: u32,
    /// When it began, in ticks since the machine did.
    started: Option<u64>,
    /// Which of the machine's runs that was.
    boot: Option<String>,
}

impl Mark {
    /// The process of this number, as it is now.
    pub(super) fn of(pid: u32) -> Self {
        let started = stat(pid).map(|stat| stat.started);
        Self { pid, started, boot: boot() }
    }

    /// Whether this very process runs. Where that cannot be told, it is not.
    pub(super) fn is_alive(&self) -> bool {
        let now = stat(self.pid);
        self.started.is_some()
            && self.boot == boot()
            && now.is_some_and(|now| !now.ended && Some(now.started) == self.started)
    }
}

fn boot() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// What the system says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    ended: bool,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `/proc/PID/stat`. The program's name, in brackets, may hold anything.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(Stat { ended: matches!(*fields.first()?, "Z" | "X"), started: fields.get(19)?.parse().ok()? })
}

/// The processes that were started with a variable that is this path, or one below it.
pub(super) fn with_variable(name: &str, path: &Path) -> Vec<u32> {
    let wanted = format!("{name}={}", path.display()).into_bytes();
    let below =
        |variable: &[u8]| variable.strip_prefix(&*wanted).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_it = |pid: &u32| {
        // Those of other users cannot be read, and are not ours.
        let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(below)
    };
    let alive = |pid: &u32| stat(*pid).is_some_and(|stat| !stat.ended);
    numbers.filter(|pid| *pid != std::process::id()).filter(has_it).filter(alive).collect()
}

/// How a process is asked or made to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It may take its time.
    Asked,
    /// At once.
    Forced,
}

#[cfg(unix)]
impl Ending {
    fn signal(self) -> rustix::process::Signal {
        match self {
            Self::Asked => rustix::process::Signal::TERM,
            Self::Forced => rustix::process::Signal::KILL,
        }
    }
}

#[cfg(unix)]
fn pid(number: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(number).ok()?)
}

/// Ends all processes of a group. One that is gone already is well gone.
#[cfg(unix)]
pub(super) fn end_group(number: u32, how: Ending) {
    if let Some(pid) = pid(number) {
        let _ = rustix::process::kill_process_group(pid, how.signal());
    }
}

#[cfg(not(unix))]
pub(super) fn end_group(_: u32, _: Ending) {}

/// Ends one process.
#[cfg(unix)]
pub(super) fn end_process(number: u32, how: Ending) {
    if let Some(pid) = pid(number) {
        let _ = rustix::process::kill_process(pid, how.signal());
    }
}

#[cfg(not(unix))]
pub(super) fn end_process(_: u32, _: Ending) {}

/// Ends what is left of a group whose first process has been waited for. As long as anything is left, its number is not given to
/// another process: one that has the number now shows that nothing is.
pub(super) fn end_rest(number: u32) {
    if stat(number).is_none() {
        end_group(number, Ending::Forced);
    }
}

/// Ends all processes that have a variable, wherever they have gone. They may start others while they are looked for, so it is looked
/// until none is found, and no more often than `LOOKS`: one that does not end when killed waits for a disk.
pub(super) fn end_strays(name: &str, path: &Path) {
    for _ in 0..LOOKS {
        let strays = with_variable(name, path);
        if strays.is_empty() {
            return;
        }
        for stray in strays {
            end_process(stray, Ending::Forced);
        }
    }
}

const LOOKS: u32 = 5;

/// A group of processes that ends with this value.
pub(super) struct Group(Option<u32>);

impl Group {
    /// The group of a process that was started at its head.
    pub(super) fn of(child: &tokio::process::Child) -> Self {
        Self(child.id())
    }

    /// Ends what the first process has left behind when it ended by itself.
    pub(super) fn end_rest(mut self) {
        if let Some(number) = self.0.take() {
            end_rest(number);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            end_group(number, Ending::Forced);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_start_are_read_whatever_the_name() {
        let rest = "1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 77 1000 10";
        assert_eq!(parse_stat(&format!("12 (a) R b) S {rest}")), Some(Stat { ended: false, started: 77 }));
        assert_eq!(parse_stat(&format!("12 (x) Z {rest}")), Some(Stat { ended: true, started: 77 }));
        assert_eq!(parse_stat("12 (x) S 1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_is_known_again_and_no_other_is_taken_for_it() {
        let own = Mark::of(std::process::id());
        assert!(own.is_alive());
        assert!(!Mark { started: own.started.map(|ticks| ticks + 1), ..own.clone() }.is_alive());
        assert!(!Mark { boot: Some("another".into()), ..own.clone() }.is_alive());
        assert!(!Mark { started: None, ..own }.is_alive());
    }
}
