//! A small file system, where this process may mount one.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A file system in memory. It is unmounted when this is dropped.
pub(crate) struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts one. Where that is not allowed, `what` is skipped, and said so past the capture of test output.
    ///
    /// # Panics
    /// When `MAINSTAY_REQUIRE_REAL=1` and it is not allowed.
    pub(crate) fn mount(what: &str, mebibytes: usize) -> Option<Self> {
        let directory = TempDir::new().expect("a temporary directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"])
            .arg(directory.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk(directory));
        }
        let required = std::env::var("MAINSTAY_REQUIRE_REAL").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "MAINSTAY_REQUIRE_REAL=1, but {what} cannot run: mounting a small tmpfs needs root"
        );
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: {what}: mounting a small tmpfs needs root\n");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn make_read_only(&self) {
        let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(self.path()).status();
        assert!(remounted.is_ok_and(|status| status.success()), "remounting");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
