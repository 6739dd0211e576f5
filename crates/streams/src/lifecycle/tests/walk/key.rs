//! What states are told apart by: all that a decision can depend on, with numbers and times as far as it does.

use crate::kinds::{ActiveRun, Hashes, Purpose};
use crate::lifecycle::JobState;
use crate::lifecycle::tests::world::World;

/// What a state is told by.
pub(super) type Key = Vec<u8>;

fn bit(is_set: bool) -> u8 {
    u8::from(is_set)
}

pub(super) fn key(world: &World) -> Key {
    let (user, status) = (&world.user, &world.status);
    let mut key = vec![
        bit(user.is_suspended) | bit(user.is_scheduled) << 1 | bit(user.is_broken) << 2,
        bit(user.is_backfill_broken)
            | bit(world.has_pods) << 1
            | bit(world.is_background) << 2
            | bit(world.has_pods && world.pods_end) << 3,
        bit(status.phase.is_none()) | bit(status.initialised) << 1 | bit(status.backfill_asked) << 2,
        bit(status.next_attempt.is_some_and(|at| at > world.now)),
        // A crash loop that is mended forgets the failures.
        if status.crashed.is_none() { u8::try_from(status.failures).unwrap() } else { 0 },
        reload_key(world, status.reloaded.as_deref()),
        status.begun.as_ref().map_or(9, |begun| u8::try_from(begun.failed).unwrap()),
        status.backfills.first().map_or(9, |over| over.phase as u8),
        world.requests.first().map_or(9, |request| bit(request.is_cancelled)),
        status.crashed.as_ref().map_or(0, |crashed| hashes_key(world, crashed)),
    ];
    key.extend(status.run.iter().flat_map(|run| run_key(world, run)));
    key.push(b'|');
    for job in &world.jobs {
        let state = match job.state {
            JobState::Running => 0,
            JobState::Completed { .. } => 1,
            JobState::Failed { exit_code, .. } => 2 + u8::try_from(exit_code.unwrap_or(0)).unwrap(),
        };
        let is_recorded = status.history.iter().any(|past| past.job == job.name);
        let is_over = job.is_deleting || job.state != JobState::Running;
        if is_recorded && is_over {
            // It only waits to be gone, whatever it was.
            key.extend([b'x', bit(job.is_deleting), bit(job.is_held), bit(job.state == JobState::Running)]);
            continue;
        }
        key.push(state | bit(job.is_deleting) << 4 | bit(job.is_held) << 5 | bit(is_recorded) << 6);
        key.push(bit(status.run.as_ref().is_some_and(|run| run.job == job.name)));
        key.extend(job.run.iter().flat_map(|run| run_key(world, run)));
    }
    if let Some(on) = &world.schedule {
        let is_told = |name: &str| status.history.iter().any(|past| past.job == name);
        let slot = on.ended.first().map_or(2, |(name, ..)| bit(is_told(name)));
        key.extend([b'c', bit(on.is_deleting), slot]);
        key.push(bit(status.run.as_ref().is_some_and(|run| run.job == on.name)));
        key.extend(on.run.iter().flat_map(|run| run_key(world, run)));
    }
    key
}

fn reload_key(world: &World, value: Option<&str>) -> u8 {
    match value {
        None => 2 + bit(world.user.reload == 0),
        Some(value) => bit(value == world.user.reload.to_string()),
    }
}

fn hashes_key(world: &World, hashes: &Hashes) -> u8 {
    let is_backfill = hashes.template.starts_with('b');
    let now = world.user.hashes(is_backfill);
    let same = [now.spec == hashes.spec, now.template == hashes.template, now.restart == hashes.restart];
    same.iter().fold(2 | bit(is_backfill), |key, is_same| key << 1 | bit(*is_same))
}

fn run_key(world: &World, run: &ActiveRun) -> [u8; 3] {
    let (kind, reload) = match &run.purpose {
        Purpose::Stream => (0, 0),
        Purpose::Schedule => (1, 0),
        Purpose::Backfill { request: Some(_), .. } => (2, 0),
        Purpose::Backfill { reload, .. } => (3, reload_key(world, reload.as_deref())),
    };
    [kind, reload, hashes_key(world, &run.made_from)]
}

#[test]
fn the_walk_tells_states_apart_by_what_became_of_requests() {
    let mut one = World::default();
    one.request("r", 1);
    let mut other = one.clone();
    other.requests[0].is_cancelled = true;
    assert_ne!(key(&one), key(&other));
}
