//! Each rule by a small story.

mod backfills;
mod changes;
mod outcomes;
mod rollouts;

use std::fmt::Write;

use expect_test::Expect;

use super::world::World;
use crate::lifecycle::{Decision, Desired};

fn render(world: &World, decision: &Decision) -> String {
    let mut text = format!("{} {}: {}\n", decision.phase(), decision.rule, decision.message);
    let desired = match &decision.desired {
        Desired::Nothing => "nothing".to_owned(),
        Desired::AsIs(name) => format!("{name} as it is"),
        Desired::Run(run) => format!("{} attempt {}", run.job, run.attempt),
    };
    let first = if decision.status_first { ", status first" } else { "" };
    write!(text, "{desired}{first}").unwrap();
    if !decision.let_go.is_empty() {
        write!(text, ", lets go {}", decision.let_go.join(" ")).unwrap();
    }
    if let Some(at) = decision.wake_at {
        write!(text, ", again in {}s", at.duration_since(world.now).as_secs()).unwrap();
    }
    text.push('\n');
    for happened in &decision.happened {
        let mark = if happened.is_warning { '!' } else { '-' };
        writeln!(text, "{mark} {}: {}", happened.reason, happened.note).unwrap();
    }
    text
}

/// What is decided next.
#[expect(clippy::needless_pass_by_value, reason = "that is how it is written inline")]
fn check(world: &World, expected: Expect) {
    expected.assert_eq(&render(world, &world.decide()));
}

/// A stream that runs and is at rest.
fn running() -> World {
    started(World::default())
}

fn started(mut world: World) -> World {
    world.settle();
    world
}
