//! The directory of a `mainstay up --memory`: it goes when that ends. Where it was killed, the next `mainstay up` of the same user
//! ends what is left of its processes, and removes it.
//!
//! ```text
//! TMP/mainstay-memory-XXXXXX/owner       locked by the process that it belongs to, and says which that is
//!                            kubeconfig
//!                            pods/
//! ```
//!
//! The lock is the operating system's, so it ends with the process however that ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use mainstay_local::node::process::end_left_behind;
use tempfile::TempDir;

const PREFIX: &str = "mainstay-memory-";
const OWNER: &str = "owner";

/// A directory that is there for as long as this.
#[derive(Debug)]
pub(super) struct Temporary {
    // Removed first, let go of after that.
    directory: TempDir,
    _lock: File,
}

impl Temporary {
    pub(super) fn make() -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            builder.permissions(std::fs::Permissions::from_mode(0o700));
        }
        let directory = builder.tempdir()?;
        let mut lock = File::create_new(directory.path().join(OWNER))?;
        // Only what says whose it is can be taken for abandoned: a directory that is being made is not.
        lock.lock()?;
        writeln!(lock, "{}", std::process::id())?;
        Ok(Self { directory, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Ends and removes what killed processes have left. What cannot be removed is told, and is in nobody's way.
pub(super) async fn tidy_up() {
    for (directory, lock) in abandoned(&std::env::temp_dir()) {
        let ended = end_left_behind(&directory.join("pods")).await;
        match ended.and_then(|ended| std::fs::remove_dir_all(&directory).map(|()| ended)) {
            Ok(processes) => {
                tracing::info!(directory = %directory.display(), processes, "removed what a killed run had left");
            }
            Err(error) => {
                tracing::warn!(directory = %directory.display(), %error, "cannot remove what a killed run has left");
            }
        }
        // Until here nobody else could take it for abandoned.
        drop(lock);
    }
}

/// Directories whose owner is dead, each with its lock.
fn abandoned(within: &Path) -> Vec<(PathBuf, File)> {
    let entries = std::fs::read_dir(within).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let own = named.map(|entry| entry.path()).filter(|path| is_own(path));
    own.filter_map(|path| Some((path.clone(), lock_of_dead(&path.join(OWNER))?))).collect()
}

/// Whether a directory is this user's and nobody else can write to it. Others may put anything into a directory for all: what they
/// say of processes must not be believed.
#[cfg(unix)]
fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_dir() && found.uid() == own && found.mode() & 0o777 == 0o700)
}

#[cfg(not(unix))]
fn is_own(_: &Path) -> bool {
    false
}

fn lock_of_dead(owner: &Path) -> Option<File> {
    let lock = OpenOptions::new().read(true).open(owner).ok()?;
    lock.try_lock().ok()?;
    (lock.metadata().ok()?.len() > 0).then_some(lock)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_a_private_directory_of_a_dead_owner_is_abandoned() {
        let world = tempfile::tempdir().unwrap();
        let make = |name: &str, owner: Option<&str>, mode: u32| {
            let path = world.path().join(name);
            std::fs::create_dir(&path).unwrap();
            if let Some(owner) = owner {
                std::fs::write(path.join(OWNER), owner).unwrap();
            }
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        };
        let dead = make("mainstay-memory-dead", Some("7\n"), 0o700);
        let lives = make("mainstay-memory-lives", Some("8\n"), 0o700);
        let held = File::open(lives.join(OWNER)).unwrap();
        held.lock().unwrap();
        make("mainstay-memory-begun", Some(""), 0o700);
        make("mainstay-memory-bare", None, 0o700);
        make("mainstay-memory-open", Some("9\n"), 0o777);
        make("mainstay-data", Some("9\n"), 0o700);
        std::os::unix::fs::symlink(&dead, world.path().join("mainstay-memory-link")).unwrap();
        let found: Vec<PathBuf> = abandoned(world.path()).into_iter().map(|(path, _)| path).collect();
        assert_eq!(found, [dead]);
    }
}
