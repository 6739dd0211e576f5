//! What a node's directory remembers of pods, so that a node that was killed finds its way when it is started again.
//!
//! ```text
//! DIR/pods/NAMESPACE_NAME_UID/pod.json             whose it is, and its address
//!                             containers/NAME.json the last attempt: the process, or how it ended
//!                             roots/NAME/          what stands for the container's root
//!                             volumes/NAME/        volumes that are the pod's own
//!                             logs/NAME/0.log      what an attempt has printed
//!                             hosts                names and addresses
//! DIR/volumes/NAME/                                persistent volumes
//! DIR/retained/NAME                                that the volume's data stays when the volume goes
//! DIR/quarantine/                                  data of volumes and pods that the cluster does not know
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::runtime::PodId;
use super::signals::{Ending, Mark, end_group, end_process};
use super::strays::{end_strays, with_variable};
use super::volumes::files::{private_directory, write_file};

/// The variable that names the directory that stands for a container's root. All that a container starts has it.
pub(super) const ROOT: &str = "MAINSTAY_ROOT";

/// A pod that has a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PodRecord {
    namespace: String,
    name: String,
    uid: String,
    address: Ipv4Addr,
}

/// The last attempt of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Which one.
    pub(super) attempt: u32,
    /// From when.
    pub(super) since: Timestamp,
    /// The process.
    pub(super) process: Option<Mark>,
    /// How it ended, if it has.
    pub(super) exit: Option<Exit>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exit {
    /// With which code.
    pub(super) code: i32,
    /// When.
    pub(super) until: Timestamp,
    /// Why, if it was not its own doing.
    pub(super) message: Option<String>,
    /// It ended because the node did.
    #[serde(default)]
    pub(super) by_node: bool,
}

/// A pod as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remembered {
    /// Which pod.
    pub(super) id: PodId,
    /// Its address.
    pub(super) address: Ipv4Addr,
    /// Its containers by name.
    pub(super) containers: BTreeMap<String, Record>,
}

/// The directory of a node.
#[derive(Debug, Clone)]
pub(super) struct Layout(pub(super) PathBuf);

/// The directory of a pod.
#[derive(Debug, Clone)]
pub(super) struct PodDirectory(pub(super) PathBuf);

impl Layout {
    /// Where the files of all pods are.
    pub(super) fn pods(&self) -> PathBuf {
        self.0.join("pods")
    }

    /// Where a pod's files are.
    pub(super) fn pod(&self, id: &PodId) -> PodDirectory {
        let plain = |text: &str, most: usize| {
            let letters = text
                .chars()
                .map(|char| if char.is_ascii_alphanumeric() || "-.".contains(char) { char } else { '-' });
            letters.take(most).collect::<String>()
        };
        // A name can be as long as a file's may be; the uid tells pods apart.
        let name = format!("{}_{}_{}", plain(&id.namespace, 63), plain(&id.name, 100), plain(&id.uid, 64));
        PodDirectory(self.pods().join(name))
    }

    /// Where a persistent volume is. A claim can name what is no name of a volume, and must not lead anywhere by it.
    pub(super) fn volume(&self, name: &str) -> io::Result<PathBuf> {
        let letters = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte));
        if !letters || !name.starts_with(|first: char| first.is_ascii_alphanumeric()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} is no name of a volume"),
            ));
        }
        Ok(self.0.join("volumes").join(name))
    }

    /// Notes whether a volume's data stays when the volume itself goes.
    pub(super) fn retain_volume(&self, name: &str, stays: bool) -> io::Result<()> {
        // Leads nowhere else, if it is the name of a volume.
        self.volume(name)?;
        let retained = self.0.join("retained");
        if stays {
            private_directory(&retained)?;
            return fs::File::create(retained.join(name)).map(drop);
        }
        match fs::remove_file(retained.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The volumes that have data here which goes with them.
    pub(super) fn volumes(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.join("volumes")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| !self.0.join("retained").join(name).exists()).collect()
    }

    /// Writes down a pod and its address.
    pub(super) fn remember(&self, id: &PodId, address: Ipv4Addr) -> io::Result<()> {
        let record = PodRecord {
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            uid: id.uid.clone(),
            address,
        };
        let PodDirectory(directory) = self.pod(id);
        private_directory(&directory)?;
        write_file(&directory.join("pod.json"), &serde_json::to_vec(&record)?)
    }

    /// All pods that have a directory here. What cannot be read is as if it were not there.
    pub(super) fn remembered(&self) -> Vec<Remembered> {
        let entries = fs::read_dir(self.pods()).into_iter().flatten().flatten();
        entries.filter_map(|entry| remembered(&PodDirectory(entry.path()))).collect()
    }

    /// Removes what is nobody's: a directory that does not say whose it is would stay forever, with secrets in it.
    pub(super) fn sweep(&self) {
        for entry in fs::read_dir(self.pods()).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir()
                && read::<PodRecord>(&path.join("pod.json")).is_none()
                && let Err(error) = fs::remove_dir_all(&path)
            {
                tracing::warn!(directory = %path.display(), %error, "cannot remove files of no pod");
            }
        }
    }
}

fn remembered(directory: &PodDirectory) -> Option<Remembered> {
    let pod: PodRecord = read(&directory.0.join("pod.json"))?;
    let mut containers = BTreeMap::new();
    for entry in fs::read_dir(directory.0.join("containers")).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_record = path.extension().is_some_and(|extension| extension == "json");
        if let Some(name) = path.file_stem().and_then(|name| name.to_str()).filter(|_| is_record)
            && let Some(record) = read(&path)
        {
            containers.insert(name.to_owned(), record);
        }
    }
    let id = PodId { namespace: pod.namespace, name: pod.name, uid: pod.uid };
    Some(Remembered { id, address: pod.address, containers })
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

impl PodDirectory {
    /// What stands for a container's root.
    pub(super) fn root(&self, container: &str) -> PathBuf {
        self.0.join("roots").join(container)
    }

    /// A volume of the pod's own.
    pub(super) fn volume(&self, name: &str) -> PathBuf {
        self.0.join("volumes").join(name)
    }

    /// Where logs are.
    pub(super) fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// The hosts file.
    pub(super) fn hosts(&self) -> PathBuf {
        self.0.join("hosts")
    }

    /// Writes down the last attempt of a container.
    pub(super) fn record(&self, container: &str, record: &Record) -> io::Result<()> {
        let directory = self.0.join("containers");
        fs::create_dir_all(&directory)?;
        write_file(&directory.join(format!("{container}.json")), &serde_json::to_vec(record)?)
    }
}

/// Ends what was left running by a node that was killed, and writes down that it ended. Processes have `grace` to end by
/// themselves. Returns how many there were.
///
/// They are known by their records, each with the time at which the process began, so that no other is taken for it. On Linux, those
/// are found as well that they have started, wherever those have gone.
pub(super) async fn end_leftovers(layout: &Layout, grace: Duration) -> io::Result<usize> {
    let pods = layout.remembered();
    let running = |record: &Record| record.exit.is_none();
    let marks = || {
        let records = pods.iter().flat_map(|pod| pod.containers.values()).filter(|record| running(record));
        records.filter_map(|record| record.process.as_ref()).filter(|mark| mark.is_alive())
    };
    let strays = || with_variable(ROOT, &layout.pods());
    let any = || marks().next().is_some() || !strays().is_empty();
    let end = |how: Ending| {
        marks().for_each(|mark| end_group(mark.pid, how));
        for pid in strays() {
            end_process(pid, how);
        }
    };
    let count = marks().count().max(strays().len());
    if count > 0 {
        end(Ending::Asked);
        wait_while(grace, any).await;
        end(Ending::Forced);
        let pods = layout.pods();
        let _ = tokio::task::spawn_blocking(move || end_strays(ROOT, &pods)).await;
        // Whoever does not end when killed waits for a disk that does not answer, and is not waited for.
        wait_while(PATIENCE, any).await;
    }
    for pod in &pods {
        for (name, record) in pod.containers.iter().filter(|(_, record)| running(record)) {
            let message = Some("The node was killed while the container ran".to_owned());
            let exit = Exit { code: 137, until: Timestamp::now(), message, by_node: true };
            layout
                .pod(&pod.id)
                .record(name, &Record { exit: Some(exit), process: None, ..record.clone() })?;
        }
    }
    Ok(count)
}

/// Waits for something to be over, and no longer than `patience`.
async fn wait_while(patience: Duration, goes_on: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + patience;
    while goes_on() && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(LOOK).await;
    }
}

/// How long the system may take to end a process that is killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks at processes that are not our children, of whose end nobody tells us.
const LOOK: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> PodId {
        PodId { namespace: "shop".into(), name: name.into(), uid: "u-1".into() }
    }

    #[test]
    fn pods_are_remembered_with_their_containers() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout(directory.path().to_owned());
        let address = Ipv4Addr::new(127, 3, 4, 5);
        layout.remember(&id("web"), address).unwrap();
        let exit = Exit { code: 3, until: Timestamp::UNIX_EPOCH, message: None, by_node: true };
        let record = Record { attempt: 2, since: Timestamp::UNIX_EPOCH, process: None, exit: Some(exit) };
        layout.pod(&id("web")).record("main", &record).unwrap();
        let containers = [("main".to_owned(), record)].into();
        assert_eq!(layout.remembered(), [Remembered { id: id("web"), address, containers }]);
    }

    #[test]
    fn directory_that_is_no_pods_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout(directory.path().to_owned());
        layout.remember(&id("web"), Ipv4Addr::new(127, 3, 4, 5)).unwrap();
        let PodDirectory(nobodys) = layout.pod(&id("gone"));
        fs::create_dir_all(nobodys.join("volumes/keys")).unwrap();
        layout.sweep();
        assert!(!nobodys.exists());
        assert_eq!(layout.remembered().len(), 1);
    }

    #[test]
    fn directories_of_pods_are_below_the_nodes_whatever_their_names() {
        let layout = Layout("/node".into());
        for name in ["web", "../../etc", "a/b", &"x".repeat(253)] {
            let PodDirectory(path) = layout.pod(&id(name));
            assert_eq!(path.parent(), Some(Path::new("/node/pods")), "{name}");
            assert!(path.file_name().unwrap().len() < 255);
        }
    }

    #[test]
    fn volumes_are_below_the_nodes_directory_or_nowhere() {
        let layout = Layout("/node".into());
        assert_eq!(layout.volume("pv-1.a").unwrap(), Path::new("/node/volumes/pv-1.a"));
        for name in ["..", ".", "", "../pods", "/etc", "a/b"] {
            assert!(layout.volume(name).is_err(), "{name}");
        }
    }

    #[test]
    fn data_that_is_to_stay_is_told_from_data_that_goes_with_its_volume() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout(directory.path().to_owned());
        assert!(layout.volumes().is_empty());
        for name in ["goes", "stays"] {
            fs::create_dir_all(layout.volume(name).unwrap()).unwrap();
        }
        layout.retain_volume("stays", true).unwrap();
        layout.retain_volume("goes", false).unwrap();
        assert_eq!(layout.volumes(), ["goes"]);
        layout.retain_volume("stays", false).unwrap();
        assert_eq!(layout.volumes().len(), 2);
        assert!(layout.retain_volume("../pods", true).is_err());
    }

    #[tokio::test]
    async fn process_of_another_life_is_not_touched() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout(directory.path().to_owned());
        layout.remember(&id("web"), Ipv4Addr::new(127, 3, 4, 5)).unwrap();
        // Our own process, at another time: ending it would end this test.
        let mut mark = serde_json::to_value(Mark::of(std::process::id())).unwrap();
        mark["started"] = 1.into();
        let process = serde_json::from_value(mark).unwrap();
        let record = Record { attempt: 0, since: Timestamp::UNIX_EPOCH, process: Some(process), exit: None };
        layout.pod(&id("web")).record("main", &record).unwrap();
        assert_eq!(end_leftovers(&layout, Duration::ZERO).await.unwrap(), 0);
        let found = layout.remembered().remove(0).containers.remove("main").unwrap();
        assert_eq!(found.exit.map(|exit| exit.code), Some(137));
    }
}
