//! How many files and sockets this process may have open.

/// What is assumed where the system does not say.
#[cfg(not(unix))]
const ASSUMED: usize = 1024;

/// Raises the limit as far as this user may, and says what it is then. Systems start programs with a low one, for the sake of those
/// that can count no further, and leave it to the others to raise it.
pub(super) fn raise_limit() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        if limit.current != limit.maximum {
            // Where it stays as it is, there are fewer connections.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        }
        let current = getrlimit(Resource::Nofile).current;
        current.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }
    #[cfg(not(unix))]
    ASSUMED
}
