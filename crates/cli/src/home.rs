//! The directory that keeps an API server's state, and the claim on it.
//!
//! ```text
//! DIR/store.redb         every object
//! DIR/credentials.json   keys and token, the same over restarts
//! DIR/kubeconfig         how clients get in
//! DIR/pods               logs and volumes of pods that run as processes
//! DIR/lock               held by the process that serves DIR; says where it serves
//! ```
//!
//! One process at a time serves a directory. The claim is a lock of the operating system on an open file,
//! so it ends with the process however that ends.

use crate::input::{LINE_BYTES_MAX, read_text};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// Where state is kept when nobody says.
pub(crate) fn default_directory(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // The XDG specification has relative paths ignored.
    let set = |name| variable(name).filter(|path| path.is_absolute());
    let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("mainstay"))
}

/// Why a directory could not be claimed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    #[error("cannot keep state in {path}")]
    Unusable { path: PathBuf, source: io::Error },
    #[error("{path} is in use by another `mainstay up`")]
    Taken { path: PathBuf, holder: Option<Holder> },
    #[error("others can write to {path}")]
    Exposed { path: PathBuf, why: String },
}

/// Who serves a directory, as its lock file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub process: u32,
    pub url: String,
    pub kubeconfig: PathBuf,
}

impl Holder {
    fn render(&self) -> String {
        format!("{}\n{}\n{}\n", self.process, self.url, self.kubeconfig.display())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (process, url, kubeconfig) = (lines.next()?, lines.next()?, lines.next()?);
        Some(Holder { process: process.parse().ok()?, url: url.to_owned(), kubeconfig: kubeconfig.into() })
    }
}

/// A directory that this process alone serves, as long as this lives.
#[derive(Debug)]
pub(crate) struct Home {
    directory: PathBuf,
    lock: File,
}

impl Home {
    /// Makes the directory if need be, readable by its owner only, and claims it.
    pub(crate) fn claim(directory: PathBuf) -> Result<Self, ClaimError> {
        let unusable = |source| ClaimError::Unusable { path: directory.clone(), source };
        make_private_directory(&directory).map_err(unusable)?;
        if let Some(why) = exposed(&directory).map_err(unusable)? {
            return Err(ClaimError::Exposed { path: directory, why });
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut lock = options.open(directory.join("lock")).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {
                // What the last holder said is no longer so.
                lock.set_len(0).map_err(unusable)?;
                Ok(Home { directory, lock })
            }
            Err(TryLockError::WouldBlock) => {
                let said = read_text(&mut lock, LINE_BYTES_MAX);
                let holder = said.ok().and_then(|said| Holder::parse(&said));
                Err(ClaimError::Taken { path: directory, holder })
            }
            Err(TryLockError::Error(source)) => Err(unusable(source)),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.directory.join("credentials.json")
    }

    pub(crate) fn pods(&self) -> PathBuf {
        self.directory.join("pods")
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// Leaves word for whoever finds the directory claimed.
    pub(crate) fn announce(&mut self, holder: &Holder) -> io::Result<()> {
        self.lock.set_len(0)?;
        self.lock.rewind()?;
        self.lock.write_all(holder.render().as_bytes())
    }
}

fn make_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Why others can write to a directory, if they can. Keys, objects and programs of pods are kept there, and run by this user.
#[cfg(unix)]
fn exposed(path: &Path) -> io::Result<Option<String>> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata(path)?;
    let (owner, own) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != own && owner != 0 {
        return Ok(Some(format!("it belongs to user {owner}, and this is user {own}")));
    }
    let mode = found.mode() & 0o777;
    Ok((mode & 0o022 != 0).then(|| format!("its mode is {mode:03o}")))
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn exposed(_: &Path) -> io::Result<Option<String>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_goes_where_the_user_keeps_data() {
        let given = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(k, v)| ((*k).to_owned(), PathBuf::from(v))).collect();
            default_directory(|name| {
                pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
            })
        };
        let path = |text| Some(PathBuf::from(text));
        assert_eq!(given(&[("XDG_DATA_HOME", "/data"), ("HOME", "/me")]), path("/data/mainstay"));
        assert_eq!(given(&[("HOME", "/me")]), path("/me/.local/share/mainstay"));
        assert_eq!(given(&[("XDG_DATA_HOME", "here"), ("HOME", "/me")]), path("/me/.local/share/mainstay"));
        assert_eq!(given(&[]), None);
    }

    #[test]
    fn a_claimed_directory_is_refused_and_says_who_serves_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let mut home = Home::claim(path.clone()).unwrap();
        let holder =
            Holder { process: 7, url: "https://127.0.0.1:1".into(), kubeconfig: path.join("kubeconfig") };
        home.announce(&holder).unwrap();
        match Home::claim(path.clone()) {
            Err(ClaimError::Taken { holder: found, .. }) => assert_eq!(found, Some(holder)),
            other => panic!("{other:?}"),
        }
        drop(home);
        Home::claim(path).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        use std::fs::Permissions;
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        for (mode, is_refused) in
            [(0o770, true), (0o702, true), (0o777, true), (0o755, false), (0o700, false)]
        {
            std::fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
            let claimed = Home::claim(directory.path().to_owned());
            assert_eq!(
                matches!(claimed, Err(ClaimError::Exposed { .. })),
                is_refused,
                "{mode:o}: {claimed:?}"
            );
        }
    }
}
