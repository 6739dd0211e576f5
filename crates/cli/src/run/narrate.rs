//! What running operators are seen to do, told once for each change.

use super::announce;
use crate::cluster::Cluster;
use crate::output::say;
use crate::systems::System;
use mainstay::cache::KindState;
use mainstay::{Kind, Operator};
use std::collections::BTreeMap;

/// What was told last.
#[derive(Default)]
pub(super) struct Narrator {
    /// By system.
    addresses: BTreeMap<&'static str, String>,
    states: BTreeMap<&'static str, String>,
}

impl Narrator {
    /// Tells what is new.
    pub(super) async fn look(&mut self, operators: &[(&'static System, Operator)], cluster: &Cluster) {
        for (system, operator) in operators {
            if let Some(address) = operator.address()
                && !self.addresses.contains_key(system.name)
            {
                let url = format!("http://{address}");
                say(&format!("{}: health, metrics and debug pages at {url}\n", system.name));
                if address.ip().is_loopback()
                    && let Err(error) = announce::announce(cluster, system.name, Some(&url)).await
                {
                    say(&announce::unannounced(system.name, &url, &error));
                }
                self.addresses.insert(system.name, url);
            }
            let state = state(system, operator);
            if let Some(state) = state
                && self.states.get(system.name) != Some(&state)
            {
                say(&state);
                self.states.insert(system.name, state);
            }
        }
    }

    /// Takes back what was left for others to find.
    pub(super) async fn leave(&self, cluster: &Cluster) {
        for system in self.addresses.keys() {
            // Whoever finds an old address is told that nobody answers there.
            let _ = announce::announce(cluster, system, None).await;
        }
    }
}

/// How an operator is doing, in a sentence or two. `None` as long as that is about to be known.
fn state(system: &System, operator: &Operator) -> Option<String> {
    let caches = operator.caches();
    let missing: Vec<String> = caches
        .iter()
        .filter(|report| report.state == KindState::Missing)
        .map(|report| report.kind.to_string())
        .collect();
    if !missing.is_empty() {
        return Some(waits(system, &missing));
    }
    let forbidden = caches.iter().find_map(|report| match &report.state {
        KindState::Forbidden { verb, kind, message, .. } => Some(refused(system, verb, kind, message)),
        _ => None,
    });
    if forbidden.is_some() {
        return forbidden;
    }
    let stale = caches.iter().find_map(|report| match &report.state {
        KindState::Stale { error, .. } => {
            Some(format!("{}: out of touch with the cluster: {error}\n", system.name))
        }
        _ => None,
    });
    if stale.is_some() {
        return stale;
    }
    let controllers = operator.controllers();
    let is_ready = !controllers.is_empty() && controllers.iter().all(|controller| controller.ready);
    is_ready.then(|| format!("{}: ready\n", system.name))
}

fn waits(system: &System, missing: &[String]) -> String {
    let (name, kinds) = (system.name, missing.join(", "));
    format!("{name}: waits for {kinds}, which the cluster does not have\n  next: {}\n", system.define())
}

fn refused(system: &System, verb: &str, kind: &Kind, message: &str) -> String {
    let name = system.name;
    format!(
        "{name}: waits for the permission to {verb} {}: {message}\n  next: mainstay rbac {name} prints what it needs\n",
        kind.plural()
    )
}
