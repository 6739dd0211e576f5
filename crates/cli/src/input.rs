//! Files and standard input that people name: read as text, up to a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest file of rules, manifests or a kubeconfig.
pub(crate) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The largest file that holds a single line.
pub(crate) const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Reads a file as text.
pub(crate) fn read_file(path: &Path, bytes_max: u64) -> io::Result<String> {
    read_text(File::open(path)?, bytes_max)
}

/// Reads a file, or standard input if it is called `-`.
pub(crate) fn read_file_or_stdin(path: &Path) -> io::Result<String> {
    if path == Path::new("-") {
        return read_text(io::stdin().lock(), FILE_BYTES_MAX);
    }
    read_file(path, FILE_BYTES_MAX)
}

/// Reads all that there is, and fails if that is more than the bound: `/dev/zero` has no end.
pub(crate) fn read_text(from: impl Read, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|read| read > bytes_max) {
        let message = format!("it has more than {bytes_max} bytes, which is as much as is read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_as_long_as_the_bound_is_read_and_nothing_longer() {
        assert_eq!(read_text(&b"abc"[..], 3).unwrap(), "abc");
        assert_eq!(read_text(&b"abcd"[..], 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_text(io::repeat(0), 1000).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_text(&b"abc"[..], u64::MAX).unwrap(), "abc");
        assert_eq!(read_text(&b"\xff"[..], 3).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
