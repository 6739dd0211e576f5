//! All that can become of a world by one event, or by what the operator does about what the user may have written.

use std::cell::Cell;
use std::hash::{Hash, Hasher};

use super::digest::Digest;
use super::events::{EVENTS, Event, after};
use super::key::{Key, key as key_of};
use super::wishes::{Asked, Way, all, asked};
use crate::kinds::Phase;
use crate::lifecycle::tests::world::{World, Write};
use crate::lifecycle::{Asks, Decision, Desired, LingeringPod, Permit};

/// What leads from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Event(Event),
    /// The operator comes to so many of its writes that make a difference.
    Operator {
        asked: Asked,
        may: bool,
        writes: usize,
    },
    /// As long as nothing else happens, time passes.
    Wait(Asked),
}

/// A decision, as far as two that rest on the same may not differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gist {
    pub(super) rule: &'static str,
    phase: Option<Phase>,
    problem: Option<&'static str>,
    desired: &'static str,
    is_status_first: bool,
    is_woken: Option<bool>,
    lets_go: usize,
    left_behind: usize,
}

/// What is found at a world: where it leads to, and what is decided.
pub(super) struct Outlook {
    pub(super) gists: Vec<(Asked, bool, Gist)>,
    /// Of all its steps and where they lead.
    pub(super) digest: u64,
    /// Where it goes by itself as long as the user writes nothing else.
    pub(super) rests: Vec<Rest>,
}

/// The next step on the way to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) asked: Asked,
    /// The state itself: it is at rest.
    pub(super) next: Key,
    /// What the user has written, as the next state sees it. None: that depends. Once an outcome is recorded, what the run was made from
    /// may be what has crashed, and its reload annotation one that is seen.
    pub(super) then: Option<Asked>,
}

/// Notes whether it was asked what is not told the same at all times.
struct Asking<'a> {
    world: &'a World,
    is_asked: Cell<bool>,
}

impl Asks for Asking<'_> {
    fn lingering(&self) -> Vec<LingeringPod> {
        self.world.lingering()
    }

    fn start(&self) -> Permit {
        self.is_asked.set(true);
        self.world.start()
    }

    fn rollout(&self) -> Permit {
        self.is_asked.set(true);
        self.world.rollout()
    }
}

/// Goes all steps from a world, and says what is wrong with one.
pub(super) fn look(
    world: &World,
    way: Way,
    go: &mut dyn FnMut(Step, Key, &World),
) -> Result<Outlook, (Step, String)> {
    let here = key_of(world);
    let mut digest = Digest::default();
    let go = &mut |step: Step, key: Key, world: &World| {
        if key != here {
            (step, key).hash(&mut digest);
            go(step, key, world);
        }
    };
    let mut by_itself = None;
    for event in EVENTS {
        let step = Step::Event(event);
        if let Some(next) = after(world, event).map_err(|what| (step, what))? {
            go(step, key_of(&next), &next);
            by_itself = (event == Event::ByItself).then_some(next);
        }
    }
    let mut outlook = Outlook { gists: Vec::new(), digest: 0, rests: Vec::new() };
    let mut world = world.clone();
    for (asked_now, user) in all(&world, way) {
        world.user = user;
        let stay = Rest { asked: asked_now, next: here, then: Some(asked_now) };
        let rest = operate(&mut world, stay, &mut outlook.gists, go)?;
        outlook.rests.push(match &mut by_itself {
            Some(next) => {
                next.user.clone_from(&world.user);
                Rest { asked: asked_now, next: key_of(next), then: Some(asked(next)) }
            }
            None => rest,
        });
    }
    outlook.digest = digest.finish();
    Ok(outlook)
}

/// The operator looks. Returns what it comes to with all its writes.
fn operate(
    world: &mut World,
    here: Rest,
    gists: &mut Vec<(Asked, bool, Gist)>,
    go: &mut dyn FnMut(Step, Key, &World),
) -> Result<Rest, (Step, String)> {
    let mut rest = here;
    let asked_now = here.asked;
    for may in [true, false] {
        (world.may_start, world.may_roll_out) = (may, may);
        let asking = Asking { world, is_asked: Cell::new(false) };
        let decision = world.decide_by(&asking);
        let is_asked = asking.is_asked.get();
        gists.push((asked_now, may, gist(world, &decision)));
        let writes = world.writes(&decision);
        let is_still = writes.is_empty() && decision.wake_at.is_none();
        if is_still && !is_asked {
            break;
        }
        let mut next = world.clone();
        let (mut key, mut different) = (here.next, 0);
        for write in &writes {
            let step = Step::Operator { asked: asked_now, may, writes: different + 1 };
            check_write(&next, &decision, write).map_err(|what| (step, what))?;
            next.carry_out(&decision, write).map_err(|what| (step, what))?;
            let before = std::mem::replace(&mut key, key_of(&next));
            // Some of what is written makes no state of its own: a phase, a message.
            if key != before {
                go(step, key, &next);
                different += 1;
            }
        }
        if may && different > 0 {
            let then = (decision.rule != "OutcomeRecorded").then(|| asked(&next));
            rest = Rest { asked: asked_now, next: key, then };
        }
        if let Some(at) = decision.wake_at.filter(|at| may && rest == here && *at > next.now) {
            next.now = at;
            go(Step::Wait(asked_now), key_of(&next), &next);
            rest = Rest { asked: asked_now, next: key_of(&next), then: Some(asked(&next)) };
        }
        if !is_asked {
            // It would be the same.
            break;
        }
    }
    Ok(rest)
}

/// What must hold whenever something is written.
fn check_write(world: &World, decision: &Decision, write: &Write) -> Result<(), String> {
    match write {
        Write::Create(run) if world.user.is_suspended && !world.user.is_broken => {
            Err(format!("{} is created for a stream that is suspended", run.job))
        }
        Write::Status => {
            let mut told: Vec<&String> = decision.status.history.iter().map(|past| &past.job).collect();
            told.sort_unstable();
            let is_twice = told.windows(2).any(|pair| pair[0] == pair[1]);
            if is_twice { Err("a run is told of twice".to_owned()) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

fn gist(world: &World, decision: &Decision) -> Gist {
    Gist {
        rule: decision.rule,
        // What scheduled Jobs come to says nothing of the phase.
        phase: decision.status.phase.filter(|_| decision.rule != "SlotRecorded"),
        problem: decision.problem.as_ref().map(|problem| problem.reason),
        desired: match &decision.desired {
            Desired::Nothing => "nothing",
            Desired::AsIs(_) => "as it is",
            Desired::Run(run) => run.purpose.kind(),
        },
        is_status_first: decision.status_first,
        is_woken: decision.wake_at.map(|at| at > world.now),
        lets_go: decision.let_go.len(),
        left_behind: decision.left_behind.len(),
    }
}
