//! Has peers dial: each dialer one after the other, dialers at the same time, all of it within a while. What is not done by then is found missing
//! by the next look.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;

use crate::graph::Dial;
use crate::network::observe::{Answer, Seen};
use crate::rpc::{Rpc, RpcError};

/// So many peers dial at the same time.
const AT_ONCE: usize = 64;
/// All of it takes no longer.
const WITHIN: Duration = Duration::from_secs(20);

/// What came of a dial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) dial: Dial,
    pub(crate) result: Result<(), RpcError>,
}

/// Has peers dial.
pub(crate) async fn execute(rpc: &dyn Rpc, dials: &[Dial], seen: &[Seen]) -> Vec<Outcome> {
    let answers: BTreeMap<&str, &Answer> =
        seen.iter().filter_map(|seen| Some((seen.name.as_str(), seen.answer.as_ref().ok()?))).collect();
    let mut dialers: BTreeMap<&str, Vec<&Dial>> = BTreeMap::new();
    for dial in dials {
        dialers.entry(&dial.from).or_default().push(dial);
    }
    let each: Vec<_> = dialers.into_values().map(|dials| of_one(rpc, dials, &answers)).collect();
    let mut done = Vec::new();
    let mut all = futures::stream::iter(each).buffer_unordered(AT_ONCE);
    let collect = async {
        while let Some(outcomes) = all.next().await {
            done.extend(outcomes);
        }
    };
    let _ = tokio::time::timeout(WITHIN, collect).await;
    drop(all);
    done.sort_by(|one: &Outcome, other| one.dial.cmp(&other.dial));
    done
}

async fn of_one(rpc: &dyn Rpc, dials: Vec<&Dial>, answers: &BTreeMap<&str, &Answer>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for dial in dials {
        let ends = (answers.get(dial.from.as_str()), answers.get(dial.to.as_str()));
        let (Some(from), Some(to)) = ends else { continue };
        let endpoint = &from.asked.endpoint;
        let answer = tokio::time::timeout(endpoint.timeout, rpc.connect(endpoint, &to.addresses)).await;
        let result = answer.unwrap_or(Err(RpcError::Timeout(endpoint.timeout)));
        let has_hung = matches!(result, Err(RpcError::Timeout(_)));
        outcomes.push(Outcome { dial: dial.clone(), result });
        // Who hangs once is not waited for again.
        if has_hung {
            break;
        }
    }
    outcomes
}
