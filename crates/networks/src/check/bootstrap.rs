//! How peers are connected.

use super::Found;
use crate::config::{BootstrapConfig, NetworkConfig};
use crate::kinds::{BootstrapSpec, Method, NetworkSpec};
use crate::share::split;

/// What is said in place of names where there are none.
const NOTHING: &str = "this network has no peers";

/// The path of the degree.
const DEGREE: &str = "spec.bootstrap.degree";

/// What the config no longer shows: values under both the present and a former name.
pub(super) fn check_names(spec: &NetworkSpec, found: &mut Found) {
    let Some(BootstrapSpec { degree: Some(degree), n: Some(n), .. }) = &spec.bootstrap else { return };
    if degree != n {
        found.add(
            DEGREE,
            format!("must be the same as spec.bootstrap.n, its former name: {degree} is not {n}"),
        );
    }
}

pub(super) fn check(config: &NetworkConfig, found: &mut Found) {
    let bootstrap = &config.bootstrap;
    found.not_empty("spec.bootstrap.image", &bootstrap.image);
    found.pull_policy("spec.bootstrap.imagePullPolicy", &bootstrap.image_pull_policy);
    found.within("spec.bootstrap.rewirePercent", bootstrap.rewire_percent, 0, 100);
    found.within("spec.bootstrap.patienceSeconds", bootstrap.patience_seconds, 0, 86_400);
    check_degree(config, found);
    match (bootstrap.method, bootstrap.edges.is_empty()) {
        (Method::Explicit, true) => found.add("spec.bootstrap.edges", "must be given with method explicit"),
        (Method::Explicit, false) => check_edges(config, found),
        (_, true) => {}
        (_, false) => {
            found.add("spec.bootstrap.edges", "must not be given with a method other than explicit");
        }
    }
}

/// A number that was not given fits every network: it is as many as there are.
fn check_degree(config: &NetworkConfig, found: &mut Found) {
    let (path, n, method) = (DEGREE, config.bootstrap.degree, config.bootstrap.method);
    if n < 1 {
        found.add(path, format!("must be at least 1, not {n}"));
    }
    let least = match method {
        Method::Full | Method::Star | Method::Explicit => return,
        Method::KRegular | Method::SmallWorld => 2,
        Method::Ring | Method::Random | Method::Sentinel => 1,
    };
    let most = config.replicas.saturating_sub(1);
    if most < 1 || n < 1 || n == BootstrapConfig::default().degree {
        return;
    }
    if n > most {
        found.add(
            path,
            format!(
                "must be at most {most}, which is how many others each of {} peers has, not {n}",
                config.replicas
            ),
        );
    } else if n < least && most >= least {
        let reason = match method {
            Method::KRegular => "with method kRegular, because pairs cannot reach each other",
            _ => "with method smallWorld, because the connection to the next peer never goes far",
        };
        found.add(path, format!("must be at least {least} {reason}, not {n}"));
    }
}

fn check_edges(config: &NetworkConfig, found: &mut Found) {
    let weights: Vec<i32> = config.peers.iter().map(|group| group.weight).collect();
    let shares = split(config.replicas, &weights);
    let groups: Vec<(String, i32)> =
        shares.into_iter().enumerate().map(|(place, share)| (config.group_name(place), share)).collect();
    for (place, edge) in config.bootstrap.edges.iter().enumerate() {
        let path = format!("spec.bootstrap.edges[{place}]");
        for (field, peer) in [("from", &edge.from), ("to", &edge.to)] {
            if !groups.iter().any(|(group, share)| is_of(peer, group, *share)) {
                found.add(
                    format!("{path}.{field}"),
                    format!("must be one of the peers ({}), not {peer:?}", told(&groups)),
                );
            }
        }
        if edge.from == edge.to {
            found.add(format!("{path}.to"), format!("must be another peer than {:?}, who dials", edge.from));
        }
    }
}

/// Whether a peer of this name is in the group once it is complete.
fn is_of(peer: &str, group: &str, share: i32) -> bool {
    let ordinal = peer.strip_prefix(group).and_then(|rest| rest.strip_prefix('-'));
    // A number is written in one way only: neither `01` nor `+1` are ordinals.
    let number = ordinal
        .and_then(|ordinal| ordinal.parse::<i32>().ok().filter(|number| number.to_string() == ordinal));
    number.is_some_and(|number| (0..share).contains(&number))
}

/// The names of all peers: `peers-0-0 to peers-0-3`.
fn told(groups: &[(String, i32)]) -> String {
    let of_group = |(group, share): &(String, i32)| match share {
        ..=0 => None,
        1 => Some(format!("{group}-0")),
        share => Some(format!("{group}-0 to {group}-{}", share - 1)),
    };
    let all: Vec<String> = groups.iter().filter_map(of_group).collect();
    if all.is_empty() { NOTHING.into() } else { all.join(", ") }
}
