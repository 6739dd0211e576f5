//! All states that a stream gets into by what the user, the Jobs, time, and an operator that dies between two writes do: walked through
//! to the end, with all of it at once.
//!
//! What makes them few enough:
//!
//! - **What the user has written is no part of a state.** It may be anything whenever the operator looks, as nothing keeps the user from
//!   writing. So a state is the rest of the world, and in each the operator looks at all that may be written there: `wishes`.
//! - **Of what is written, only that counts which a decision tells apart.** It compares configurations: with what the present run was made
//!   from, and with what has crashed. Whether the spec or the restart annotation differs makes another reason, and nothing else; a template
//!   and a Secret make not even that.
//! - **Numbers, times, and what nobody will ask about again** are told apart only as far as a decision does: `key`.
//!
//! That this is the whole, and told apart finely enough, is checked rather than believed. Other worlds that came to the same state, and the
//! same written in another way, must lead to the same states by the same decisions: `sameness`. And stories in which one thing after the
//! other is changed, as people do, must stay within the states that were found: `stories`.
//!
//! The class has a restart budget of one, and so have requests, of which there is one at a time. Nobody else makes Jobs for the stream, or
//! takes from a Job what it was made as: the rules about that are left to tests of their own.

mod digest;
mod events;
mod graph;
mod key;
mod rest;
mod sameness;
mod steps;
mod stories;
mod wishes;

use std::collections::BTreeSet;
use std::time::Instant;

use self::graph::Graph;
use super::world::World;
use crate::lifecycle::RULES;

/// Rules for what only somebody else can bring about.
const RULES_ABOUT_OTHERS: [&str; 2] = ["TooMany", "UnknownJob"];

#[test]
fn no_story_ends_badly() {
    let begin = Instant::now();
    let done = |what: &str| println!("{:>6} ms: {what}", begin.elapsed().as_millis());
    let graph = Graph::walk(World::default().class(|class| {
        class.restart.budget = 1;
        // As long as the other event that has time pass while a Job runs.
        class.rollout.min_ready_seconds = 3600;
    }));
    let places: usize = graph.outlooks.iter().map(|outlook| outlook.rests.len()).sum();
    let (states, steps) = (graph.worlds.len(), graph.steps);
    done(&format!("{states} states, {places} with what is written, {steps} steps, all safe"));
    rest::check_liveness(&graph);
    done("all come to rest");
    stories::check_stories(&graph);
    done("nothing is left out");
    let rules = sameness::check_sameness(&graph);
    done("states are told apart finely enough");
    check_rules(&graph, rules);
}

/// Each rule decides somewhere, so nothing that matters is out of reach.
fn check_rules(graph: &Graph, mut reached: BTreeSet<&str>) {
    let gists = graph.outlooks.iter().flat_map(|outlook| &outlook.gists);
    reached.extend(gists.map(|(.., gist)| gist.rule));
    let all = RULES.iter().map(|rule| rule.name);
    let expected: BTreeSet<&str> = all.filter(|rule| !RULES_ABOUT_OTHERS.contains(rule)).collect();
    assert_eq!(reached, expected);
}
