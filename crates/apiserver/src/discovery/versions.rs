//! In which order groups and versions are told.

use std::cmp::{Ordering, Reverse};

/// How far up a group stands; larger is earlier. Custom groups share one place after all built-in ones.
pub(super) fn group_priority(group: &str) -> u32 {
    match group {
        "apiregistration.k8s.io" => 20000,
        "" => 18000,
        "apps" => 17800,
        "events.k8s.io" => 17750,
        "authentication.k8s.io" => 17700,
        "authorization.k8s.io" => 17600,
        "autoscaling" => 17500,
        "batch" => 17400,
        "certificates.k8s.io" => 17300,
        "networking.k8s.io" => 17200,
        "policy" => 17100,
        "rbac.authorization.k8s.io" => 17000,
        "storage.k8s.io" => 16800,
        "admissionregistration.k8s.io" | "apiextensions.k8s.io" => 16700,
        "scheduling.k8s.io" => 16600,
        "coordination.k8s.io" => 16500,
        "node.k8s.io" => 16300,
        "discovery.k8s.io" | "resource.k8s.io" => 16200,
        "flowcontrol.apiserver.k8s.io" => 16100,
        _ => 1000,
    }
}

/// Orders versions as Kubernetes prefers them: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, then all
/// others by name.
pub(crate) fn compare_versions(a: &str, b: &str) -> Ordering {
    match (stability(a), stability(b)) {
        (Some(a), Some(b)) => Reverse(a).cmp(&Reverse(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    Stable,
}

/// Stage, then major, then minor; none for names that are not versions.
fn stability(version: &str) -> Option<(Stage, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let number = |digits: &str| -> Option<u64> {
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse().ok())?
    };
    for (word, stage) in [("alpha", Stage::Alpha), ("beta", Stage::Beta)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stage, number(major)?, number(minor)?));
        }
    }
    Some((Stage::Stable, number(rest)?, 0))
}
