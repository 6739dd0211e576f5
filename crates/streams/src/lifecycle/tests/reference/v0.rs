//! The first generation.

use super::{Row, crashed, lose_job, new, running, suspended, world};
use crate::lifecycle::tests::world::{PLEASE_BACKFILL, World};

const DIRECT: &str = "The Job is stopped directly. No annotation on it is needed in between, because a decision sees stream and Job at once.";
const CRASH_PHASE: &str = "A crash loop has a phase of its own, `CrashLoopDetected`; `Failed` says that what the user wrote cannot be run.";
const RECORDED: &str = "How a Job ended is written to the status while the Job is held by a finalizer. The original waits for the Job to be deleted after \
     its TTL, and never learns of one that went while it was down.";
const GARBAGE: &str = "gone, Jobs by garbage collection";

fn with_template(world: &mut World) {
    world.user.has_backfill_template = true;
}

/// The Job is there, the status is not: as after the very first write.
fn first_write(change: fn(&mut World)) -> World {
    let mut world = new(change);
    world.step();
    world
}

pub(super) const STREAM: &[Row] = &[
    Row {
        given: "Added, a backfill Job is there",
        theirs: "RELOADING",
        world: Some(|| first_write(with_template)),
        ours: ("Backfilling", "Backfilling, backfill Job"),
        deviates: None,
    },
    Row {
        given: "Added, another Job is there",
        theirs: "RUNNING",
        world: Some(|| first_write(|_| {})),
        ours: ("Running", "Running, Job"),
        deviates: None,
    },
    Row {
        given: "Added, suspended, a Job is there",
        theirs: "as if it were not suspended: the code for it cannot be reached",
        world: Some(|| {
            let mut world = first_write(|_| {});
            world.user.is_suspended = true;
            world
        }),
        ours: ("Suspended", "Suspended"),
        deviates: Some("Suspended means that there is no Job, whichever was seen first."),
    },
    Row {
        given: "Added, suspended, no Job",
        theirs: "SUSPENDED",
        world: Some(|| new(|world| world.user.is_suspended = true)),
        ours: ("Suspended", "Suspended"),
        deviates: None,
    },
    Row {
        given: "Added, no Job, with a template for backfills",
        theirs: "start a backfill",
        world: Some(|| new(with_template)),
        ours: ("BackfillStarts", "Backfilling, backfill Job"),
        deviates: None,
    },
    Row {
        given: "Added, no Job, without a template for backfills",
        theirs: "start a backfill",
        world: Some(|| new(|_| {})),
        ours: ("StreamStarts", "Running, Job"),
        deviates: Some(
            "A new stream is backfilled if it names a template for that, or if its class says so with `initialBackfill`.",
        ),
    },
    Row {
        given: "Modified, crash loop, a Job is there",
        theirs: "FAILED, the Job runs on",
        world: Some(|| running(|world| world.status.crashed = Some(world.user.hashes(false)))),
        ours: ("CrashLoop", "CrashLoopDetected"),
        deviates: Some("A stream in a crash loop has no Job: one that is there all the same is stopped."),
    },
    Row {
        given: "Modified, crash loop, no Job",
        theirs: "FAILED",
        world: Some(|| crashed(|_| {})),
        ours: ("CrashLoop", "CrashLoopDetected"),
        deviates: Some(CRASH_PHASE),
    },
    Row {
        given: "Modified, suspended, a Job is there",
        theirs: "stop the Job",
        world: Some(|| running(|world| world.user.is_suspended = true)),
        ours: ("Suspended", "Suspended"),
        deviates: None,
    },
    Row {
        given: "Modified, suspended, no Job",
        theirs: "SUSPENDED",
        world: Some(|| suspended(|_| {})),
        ours: ("Suspended", "Suspended"),
        deviates: None,
    },
    Row {
        given: "Modified, another checksum, a Job is there",
        theirs: "annotate the Job for a restart",
        world: Some(|| running(|world| world.user.spec = 1)),
        ours: ("SpecChanged", "Running, Job"),
        deviates: Some(DIRECT),
    },
    Row {
        given: "Modified, reload asked for, a Job is there",
        theirs: "annotate the Job for a reload",
        world: Some(|| running(|world| world.user.reload = 1)),
        ours: ("BackfillRequested", "Backfilling, backfill Job"),
        deviates: Some(DIRECT),
    },
    Row {
        given: "Modified, reload asked for, no Job",
        theirs: "start a backfill",
        world: Some(|| {
            suspended(|world| {
                world.user.is_suspended = false;
                world.user.reload = 1;
            })
        }),
        ours: ("BackfillStarts", "Backfilling, backfill Job"),
        deviates: None,
    },
    Row {
        given: "Modified otherwise, a Job is there",
        theirs: "nothing",
        world: Some(|| running(|_| {})),
        ours: ("Running", "Running, Job"),
        deviates: None,
    },
    Row {
        given: "Modified otherwise, no Job",
        theirs: "start the stream",
        world: Some(|| suspended(|world| world.user.is_suspended = false)),
        ours: ("StreamStarts", "Running, Job"),
        deviates: None,
    },
    Row { given: "Deleted", theirs: "nothing", world: None, ours: ("", GARBAGE), deviates: None },
];

pub(super) const JOB: &[Row] = &[
    Row {
        given: "Added, a backfill Job",
        theirs: "take the reload annotation off the stream; RELOADING",
        world: Some(|| {
            let mut world = world(|_| {}, |world| world.user.reload = 1);
            while world.jobs.iter().all(|job| !job.name.starts_with('b')) {
                world.pass();
            }
            world
        }),
        ours: ("Backfilling", "Backfilling, backfill Job"),
        deviates: Some(
            "The annotation is the user's and stays. The status has the last value that a backfill was made for, so another value asks for another.",
        ),
    },
    Row {
        given: "Modified, it is being deleted",
        theirs: "nothing",
        world: Some(|| running(|world| world.delete("s-1"))),
        ours: ("StopRecorded", "Running, Job"),
        deviates: Some("It is written to the status that a run was stopped, and why."),
    },
    Row {
        given: "Modified, restart asked for",
        theirs: "stop the Job, in the foreground",
        world: Some(|| running(|world| world.user.restart = 1)),
        ours: ("RestartRequested", "Running, Job"),
        deviates: None,
    },
    Row {
        given: "Modified, failed",
        theirs: "nothing until it is deleted",
        world: Some(|| running(|world| world.fail(1))),
        ours: ("OutcomeRecorded", "CrashLoopDetected"),
        deviates: Some(RECORDED),
    },
    Row {
        given: "Modified, completed",
        theirs: "nothing until it is deleted",
        world: Some(|| running(World::complete)),
        ours: ("OutcomeRecorded", "Running, Job"),
        deviates: Some(RECORDED),
    },
    Row {
        given: "Deleted, had failed",
        theirs: "FAILED, annotate the stream: crash loop",
        world: Some(|| {
            running(|world| {
                world.fail(1);
                world.delete("s-1");
            })
        }),
        ours: ("OutcomeRecorded", "CrashLoopDetected"),
        deviates: Some(CRASH_PHASE),
    },
    Row {
        given: "Deleted, suspended",
        theirs: "SUSPENDED",
        world: Some(|| {
            running(|world| {
                world.user.is_suspended = true;
                lose_job(world);
            })
        }),
        ours: ("StopRecorded", "Suspended"),
        deviates: None,
    },
    Row {
        given: "Deleted, crash loop",
        theirs: "FAILED",
        world: Some(|| crashed(lose_job)),
        ours: ("CrashLoop", "CrashLoopDetected"),
        deviates: Some(CRASH_PHASE),
    },
    Row {
        given: "Deleted otherwise",
        theirs: "start the stream",
        world: Some(|| running(lose_job)),
        ours: ("StopRecorded", "Running, Job"),
        deviates: None,
    },
    Row {
        given: "Deleted, reload asked for",
        theirs: "start a backfill",
        world: Some(|| {
            running(|world| {
                world.user.reload = 1;
                lose_job(world);
            })
        }),
        ours: ("StopRecorded", "Backfilling, backfill Job"),
        deviates: None,
    },
    Row {
        given: "Deleted, its program does not know the schema any more",
        theirs: "start a backfill",
        world: Some(|| running(|world| world.fail(PLEASE_BACKFILL))),
        ours: ("OutcomeRecorded", "Backfilling, backfill Job"),
        deviates: Some(
            "A program asks for a backfill by an exit code that its class names, and needs no right to annotate its own Job.",
        ),
    },
    Row {
        given: "Deleted, the stream is gone",
        theirs: "nothing",
        world: None,
        ours: ("", GARBAGE),
        deviates: None,
    },
];
