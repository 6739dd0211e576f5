//! Why `mainstay up` does not come up, and what helps.

use super::narrate::quoted;
use crate::failure::Failure;
use crate::home::{ClaimError, Home};
use mainstay_apiserver::{BuildError, CredentialsError, DiskError, ServeError};
use mainstay_local::cluster::StartError;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

const ELSEWHERE: &str = "mainstay up --data DIR keeps the state elsewhere, --memory keeps none";

/// What helps, where a full disk is helped by room first.
fn or_room(error: &(dyn std::error::Error + 'static), otherwise: &str) -> String {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    let is_full = |error: &io::Error| error.kind() == io::ErrorKind::StorageFull;
    if causes.any(|cause| cause.downcast_ref().is_some_and(is_full)) {
        format!("make room on the disk, or: {otherwise}")
    } else {
        otherwise.to_owned()
    }
}

pub(super) fn no_directory() -> Failure {
    Failure::new(anyhow::anyhow!("no directory to keep state in: neither XDG_DATA_HOME nor HOME is set"))
        .next("mainstay up --data DIR, or --memory")
}

pub(super) fn claim(error: ClaimError) -> Failure {
    match error {
        ClaimError::Unusable { .. } => {
            let next = or_room(&error, ELSEWHERE);
            Failure::new(error).next(next)
        }
        ClaimError::Exposed { path, why } => {
            let next = format!("chmod 700 {}, or: {ELSEWHERE}", quoted(&path));
            Failure::new(anyhow::anyhow!(why))
                .context(format!("other users can write to {}", path.display()))
                .unchanged("everything in it")
                .next(next)
        }
        ClaimError::Taken { path, holder } => {
            let taken = format!("{} is in use by another `mainstay up`", path.display());
            let failure = Failure::new(anyhow::anyhow!("{taken}"));
            let Some(holder) = holder else {
                return failure.unchanged("that one goes on").next(ELSEWHERE);
            };
            let who = format!("process {} serves it at {}", holder.process, holder.url);
            Failure::new(anyhow::anyhow!(who))
                .context(taken)
                .unchanged("that one goes on")
                .next(format!("export KUBECONFIG={}", quoted(&holder.kubeconfig)))
        }
    }
}

pub(super) fn credentials(error: CredentialsError, home: &Home) -> Failure {
    let unchanged = format!("the objects in {}", home.directory().display());
    match &error {
        CredentialsError::Content { path, .. } => {
            let next = format!("rm {}, and the next start makes new ones", quoted(path));
            Failure::new(error).unchanged(unchanged).next(next)
        }
        CredentialsError::File { .. } | CredentialsError::Make(_) => {
            let next = or_room(&error, ELSEWHERE);
            Failure::new(error).unchanged(unchanged).next(next)
        }
    }
}

pub(super) fn store(error: BuildError, home: &Home) -> Failure {
    let directory = home.directory().display();
    let BuildError::Disk(disk) = &error;
    let next = match disk {
        DiskError::Directory { .. } => or_room(disk, ELSEWHERE),
        DiskError::InUse { .. } => format!("end the process that has it open, or: {ELSEWHERE}"),
        DiskError::Format { .. } => format!("use the mainstay that wrote it, or: {ELSEWHERE}"),
        DiskError::Unreadable { path, .. }
        | DiskError::Entry { path, .. }
        | DiskError::Damaged { path, .. } => {
            format!("restore {} from a copy, or: {ELSEWHERE}", quoted(path))
        }
    };
    Failure::new(error).unchanged(format!("everything in {directory}")).next(next)
}

pub(super) fn serve(error: ServeError, asked: SocketAddr, directory: Option<&Path>) -> Failure {
    let next = match &error {
        ServeError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            let free = SocketAddr::new(asked.ip(), 0);
            format!("end what uses port {}, or: mainstay up --listen {free}", asked.port())
        }
        ServeError::Listen { .. } => "mainstay up --listen 127.0.0.1:0 takes any free port".into(),
        ServeError::Credentials(_) | ServeError::Tls(_) => match directory {
            Some(path) => {
                format!("rm {}, and the next start makes new ones", quoted(&path.join("credentials.json")))
            }
            None => "try again".into(),
        },
    };
    let failure = Failure::new(error).next(next);
    match directory {
        Some(path) => failure.unchanged(format!("the objects in {}", path.display())),
        None => failure,
    }
}

pub(super) fn cluster(error: StartError) -> Failure {
    let failure = match &error {
        StartError::Directory { .. } => {
            let next = or_room(&error, ELSEWHERE);
            Failure::new(error).next(next)
        }
        _ => Failure::new(error)
            .context("the cluster does not start")
            .next("try again; if it stays so, it is a bug"),
    };
    failure.unchanged("all objects")
}

pub(super) fn rules(error: impl Into<anyhow::Error>, path: &Path) -> Failure {
    Failure::new(error)
        .context(format!("cannot use the rules in {}", path.display()))
        .unchanged("everything: nothing was started")
        .next("mend the file; without --rules every pod but those of mainstay:* is simulated as it is by default")
}

pub(super) fn kubeconfig(error: io::Error, path: &Path) -> Failure {
    let next = or_room(&error, "mainstay up --kubeconfig FILE writes it elsewhere");
    Failure::new(error)
        .context(format!("cannot write the kubeconfig {}", path.display()))
        .unchanged("all objects")
        .next(next)
}

/// A file that somebody else made is not written over; most likely it is a kubeconfig of other clusters.
pub(super) fn foreign_kubeconfig(path: &Path) -> Failure {
    Failure::new(anyhow::anyhow!("it exists and holds something else than a kubeconfig of mainstay"))
        .context(format!("cannot write the kubeconfig {}", path.display()))
        .unchanged("that file")
        .next("name a file of its own; export KUBECONFIG=FILE1:FILE2 makes kubectl read both")
}

/// A file that another process writes, whose server is there if it can be told.
pub(super) fn taken_kubeconfig(path: &Path, server: Option<&str>) -> Failure {
    let taken = format!("the kubeconfig {} is in use by another `mainstay up`", path.display());
    let failure = match server {
        Some(url) => Failure::new(anyhow::anyhow!("it serves at {url}")).context(taken),
        None => Failure::new(anyhow::anyhow!(taken)),
    };
    failure.unchanged("that one goes on").next("mainstay up --kubeconfig FILE writes it elsewhere")
}
