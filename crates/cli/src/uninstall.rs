//! `mainstay uninstall`: takes a system out of a cluster, and leaves nothing stuck.
//!
//! ```text
//! cluster ─▶ find: what is left of the system ─▶ table            without --yes
//!              ▲                └─▶ remove, in that order ─┐      with --yes
//!              └──────────────── look again ◀──────────────┘      until nothing is left, or the deadline
//! ```
//!
//! The operator goes first, or it would put back what is taken off. Finalizers follow: nobody is there any more to take them off. What users
//! wrote, and the CRDs, go only if that is asked for.

mod find;
mod remove;

use crate::cluster::{Cluster, Connection};
use crate::failure::Failure;
use crate::output::{Paint, Table, count, patiently, print, say};
use crate::systems::{self, System};
use find::{Leftover, What};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Pods and objects that are being deleted are waited for this long.
const PATIENCE: Duration = Duration::from_mins(2);
/// Time between two looks.
const AGAIN: Duration = Duration::from_millis(500);

/// How `mainstay uninstall` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The system.
    #[arg(value_name = "SYSTEM")]
    system: String,
    /// The namespace that it runs in.
    #[arg(short, long, value_name = "NAMESPACE", default_value = "mainstay-system")]
    namespace: String,
    /// The namespace that it looks at, if it was installed with --watch.
    #[arg(long, value_name = "NAMESPACE", conflicts_with = "crds")]
    watch: Option<String>,
    /// Delete the objects of its kinds too, with all that was made for them.
    #[arg(long)]
    delete_objects: bool,
    /// Delete the CRDs of its kinds, last.
    #[arg(long, requires = "delete_objects")]
    crds: bool,
    /// Do it. Without this it is only shown.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Where to look, and for what.
struct Extent<'a> {
    system: &'static System,
    home: &'a str,
    watch: Option<&'a str>,
    delete_objects: bool,
    crds: bool,
}

/// Shows what is there, or takes it away. The code is 1 if something is there, or left.
pub(crate) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let system = systems::find(&options.system, "uninstall")?;
    let cluster = options.connection.open().await?;
    let extent = Extent {
        system,
        home: &options.namespace,
        watch: options.watch.as_deref(),
        delete_objects: options.delete_objects,
        crds: options.crds,
    };
    let found = patiently("reading the cluster", find::leftovers(&cluster, &extent)).await?;
    if found.is_empty() {
        say(&format!("nothing is left of {}\n", system.name));
        return Ok(ExitCode::SUCCESS);
    }
    if !options.yes {
        print(&table(&found))?;
        say(&format!("nothing is changed yet: {} would go\n", count(found.len(), "item")));
        say("next: --yes does it\n");
        return Ok(ExitCode::from(1));
    }
    let left = patiently("uninstalling", remove_all(&cluster, &extent, found)).await?;
    if left.is_empty() {
        say(&format!("{} is uninstalled\n", system.name));
        return Ok(ExitCode::SUCCESS);
    }
    print(&table(&left))?;
    say(&format!("{} left after {} seconds\n", count(left.len(), "item"), PATIENCE.as_secs()));
    say(&format!(
        "next: run the same again, or see why they stay: kubectl get {} -o yaml\n",
        left[0].resource()
    ));
    Ok(ExitCode::from(1))
}

/// Removes what was found, in its order, until nothing is left or the deadline has come. Gives what is left.
async fn remove_all(
    cluster: &Cluster,
    extent: &Extent<'_>,
    mut found: Vec<Leftover>,
) -> Result<Vec<Leftover>, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        // As long as an operator runs, it puts back what is taken off.
        let runs = found.iter().any(|leftover| leftover.what.runs());
        for leftover in found.iter().filter(|leftover| leftover.what.runs() == runs) {
            remove::remove(cluster, leftover).await?;
        }
        found = find::leftovers(cluster, extent).await?;
        if found.is_empty() || Instant::now() >= deadline {
            return Ok(found);
        }
        // What is being deleted takes its time.
        sleep(AGAIN).await;
    }
}

fn table(found: &[Leftover]) -> String {
    let mut table = Table::new(["WHAT", "OBJECT", "NAMESPACE"]);
    for leftover in found {
        let namespace = leftover.namespace.clone().unwrap_or_default();
        table.row([leftover.what.to_string().into(), leftover.resource().into(), namespace.into()]);
    }
    table.render(Paint::of_stdout())
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Operator => "operator",
            Self::Pod => "pod, until it has ended",
            Self::Object => "object",
            Self::Finalizer => "finalizer",
            Self::Permission => "permission",
            Self::Lease => "lease",
            Self::Announcement => "announcement",
            Self::Definition => "CRD",
        })
    }
}
