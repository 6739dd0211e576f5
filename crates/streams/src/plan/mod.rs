//! What a changed class or template would do to a stream, before it is applied. Pure.
//!
//! What a stream asks for is read twice, once with what is there and once with what would be; where both are equal, nothing happens.
//! Where they differ, what counts is the run that goes on: it is replaced if it would not be made the same way any more.

mod paths;
#[cfg(test)]
mod tests;

use std::fmt;

use mainstay::Error;
use serde_json::Value;

pub use paths::changed_paths;

use crate::config::StreamClassConfig;
use crate::kinds::{Hashes, Purpose, StreamStatus};
use crate::wish::{self, Materials, Mode, Problem, Suspension, Wish};

/// What a stream is read with.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// Its class.
    pub class: &'a StreamClassConfig,
    /// What it refers to. Secrets may be left out: a plan is about other things, and nobody needs to read them for it.
    pub materials: &'a dyn Materials,
}

/// What becomes of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// Its run is stopped, and a new one started.
    Restarts(Vec<Cause>),
    /// It does not run, and would.
    Starts(Start),
    /// Its run is stopped.
    Stops(Vec<Suspension>),
    /// It cannot be run any more. If it runs, that run goes on.
    Breaks(Problem),
    /// Nobody looks after it any more. If it runs, that run goes on.
    IsLeft,
}

/// Why a run is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It has a schedule now, or none any more.
    Mode,
    /// Its program would see another spec, or it names another template or other Secrets.
    Spec,
    /// Its template is another.
    Template,
    /// What its Secrets hold is not what it was.
    Secrets,
    /// A restart is asked for.
    Restart,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mode => "it runs in another way",
            Self::Spec => "its program gets another spec or other Secrets",
            Self::Template => "its template changes",
            Self::Secrets => "what its Secrets hold has changed",
            Self::Restart => "a restart is asked for",
        })
    }
}

/// Why a stream would run that does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It is not suspended any more.
    Resumed,
    /// What was wrong with it is not any more.
    Mended,
    /// It is in a crash loop, and would be made in another way.
    CrashLoopOver,
    /// Nobody looked after it.
    Adopted,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resumed => "it is not suspended any more",
            Self::Mended => "what was wrong with it is mended",
            Self::CrashLoopOver => "its crash loop is over",
            Self::Adopted => "nobody looked after it before",
        })
    }
}

/// What becomes of a stream if it is read with `then` instead of `now`. Without `now`, nobody looks after it. An error means that it
/// cannot be told.
pub fn compare(
    stream: &Value,
    status: &StreamStatus,
    now: Option<Side<'_>>,
    then: Side<'_>,
) -> Result<Effect, Error> {
    let now = now.filter(|side| !side.class.stopped);
    if then.class.stopped {
        return Ok(if now.is_some() { Effect::IsLeft } else { Effect::Nothing });
    }
    let before = status.run.as_ref().map(|run| &run.made_from).or(status.crashed.as_ref());
    let read = |side: Side<'_>| wish::read(stream, side.class, side.materials, before);
    let now = now.map(read).transpose()?;
    let then = read(then)?;
    if now.as_ref() == Some(&then) {
        return Ok(Effect::Nothing);
    }
    let then = match then {
        Ok(wish) => wish,
        Err(problem) => return Ok(Effect::Breaks(problem)),
    };
    if !then.suspensions.is_empty() {
        let was_suspended = matches!(&now, Some(Ok(wish)) if !wish.suspensions.is_empty());
        return Ok(if was_suspended { Effect::Nothing } else { Effect::Stops(then.suspensions) });
    }
    let purpose = status.run.as_ref().map_or(Purpose::Stream, |run| run.purpose.clone());
    let wanted = match made_from(&then, &purpose) {
        Ok(wanted) => wanted,
        Err(problem) => return Ok(Effect::Breaks(problem.clone())),
    };
    if let Some(run) = &status.run {
        let causes = causes(&run.made_from, wanted, is_switched(&run.purpose, then.mode));
        return Ok(if causes.is_empty() { Effect::Nothing } else { Effect::Restarts(causes) });
    }
    Ok(starts(status, now.as_ref(), wanted).map_or(Effect::Nothing, Effect::Starts))
}

fn made_from<'a>(wish: &'a Wish, purpose: &Purpose) -> Result<&'a Hashes, &'a Problem> {
    if purpose.is_backfill() { wish.backfill.as_ref() } else { wish.stream.as_ref() }
}

fn is_switched(purpose: &Purpose, mode: Mode) -> bool {
    match purpose {
        Purpose::Stream => mode == Mode::Scheduled,
        Purpose::Schedule => mode == Mode::ChangeCapture,
        Purpose::Backfill { .. } => false,
    }
}

/// Why a run that was made from these is not one that is made from those.
fn causes(run: &Hashes, wanted: &Hashes, is_switched: bool) -> Vec<Cause> {
    let is_other_spec = run.spec != wanted.spec;
    let all = [
        (Cause::Mode, is_switched),
        (Cause::Spec, is_other_spec && !is_switched),
        (Cause::Template, run.template != wanted.template),
        // Other Secrets than before are part of what the spec says.
        (Cause::Secrets, !is_other_spec && run.secrets != wanted.secrets),
        (Cause::Restart, run.restart != wanted.restart),
    ];
    all.into_iter().filter(|(_, is_so)| *is_so).map(|(cause, _)| cause).collect()
}

/// Why a stream without a run would have one.
fn starts(status: &StreamStatus, now: Option<&Result<Wish, Problem>>, wanted: &Hashes) -> Option<Start> {
    match now {
        None => Some(Start::Adopted),
        Some(Err(_)) => Some(Start::Mended),
        Some(Ok(wish)) if !wish.suspensions.is_empty() => Some(Start::Resumed),
        Some(Ok(wish)) if wish.stream.is_err() => Some(Start::Mended),
        Some(Ok(_)) => {
            status.crashed.as_ref().filter(|crashed| *crashed != wanted).map(|_| Start::CrashLoopOver)
        }
    }
}
