//! That nothing is left out: whatever somebody does in any order, one thing after the other, leads to where the walk has been.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::events::{EVENTS, after};
use super::graph::Graph;
use super::key::key;
use super::wishes::asked;
use crate::lifecycle::tests::world::{User, World};

/// What the user changes, one thing at a time. Values come back, as they do where a change is undone.
const EDITS: [fn(&mut User); 11] = [
    |user| user.is_suspended = !user.is_suspended,
    |user| user.is_scheduled = !user.is_scheduled,
    |user| user.is_broken = !user.is_broken,
    |user| user.is_stream_broken = !user.is_stream_broken,
    |user| user.is_backfill_broken = !user.is_backfill_broken,
    |user| user.has_backfill_template = !user.has_backfill_template,
    |user| user.spec = 1 - user.spec,
    |user| user.restart = 1 - user.restart,
    |user| user.template = 1 - user.template,
    |user| user.secrets = 1 - user.secrets,
    |user| user.reload = (user.reload + 1) % 3,
];

#[derive(Debug, Clone, Copy)]
enum Deed {
    Edit(usize),
    Event(usize),
    Operator { writes: usize, may: bool },
    Pass,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        2 => (0..EDITS.len()).prop_map(Deed::Edit),
        3 => (0..EVENTS.len()).prop_map(Deed::Event),
        3 => (1..4_usize, any::<bool>()).prop_map(|(writes, may)| Deed::Operator { writes, may }),
        1 => Just(Deed::Pass),
    ];
    prop::collection::vec(deed, 1..150)
}

fn carry_out(world: &mut World, deed: Deed) -> Result<(), String> {
    match deed {
        Deed::Edit(number) => EDITS[number](&mut world.user),
        Deed::Event(number) => {
            if let Some(next) = after(world, EVENTS[number])? {
                *world = next;
            }
        }
        Deed::Operator { writes, may } => {
            (world.may_start, world.may_roll_out) = (may, may);
            let decision = world.decide();
            for write in world.writes(&decision).iter().take(writes) {
                world.carry_out(&decision, write)?;
            }
        }
        Deed::Pass => {
            world.try_pass()?;
        }
    }
    Ok(())
}

pub(super) fn check_stories(graph: &Graph) {
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let story = |deeds: Vec<Deed>| {
        let mut world = graph.worlds[0].clone();
        for deed in deeds {
            carry_out(&mut world, deed).map_err(TestCaseError::fail)?;
            let state = graph.numbers.get(&key(&world));
            let places = state.map(|state| &graph.outlooks[*state].rests);
            let is_known =
                places.is_some_and(|places| places.iter().any(|place| place.asked == asked(&world)));
            prop_assert!(is_known, "the walk has not been in {:#?}", world);
        }
        Ok(())
    };
    runner.run(&deeds(), story).unwrap_or_else(|failure| panic!("{failure}"));
}
