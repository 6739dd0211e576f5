//! A stand-in for the nodes of a world: what becomes of Pods and claims, for controllers of workloads under test.
//!
//! A pod starts a second after it was made, once its claims are bound, and ends five seconds later if it is one that ends. A claim is
//! bound after a second. No container runs anywhere, and there are no nodes: a pod that names one is that node's, and left alone.
//! Everything follows from what is in the cluster and from the world's time, so the same script leads to the same objects.
//!
//! What a script can steer:
//! - An image whose name contains `broken` cannot be pulled: its pod never becomes ready.
//! - An image whose name contains `failing` ends with an error, where pods end at all.
//! - The status of a running or ended pod is left as it is: a user who writes `Failed` or `Ready: False` is believed.
//!
//! Probes, readiness gates, init containers and restarts are `mainstay-local`'s, which has a whole node.

mod claim;
mod pod;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use mainstay::Controller;
use serde_json::Value;

use super::program::{Program, operator};

/// What becomes of Pods and claims: see the [module](self).
pub fn pods() -> Program {
    operator("pods", |operator| {
        operator
            .controller(Controller::of::<PersistentVolumeClaim>().sync(claim::sync))
            .controller(Controller::of::<Pod>().reads::<PersistentVolumeClaim>().sync(pod::sync))
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The items of a list, none if it is absent.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A time, as objects have it.
fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// How long it is until `after` has passed since the time that an object names; `None` if it has.
fn still_to_wait(since: &Value, after: Duration, now: Timestamp) -> Option<Duration> {
    let since: Timestamp = text(since).parse().ok()?;
    let due = since.checked_add(SignedDuration::try_from(after).ok()?).ok()?;
    Duration::try_from(due.duration_since(now)).ok().filter(|wait| !wait.is_zero())
}
