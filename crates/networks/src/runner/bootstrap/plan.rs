//! Who dials what is missing, and when it is tried again. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Dial, Edges, Peer, RpcError};
use crate::rpc::multiaddr::Multiaddr;

/// The wait after the first round; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest wait.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Those of the declared connections that there are.
pub(super) fn present(declared: &[Dial], observed: &Edges) -> Edges {
    declared.iter().filter_map(Dial::edge).filter(|edge| observed.contains(edge)).collect()
}

/// The dials of each dialler, in the order in which they are declared.
pub(super) fn by_dialler(missing: Vec<Dial>) -> Vec<Vec<Dial>> {
    let mut diallers = BTreeMap::<String, Vec<Dial>>::new();
    for dial in missing {
        diallers.entry(dial.from.clone()).or_default().push(dial);
    }
    diallers.into_values().collect()
}

/// Where a peer is dialled. All addresses name it, so that nobody else is taken for it.
pub(super) fn addresses(peer: &Peer) -> Vec<String> {
    let named = |text: &String| match text.parse::<Multiaddr>() {
        Ok(address) => address.of_peer(&peer.peer_id).to_string(),
        Err(_) => text.clone(),
    };
    peer.p2p_addrs.iter().map(named).collect()
}

/// What has been tried so far.
#[derive(Default)]
pub(super) struct Attempts {
    rounds: u32,
    /// The last result of each dial.
    last: BTreeMap<Dial, Result<(), RpcError>>,
}

impl Attempts {
    pub(super) fn any(&self) -> bool {
        self.rounds > 0
    }

    /// How long to wait before the next round.
    pub(super) fn pause(&self) -> Duration {
        let doubled = 2_u32.saturating_pow(self.rounds.saturating_sub(1));
        PAUSE.saturating_mul(doubled).min(PAUSE_MAX)
    }

    pub(super) fn round(&mut self, results: Vec<(Dial, Result<(), RpcError>)>) {
        self.rounds += 1;
        self.last.extend(results);
    }

    /// A dial that is still missing, with the reason.
    pub(super) fn explained(&self, dial: Dial) -> (Dial, String) {
        let why = match self.last.get(&dial) {
            Some(Err(error)) => error.to_string(),
            Some(Ok(())) => {
                format!("{} says that it is connected, but neither end has the connection", dial.from)
            }
            None => "one of them is not among the peers".to_owned(),
        };
        (dial, why)
    }
}
