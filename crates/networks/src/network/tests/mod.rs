//! What peers are asked and what follows from their answers, without a cluster.

mod decisions;
mod looks;
mod pods;
mod sizes;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::observe::{Answer, Seen};
use super::pods::Asked;
use super::reason::Unready;
use crate::config::NetworkConfig;
use crate::kinds::{Adapter, NetworkSpec};
use crate::rpc::Endpoint;
use crate::rpc::multiaddr::Announced;

/// A config from the fields of a spec.
fn config(spec: &Value) -> NetworkConfig {
    let mut all = json!({"replicas": 3, "bootstrap": {"method": "full"}});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    NetworkConfig::from(serde_json::from_value::<NetworkSpec>(all).unwrap())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn asked(ordinal: usize) -> Asked {
    Asked {
        endpoint: Endpoint {
            adapter: Adapter::Kubo,
            url: format!("http://10.0.0.{ordinal}:5001"),
            timeout: Duration::from_secs(2),
        },
        announced: Announced::only(format!("10.0.{}.{}", ordinal / 250, ordinal % 250).parse().unwrap()),
        run: format!("run-{ordinal}"),
    }
}

/// A peer that answers, and is connected to others.
fn answering(ordinal: usize, connections: &[usize]) -> Seen {
    let answer = Answer {
        asked: asked(ordinal),
        peer_id: format!("id-{ordinal}"),
        addresses: vec![format!("/ip4/10.0.0.{ordinal}/tcp/4001/p2p/id-{ordinal}")],
        connections: connections.iter().map(|other| format!("id-{other}")).collect(),
    };
    Seen { name: format!("peers-0-{ordinal}"), group: 0, answer: Ok(answer), is_fresh: true }
}

/// A peer that does not answer.
fn silent(ordinal: usize, why: Unready) -> Seen {
    Seen { name: format!("peers-0-{ordinal}"), group: 0, answer: Err(why), is_fresh: true }
}
