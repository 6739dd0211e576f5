//! Data that the cluster does not know of: nobody asked for it to be deleted. The cluster may have been restored from a copy that is
//! older than the data is.
//!
//! ```text
//! DIR/quarantine/VOLUME/                 files of a volume; never deleted
//! DIR/quarantine/NAMESPACE_NAME_UID/     logs and scratch files of a pod; those of the last hundred pods are kept
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::runtime::PodId;
use super::record::{Layout, PodDirectory};
use super::volumes::files::{is_made_of_objects, private_directory};

/// How often data of one volume's name is set aside before somebody has to look.
const QUARANTINED_MAX: u32 = 1000;
/// How many pods have files in quarantine. Those of the oldest are removed: scratch files and logs end with their pod in any cluster.
const PODS_MAX: usize = 100;

impl Layout {
    fn quarantine_directory(&self) -> PathBuf {
        self.0.join("quarantine")
    }

    /// Moves the data of a volume that the cluster does not know to where nobody uses it, and nobody deletes it.
    pub(super) fn quarantine(&self, name: &str) -> io::Result<PathBuf> {
        let (from, quarantine) = (self.volume(name)?, self.quarantine_directory());
        private_directory(&quarantine)?;
        // Data of the same name may be there from a start before.
        for number in 0..QUARANTINED_MAX {
            let to = quarantine.join(if number == 0 { name.to_owned() } else { format!("{name}.{number}") });
            if fs::symlink_metadata(&to).is_err() {
                return fs::rename(&from, &to).map(|()| to);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{} is full of {name}", quarantine.display()),
        ))
    }

    /// Moves the files of a pod aside that the cluster does not know, and says where they are. Volumes that were made of Secrets and
    /// other objects are removed, and so is a pod that has no files otherwise.
    pub(super) fn quarantine_pod(&self, id: &PodId) -> io::Result<Option<PathBuf>> {
        let PodDirectory(from) = self.pod(id);
        for volume in fs::read_dir(from.join("volumes")).into_iter().flatten().flatten() {
            if is_made_of_objects(&volume.path()) {
                fs::remove_dir_all(volume.path())?;
            }
        }
        if !["logs", "volumes", "roots"].iter().any(|part| has_files(&from.join(part))) {
            fs::remove_dir_all(&from)?;
            return Ok(None);
        }
        let quarantine = self.quarantine_directory();
        private_directory(&quarantine)?;
        // A uid is in its name, so it is nobody else's. Names of volumes have no underscore.
        let to = quarantine.join(from.file_name().unwrap_or_default());
        fs::rename(&from, &to)?;
        self.remove_oldest_pods()?;
        Ok(Some(to))
    }

    fn remove_oldest_pods(&self) -> io::Result<()> {
        let entries = fs::read_dir(self.quarantine_directory())?.flatten();
        let pods = entries.filter(|entry| entry.file_name().to_string_lossy().contains('_'));
        let mut pods: Vec<_> =
            pods.filter_map(|pod| Some((pod.metadata().ok()?.modified().ok()?, pod.path()))).collect();
        pods.sort();
        let surplus = pods.len().saturating_sub(PODS_MAX);
        pods.iter().take(surplus).try_for_each(|(_, path)| fs::remove_dir_all(path))
    }
}

/// Whether there is any file that is not empty. Links are not followed.
fn has_files(directory: &Path) -> bool {
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => directories.push(entry.path()),
                Ok(found) if found.is_file() && found.len() > 0 => return true,
                _ => {}
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_an_unknown_volume_is_set_aside_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout(directory.path().to_owned());
        for (text, expected) in [("one", "quarantine/pv"), ("two", "quarantine/pv.1")] {
            let volume = layout.volume("pv").unwrap();
            fs::create_dir_all(&volume).unwrap();
            fs::write(volume.join("data"), text).unwrap();
            assert_eq!(layout.quarantine("pv").unwrap(), directory.path().join(expected));
            assert_eq!(fs::read_to_string(directory.path().join(expected).join("data")).unwrap(), text);
            assert!(!volume.exists());
        }
        assert!(layout.quarantine("pv").is_err() && layout.quarantine("../pods").is_err());
    }

    fn id(number: usize) -> PodId {
        PodId { namespace: "shop".into(), name: "web".into(), uid: format!("u-{number}") }
    }

    #[cfg(unix)]
    #[test]
    fn logs_and_scratch_files_of_an_unknown_pod_are_set_aside_but_no_secrets() {
        use super::super::volumes::files::write_files;
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout(directory.path().to_owned());
        let pod = layout.pod(&id(0));
        fs::create_dir_all(pod.volume("work")).unwrap();
        fs::write(pod.volume("work").join("data"), "much work").unwrap();
        let file = super::super::volumes::File { data: b"hunter2".to_vec(), mode: 0o600 };
        write_files(&pod.volume("keys"), &[("password".to_owned(), file)].into()).unwrap();
        let to = layout.quarantine_pod(&id(0)).unwrap().unwrap();
        assert_eq!(to, directory.path().join("quarantine/shop_web_u-0"));
        assert_eq!(fs::read_to_string(to.join("volumes/work/data")).unwrap(), "much work");
        assert!(!to.join("volumes/keys").exists() && !pod.0.exists());
    }

    #[test]
    fn a_pod_without_files_is_removed_and_only_the_last_hundred_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout(directory.path().to_owned());
        let empty = layout.pod(&id(0));
        fs::create_dir_all(empty.root("main").join("tmp")).unwrap();
        fs::create_dir_all(empty.logs().join("main")).unwrap();
        fs::write(empty.logs().join("main/0.log"), "").unwrap();
        assert_eq!(layout.quarantine_pod(&id(0)).unwrap(), None);
        assert!(!empty.0.exists());
        fs::create_dir_all(layout.volume("pv").unwrap()).unwrap();
        layout.quarantine("pv").unwrap();
        for number in 1..=PODS_MAX + 3 {
            let logs = layout.pod(&id(number)).logs();
            fs::create_dir_all(&logs).unwrap();
            fs::write(logs.join("0.log"), "x").unwrap();
            assert!(layout.quarantine_pod(&id(number)).unwrap().is_some());
        }
        let kept = fs::read_dir(directory.path().join("quarantine")).unwrap().count();
        assert_eq!(kept, PODS_MAX + 1);
        assert!(directory.path().join("quarantine/pv").exists());
    }
}
