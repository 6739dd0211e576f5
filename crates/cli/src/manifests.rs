//! `mainstay crds`, `rbac` and `install`: what a cluster needs, to be applied. Nothing is sent anywhere.
//!
//! ```text
//! SYSTEM… ─▶ definitions ────────────────────────────────┐
//!        └─▶ operator without a cluster ─▶ roles ────────┼─▶ objects in order ─▶ YAML, JSON, names
//!                        account, bindings, Deployment ──┘
//! ```

mod deployment;
mod permissions;

use crate::failure::Failure;
use crate::output::{Format, MANIFESTS, Manifest, manifests, print, say};
use crate::systems::{self, Reach, System};
use permissions::Account;
use serde_json::{Value, json};
use std::process::ExitCode;
use tokio::runtime::Runtime;

/// The port that health, metrics and debug pages are served on in a pod.
pub(crate) const PORT: u16 = 8080;
/// What the pods of every system carry in `app.kubernetes.io/name`; the system is their component.
pub(crate) const APP: &str = "mainstay";

/// How `mainstay crds` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Crds {
    /// The systems [default: all but the examples].
    #[arg(value_name = "SYSTEM")]
    systems: Vec<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct Output {
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", value_parser = Format::of(MANIFESTS))]
    output: Format,
}

/// How `mainstay rbac` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Rbac {
    /// The systems [default: all but the examples].
    #[arg(value_name = "SYSTEM")]
    systems: Vec<String>,
    /// For a system that looks at this namespace only.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// For replicas with leases in this namespace.
    #[arg(long, value_name = "NAMESPACE")]
    leases: Option<String>,
    /// Grant it all to this service account too: NAMESPACE/NAME.
    #[arg(long, value_name = "ACCOUNT")]
    service_account: Option<Account>,
    #[command(flatten)]
    output: Output,
}

/// How `mainstay install` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Install {
    /// The systems [default: all but the examples].
    #[arg(value_name = "SYSTEM")]
    systems: Vec<String>,
    /// The namespace that they run in. It is made.
    #[arg(short, long, value_name = "NAMESPACE", default_value = "mainstay-system")]
    namespace: String,
    /// The image that they run in, with mainstay as its entry point.
    #[arg(long, value_name = "IMAGE", default_value = concat!("mainstay:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// So many pods for each; one works, the others stand by.
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: u16,
    /// Have them look at this namespace only.
    #[arg(long, value_name = "NAMESPACE")]
    watch: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Prints definitions.
pub(crate) fn crds(options: &Crds) -> Result<ExitCode, Failure> {
    let mut objects = Vec::new();
    for system in systems::chosen(&options.systems, "define")? {
        objects.extend(definitions(system)?);
    }
    show(&objects, &options.output)
}

/// Prints roles.
pub(crate) fn rbac(options: &Rbac) -> Result<ExitCode, Failure> {
    let reach = Reach { namespace: options.namespace.as_deref(), leases: options.leases.as_deref() };
    let mut objects: Vec<Manifest> = options.service_account.iter().map(Account::manifest).collect();
    for system in systems::chosen(&options.systems, "grant permissions to")? {
        let roles = roles(system, reach)?;
        let account = options.service_account.as_ref();
        let bindings: Vec<_> =
            roles.iter().filter_map(|role| Some(permissions::binding(role, account?))).collect();
        objects.extend(roles.into_iter().chain(bindings));
    }
    show(&objects, &options.output)
}

/// Prints everything.
pub(crate) fn install(options: &Install) -> Result<ExitCode, Failure> {
    let systems = systems::chosen(&options.systems, "install")?;
    show(&installed(&systems, options)?, &options.output)?;
    if options.output.output == Format::Yaml {
        let named: Vec<_> = systems.iter().map(|system| format!(" {}", system.name)).collect();
        say(&format!("next: mainstay install{} … | kubectl apply --server-side -f -\n", named.concat()));
    }
    Ok(ExitCode::SUCCESS)
}

/// All objects in an order in which they can be applied.
fn installed(systems: &[&System], options: &Install) -> Result<Vec<Manifest>, Failure> {
    let home = options.namespace.as_str();
    let mut objects = vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}})];
    for system in systems {
        objects.extend(definitions(system)?);
    }
    let leases = (options.replicas > 1).then_some(home);
    let reach = Reach { namespace: options.watch.as_deref(), leases };
    for system in systems {
        let account = Account::new(home, &permissions::name(system.name));
        let roles = roles(system, reach)?;
        let bindings: Vec<_> = roles.iter().map(|role| permissions::binding(role, &account)).collect();
        objects.push(account.manifest());
        objects.extend(roles.into_iter().chain(bindings));
        let pods = deployment::Pods { image: &options.image, replicas: options.replicas, reach };
        objects.push(deployment::deployment(system.name, &account, &pods));
    }
    Ok(objects)
}

/// The definitions of a system without what only a server fills in.
fn definitions(system: &System) -> Result<Vec<Manifest>, Failure> {
    let mut definitions = system.definitions()?;
    for definition in &mut definitions {
        if let Value::Object(fields) = definition {
            fields.remove("status");
        }
    }
    Ok(definitions)
}

fn roles(system: &System, reach: Reach<'_>) -> Result<Vec<Manifest>, Failure> {
    let runtime = Runtime::new().map_err(|error| Failure::new(error).context("cannot start"))?;
    let _entered = runtime.enter();
    let operator = system.unconnected(reach).build();
    let operator = operator
        .map_err(|error| Failure::new(error).context(format!("cannot tell what {} needs", system.name)))?;
    Ok(operator.rbac().roles().into_iter().map(permissions::renamed).collect())
}

fn show(objects: &[Manifest], output: &Output) -> Result<ExitCode, Failure> {
    print(&manifests(objects, output.output)?)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
