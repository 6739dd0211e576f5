//! One shard: leader election.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::Instant;

use super::world::{Fate, SECOND, WRITE, World};
use crate::replicas::{Identity, Lost, Replicas, Waiting};

fn leader() -> Replicas {
    Replicas::leader("default")
}

/// Two replicas, of which `a` leads.
async fn pair() -> World {
    let mut world = World::new(1);
    world.start("a", leader());
    world.until(SECOND, |world| world.holds("a") == [0]).await;
    world.start("b", leader());
    world.pass(20 * SECOND).await;
    assert_eq!(world.counts(), [("a", 1), ("b", 0)]);
    world
}

#[tokio::test(start_paused = true)]
async fn first_replica_leads_at_once_and_says_so_in_standard_fields() {
    let mut world = World::new(1);
    world.start("a", leader());
    world.until(SECOND, |world| world.holds("a") == [0]).await;
    world.pass(6 * SECOND).await;
    let lease = world.lease("echo").await;
    let spec = lease.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), world.replica("a").fence.identity().map(Identity::as_str));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(0)));
    assert!(spec.renew_time > spec.acquire_time);
    let labels =
        json!({"mainstay.dev/operator": "echo", "mainstay.dev/role": "shard", "mainstay.dev/shards": "1"});
    assert_eq!(json!(lease.metadata.labels), labels);
    assert_eq!(world.names().await, ["echo"], "with one shard there are no members to know of");
}

#[tokio::test(start_paused = true)]
async fn standby_knows_whom_it_waits_for() {
    let world = pair().await;
    let standing = world.replica("b").fence.standing().borrow().clone();
    let leader = world.replica("a").fence.identity().unwrap().clone();
    assert_eq!((standing.waiting, standing.members), (Some(Waiting::Holder(leader)), 2));
    assert_eq!(world.replica("a").fence.standing().borrow().waiting, None);
}

#[tokio::test(start_paused = true)]
async fn lease_of_a_dead_leader_is_taken_over_after_its_duration() {
    let mut world = pair().await;
    world.kill("a");
    let took = world.until(30 * SECOND, |world| world.holds("b") == [0]).await;
    // The last renewal was at most five seconds before, and was seen at most two later.
    assert!((10 * SECOND..18 * SECOND).contains(&took), "{took:?}");
    assert_eq!(world.lease("echo").await.spec.unwrap().lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn leader_that_stops_hands_over_without_waiting_for_expiry() {
    let mut world = pair().await;
    world.replicas.get_mut("a").unwrap().begin_to_stop();
    let took = world.until(30 * SECOND, |world| world.holds("b") == [0]).await;
    assert!(took <= 3 * SECOND, "{took:?}");
    assert!(world.replica("a").has_stopped());
}

#[tokio::test(start_paused = true)]
async fn standby_that_stops_touches_nothing() {
    let mut world = pair().await;
    world.replicas.get_mut("b").unwrap().begin_to_stop();
    world.until(SECOND, |world| world.replica("b").has_stopped()).await;
    assert_eq!(world.holder("echo").await, "a");
}

#[tokio::test(start_paused = true)]
async fn leader_lets_running_work_end_before_it_hands_over() {
    let mut world = pair().await;
    let turn = world.replica("a").fence.begin("uid-1").unwrap();
    world.replicas.get_mut("a").unwrap().begin_to_stop();
    world.pass(40 * SECOND).await;
    assert_eq!(world.holder("echo").await, "a", "renewed while work runs");
    assert!(turn.permit(WRITE).is_ok());
    assert_eq!(
        world.replica("a").fence.begin("uid-1").unwrap_err().to_string(),
        "this replica is handing over shard 0"
    );
    drop(turn);
    world.until(3 * SECOND, |world| world.holds("b") == [0]).await;
}

#[tokio::test(start_paused = true)]
async fn leader_that_is_cut_off_stops_writing_before_another_begins() {
    for fate in [Fate::Swallowed, Fate::Refused(500), Fate::Refused(429)] {
        let mut world = pair().await;
        world.longest = WRITE;
        let turn = world.replica("a").fence.begin("uid-1").unwrap();
        world.replica("a").link.always(fate);
        let begin = Instant::now();
        world.until(30 * SECOND, |world| !world.replica("a").may_write(0)).await;
        let stopped = begin.elapsed();
        assert_eq!(turn.permit(Duration::ZERO), Err(Lost::NotHeld(turn.shard())));
        world.until(30 * SECOND, |world| world.holds("b") == [0]).await;
        assert!(begin.elapsed() >= stopped + 2 * SECOND, "the margin: {stopped:?}, {:?}", begin.elapsed());
        world.until(6 * SECOND, |world| world.replica("a").fence.standing().borrow().held.is_empty()).await;
        // And it comes back as a standby.
        world.replica("a").link.always(Fate::Fine);
        world.pass(30 * SECOND).await;
        assert_eq!(world.counts(), [("a", 0), ("b", 1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn leader_that_stops_while_cut_off_gives_up_when_its_lease_has_run_out() {
    let mut world = pair().await;
    world.replica("a").link.always(Fate::Swallowed);
    world.replicas.get_mut("a").unwrap().begin_to_stop();
    world.until(25 * SECOND, |world| world.replica("a").has_stopped()).await;
    world.until(20 * SECOND, |world| world.holds("b") == [0]).await;
}

#[tokio::test(start_paused = true)]
async fn renewals_that_conflict_or_lose_their_answer_do_not_cost_the_lead() {
    let mut world = pair().await;
    let standing = world.replica("a").fence.standing();
    let tenure = standing.borrow().held.clone();
    for fate in [
        Fate::LostAnswer,
        Fate::Refused(409),
        Fate::Refused(503),
        Fate::Slow(2000, 2000),
        Fate::Slow(5000, 0),
    ] {
        world.replica("a").link.writes.lock().unwrap().push_back(fate);
        let end = Instant::now() + 15 * SECOND;
        while Instant::now() < end {
            world.pass(SECOND / 10).await;
            assert!(world.replica("a").may_write(0), "{fate:?}");
        }
    }
    assert_eq!(standing.borrow().held, tenure);
    assert_eq!(world.lease("echo").await.spec.unwrap().lease_transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn lease_that_was_taken_by_a_request_whose_answer_was_lost_is_used() {
    let mut world = World::new(1);
    world.start("a", leader());
    world.replica("a").link.writes.lock().unwrap().push_back(Fate::LostAnswer);
    world.until(6 * SECOND, |world| world.holds("a") == [0]).await;
    assert_eq!(world.lease("echo").await.spec.unwrap().lease_transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn clocks_that_are_wrong_by_an_hour_do_no_harm() {
    for (first, second) in [(0, 3600), (3600, 0), (-3600, 3600)] {
        let mut world = World::new(1);
        world.start_with_clock("a", leader(), first);
        world.until(SECOND, |world| world.holds("a") == [0]).await;
        world.start_with_clock("b", leader(), second);
        world.pass(60 * SECOND).await;
        assert_eq!(world.counts(), [("a", 1), ("b", 0)]);
        world.replica("a").link.always(Fate::Swallowed);
        let took = world.until(30 * SECOND, |world| world.holds("b") == [0]).await;
        assert!(took >= 10 * SECOND, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn clock_that_stands_still_renews_all_the_same() {
    let mut world = pair().await;
    for _ in 0..60 {
        world.pass(SECOND).await;
        *world.replica("a").clock.seconds.lock().unwrap() -= 1;
    }
    assert_eq!(world.counts(), [("a", 1), ("b", 0)]);
}

#[tokio::test(start_paused = true)]
async fn machine_that_slept_writes_nothing_until_it_has_renewed() {
    let mut world = pair().await;
    let turn = world.replica("a").fence.begin("uid-1").unwrap();
    let before = world.replica("a").fence.standing().borrow().held.clone();
    // While it slept its monotonic clock stood still and only the wall clock went on.
    *world.replica("a").clock.seconds.lock().unwrap() += 60;
    assert!(!world.replica("a").may_write(0));
    world.until(10 * SECOND, |world| world.holds("a") == [0]).await;
    assert_ne!(world.replica("a").fence.standing().borrow().held, before, "its parents are looked at again");
    assert_eq!(turn.permit(WRITE), Err(Lost::Superseded(turn.shard())), "what began before may not go on");
}

#[tokio::test(start_paused = true)]
async fn lease_that_another_program_holds_is_respected() {
    let mut world = World::new(1);
    let lease = json!({
        "metadata": {"name": "echo"},
        "spec": {"holderIdentity": "client-go", "leaseDurationSeconds": 30, "leaseTransitions": 4},
    });
    world.leases().create(&PostParams::default(), &serde_json::from_value(lease).unwrap()).await.unwrap();
    world.start("a", leader());
    let took = world.until(40 * SECOND, |world| world.holds("a") == [0]).await;
    assert!(took >= 30 * SECOND, "{took:?}");
    assert_eq!(world.lease("echo").await.spec.unwrap().lease_transitions, Some(5));
}

#[tokio::test(start_paused = true)]
async fn lease_of_another_operator_is_never_touched() {
    let mut world = World::new(1);
    let lease = json!({"metadata": {"name": "echo", "labels": {"mainstay.dev/operator": "other"}}});
    world.leases().create(&PostParams::default(), &serde_json::from_value(lease).unwrap()).await.unwrap();
    let before = world.lease("echo").await;
    world.start("a", leader());
    world.pass(60 * SECOND).await;
    assert_eq!((world.counts(), world.lease("echo").await), (vec![("a", 0)], before));
}

#[tokio::test(start_paused = true)]
async fn lease_that_is_deleted_stays_with_its_holder() {
    let mut world = pair().await;
    world.leases().delete("echo", &DeleteParams::default()).await.unwrap();
    world.pass(30 * SECOND).await;
    assert_eq!(world.counts(), [("a", 1), ("b", 0)]);
}

#[tokio::test(start_paused = true)]
async fn lease_that_is_given_to_another_by_hand_is_lost_at_once() {
    let mut world = pair().await;
    let patch = Patch::Merge(json!({"spec": {"holderIdentity": "someone"}}));
    world.leases().patch("echo", &PatchParams::default(), &patch).await.unwrap();
    world.until(6 * SECOND, |world| !world.replica("a").may_write(0)).await;
}

#[tokio::test(start_paused = true)]
async fn settled_replicas_send_few_requests() {
    let mut world = pair().await;
    let count =
        |world: &World, name: &str| std::mem::take(&mut *world.replica(name).link.requests.lock().unwrap());
    count(&world, "a");
    count(&world, "b");
    world.pass(600 * SECOND).await;
    let (leader, standby) = (count(&world, "a"), count(&world, "b"));
    // A renewal and a list every four to five seconds, and a list every two.
    assert!((240..=320).contains(&leader) && (300..=400).contains(&standby), "{leader} {standby}");
}
