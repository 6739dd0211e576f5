//! That states are told apart finely enough: two worlds in one state, and two ways to write what decisions take for the same, lead to the
//! same states by the same decisions.

use std::collections::BTreeSet;

use super::graph::{Graph, in_parallel};
use super::key::Key;
use super::steps::{Gist, Outlook, Step, look};
use super::wishes::{Asked, Way};
use crate::lifecycle::tests::world::World;

/// One of so many worlds is looked at with the same written in another way, and one of so many twins.
const WORLDS_PER: usize = 8;
const TWINS_PER: usize = 3;

/// Worlds against themselves with the same written in another way, and against their twins. Returns the rules that decided.
pub(super) fn check_sameness(graph: &Graph) -> BTreeSet<&'static str> {
    let ways = [Way::Plain, Way::Other, Way::Both];
    let selves = graph
        .worlds
        .iter()
        .enumerate()
        .map(|(state, world)| (state, world, ways[1 + state / WORLDS_PER % 2]));
    let twins = graph.twins.iter().step_by(TWINS_PER).enumerate();
    let twins = twins.map(|(number, (state, twin))| (*state, twin, ways[number % 3]));
    let all: Vec<(usize, &World, Way)> = selves.step_by(WORLDS_PER).chain(twins).collect();
    let found = in_parallel(0..all.len(), |range| {
        let mut rules = BTreeSet::new();
        for (state, other, way) in &all[range] {
            match look(other, *way, &mut |_, _, _| ()) {
                Ok(outlook) if is_same(&graph.outlooks[*state], &outlook, *way) => {
                    rules.extend(outlook.gists.iter().map(|(.., gist)| gist.rule));
                }
                _ => return Err((*state, *other, *way)),
            }
        }
        Ok(rules)
    });
    let found: Result<Vec<BTreeSet<&str>>, (usize, &World, Way)> = found.into_iter().collect();
    match found {
        Ok(rules) => rules.into_iter().flatten().collect(),
        Err((state, other, way)) => {
            let what = difference(&graph.worlds[state], other, way);
            graph.fail(state, None, &format!("{way:?} differs: {what}\nin {other:#?}\nas against"))
        }
    }
}

fn is_same(one: &Outlook, other: &Outlook, way: Way) -> bool {
    let gists = one.gists.iter().zip(&other.gists);
    one.digest == other.digest
        && one.rests == other.rests
        && one.gists.len() == other.gists.len()
        && gists.into_iter().all(|(one, other)| told(one, way) == told(other, way))
}

/// In another way, it may be another rule that says the same.
fn told((asked, may, gist): &(Asked, bool, Gist), way: Way) -> (Asked, bool, Gist) {
    let mut gist = gist.clone();
    if way != Way::Plain {
        gist.rule = "";
    }
    (*asked, *may, gist)
}

fn difference(one: &World, other: &World, way: Way) -> String {
    let steps = |world: &World, way: Way| {
        let mut steps: Vec<(Step, Key)> = Vec::new();
        let outlook = look(world, way, &mut |step, key, _| steps.push((step, key)));
        let Ok(outlook) = outlook else { return (steps, Vec::new(), Vec::new()) };
        (steps, outlook.gists, outlook.rests)
    };
    let (one, other) = (steps(one, Way::Plain), steps(other, way));
    let step = one.0.iter().zip(&other.0).find(|(one, other)| one != other);
    let gist = one.1.iter().zip(&other.1).find(|(one, other)| told(one, way) != told(other, way));
    let rest = one.2.iter().zip(&other.2).find(|(one, other)| one != other);
    format!("{step:#?}\n{gist:#?}\n{rest:#?}")
}
