//! Processes from outside: signals to them and to their groups, and how one is known again.

use serde::{Deserialize, Serialize};

use super::strays::waited_for;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// Whether it only waits for its parent to read its exit status.
    pub(super) ended: bool,
    /// The number of its parent.
    pub(super) parent: u32,
    /// The number of its session.
    pub(super) session: u32,
    /// When it began, in ticks since the machine did.
    pub(super) started: u64,
}

/// The process of this number, if there is one.
pub(super) fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `/proc/PID/stat`. The program's name, in brackets, may hold anything.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(Stat {
        ended: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        // Negative for none.
        session: fields.get(3)?.parse().unwrap_or_default(),
        started: fields.get(19)?.parse().ok()?,
    })
}

/// How a process is asked or made to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It may take its time.
    Asked,
    /// At once.
    Forced,
    /// Not yet, but it does nothing more until it is ended.
    Frozen,
}

#[cfg(unix)]
impl Ending {
    fn signal(self) -> rustix::process::Signal {
        match self {
            Self::Asked => rustix::process::Signal::TERM,
            Self::Forced => rustix::process::Signal::KILL,
            Self::Frozen => rustix::process::Signal::STOP,
        }
    }
}

#[cfg(unix)]
pub(super) fn pid(number: u32) -> Option<rustix::process::Pid> {
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
            waited_for(number);
            end_rest(number);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            waited_for(number);
            end_group(number, Ending::Forced);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_start_are_read_whatever_the_name() {
        let rest = "5 6 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 77 1000 10";
        let expected = Stat { ended: false, parent: 5, session: 7, started: 77 };
        assert_eq!(parse_stat(&format!("12 (a) R b) S {rest}")), Some(expected));
        assert_eq!(parse_stat(&format!("12 (x) Z {rest}")), Some(Stat { ended: true, ..expected }));
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
