//! Many shards, shared by those who are there.

use std::collections::BTreeSet;

use super::world::{Fate, SECOND, WRITE, World};
use crate::replicas::{Replicas, Waiting};

fn sharded(count: u32) -> Replicas {
    Replicas::sharded("default", count)
}

fn is_shared(world: &World, count: usize) -> bool {
    let counts = world.counts();
    let (least, most) = (counts.iter().map(|it| it.1).min(), counts.iter().map(|it| it.1).max());
    counts.iter().map(|it| it.1).sum::<usize>() == count && most.unwrap() - least.unwrap() <= 1
}

async fn three() -> World {
    let mut world = World::new(3);
    for name in ["a", "b", "c"] {
        world.start(name, sharded(8));
    }
    world.until(20 * SECOND, |world| is_shared(world, 8)).await;
    world
}

/// The shards, each with its holder.
fn holders(world: &World) -> BTreeSet<(&'static str, u32)> {
    world
        .replicas
        .iter()
        .flat_map(|(name, replica)| replica.holds().into_iter().map(|shard| (*name, shard)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn newcomer_gets_its_share_and_nothing_else_moves() {
    let mut world = three().await;
    let before = holders(&world);
    world.start("d", sharded(8));
    let took = world.until(20 * SECOND, |world| is_shared(world, 8)).await;
    assert!(took <= 12 * SECOND, "{took:?}");
    world.pass(60 * SECOND).await;
    let after = holders(&world);
    assert_eq!(before.difference(&after).count(), 2, "{before:?} {after:?}");
    assert!(after.difference(&before).all(|(name, _)| *name == "d"));
}

#[tokio::test(start_paused = true)]
async fn shards_of_a_replica_that_leaves_go_to_the_others_at_once() {
    let mut world = three().await;
    let before = holders(&world);
    world.replicas.get_mut("b").unwrap().begin_to_stop();
    world.until(SECOND, |world| world.replica("b").has_stopped()).await;
    world.replicas.remove("b");
    let took = world.until(20 * SECOND, |world| is_shared(world, 8)).await;
    assert!(took <= 6 * SECOND, "{took:?}");
    let kept = before.iter().filter(|(name, _)| *name != "b");
    assert!(kept.into_iter().all(|it| holders(&world).contains(it)), "what the others had they keep");
    assert_eq!(world.names().await.len(), 8 + 2, "its member lease is gone");
}

#[tokio::test(start_paused = true)]
async fn shards_of_a_replica_that_dies_go_to_the_others_after_the_duration() {
    let mut world = three().await;
    world.kill("b");
    let took = world.until(40 * SECOND, |world| is_shared(world, 8)).await;
    assert!((10 * SECOND..22 * SECOND).contains(&took), "{took:?}");
    world.pass(200 * SECOND).await;
    assert_eq!(world.names().await.len(), 8 + 2, "its member lease is swept");
}

#[tokio::test(start_paused = true)]
async fn shards_of_a_replica_that_is_cut_off_are_never_written_by_two() {
    let mut world = three().await;
    world.longest = WRITE;
    world.replica("b").link.always(Fate::Swallowed);
    world.until(40 * SECOND, |world| world.holds("a").len() + world.holds("c").len() == 8).await;
    world.replica("b").link.always(Fate::Fine);
    world.until(20 * SECOND, |world| is_shared(world, 8)).await;
    world.pass(60 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn shard_moves_only_when_its_work_has_ended() {
    let mut world = World::new(5);
    world.start("a", sharded(2));
    world.until(5 * SECOND, |world| world.holds("a") == [0, 1]).await;
    let fence = world.replica("a").fence.clone();
    let uids: Vec<String> = (0..20).map(|i| format!("uid-{i}")).collect();
    let mut turns: Vec<_> = uids.iter().map(|uid| fence.begin(uid).unwrap()).collect();
    world.start("b", sharded(2));
    world.pass(60 * SECOND).await;
    assert_eq!(world.counts(), [("a", 2), ("b", 0)]);
    assert!(turns.iter().all(|turn| turn.permit(WRITE).is_ok()), "what runs may write to its end");
    let refused = uids.iter().filter(|uid| fence.begin(uid).is_err()).count();
    assert!((1..20).contains(&refused), "one shard is drained, the other works on: {refused}");
    turns.clear();
    world.until(6 * SECOND, |world| is_shared(world, 2)).await;
}

#[tokio::test(start_paused = true)]
async fn shard_that_need_not_move_after_all_is_taken_up_again() {
    let mut world = World::new(5);
    world.start("a", sharded(2));
    world.until(5 * SECOND, |world| world.holds("a") == [0, 1]).await;
    let fence = world.replica("a").fence.clone();
    let before = fence.standing().borrow().held.clone();
    let turns: Vec<_> = (0..20).map(|i| fence.begin(&format!("uid-{i}")).unwrap()).collect();
    world.start("b", sharded(2));
    world.pass(10 * SECOND).await;
    assert!((0..20).any(|i| fence.begin(&format!("uid-{i}")).is_err()));
    world.kill("b");
    world.until(40 * SECOND, |_| (0..20).all(|i| fence.begin(&format!("uid-{i}")).is_ok())).await;
    let after = fence.standing().borrow().held.clone();
    let anew = before.iter().filter(|(shard, tenure)| after[shard] != **tenure).count();
    assert_eq!(anew, 1, "the parents it turned away are looked at again");
    drop(turns);
}

#[tokio::test(start_paused = true)]
async fn replicas_beyond_the_number_of_shards_stand_by() {
    let mut world = World::new(3);
    for name in ["a", "b", "c"] {
        world.start(name, sharded(2));
    }
    world.until(20 * SECOND, |world| is_shared(world, 2)).await;
    world.pass(30 * SECOND).await;
    let spare = *world.counts().iter().find(|it| it.1 == 0).map(|(name, _)| name).unwrap();
    assert_eq!(world.replica(spare).fence.standing().borrow().waiting, Some(Waiting::Spare));
    let busy = *world.counts().iter().find(|it| it.1 == 1).map(|(name, _)| name).unwrap();
    world.kill(busy);
    world.until(20 * SECOND, |world| is_shared(world, 2)).await;
}

#[tokio::test(start_paused = true)]
async fn another_number_of_shards_waits_until_the_old_one_is_given_up() {
    for (old, new) in [(8, 6), (6, 8), (1, 8), (8, 1)] {
        let mut world = World::new(7);
        world.start("a", sharded(old));
        world.start("b", sharded(old));
        world.until(20 * SECOND, |world| is_shared(world, old as usize)).await;
        world.start("c", sharded(new));
        world.pass(60 * SECOND).await;
        assert!(world.holds("c").is_empty());
        let waiting = world.replica("c").fence.standing().borrow().waiting.clone();
        assert!(matches!(waiting, Some(Waiting::Layout { shards, .. }) if shards == old), "{waiting:?}");
        for name in ["a", "b"] {
            world.replicas.get_mut(name).unwrap().begin_to_stop();
            world.pass(10 * SECOND).await;
        }
        world.until(10 * SECOND, |world| world.holds("c").len() == new as usize).await;
        world.pass(250 * SECOND).await;
        let members = usize::from(new > 1);
        assert_eq!(
            world.names().await.len(),
            new as usize + members,
            "{old} to {new}: what is left over is swept"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn settled_replicas_renew_and_list_and_do_nothing_else() {
    let mut world = three().await;
    world.pass(30 * SECOND).await;
    let requests = |world: &World| -> u32 {
        world.replicas.values().map(|it| std::mem::take(&mut *it.link.requests.lock().unwrap())).sum()
    };
    requests(&world);
    world.pass(600 * SECOND).await;
    let sent = requests(&world);
    // Eight shards, three members, three lists, every four to five seconds.
    assert!((14 * 120..=14 * 160).contains(&sent), "{sent}");
}
