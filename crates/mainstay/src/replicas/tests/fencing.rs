//! The fence alone.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{SystemClock, TokioClock};
use crate::replicas::fence::Fence;
use crate::replicas::ledger::{Drain, Ledger};
use crate::replicas::moment::Moment;
use crate::replicas::record::{self, Names, Role};
use crate::replicas::{Identity, Lost, Replicas, Shard};

const SECOND: Duration = Duration::from_secs(1);

struct One {
    fence: Fence,
    ledger: Ledger,
    clock: TokioClock,
}

impl One {
    fn new() -> Self {
        let clock = TokioClock::starting_at("2001-01-01T00:00:00Z".parse().unwrap());
        let me = Identity::new("me");
        let names = Names { operator: "echo".into(), count: 1 };
        let terms = Replicas::leader("default").terms().unwrap();
        let fence = Fence::closed(me.clone(), 1, Arc::new(clock));
        Self { fence, ledger: Ledger::new(me, names, terms), clock }
    }

    fn renew(&mut self) {
        self.renew_since(Moment::now(&self.clock));
    }

    fn renew_since(&mut self, sent: Moment) {
        let now = Moment::now(&self.clock);
        let Ledger { me, names, terms, .. } = &self.ledger;
        let lease = record::hold(None, "echo", Role::Shard, names, me, terms.duration, now.wall);
        self.ledger.renewed(shard(), lease, sent, now);
        self.fence.reflect(&self.ledger);
    }

    fn open(&mut self) {
        self.ledger.open(shard());
        self.fence.reflect(&self.ledger);
    }
}

fn shard() -> Shard {
    Shard::new(0)
}

#[tokio::test(start_paused = true)]
async fn lease_that_is_held_but_not_opened_permits_nothing() {
    let mut one = One::new();
    assert_eq!(one.fence.permit(shard(), SECOND), Err(Lost::NotHeld(shard())));
    one.renew();
    assert_eq!(one.fence.permit(shard(), SECOND), Err(Lost::NotHeld(shard())));
    one.open();
    assert!(one.fence.permit(shard(), SECOND).is_ok() && one.fence.is_mine("a"));
}

#[tokio::test(start_paused = true)]
async fn write_is_permitted_only_if_it_ends_before_the_deadline() {
    let mut one = One::new();
    one.renew();
    one.open();
    // Fifteen seconds less the margin of two.
    tokio::time::advance(8 * SECOND).await;
    assert!(one.fence.permit(shard(), Duration::from_micros(4_999_999)).is_ok());
    assert_eq!(one.fence.permit(shard(), 5 * SECOND), Err(Lost::TooLate(shard())));
    tokio::time::advance(5 * SECOND).await;
    assert_eq!(one.fence.permit(shard(), Duration::ZERO), Err(Lost::NotHeld(shard())));
    assert!(!one.fence.is_mine("a"));
}

#[tokio::test(start_paused = true)]
async fn lease_counts_from_when_its_renewal_was_sent() {
    let mut one = One::new();
    let sent = Moment::now(&one.clock);
    tokio::time::advance(3 * SECOND).await;
    one.renew_since(sent);
    one.open();
    tokio::time::advance(10 * SECOND).await;
    assert_eq!(one.fence.permit(shard(), Duration::ZERO), Err(Lost::NotHeld(shard())));
}

#[tokio::test(start_paused = true)]
async fn renewal_after_the_deadline_is_a_new_tenure() {
    let mut one = One::new();
    one.renew();
    one.open();
    let turn = one.fence.begin("a").unwrap();
    tokio::time::advance(5 * SECOND).await;
    one.renew();
    assert!(turn.permit(8 * SECOND).is_ok(), "in time it goes on");
    tokio::time::advance(13 * SECOND).await;
    one.renew();
    assert_eq!(turn.permit(SECOND), Err(Lost::NotHeld(shard())));
    one.open();
    assert_eq!(turn.permit(SECOND), Err(Lost::Superseded(shard())));
    assert!(one.fence.begin("a").unwrap().permit(SECOND).is_ok());
}

#[tokio::test(start_paused = true)]
async fn drained_shard_is_idle_when_its_last_turn_ends() {
    let mut one = One::new();
    one.renew();
    one.open();
    let (first, second) = (one.fence.begin("a").unwrap(), one.fence.begin("b").unwrap());
    one.ledger.drain(shard(), Drain::Running);
    one.fence.reflect(&one.ledger);
    assert_eq!(one.fence.begin("c").unwrap_err(), Lost::Draining(shard()));
    drop(first);
    assert!(!one.fence.is_idle(shard()));
    assert!(second.permit(SECOND).is_ok());
    drop(second);
    assert!(one.fence.is_idle(shard()));
    one.fence.drained().await;
}

#[tokio::test]
async fn single_process_needs_no_lease() {
    let client = kube::Client::new(mainstay_apiserver::ApiServer::builder().build().unwrap(), "default");
    let rng = fastrand::Rng::with_seed(1);
    let (fence, keeper) = Replicas::single().join("echo", client, Arc::new(SystemClock), rng).unwrap();
    assert!(keeper.is_none() && fence.is_mine("a") && fence.identity().is_none());
    assert!(fence.begin("a").unwrap().permit(Duration::from_hours(1)).is_ok());
    assert_eq!(fence.standing().borrow().held.len(), 1);
}
