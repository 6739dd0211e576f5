//! The token that guards metrics and debug pages, from a file.

use crate::failure::Failure;
use crate::input::{LINE_BYTES_MAX, read_file};
use std::path::Path;

/// Reads a token: the first line of the file.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let named = |failure: Failure| failure.context(format!("cannot read a token from {}", path.display()));
    let text = read_file(path, LINE_BYTES_MAX).map_err(|error| named(Failure::new(error)))?;
    let token = text.lines().next().unwrap_or_default().trim();
    let is_sendable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_sendable {
        let why = anyhow::anyhow!("its first line has to be letters, digits and signs, without spaces");
        return Err(named(Failure::new(why)).next(format!("openssl rand -hex 32 > {}", path.display())));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_first_line_of_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        assert_eq!(of("secret\n").unwrap(), "secret");
        for wrong in ["", "\nsecret", "two words", "ü"] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
