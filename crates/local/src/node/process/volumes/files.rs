//! Files that change all at once: those of a volume, and single ones.
//!
//! The files of a volume are in a directory of their own. `..data` links to it, and what a container sees links through `..data`.
//! A new version is written beside the old one, and then the one link is renamed. A reader sees all of one version.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;

use super::Files;

const DATA: &str = "..data";
const NEXT: &str = "..data_tmp";

/// Makes a volume's directory hold exactly these files. Says whether anything changed.
pub(crate) fn write_files(directory: &Path, files: &Files) -> io::Result<bool> {
    for path in files.keys() {
        inside(path)?;
    }
    fs::create_dir_all(directory)?;
    let old = fs::read_link(directory.join(DATA)).ok();
    if old.as_ref().is_some_and(|old| holds(&directory.join(old), files)) {
        link_names(directory, files)?;
        return Ok(false);
    }
    remove_strays(directory, old.as_deref())?;
    let stamp = Timestamp::now().strftime("%Y_%m_%d_%H_%M_%S.%9N").to_string();
    let new = PathBuf::from(format!("..{stamp}"));
    if let Err(error) = write_version(directory, &new, files) {
        // What was written of it may be secret. If it cannot be removed now, it is before the next version.
        let _ = fs::remove_dir_all(directory.join(&new));
        return Err(error);
    }
    link_names(directory, files)?;
    if let Some(old) = old {
        fs::remove_dir_all(directory.join(old))?;
    }
    Ok(true)
}

/// Whether a volume's directory was filled by [`write_files`], and not by a container.
pub(crate) fn is_made_of_objects(directory: &Path) -> bool {
    fs::read_link(directory.join(DATA)).is_ok_and(|version| version.to_string_lossy().starts_with(".."))
}

/// Writes a version beside the others, and makes it the one that is seen. After an error, the last one still is.
fn write_version(directory: &Path, new: &Path, files: &Files) -> io::Result<()> {
    let whole = directory.join(new);
    fs::create_dir(&whole)?;
    for (path, file) in files {
        let path = whole.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &file.data)?;
        set_mode(&path, file.mode)?;
    }
    let next = directory.join(NEXT);
    remove_link(&next)?;
    link(new, &next)?;
    fs::rename(&next, directory.join(DATA))
}

/// Removes versions that are not seen: a node that is killed can leave one.
fn remove_strays(directory: &Path, seen: Option<&Path>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_version = entry.file_type()?.is_dir() && name.to_string_lossy().starts_with("..");
        if is_version && seen != Some(Path::new(&name)) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Replaces a file as a whole.
pub(crate) fn write_file(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let next = path.with_file_name(name);
    fs::write(&next, text)?;
    fs::rename(&next, path)
}

/// A path that stays below where it is put.
pub(crate) fn inside(path: &str) -> io::Result<PathBuf> {
    let stays =
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let taken = path.starts_with("..");
    if path.is_empty() || !stays || taken {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("path {path:?} leads out of its volume"),
        ));
    }
    Ok(Path::new(path).components().filter(|part| matches!(part, Component::Normal(_))).collect())
}

/// Whether a directory holds these files and no others.
fn holds(directory: &Path, files: &Files) -> bool {
    let same = files.iter().all(|(path, file)| {
        let path = directory.join(path);
        fs::read(&path).is_ok_and(|data| data == file.data)
            && mode_of(&path).is_none_or(|mode| mode == file.mode)
    });
    same && count(directory).is_ok_and(|count| count == files.len())
}

fn count(directory: &Path) -> io::Result<usize> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        sum += if entry.file_type()?.is_dir() { count(&entry.path())? } else { 1 };
    }
    Ok(sum)
}

/// Makes the names that a container sees, and takes away those that no file has any more.
fn link_names(directory: &Path, files: &Files) -> io::Result<()> {
    let tops: BTreeSet<&str> =
        files.keys().filter_map(|path| path.split('/').find(|part| *part != ".")).collect();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let ours = fs::read_link(entry.path()).is_ok_and(|target| target == Path::new(DATA).join(&name));
        if ours && !name.to_str().is_some_and(|name| tops.contains(name)) {
            fs::remove_file(entry.path())?;
        }
    }
    for top in tops {
        let name = directory.join(top);
        if fs::symlink_metadata(&name).is_err() {
            link(&Path::new(DATA).join(top), &name)?;
        }
    }
    Ok(())
}

/// Makes a symbolic link.
#[cfg(unix)]
pub(crate) fn link(target: &Path, name: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, name)
}

#[cfg(not(unix))]
pub(crate) fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Takes a link away, if there is one. What is no link is left, and is an error.
pub(crate) fn remove_link(name: &Path) -> io::Result<()> {
    match fs::symlink_metadata(name) {
        Ok(found) if found.is_symlink() => fs::remove_file(name),
        Ok(_) => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} is there already", name.display())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn mode_of(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).ok().map(|found| found.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode_of(_: &Path) -> Option<u32> {
    None
}

/// Makes a directory that only its owner can look into.
pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    set_mode(path, 0o700)
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::File;
    use super::*;

    fn files(all: &[(&str, &str, u32)]) -> Files {
        let file = |(path, text, mode): &(&str, &str, u32)| {
            ((*path).to_owned(), File { data: text.as_bytes().to_vec(), mode: *mode })
        };
        all.iter().map(file).collect()
    }

    fn seen(directory: &Path) -> Vec<String> {
        let names =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with("..")).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_there_with_their_modes() {
        let directory = tempfile::tempdir().unwrap();
        let changed =
            write_files(directory.path(), &files(&[("a", "1", 0o644), ("x/y", "2", 0o400)])).unwrap();
        assert!(changed);
        assert_eq!(seen(directory.path()), ["a", "x"]);
        assert_eq!(fs::read_to_string(directory.path().join("x/y")).unwrap(), "2");
        assert_eq!(mode_of(&directory.path().join("x/y")), Some(0o400));
    }

    #[test]
    fn same_files_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = files(&[("a", "1", 0o644)]);
        write_files(directory.path(), &wanted).unwrap();
        let version = fs::read_link(directory.path().join(DATA)).unwrap();
        assert!(!write_files(directory.path(), &wanted).unwrap());
        assert_eq!(fs::read_link(directory.path().join(DATA)).unwrap(), version);
    }

    #[test]
    fn new_version_takes_the_place_of_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        write_files(directory.path(), &files(&[("a", "1", 0o644), ("gone", "2", 0o644)])).unwrap();
        let old = directory.path().join(fs::read_link(directory.path().join(DATA)).unwrap());
        let changed =
            write_files(directory.path(), &files(&[("a", "one", 0o644), ("new", "3", 0o644)])).unwrap();
        assert!(changed);
        assert_eq!(seen(directory.path()), ["a", "new"]);
        assert_eq!(fs::read_to_string(directory.path().join("a")).unwrap(), "one");
        assert!(!old.exists());
    }

    #[test]
    fn version_that_could_not_be_written_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let versions = || {
            let all = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap());
            all.filter(|entry| entry.file_type().unwrap().is_dir()).count()
        };
        write_files(directory.path(), &files(&[("a", "1", 0o644)])).unwrap();
        // A file cannot be a directory as well.
        let impossible = files(&[("a", "secret", 0o644), ("a/b", "2", 0o644)]);
        for _ in 0..3 {
            assert!(write_files(directory.path(), &impossible).is_err());
        }
        assert_eq!(versions(), 1);
        assert_eq!(fs::read_to_string(directory.path().join("a")).unwrap(), "1");
        fs::create_dir(directory.path().join("..left")).unwrap();
        write_files(directory.path(), &files(&[("a", "2", 0o644)])).unwrap();
        assert_eq!(versions(), 1);
    }

    #[test]
    fn what_is_not_ours_in_a_volume_stays() {
        let directory = tempfile::tempdir().unwrap();
        link(Path::new("/elsewhere"), &directory.path().join("nested")).unwrap();
        write_files(directory.path(), &files(&[("a", "1", 0o644)])).unwrap();
        write_files(directory.path(), &files(&[])).unwrap();
        assert_eq!(seen(directory.path()), ["nested"]);
    }

    #[test]
    fn no_path_leads_out_of_its_volume() {
        let directory = tempfile::tempdir().unwrap();
        for path in ["../a", "/a", "a/../../b", "..data", ""] {
            let refused = write_files(directory.path(), &files(&[(path, "1", 0o644)]));
            assert!(refused.is_err(), "{path}");
        }
    }
}
