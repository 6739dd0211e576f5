//! What happens to a stream besides what its user writes and what the operator does.

use super::key::is_new;
use crate::lifecycle::tests::world::{FATAL, PLEASE_BACKFILL, RETRYABLE, World, seconds};
use crate::lifecycle::{Health, JobState, LiveJob};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Event {
    // Requests.
    Request,
    Cancel,
    Withdraw,
    RequestTold,
    // The Jobs.
    Complete,
    Fail(i32),
    Disrupt,
    Expire,
    Delete,
    DeleteAlone,
    Slot { fails: bool },
    PodTurns,
    // Whatever else there is.
    Gone,
    PodsEnd,
    Hour,
    // All of the above that happens without anybody's doing.
    ByItself,
}

pub(super) const EVENTS: [Event; 20] = [
    Event::Request,
    Event::Cancel,
    Event::Withdraw,
    Event::RequestTold,
    Event::Complete,
    Event::Fail(1),
    Event::Fail(RETRYABLE),
    Event::Fail(FATAL),
    Event::Fail(PLEASE_BACKFILL),
    Event::Disrupt,
    Event::Expire,
    Event::Delete,
    Event::DeleteAlone,
    Event::Slot { fails: true },
    Event::Slot { fails: false },
    Event::PodTurns,
    Event::Gone,
    Event::PodsEnd,
    Event::Hour,
    Event::ByItself,
];

/// Whether it makes a difference.
fn can_happen(world: &World, event: Event) -> bool {
    let any = |test: fn(&LiveJob) -> bool| world.jobs.iter().any(test);
    match event {
        Event::Request => world.requests.is_empty(),
        Event::Complete | Event::Fail(_) | Event::Disrupt => any(|job| job.state == JobState::Running),
        Event::Expire => any(|job| job.state != JobState::Running && !job.is_deleting),
        Event::Delete => any(|job| !job.is_deleting) || world.schedule.iter().any(|on| !on.is_deleting),
        Event::DeleteAlone => any(|job| job.state == JobState::Running && !job.is_deleting),
        Event::Slot { .. } => world.schedule.iter().any(|on| !on.is_deleting && on.ended.is_empty()),
        // Otherwise nobody asks.
        Event::PodTurns => world.jobs.iter().any(|job| is_new(world, job)),
        Event::Gone => any(|job| job.is_deleting && !job.is_held) || world.schedule.is_some(),
        Event::PodsEnd => world.has_pods,
        Event::RequestTold | Event::Withdraw => !world.requests.is_empty(),
        Event::Cancel => world.requests.iter().any(|request| !request.is_cancelled),
        Event::Hour | Event::ByItself => true,
    }
}

/// What becomes of a world by it, if it can happen, or why that must not be.
pub(super) fn after(world: &World, event: Event) -> Result<Option<World>, String> {
    if !can_happen(world, event) {
        return Ok(None);
    }
    let mut world = world.clone();
    match event {
        Event::Request => {
            let uid = unused_uid(&world);
            world.request(&uid, 1);
        }
        Event::Cancel => world.requests.iter_mut().for_each(|request| request.is_cancelled = true),
        Event::Withdraw => world.requests.clear(),
        Event::RequestTold => {
            let outcomes = &world.status.backfills;
            world.requests.retain(|request| !outcomes.iter().any(|over| over.request == request.uid));
        }
        Event::Complete => world.complete(),
        Event::Fail(code) => world.fail(code),
        Event::Disrupt => world.disrupt(),
        Event::Expire => {
            let over = |job: &&mut LiveJob| job.state != JobState::Running && !job.is_deleting;
            world.jobs.iter_mut().filter(over).for_each(|job| job.is_deleting = true);
            world.is_background = false;
        }
        Event::Delete => delete(&mut world),
        Event::DeleteAlone => {
            delete(&mut world);
            world.is_background = true;
            world.collect()?;
        }
        Event::Slot { fails } => end_slot(&mut world, fails),
        Event::PodTurns => {
            for job in &mut world.jobs {
                job.health = match job.health {
                    Health::Ready => Health::NotYet { why: "because".to_owned(), is_stuck: true },
                    Health::NotYet { .. } => Health::Ready,
                };
            }
        }
        Event::Gone => world.collect()?,
        Event::PodsEnd => world.has_pods = false,
        Event::Hour => world.now += seconds(3600),
        Event::ByItself => return Ok(world.go_by_itself()?.then_some(world)),
    }
    Ok(Some(world))
}

/// That nothing in the world knows.
fn unused_uid(world: &World) -> String {
    let status = &world.status;
    let of_jobs = world.jobs.iter().filter_map(|job| job.run.as_ref());
    let of_runs = of_jobs.chain(&status.run).filter_map(|run| run.purpose.request());
    let of_status = status.begun.iter().map(|begun| begun.request.as_str());
    let over = status.backfills.iter().map(|over| over.request.as_str());
    let used: Vec<&str> = of_runs.chain(of_status).chain(over).collect();
    let mut unused = 1;
    while used.contains(&format!("r{unused}").as_str()) {
        unused += 1;
    }
    format!("r{unused}")
}

fn delete(world: &mut World) {
    world.jobs.iter_mut().for_each(|job| job.is_deleting = true);
    world.schedule.iter_mut().for_each(|on| on.is_deleting = true);
}

fn end_slot(world: &mut World, fails: bool) {
    let (at, numbers) = (world.now, world.status.history.len());
    let Some(on) = &mut world.schedule else { return };
    let reason = "BackoffLimitExceeded".to_owned();
    let name = format!("{}-{}-{numbers}", on.name, at.as_second());
    let failed = JobState::Failed { at, exit_code: None, reason, is_disrupted: false };
    on.ended = vec![(name, at, if fails { failed } else { JobState::Completed { at } })];
}
