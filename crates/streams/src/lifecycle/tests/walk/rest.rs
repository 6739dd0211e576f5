//! From everywhere, what happens by itself comes to rest, and well.

use super::graph::{Graph, in_parallel};
use super::wishes::{Way, all};
use crate::kinds::{Phase, Purpose};
use crate::lifecycle::JobState;
use crate::lifecycle::tests::world::World;

/// More rounds than any state needs.
const ROUNDS_MAX: usize = 40;

/// A state and what its user has written, by their places in the graph.
type Place = (usize, usize);

/// For each place, the next on the way to rest. None: any place of a state from which it is always known.
type Ways = Vec<Vec<Option<Place>>>;

pub(super) fn check_liveness(graph: &Graph) {
    let states = 0..graph.worlds.len();
    let ways = in_parallel(states.clone(), |range| range.map(|state| ways(graph, state)).collect::<Ways>());
    let ways: Ways = ways.into_iter().flatten().collect();
    let wrong = in_parallel(states, |mut range| {
        range.find_map(|state| {
            let what = restless(graph, &ways, state).or_else(|| ill(graph, &ways, state))?;
            Some((state, what))
        })
    });
    if let Some((state, what)) = wrong.into_iter().flatten().next() {
        graph.fail(state, None, &what);
    }
}

fn ways(graph: &Graph, state: usize) -> Vec<Option<Place>> {
    let rests = graph.outlooks[state].rests.iter();
    rests
        .map(|rest| {
            let next = graph.numbers[&rest.next];
            let places = &graph.outlooks[next].rests;
            let Some(then) = rest.then else {
                // Jobs do not end by themselves, so this cannot go on for ever: no second outcome comes after the first.
                assert!(places.iter().all(|place| place.then.is_some()), "two outcomes after {state}");
                return None;
            };
            Some((next, places.iter().position(|place| place.asked == then).unwrap()))
        })
        .collect()
}

/// What is wrong with a state that does not come to rest, whatever the user has written.
fn restless(graph: &Graph, ways: &Ways, state: usize) -> Option<String> {
    let comes_to_rest = |start: Place| {
        let mut place = start;
        (0..ROUNDS_MAX).any(|_| {
            let before = place;
            ways[place.0][place.1].is_none_or(|next| {
                place = next;
                next == before
            })
        })
    };
    let place = (0..ways[state].len()).find(|place| !comes_to_rest((state, *place)))?;
    Some(format!("{:?}: it does not come to rest", graph.outlooks[state].rests[place].asked))
}

/// What is wrong with a state that is at rest.
fn ill(graph: &Graph, ways: &Ways, state: usize) -> Option<String> {
    let is_at_rest = |place: usize| ways[state][place] == Some((state, place));
    if !(0..ways[state].len()).any(is_at_rest) {
        return None;
    }
    let all = all(&graph.worlds[state], Way::Plain).into_iter().enumerate();
    let mut at_rest = all.filter(|(place, _)| is_at_rest(*place));
    at_rest.find_map(|(_, (asked, user))| {
        let mut world = World { user, ..graph.worlds[state].clone() };
        // Some of what is written makes no state of its own: a phase, a message.
        let is_done = (0..ROUNDS_MAX).any(|_| !world.pass());
        let what = if is_done { check_rest(&world).err()? } else { "it is never done writing".to_owned() };
        Some(format!("{asked:?}: {what}"))
    })
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
    let is_run_or_failed = || fact(there == 1 || phase == Some(Phase::Failed), "neither a Job nor Failed");
    let Ok(wish) = world.user.wish() else { return is_run_or_failed() };
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
    if wish.backfill.is_err() || wish.stream.is_err() {
        return is_run_or_failed();
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
