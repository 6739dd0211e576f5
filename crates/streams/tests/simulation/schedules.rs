//! Streams with a schedule.
//!
//! A world begins at midnight and comes to rest when nothing has changed for two minutes. So times are ten minutes apart, and each wait
//! ends in between.

use std::time::Duration;

use mainstay_testkit::simulation::Script;
use serde_json::json;

use crate::simulation::world::{change, completes, feeds, killed, orders, program, with_plugin};

const QUIET: Duration = Duration::from_mins(2);
const TURN: Duration = Duration::from_mins(7);

#[test]
fn a_stream_with_a_schedule_runs_at_its_times_until_it_has_none() {
    let scheduled = json!({"schedule": "*/10 * * * *", "jobTemplateRef": {"name": "tick"}});
    let always = json!({"schedule": null, "jobTemplateRef": {"name": "feeds"}});
    let script = Script::new().create(orders(&scheduled)).wait(TURN).wait(TURN).patch(
        &feeds(),
        "orders",
        change(2, &always),
    );
    killed(with_plugin().quiet(QUIET).given(program("tick", &completes())), script);
}
