//! All states that a stream gets into by what the user, the Jobs, time, and an operator that dies between two writes do.
//!
//! Numbers and times are told apart only as far as a decision does, so the states are finitely many. All events at once make too many of
//! them to be walked through in a test: after a minute there were 240,000, and twice as many to look at as had been looked at. So each
//! walk has what is in [`ALWAYS`], and four of the [`TOPICS`], so chosen that any two of these are together in one walk. What takes three of
//! them to come about is seen only where one walk has all three.

mod key;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::key::{Key, key};
use super::world::{FATAL, PLEASE_BACKFILL, RETRYABLE, World, seconds};
use crate::kinds::{Phase, Purpose};
use crate::lifecycle::{JobState, LiveJob};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    // The user.
    Suspend,
    Spec,
    Template,
    Restart,
    Reload,
    Request,
    Cancel,
    Withdraw,
    Mode,
    Break,
    BreakBackfill,
    // The Jobs.
    Complete,
    Fail(i32),
    Expire,
    Delete,
    DeleteAlone,
    Slot,
    // Whatever else there is.
    Gone,
    PodsEnd,
    RequestTold,
    Hour,
    // The operator: how many of its writes it comes to, and what it may do.
    Operator { writes: usize, may: bool },
    // All of the above that happens without anybody's doing.
    Rest,
}

/// What happens in every walk.
const ALWAYS: &[Event] = &[
    Event::Complete,
    Event::Fail(1),
    Event::Expire,
    Event::Delete,
    Event::Gone,
    Event::PodsEnd,
    Event::RequestTold,
    Event::Hour,
    Event::Operator { writes: 9, may: true },
    Event::Operator { writes: 1, may: true },
    Event::Operator { writes: 2, may: true },
    Event::Operator { writes: 9, may: false },
    Event::Rest,
];

/// Whether it makes a difference.
fn can_happen(world: &World, event: Event) -> bool {
    let any = |test: fn(&LiveJob) -> bool| world.jobs.iter().any(test);
    match event {
        Event::Complete | Event::Fail(_) => any(|job| job.state == JobState::Running),
        Event::Expire => any(|job| job.state != JobState::Running && !job.is_deleting),
        Event::Delete => any(|job| !job.is_deleting) || world.schedule.iter().any(|on| !on.is_deleting),
        Event::DeleteAlone => any(|job| job.state == JobState::Running && !job.is_deleting),
        Event::Gone => any(|job| job.is_deleting && !job.is_held) || world.schedule.is_some(),
        Event::PodsEnd => world.has_pods,
        Event::RequestTold | Event::Withdraw => !world.requests.is_empty(),
        Event::Cancel => world.requests.iter().any(|request| !request.is_cancelled),
        Event::Hour => world.status.next_attempt.is_some_and(|at| at > world.now),
        _ => true,
    }
}

/// Does it, or says that it cannot be.
fn happen(world: &mut World, event: Event) -> Result<bool, String> {
    let user = &mut world.user;
    let mut ok = true;
    match event {
        Event::Suspend => user.is_suspended = !user.is_suspended,
        Event::Spec => user.spec = 1 - user.spec,
        Event::Template => user.template = 1 - user.template,
        Event::Restart => user.restart = 1 - user.restart,
        Event::Reload => user.reload = if user.reload == 1 { 2 } else { 1 },
        Event::Mode => user.is_scheduled = !user.is_scheduled,
        Event::Break => user.is_broken = !user.is_broken,
        Event::BreakBackfill => user.is_backfill_broken = !user.is_backfill_broken,
        Event::Request => {
            let is_known = !world.status.backfills.is_empty() || world.status.begun.is_some();
            let has_run = world.status.run.iter().any(|run| run.purpose.request().is_some());
            let has_job =
                world.jobs.iter().any(|job| job.run.iter().any(|run| run.purpose.request().is_some()));
            ok = world.requests.is_empty() && !is_known && !has_run && !has_job;
            if ok {
                world.request("r", 1);
            }
        }
        Event::Cancel => world.requests.iter_mut().for_each(|request| request.is_cancelled = true),
        Event::Withdraw => world.requests.clear(),
        Event::Complete => world.complete(),
        Event::Fail(code) => world.fail(code),
        Event::Expire => {
            let over = |job: &&mut LiveJob| job.state != JobState::Running && !job.is_deleting;
            world.jobs.iter_mut().filter(over).for_each(|job| job.is_deleting = true);
            world.is_background = false;
        }
        Event::Delete | Event::DeleteAlone => {
            let names = world.jobs.iter().map(|job| job.name.clone());
            let names: Vec<String> = names.chain(world.schedule.as_ref().map(|on| on.name.clone())).collect();
            for name in &names {
                world.delete(name);
            }
            if event == Event::DeleteAlone {
                world.is_background = true;
                world.collect()?;
            }
        }
        Event::Slot => ok = end_slot(world),
        Event::Gone => world.collect()?,
        Event::PodsEnd => world.has_pods = false,
        Event::RequestTold => {
            let outcomes = &world.status.backfills;
            world.requests.retain(|request| !outcomes.iter().any(|over| over.request == request.uid));
        }
        Event::Hour => world.now += seconds(3600),
        Event::Operator { writes, may } => {
            (world.may_start, world.may_roll_out) = (may, may);
            let decision = world.decide();
            let all = world.writes(&decision);
            ok = writes == 9 || writes < all.len();
            for write in all.iter().take(writes) {
                world.carry_out(&decision, write)?;
            }
        }
        Event::Rest => {
            world.try_pass()?;
        }
    }
    Ok(ok)
}

fn end_slot(world: &mut World) -> bool {
    let (at, numbers) = (world.now, world.status.history.len());
    let Some(on) = world.schedule.as_mut().filter(|on| !on.is_deleting && on.ended.is_empty()) else {
        return false;
    };
    let reason = "BackoffLimitExceeded".to_owned();
    let name = format!("{}-{}-{numbers}", on.name, at.as_second());
    on.ended = vec![(name, at, JobState::Failed { at, exit_code: None, reason })];
    true
}

/// What is true once nothing changes any more.
fn check_rest(world: &World) -> Result<(), String> {
    let phase = world.status.phase;
    let there = world.jobs.len() + usize::from(world.schedule.is_some());
    let fact = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what}, at rest")) };
    fact(there <= 1, "two Jobs")?;
    fact(
        world.jobs.iter().all(|job| job.state == JobState::Running && !job.is_deleting),
        "an old Job stays",
    )?;
    fact(world.requests.iter().all(|request| !request.is_cancelled), "a cancelled request stays open")?;
    let mut told: Vec<&String> = world.status.history.iter().map(|past| &past.job).collect();
    let slots = world.schedule.iter().flat_map(|on| &on.ended);
    fact(slots.into_iter().all(|(name, ..)| told.contains(&name)), "a slot is not told of")?;
    told.sort_unstable();
    told.dedup();
    fact(told.len() == world.status.history.len(), "a run is told of twice")?;
    let request = world.jobs.iter().find_map(|job| job.run.as_ref()?.purpose.request());
    let is_open = |uid: &str| world.requests.iter().any(|request| request.uid == uid);
    fact(request.is_none_or(is_open), "a backfill runs that nobody wants")?;
    let Ok(wish) = world.user.wish() else { return Ok(()) };
    if world.user.is_suspended {
        fact(there == 0, "suspended with a Job")?;
        return fact(phase == Some(Phase::Suspended), "not Suspended");
    }
    if world.status.crashed.is_some() {
        fact(there == 0, "crashed with a Job")?;
        return fact(
            [Some(Phase::CrashLoopDetected), Some(Phase::Failed)].contains(&phase),
            "not CrashLoopDetected",
        );
    }
    if wish.backfill.is_err() {
        return Ok(());
    }
    let jobs = world.jobs.iter().filter_map(|job| job.run.as_ref());
    let mut runs = jobs.chain(world.schedule.iter().filter_map(|on| on.run.as_ref()));
    let Some(run) = runs.next() else { return Err("no Job, at rest".to_owned()) };
    fact(run.made_from == world.user.hashes(run.purpose.is_backfill()), "an old configuration runs")?;
    fact(world.status.run.as_ref() == Some(run), "the status does not know the run")?;
    let is_of_mode =
        run.purpose.is_backfill() || (run.purpose == Purpose::Schedule) == world.user.is_scheduled;
    fact(is_of_mode, "the other mode runs")?;
    fact(run.purpose.is_backfill() || world.requests.is_empty(), "a request is left")
}

struct Walk {
    worlds: Vec<World>,
    from: Vec<(usize, Event)>,
    /// What each comes to by [`Event::Rest`].
    rest: Vec<usize>,
}

impl Walk {
    fn story(&self, mut index: usize) -> Vec<Event> {
        let mut events = Vec::new();
        while index != 0 {
            let (from, event) = self.from[index];
            events.push(event);
            index = from;
        }
        events.reverse();
        events
    }

    fn fail(&self, index: usize, event: Option<Event>, what: &str) -> ! {
        panic!("{what}\nafter {:?}\nthen {event:?}\nin {:#?}", self.story(index), self.worlds[index]);
    }
}

fn walk(start: World, events: &[Event]) {
    let mut seen: HashMap<Key, usize> = HashMap::from([(key(&start), 0)]);
    let mut walk = Walk { worlds: vec![start], from: vec![(0, Event::Rest)], rest: Vec::new() };
    let mut index = 0;
    while index < walk.worlds.len() {
        for event in events.iter().chain(ALWAYS) {
            if !can_happen(&walk.worlds[index], *event) {
                continue;
            }
            let mut world = walk.worlds[index].clone();
            match happen(&mut world, *event) {
                Err(what) => walk.fail(index, Some(*event), &what),
                Ok(false) => continue,
                Ok(true) => {}
            }
            let next = walk.worlds.len();
            let found = match seen.entry(key(&world)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    new.insert(next);
                    walk.worlds.push(world);
                    walk.from.push((index, *event));
                    next
                }
            };
            if *event == Event::Rest {
                walk.rest.push(found);
            }
        }
        index += 1;
    }
    println!("{} states, {events:?}", walk.worlds.len());
    check_liveness(&walk);
}

/// From everywhere, what happens by itself comes to rest, and well.
fn check_liveness(walk: &Walk) {
    for start in 0..walk.worlds.len() {
        let mut index = start;
        for round in 0.. {
            let next = walk.rest[index];
            if next == index {
                break;
            }
            if round > 20 {
                walk.fail(start, None, "it does not come to rest");
            }
            index = next;
        }
        if index == start {
            // Some of what is written makes no state of its own: a phase, a message.
            let mut world = walk.worlds[index].clone();
            while world.pass() {}
            check_rest(&world).unwrap_or_else(|what| walk.fail(index, None, &what));
        }
    }
}

fn world() -> World {
    // How long a run was healthy makes no difference here: that would double the states.
    let mut world = World::default().class(|class| {
        class.restart.budget = 1;
        class.restart.healthy_seconds = u32::MAX;
    });
    world.user.has_backfill_template = true;
    world
}

/// What happens besides: the user's changes and the rarer ends of Jobs. What makes no sense without another is with it.
const TOPICS: [&[Event]; 13] = [
    &[Event::Fail(RETRYABLE)],
    &[Event::Spec],
    &[Event::Template],
    &[Event::Restart],
    &[Event::Reload],
    &[Event::Request, Event::Cancel, Event::Withdraw],
    &[Event::Mode, Event::Slot],
    &[Event::Fail(FATAL)],
    &[Event::BreakBackfill],
    &[Event::Break],
    &[Event::Suspend],
    &[Event::Fail(PLEASE_BACKFILL)],
    &[Event::DeleteAlone],
];

/// The topics of a walk. No two of these numbers differ by as much as two others do, modulo 13: so of all walks, any two topics share one.
fn topics(walk: usize) -> impl Iterator<Item = usize> {
    [0, 1, 3, 9].into_iter().map(move |topic| (walk + topic) % TOPICS.len())
}

#[test]
fn any_two_topics_are_together_in_one_walk() {
    for (one, other) in (0..TOPICS.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
        let has =
            |walk: &usize| [one, other].iter().all(|wanted| topics(*walk).any(|topic| topic == *wanted));
        assert_eq!((0..TOPICS.len()).filter(has).count(), 1, "{one} and {other}");
    }
}

#[test]
fn no_story_ends_badly() {
    let next = AtomicUsize::new(0);
    let walk_on = || {
        while let number @ 0..13 = next.fetch_add(1, Ordering::Relaxed) {
            let events: Vec<Event> = topics(number).flat_map(|topic| TOPICS[topic]).copied().collect();
            walk(world(), &events);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let walks: Vec<_> = (0..threads).map(|_| scope.spawn(walk_on)).collect();
        for walk in walks {
            walk.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

#[test]
fn no_story_of_a_stream_that_was_made_with_a_schedule_ends_badly() {
    let mut world = world();
    world.user.is_scheduled = true;
    walk(world, &[Event::Suspend, Event::Spec, Event::Request, Event::Slot]);
}
