//! Plain JSON over HTTP, for peers whose makers have no RPC of their own to keep to.
//!
//! ```text
//! GET  /identity      {"peerId": "…", "addresses": ["/ip4/…"]}
//! GET  /connections   {"peers": ["…"]}
//! POST /connect       {"addresses": ["/ip4/…/p2p/…"]}
//! POST /disturb       {"action": "block", "addresses": ["10.0.0.1"], "milliseconds": 15000}, which ends by itself after that time
//!                     {"action": "unblock", "addresses": ["10.0.0.1"]}
//!                     {"action": "pause", "milliseconds": 1000}
//!                     {"action": "latency", "milliseconds": 1000, "lateMilliseconds": 50}
//! ```
//!
//! Whatever is 2xx is done. Anything else may say why in `message`.

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::dialect::{Answer, Ask, Dialect, ids, plausible};
use super::{Disturbance, Identity, RpcError};

pub(super) struct Plain;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    peer_id: String,
    addresses: Vec<String>,
}

#[derive(Deserialize)]
struct Connections {
    peers: Vec<String>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

impl Dialect for Plain {
    fn ask_identity(&self) -> Ask {
        get("/identity")
    }

    fn identity(&self, answer: &Answer) -> Result<Identity, RpcError> {
        let told: Told = accepted(answer)?.read()?;
        plausible(told.peer_id, told.addresses)
    }

    fn ask_connections(&self) -> Ask {
        get("/connections")
    }

    fn connections(&self, answer: &Answer) -> Result<Vec<String>, RpcError> {
        ids(accepted(answer)?.read::<Connections>()?.peers)
    }

    fn ask_connect(&self, addresses: &[String]) -> Ask {
        post("/connect", &json!({ "addresses": addresses }))
    }

    fn connected(&self, answer: &Answer, _: &[String]) -> Result<(), RpcError> {
        accepted(answer).map(drop)
    }

    fn disturb(&self, disturbance: &Disturbance, answers: &[Answer]) -> Result<Vec<Ask>, RpcError> {
        let (what, body) = match disturbance {
            Disturbance::Block { addresses: ips, .. } | Disturbance::Unblock(ips) if ips.is_empty() => {
                return Ok(Vec::new());
            }
            Disturbance::Block { .. } | Disturbance::Unblock(_) => ("be kept apart", partition(disturbance)),
            Disturbance::Pause(lasts) => {
                ("pause", json!({ "action": "pause", "milliseconds": milliseconds(lasts.as_millis()) }))
            }
            Disturbance::Latency { late, lasts } => {
                let (lasts, late) = (milliseconds(lasts.as_millis()), milliseconds(late.as_millis()));
                ("be late", json!({ "action": "latency", "milliseconds": lasts, "lateMilliseconds": late }))
            }
        };
        match answers {
            [] => Ok(vec![post("/disturb", &body)]),
            [answer, ..] if matches!(answer.status, 404 | 405 | 501) => Err(RpcError::Unsupported(what)),
            [answer, ..] => accepted(answer).map(|_| Vec::new()),
        }
    }
}

/// The request that begins or ends a partition. The reference peer takes the same.
pub(super) fn partition(disturbance: &Disturbance) -> Value {
    match disturbance {
        Disturbance::Block { addresses, lasts } => {
            let lasts = milliseconds(lasts.as_millis());
            json!({ "action": "block", "addresses": **addresses, "milliseconds": lasts })
        }
        Disturbance::Unblock(addresses) => json!({ "action": "unblock", "addresses": **addresses }),
        Disturbance::Pause(_) | Disturbance::Latency { .. } => Value::Null,
    }
}

fn milliseconds(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn get(path: &str) -> Ask {
    Ask { method: Method::GET, path: path.into(), body: Bytes::new() }
}

fn post(path: &str, body: &Value) -> Ask {
    Ask { method: Method::POST, path: path.into(), body: body.to_string().into() }
}

fn accepted(answer: &Answer) -> Result<&Answer, RpcError> {
    if answer.is_success() {
        return Ok(answer);
    }
    Err(answer.refused(answer.read::<Failure>().ok().map(|failure| failure.message)))
}
