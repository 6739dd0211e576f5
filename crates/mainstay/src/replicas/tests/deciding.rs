//! Decisions alone: what a replica does about what it has seen.

use std::time::Duration;

use expect_test::{Expect, expect};
use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

use crate::replicas::decide::decide;
use crate::replicas::ledger::Ledger;
use crate::replicas::moment::Moment;
use crate::replicas::record::{self, Names, Role};
use crate::replicas::{Identity, Replicas, Shard};

const SECOND: Duration = Duration::from_secs(1);

/// A lease of a layout, held by someone, or by nobody.
fn lease(layout: u32, name: &str, role: Role, holder: &str, version: u32) -> Lease {
    let names = Names { operator: "echo".into(), count: layout };
    let now = "2001-01-01T00:00:00Z".parse().unwrap();
    let mut lease = record::hold(None, name, role, &names, &Identity::new(holder), 15 * SECOND, now);
    lease.metadata.resource_version = Some(version.to_string());
    lease
}

/// `me` of four shards, which has seen leases: `3=bob` is a shard's, `bob` a member's.
struct Case {
    ledger: Ledger,
    begin: Instant,
}

fn seen(shards: u32, leases: &str) -> Case {
    let names = Names { operator: "echo".into(), count: shards };
    let terms = Replicas::sharded("default", shards).terms().unwrap();
    let mut case = Case { ledger: Ledger::new(Identity::new("me"), names, terms), begin: Instant::now() };
    case.see(0, 1, leases);
    case
}

impl Case {
    fn see(&mut self, after: u32, version: u32, leases: &str) {
        let at = self.begin + after * SECOND;
        let names = self.ledger.names.clone();
        let parse = |word: &str| match word.split_once('=') {
            Some((index, holder)) => {
                let name = names.shard(Shard::new(index.parse().unwrap()));
                lease(names.count, &name, Role::Shard, holder, version)
            }
            None => lease(names.count, &names.member(&Identity::new(word)), Role::Member, word, version),
        };
        self.ledger.observe_all(leases.split_whitespace().map(parse).collect(), at);
    }

    /// Renews everything that the record says is ours, so that only the rest is to decide.
    fn renew(mut self) -> Self {
        let now = Moment { at: self.begin, wall: "2001-01-01T00:00:00Z".parse().unwrap() };
        for shard in self.ledger.own.keys().copied().collect::<Vec<_>>() {
            let lease = self.ledger.shard(shard).unwrap().lease.clone();
            self.ledger.renewed(shard, lease, now, now);
        }
        self.ledger.member_at = Some(self.begin);
        self
    }

    fn open(mut self) -> Self {
        for shard in self.ledger.own.keys().copied().collect::<Vec<_>>() {
            self.ledger.open(shard);
        }
        self
    }

    fn check(&self, after: u32, expected: &Expect) {
        let decision = decide(&self.ledger, self.begin + after * SECOND);
        expected.assert_eq(&format!("{:?} {:?}", decision.steps, decision.waiting));
    }
}

#[tokio::test]
async fn alone_takes_everything_that_is_free() {
    seen(1, "").check(0, &expect!["[Acquire(Shard(0))] Some(Share)"]);
    seen(4, "").renew().check(
        0,
        &expect!["[Acquire(Shard(0)), Acquire(Shard(1)), Acquire(Shard(2)), Acquire(Shard(3))] Some(Share)"],
    );
    seen(4, "0= 1= 2= 3=").renew().check(
        0,
        &expect!["[Acquire(Shard(0)), Acquire(Shard(1)), Acquire(Shard(2)), Acquire(Shard(3))] Some(Share)"],
    );
}

#[tokio::test]
async fn lease_is_expired_only_after_it_was_seen_unchanged_for_its_duration() {
    let mut case = seen(1, "0=bob");
    case.check(14, &expect![[r#"[] Some(Holder("bob"))"#]]);
    case.check(15, &expect!["[Acquire(Shard(0))] Some(Share)"]);
    case.see(14, 2, "0=bob");
    case.check(28, &expect![[r#"[] Some(Holder("bob"))"#]]);
    case.check(29, &expect!["[Acquire(Shard(0))] Some(Share)"]);
}

#[tokio::test]
async fn lease_that_was_just_taken_is_opened_by_the_next_list() {
    seen(1, "0=me").renew().check(1, &expect!["[Open(Shard(0))] None"]);
    seen(1, "0=me").check(1, &expect!["[Renew(Shard(0))] None"]);
    seen(1, "0=me").renew().open().check(1, &expect!["[] None"]);
    seen(1, "0=me").renew().open().check(4, &expect!["[Renew(Shard(0))] None"]);
}

#[tokio::test]
async fn surplus_is_drained_for_a_member_that_lacks() {
    seen(4, "me 0=me 1=me 2=me 3=me").renew().open().check(1, &expect!["[] None"]);
    seen(4, "me bob 0=me 1=me 2=me 3=me")
        .renew()
        .open()
        .check(1, &expect!["[Drain(Shard(3)), Drain(Shard(2))] None"]);
    seen(4, "me bob 0=me 1=me 2=bob 3=bob").renew().open().check(1, &expect!["[] None"]);
    seen(4, "me bob 0=bob 1=bob 2=bob 3=bob").renew().check(1, &expect!["[] Some(Share)"]);
}

#[tokio::test]
async fn surplus_that_was_never_opened_is_given_up_first() {
    seen(4, "me bob 0=me 1=me 2=me 3=bob")
        .renew()
        .check(1, &expect!["[Drain(Shard(2)), Open(Shard(0)), Open(Shard(1))] None"]);
}

#[tokio::test]
async fn stopping_replica_leaves_first_and_drains_what_it_has() {
    let mut case = seen(4, "me bob 0=me 1=me 2=bob 3=bob").renew().open();
    case.ledger.stopping = Some(case.begin);
    case.check(1, &expect!["[RemoveMember, Drain(Shard(0)), Drain(Shard(1))] None"]);
}

#[tokio::test]
async fn shards_of_a_replica_that_is_leaving_are_shared_as_if_it_were_gone() {
    seen(4, "me bob 0=me 1=bob 2=carl 3=").renew().open().check(1, &expect!["[] Some(Share)"]);
}

#[tokio::test]
async fn nothing_is_taken_or_opened_while_another_layout_is_held() {
    let mut case = seen(4, "me").renew();
    let mut leases: Vec<Lease> = case.ledger.leases.values().map(|seen| seen.lease.clone()).collect();
    leases.push(lease(1, "echo", Role::Shard, "bob", 1));
    case.ledger.observe_all(leases.clone(), case.begin);
    case.check(1, &expect![[r#"[] Some(Layout { shards: 1, holder: "bob" })"#]]);
    leases.push(lease(4, "echo-2", Role::Shard, "me", 1));
    case.ledger.observe_all(leases, case.begin);
    case.renew().check(1, &expect![[r#"[Drain(Shard(2))] Some(Layout { shards: 1, holder: "bob" })"#]]);
}
