//! Replicas that crash, hang, come back, and whose clocks and network are bad, by a seed. Whatever happens, no parent
//! has two writers at any time; and when the weather clears, everything is held and evenly shared.

use std::time::Duration;

use super::world::{Fate, SECOND, WRITE, World};
use crate::replicas::Replicas;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn weather(mut rng: fastrand::Rng) -> impl FnMut() -> Fate + Send {
    let badness = rng.u32(0..60);
    move || {
        if rng.u32(0..100) >= badness {
            return Fate::Slow(rng.u64(0..300), rng.u64(0..300));
        }
        match rng.u32(0..6) {
            0 => Fate::LostAnswer,
            1 => Fate::Swallowed,
            2 => Fate::Refused([409, 429, 500, 503][rng.usize(0..4)]),
            // Arrives long after its sender has given up.
            3 => Fate::Slow(rng.u64(0..20_000), 0),
            4 => Fate::Slow(0, rng.u64(0..20_000)),
            _ => Fate::Slow(rng.u64(0..3000), rng.u64(0..3000)),
        }
    }
}

async fn storm(seed: u64, counts: &[u32]) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut world = World::new(seed);
    world.longest = WRITE;
    for _ in 0..rng.u32(10..30) {
        let name = NAMES[rng.usize(..NAMES.len())];
        match (world.replicas.contains_key(name), rng.u32(0..10)) {
            (false, _) => {
                let skew = [0, 3600, -3600, 7][rng.usize(0..4)];
                let count = counts[rng.usize(..counts.len())];
                // Without a margin: clocks that go at the same speed need none.
                let replicas = Replicas::sharded("default", count).safety_margin(Duration::ZERO);
                world.start_with_clock(name, replicas, skew);
            }
            (true, 0) => world.kill(name),
            (true, 1) => {
                let replica = world.replicas.get_mut(name).unwrap();
                replica.begin_to_stop();
                world.until(60 * SECOND, |world| world.replica(name).has_stopped()).await;
                world.replicas.remove(name);
            }
            (true, 2) => *world.replica(name).clock.seconds.lock().unwrap() += rng.i64(-100..100),
            (true, 3) => world.replica(name).link.always(Fate::Swallowed),
            (true, 4) => world.replica(name).link.always(Fate::Fine),
            (true, _) => world.replica(name).link.vary(weather(rng.fork())),
        }
        world.pass(Duration::from_millis(rng.u64(0..20_000))).await;
    }
    clear(&mut world, counts[0]).await;
}

/// Ends the storm with one layout and good network.
async fn clear(world: &mut World, count: u32) {
    let gone: Vec<_> =
        world.replicas.iter().filter(|(_, it)| it.fence.shards() != count).map(|it| *it.0).collect();
    for name in gone {
        world.kill(name);
    }
    if world.replicas.is_empty() {
        world.start("a", Replicas::sharded("default", count));
    }
    for replica in world.replicas.values() {
        replica.link.always(Fate::Fine);
    }
    let settled = |world: &World| {
        let counts = world.counts();
        let (least, most) = (counts.iter().map(|it| it.1).min(), counts.iter().map(|it| it.1).max());
        counts.iter().map(|it| it.1).sum::<usize>() == count as usize && most.unwrap() - least.unwrap() <= 1
    };
    world.until(90 * SECOND, settled).await;
    // Until the last of those that were killed is known to be gone, and their last requests have arrived.
    world.pass(40 * SECOND).await;
    let before: Vec<_> =
        world.replicas.values().map(|it| it.fence.standing().borrow().held.clone()).collect();
    world.pass(60 * SECOND).await;
    let after: Vec<_> = world.replicas.values().map(|it| it.fence.standing().borrow().held.clone()).collect();
    assert_eq!(before, after, "once settled nothing moves");
}

/// Runs storms in a paused runtime each. `MAINSTAY_TEST_SEED` replays one (`7`) or runs many (`0..1000`).
fn storms(seeds: std::ops::Range<u64>, counts: &[u32]) {
    let seeds = std::env::var("MAINSTAY_TEST_SEED").map_or(seeds, |given| {
        let (first, end) = given.split_once("..").unwrap_or((&given, ""));
        let first = first.parse().unwrap();
        first..end.parse().unwrap_or(first + 1)
    });
    for seed in seeds {
        println!(
            "seed {seed}; replay with MAINSTAY_TEST_SEED={seed} cargo test -p mainstay --lib replicas::tests::storm"
        );
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(storm(seed, counts));
    }
}

#[test]
fn leader_is_never_two_in_a_storm() {
    storms(0..5, &[1]);
}

#[test]
fn shards_never_have_two_holders_in_a_storm() {
    storms(100..105, &[5]);
}

#[test]
fn change_of_the_number_of_shards_is_safe_in_a_storm() {
    storms(200..206, &[4, 3, 1]);
}
