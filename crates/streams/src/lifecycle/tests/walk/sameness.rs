//! That states are told apart finely enough: two worlds in one state, and two ways to write what decisions take for the same, lead to the
//! same states by the same decisions.

use std::collections::BTreeSet;

use super::digest::DigestSet;
use super::graph::{Graph, in_parallel};
use super::key::{Key, remainder};
use super::steps::{Gist, Outlook, Step, look};
use super::wishes::{Asked, Way};
use crate::lifecycle::tests::world::World;

/// One of so many worlds is looked at with the same written in another way.
const WORLDS_PER: usize = 16;

/// So many twins are looked at in a round. The next round has those that they lead to: some mistakes show only after several steps. With
/// 3,000 it takes half a minute longer, which is worth it after a change of what states are told apart by.
const TWINS_MAX: usize = 500;
const ROUNDS: usize = 6;

/// A world in a state that was found from another.
type Twin = (usize, World);

/// Worlds against themselves with the same written in another way, and against their twins. Returns the rules that decided.
pub(super) fn check_sameness(graph: &Graph) -> BTreeSet<&'static str> {
    let selves = graph.worlds.iter().enumerate().step_by(WORLDS_PER);
    let selves: Vec<Twin> = selves.map(|(state, world)| (state, world.clone())).collect();
    let (mut rules, _) = compare(graph, &selves, &[Way::Other, Way::Both]);
    let mut known = graph.remainders.clone();
    let mut twins = graph.twins.clone();
    for round in 0..ROUNDS {
        let every = twins.len().div_ceil(TWINS_MAX).max(1);
        let some: Vec<Twin> = twins.into_iter().skip(round % every).step_by(every).collect();
        let (more_rules, found) = compare(graph, &some, &[Way::Plain, Way::Other, Way::Both]);
        rules.extend(more_rules);
        let new = found.into_iter().filter(|(key, remainder, _)| known.insert((*key, *remainder)));
        twins = new.map(|(key, _, world)| (graph.numbers[&key], world)).collect();
    }
    rules
}

/// What comes of looking at twins: the rules that decided, and worlds that are different.
type Compared = (BTreeSet<&'static str>, Vec<(Key, u64, World)>);

fn compare(graph: &Graph, twins: &[Twin], ways: &[Way]) -> Compared {
    let parts = in_parallel(0..twins.len(), |range| {
        let (mut rules, mut found, mut known) = (BTreeSet::new(), Vec::new(), DigestSet::default());
        for number in range {
            let ((state, twin), way) = (&twins[number], ways[number % ways.len()]);
            let outlook = look(twin, way, &mut |_, key, world| {
                let remainder = remainder(world);
                if !graph.remainders.contains(&(key, remainder)) && known.insert((key, remainder)) {
                    found.push((key, remainder, world.clone()));
                }
            });
            match outlook {
                Ok(outlook) if is_same(&graph.outlooks[*state], &outlook) => {
                    rules.extend(outlook.gists.iter().map(|(.., gist)| gist.rule));
                }
                _ => return Err((number, way)),
            }
        }
        Ok((rules, found))
    });
    let mut all = Compared::default();
    for part in parts {
        let (rules, found) = part.unwrap_or_else(|(number, way)| {
            let (state, twin) = &twins[number];
            let what = difference(&graph.worlds[*state], twin, way);
            graph.fail(*state, None, &format!("{way:?} differs: {what}\nin {twin:#?}\nas against"))
        });
        all.0.extend(rules);
        all.1.extend(found);
    }
    all
}

fn is_same(one: &Outlook, other: &Outlook) -> bool {
    let gists = one.gists.iter().zip(&other.gists);
    one.digest == other.digest
        && one.rests == other.rests
        && one.gists.len() == other.gists.len()
        && gists.into_iter().all(|(one, other)| told(one) == told(other))
}

/// Rules that do the same for another reason: which of them decides depends on the way in which something is written.
const RULES_OF_CHANGES: [&str; 3] = ["RestartRequested", "BackfillRequested", "SpecChanged"];

fn told((asked, may, gist): &(Asked, bool, Gist)) -> (Asked, bool, Gist) {
    let mut gist = gist.clone();
    if RULES_OF_CHANGES.contains(&gist.rule) {
        gist.rule = RULES_OF_CHANGES[0];
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
    let gist = one.1.iter().zip(&other.1).find(|(one, other)| told(one) != told(other));
    let rest = one.2.iter().zip(&other.2).find(|(one, other)| one != other);
    format!("{step:#?}\n{gist:#?}\n{rest:#?}")
}
