//! What a set's status says of its nodes.

use k8s_openapi::api::apps::v1::DaemonSetStatus;

use super::decide::{Daemon, Site};
use super::pod::Place;
use crate::controllers::pods::{count, unless_zero};

/// The status. Of several pods on a node the first one counts.
pub(super) fn status(sites: &[Site], collisions: Option<i32>) -> DaemonSetStatus {
    let is_wanted = |site: &Site| site.place == Some(Place::Wanted);
    let wanted: Vec<&Site> = sites.iter().filter(|site| is_wanted(site)).collect();
    let first = |site: &Site, is: fn(&Daemon) -> bool| site.pods.first().is_some_and(is);
    let desired = count(&wanted, |_| true);
    let available = count(&wanted, |site| first(site, Daemon::is_available));
    DaemonSetStatus {
        desired_number_scheduled: desired,
        current_number_scheduled: count(&wanted, |site| !site.pods.is_empty()),
        number_misscheduled: count(sites, |site| {
            site.place.is_some() && !is_wanted(site) && !site.pods.is_empty()
        }),
        number_ready: count(&wanted, |site| first(site, Daemon::is_ready)),
        updated_number_scheduled: unless_zero(count(&wanted, |site| first(site, |pod| pod.is_updated))),
        number_available: unless_zero(available),
        number_unavailable: unless_zero(desired - available),
        collision_count: collisions,
        conditions: None,
        observed_generation: None,
    }
}
