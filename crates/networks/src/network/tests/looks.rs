//! What is asked, and how often.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use futures::future::BoxFuture;

use super::super::observe::{Memory, Seen, observe};
use super::super::pods::PeerPod;
use super::super::reason::Unready;
use super::{asked, at};
use crate::rpc::{Disturbance, Ending, Endpoint, Identity, Rpc, RpcError};

/// Peers that answer as their place says, and count what they are asked.
#[derive(Default)]
struct Crowd {
    asked: Mutex<BTreeMap<&'static str, usize>>,
}

impl Crowd {
    fn count(&self, what: &'static str) {
        *self.asked.lock().unwrap().entry(what).or_default() += 1;
    }

    fn counted(&self) -> (usize, usize) {
        let asked = self.asked.lock().unwrap();
        let of = |what: &str| asked.get(what).copied().unwrap_or_default();
        (of("identity"), of("connections"))
    }
}

impl Rpc for Crowd {
    fn identity<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Identity, RpcError>> {
        self.count("identity");
        Box::pin(async move {
            match peer.url.as_str() {
                "http://10.0.0.1:5001" => std::future::pending().await,
                "http://10.0.0.2:5001" => Err(RpcError::Garbage("no id".into())),
                "http://10.0.0.3:5001" => Ok(Identity {
                    peer_id: "QmThree".into(),
                    addresses: vec!["/ip4/127.0.0.1/tcp/4001".into()],
                }),
                url => {
                    let own = url.trim_start_matches("http://").trim_end_matches(":5001");
                    Ok(Identity {
                        peer_id: "QmOther".into(),
                        addresses: vec!["/ip4/10.0.0.9/tcp/4001".into(), format!("/ip4/{own}/tcp/4001")],
                    })
                }
            }
        })
    }

    fn connections<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Vec<String>, RpcError>> {
        self.count("connections");
        Box::pin(async { Ok(vec!["QmOther".into()]) })
    }

    fn connect<'a>(&'a self, _: &'a Endpoint, _: &'a [String]) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(async { Ok(()) })
    }

    fn disturb<'a>(&'a self, _: &'a Endpoint, _: &'a Disturbance) -> BoxFuture<'a, Result<Ending, RpcError>> {
        Box::pin(async { Ok(Ending::ByItself) })
    }
}

fn pod(ordinal: usize) -> PeerPod {
    PeerPod { name: format!("peers-0-{ordinal}"), group: 0, standing: Ok(asked(ordinal)) }
}

fn reasons(seen: &[Seen]) -> Vec<&'static str> {
    seen.iter().map(|seen| seen.answer.as_ref().map_or_else(Unready::reason, |_| "")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_hung_peer_delays_nobody_beyond_its_deadline() {
    let (crowd, memory) = (Crowd::default(), Memory::default());
    let began = tokio::time::Instant::now();
    let seen = observe(&crowd, &memory, "uid", &[pod(1), pod(2), pod(3), pod(4)], at(0)).await;
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    assert_eq!(reasons(&seen), ["RpcTimeout", "RpcGarbage", "NoAddress", ""]);
    let addresses = &seen[3].answer.as_ref().unwrap().addresses;
    assert_eq!(addresses, &["/ip4/10.0.0.4/tcp/4001/p2p/QmOther"]);
}

#[tokio::test]
async fn a_look_at_a_peer_that_is_known_costs_one_call() {
    let (crowd, memory) = (Crowd::default(), Memory::default());
    let look = async |run: &str, second: i64| {
        let mut pod = pod(4);
        pod.standing.as_mut().unwrap().run = run.into();
        observe(&crowd, &memory, "uid", &[pod], at(second)).await[0].is_fresh
    };
    assert!(look("first", 0).await);
    assert_eq!(crowd.counted(), (1, 1));
    // What was answered a moment ago is not asked again.
    assert!(!look("first", 0).await);
    assert_eq!(crowd.counted(), (1, 1));
    assert!(look("first", 10).await);
    assert_eq!(crowd.counted(), (1, 2));
    // A clock that was set back makes nothing last longer.
    assert!(look("first", 5).await);
    assert_eq!(crowd.counted(), (1, 3));
    assert!(look("second", 5).await);
    assert_eq!(crowd.counted(), (2, 4));
}

#[tokio::test]
async fn connections_of_a_peer_that_began_anew_are_not_remembered_of_others() {
    let (crowd, memory) = (Crowd::default(), Memory::default());
    let look = async |run: &str, second: i64| {
        let mut anew = pod(4);
        anew.standing.as_mut().unwrap().run = run.into();
        let seen = observe(&crowd, &memory, "uid", &[pod(5), anew], at(second)).await;
        (seen[0].is_fresh, seen[0].answer.as_ref().unwrap().connections.clone())
    };
    assert_eq!(look("first", 0).await, (true, vec!["QmOther".to_owned()]));
    assert_eq!(look("first", 0).await, (false, vec!["QmOther".to_owned()]));
    assert_eq!(look("second", 0).await, (false, vec![]));
    // It stays so until the other one is asked again.
    assert_eq!(look("second", 0).await, (false, vec![]));
    assert_eq!(look("second", 10).await, (true, vec!["QmOther".to_owned()]));
}

#[tokio::test]
async fn who_dialled_or_was_dialled_is_asked_anew_and_nobody_else() {
    let (crowd, memory) = (Crowd::default(), Memory::default());
    let look = async || -> Vec<bool> {
        let seen = observe(&crowd, &memory, "uid", &[pod(4), pod(5), pod(6)], at(0)).await;
        seen.iter().map(|seen| seen.is_fresh).collect()
    };
    assert_eq!(look().await, [true, true, true]);
    memory.dialled("uid", ["run-4", "run-6"]);
    assert_eq!(memory.rounds("uid"), 1);
    assert_eq!(look().await, [true, false, true]);
    assert_eq!(look().await, [false, false, false]);
    memory.ask_again("uid", ["run-5"]);
    assert_eq!(memory.rounds("uid"), 1);
    assert_eq!(look().await, [false, true, false]);
    memory.complete("uid");
    assert_eq!(memory.rounds("uid"), 0);
}
