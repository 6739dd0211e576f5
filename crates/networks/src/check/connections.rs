//! How many connections there would be.

use super::{Found, MOST_CONNECTIONS, MOST_PEERS};
use crate::config::NetworkConfig;
use crate::kinds::Method;

pub(super) fn check(config: &NetworkConfig, found: &mut Found) {
    // What is wrong with a number of peers is told elsewhere, and nothing is counted for it.
    if !config.bootstrap.enabled || !(1..=MOST_PEERS).contains(&config.replicas) {
        return;
    }
    let count = count(config);
    if count <= MOST_CONNECTIONS {
        return;
    }
    let (path, cure) = match config.bootstrap.method {
        Method::Full | Method::Star => {
            ("spec.bootstrap.method", "take kRegular or smallWorld, or fewer peers")
        }
        Method::Explicit => ("spec.bootstrap.edges", "declare fewer"),
        _ => ("spec.bootstrap.degree", "take a smaller one, or fewer peers"),
    };
    let message = format!(
        "must not declare more than {MOST_CONNECTIONS} connections; among {} peers it declares {count}: {cure}",
        config.replicas
    );
    found.add(path, message);
}

/// The most connections that the method can declare. Chance may have it declare a few less.
fn count(config: &NetworkConfig) -> u64 {
    let peers = u64::from(config.replicas.unsigned_abs());
    let others = peers.saturating_sub(1);
    let n = u64::try_from(config.bootstrap.degree).unwrap_or_default().min(others);
    let all = peers * others / 2;
    match config.bootstrap.method {
        Method::Ring | Method::Random | Method::SmallWorld => all.min(peers * n),
        // The first ones dial each other, and everyone else all of them.
        Method::Sentinel => n * n.saturating_sub(1) / 2 + (peers - n) * n,
        Method::Full => all,
        Method::Star => others,
        Method::KRegular => (peers * n).div_ceil(2),
        Method::Explicit => u64::try_from(config.bootstrap.edges.len()).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BootstrapConfig;
    use crate::topology::declared;

    #[test]
    fn no_method_declares_more_than_is_counted() {
        use Method::{Full, KRegular, Random, Ring, Sentinel, SmallWorld, Star};
        for method in [Ring, Random, Sentinel, Full, Star, KRegular, SmallWorld] {
            for (replicas, n) in [(1, 1), (2, 1), (5, 2), (9, 3), (10, 9), (30, 4), (7, 50)] {
                let bootstrap = BootstrapConfig { method, degree: n, ..BootstrapConfig::default() };
                let names: Vec<String> = (0..replicas).map(|peer| peer.to_string()).collect();
                let declared = declared(&bootstrap, &names).len() as u64;
                let counted = count(&NetworkConfig { replicas, bootstrap, ..NetworkConfig::default() });
                assert!(declared <= counted, "{method:?} {replicas} {n}: {declared}, not {counted}");
                let by_chance = matches!(method, Random | SmallWorld);
                assert!(
                    by_chance || declared == counted,
                    "{method:?} {replicas} {n}: {declared}, not {counted}"
                );
            }
        }
    }
}
