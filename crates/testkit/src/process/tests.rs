use super::*;
use std::time::{Duration, Instant};

/// Asks until there is an answer.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The number that a script writes first.
fn pid(process: &Process) -> String {
    let number = |said: String| said.lines().find_map(|line| line.strip_prefix("pid ").map(str::to_owned));
    until("the script to begin", || number(process.last_words()))
}

fn runs(pid: &str) -> bool {
    // One that nobody has waited for is dead all the same.
    fs::read_to_string(Path::new("/proc").join(pid).join("stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn until_gone(pid: &str) {
    until("the process to end", || (!runs(pid)).then_some(()));
}

#[test]
fn dropping_a_process_kills_the_program_and_removes_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let (log, work) = (directory.path().join("log"), directory.path().join("work"));
    fs::create_dir(&work).unwrap();
    let script = ["-c", "echo pid $$; exec sleep 600"];
    let process = Process::spawn(Path::new("sh"), &script, log, Some(&work)).unwrap();
    let pid = pid(&process);
    assert!(runs(&pid));
    drop(process);
    assert!(!runs(&pid));
    assert!(!work.exists());
}

#[test]
fn what_a_program_leaves_running_goes_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let (log, work) = (directory.path().join("log"), directory.path().join("work"));
    fs::create_dir(&work).unwrap();
    let mut command = Command::new("sh");
    // In a session of its own, as a pod's process is: no signal to a group reaches it.
    command.args(["-c", "setsid sleep 600 & echo pid $!; exit 3"]);
    let mut process = Process::spawn_in(&work, &command, log).unwrap();
    let left = pid(&process);
    assert_eq!(process.wait().unwrap().code(), Some(3));
    until_gone(&left);
    assert!(!work.exists());
}

#[test]
fn a_signal_to_our_group_does_not_end_the_supervisor() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let script = ["-c", "echo pid $$; exec sleep 600"];
    let process = Process::spawn(Path::new("sh"), &script, log, None).unwrap();
    let pid = pid(&process);
    let group = |pid: &str| {
        let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap();
        stat.rsplit(") ").next().unwrap().split(' ').nth(2).unwrap().to_owned()
    };
    assert_ne!(group(&pid), group("self"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_dies_with_the_thread_that_started_it() {
    let spawned = std::thread::spawn(|| {
        let id = dies_with_us("sleep").arg("600").spawn().unwrap().id().to_string();
        let program = Path::new("/proc").join(&id).join("comm");
        until("the program to begin", || (fs::read_to_string(&program).ok()? == "sleep\n").then_some(()));
        id
    });
    until_gone(&spawned.join().unwrap());
}
