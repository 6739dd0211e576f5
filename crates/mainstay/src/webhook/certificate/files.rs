//! A certificate from files that somebody else renews: `tls.crt`, `tls.key` and, if it is there, `ca.crt`, as cert-manager
//! and Secrets of type `kubernetes.io/tls` are mounted.
//!
//! A reader may come between the exchange of two files. A certificate and a key that do not belong together are therefore
//! refused, the pair before them goes on being served, and the next look finds the whole.

use std::io;
use std::path::{Path, PathBuf};

use super::served::PairError;

/// The files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file cannot be read.
    #[error("reading {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// What they hold is no certificate with its key.
    #[error("using the certificate in {}", .0.display())]
    Pair(PathBuf, #[source] PairError),
}

/// What the files hold.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) certificates: String,
    pub(crate) key: String,
    pub(crate) authority: Option<String>,
}

/// Reads them. They are small and on this machine, so that nothing waits for long.
pub(crate) fn observe_files(directory: &Path) -> Result<Files, FilesError> {
    let read = |name: &str| {
        let path = directory.join(name);
        std::fs::read_to_string(&path).map_err(|error| FilesError::Read(path, error))
    };
    let authority = match read("ca.crt") {
        Ok(authority) => Some(authority).filter(|text| !text.trim().is_empty()),
        Err(FilesError::Read(_, error)) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(Files { certificates: read("tls.crt")?, key: read("tls.key")?, authority })
}
