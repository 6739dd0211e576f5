//! The second generation.

use super::{Row, World, backfilling, crashed, lose_job, new, running, scheduled, suspended};

const CRASH: &str = "A crash loop has a phase of its own, `CrashLoopDetected`; `Failed` says that what the user wrote cannot be run.";
const NO_STOPOVER: &str =
    "The first decision starts the run. `Pending` says that something is waited for, and here nothing is.";
const PENDING: &str =
    "Between two runs the phase is `Pending`: the old Job's pods are waited for, so there are never two.";

pub(super) const STREAM: &[Row] = &[
    Row {
        given: "any, the Job has failed",
        theirs: "delete it; Failed",
        world: Some(|| running(|world| world.fail(1))),
        ours: ("OutcomeRecorded", "CrashLoopDetected"),
        deviates: Some(CRASH),
    },
    Row {
        given: "any, the Job of a request has failed",
        theirs: "delete it, the request stays open; Failed",
        world: Some(|| backfilling(|world| world.fail(1))),
        ours: ("OutcomeRecorded", "CrashLoopDetected"),
        deviates: Some(
            "A request whose retries are used up has failed and says so. One that stays open would be run again by whatever mends the stream.",
        ),
    },
    Row {
        given: "Failed, suspended",
        theirs: "delete; Suspended",
        world: Some(|| crashed(|world| world.user.is_suspended = true)),
        ours: ("Suspended", "Suspended"),
        deviates: None,
    },
    Row {
        given: "Failed otherwise",
        theirs: "delete; Failed",
        world: Some(|| crashed(|_| {})),
        ours: ("CrashLoop", "CrashLoopDetected"),
        deviates: Some(CRASH),
    },
    Row {
        given: "Failed, the spec has changed",
        theirs: "delete; Failed",
        world: Some(|| crashed(|world| world.user.spec = 1)),
        ours: ("StreamStarts", "Running, Job"),
        deviates: Some(
            "What has crashed is remembered by its hashes, so a change of spec, template or Secret is enough to have it tried again.",
        ),
    },
    Row {
        given: "new, it cannot be read how it runs",
        theirs: "an event; stays new",
        world: Some(|| new(|world| world.user.is_broken = true)),
        ours: ("CannotRun", "Failed"),
        deviates: Some(
            "What cannot be run has a phase and a condition that names the field, besides the event.",
        ),
    },
    Row {
        given: "new, suspended",
        theirs: "Suspended",
        world: Some(|| new(|world| world.user.is_suspended = true)),
        ours: ("Suspended", "Suspended"),
        deviates: None,
    },
    Row {
        given: "new, runs as a Job, with a template for backfills",
        theirs: "create a request; Pending",
        world: Some(|| new(|world| world.user.has_backfill_template = true)),
        ours: ("BackfillStarts", "Backfilling, backfill Job"),
        deviates: Some(
            "Requests are the users'. That a stream is new is known from its status, and needs no object.",
        ),
    },
    Row {
        given: "new, runs as a CronJob",
        theirs: "Pending",
        world: Some(|| new(|world| world.user.is_scheduled = true)),
        ours: ("ScheduleStarts", "Scheduled, CronJob"),
        deviates: Some(NO_STOPOVER),
    },
    Row {
        given: "new, runs as a CronJob, with a template for backfills",
        theirs: "Pending, without a backfill",
        world: Some(|| {
            new(|world| (world.user.is_scheduled, world.user.has_backfill_template) = (true, true))
        }),
        ours: ("BackfillStarts", "Backfilling, backfill Job"),
        deviates: Some(
            "A scheduled stream is backfilled at its beginning as any other is: its class can say that it shall not.",
        ),
    },
    Row {
        given: "Pending, a request",
        theirs: "create a backfill Job; Backfilling",
        world: Some(|| new(|world| world.request("r", 0))),
        ours: ("BackfillStarts", "Backfilling, backfill Job"),
        deviates: None,
    },
    Row {
        given: "Pending, no request, runs as a Job",
        theirs: "create the Job; Running",
        world: Some(|| new(|_| {})),
        ours: ("StreamStarts", "Running, Job"),
        deviates: None,
    },
    Row {
        given: "Pending, no request, runs as a CronJob",
        theirs: "create the CronJob; Scheduled",
        world: Some(|| new(|world| world.user.is_scheduled = true)),
        ours: ("ScheduleStarts", "Scheduled, CronJob"),
        deviates: None,
    },
    Row {
        given: "Pending, suspended",
        theirs: "started, and `suspended: false` written to its spec",
        world: Some(|| {
            let mut world = new(|world| world.may_start = false);
            world.step();
            world.user.is_suspended = true;
            world
        }),
        ours: ("Suspended", "Suspended"),
        deviates: Some(
            "The operator never writes a user's spec, and what it says is followed in every phase.",
        ),
    },
    Row {
        given: "Running, suspended",
        theirs: "delete; Suspended",
        world: Some(|| running(|world| world.user.is_suspended = true)),
        ours: ("Suspended", "Suspended"),
        deviates: None,
    },
    Row {
        given: "Scheduled, suspended",
        theirs: "delete; Suspended",
        world: Some(|| scheduled(|world| world.user.is_suspended = true)),
        ours: ("Suspended", "Suspended"),
        deviates: None,
    },
    Row {
        given: "Running, a request",
        theirs: "delete; Pending",
        world: Some(|| running(|world| world.request("r", 0))),
        ours: ("BackfillRequested", "Backfilling, backfill Job"),
        deviates: None,
    },
    Row {
        given: "Scheduled, a request",
        theirs: "delete; Pending, or a crash of the operator",
        world: Some(|| scheduled(|world| world.request("r", 0))),
        ours: ("BackfillRequested", "Backfilling, backfill Job"),
        deviates: None,
    },
    Row {
        given: "Running, has a schedule now",
        theirs: "delete the old one; Pending",
        world: Some(|| running(|world| world.user.is_scheduled = true)),
        ours: ("ModeSwitched", "Scheduled, CronJob"),
        deviates: None,
    },
    Row {
        given: "Scheduled, has no schedule any more",
        theirs: "delete the old one; Pending",
        world: Some(|| scheduled(|world| world.user.is_scheduled = false)),
        ours: ("ModeSwitched", "Running, Job"),
        deviates: None,
    },
    Row {
        given: "Running, another hash",
        theirs: "create it anew; the same phase",
        world: Some(|| running(|world| world.user.spec = 1)),
        ours: ("SpecChanged", "Running, Job"),
        deviates: Some(PENDING),
    },
    Row {
        given: "Scheduled, another hash",
        theirs: "create it anew; the same phase",
        world: Some(|| scheduled(|world| world.user.spec = 1)),
        ours: ("SpecChanged", "Scheduled, CronJob"),
        deviates: Some(PENDING),
    },
    Row {
        given: "Running, the same hash",
        theirs: "keep it",
        world: Some(|| running(|_| {})),
        ours: ("Running", "Running, Job"),
        deviates: None,
    },
    Row {
        given: "Scheduled, the same hash",
        theirs: "keep it",
        world: Some(|| scheduled(|_| {})),
        ours: ("Scheduled", "Scheduled, CronJob"),
        deviates: None,
    },
    Row {
        given: "Running, its template has changed",
        theirs: "keep it: templates are not hashed",
        world: Some(|| running(|world| world.user.template = 1)),
        ours: ("RolledOut", "Running, Job"),
        deviates: Some(
            "A run is made from its template and its Secrets too, so a change of them restarts it, when it is the stream's turn.",
        ),
    },
    Row {
        given: "Suspended, resumed",
        theirs: "Pending",
        world: Some(|| suspended(|world| world.user.is_suspended = false)),
        ours: ("StreamStarts", "Running, Job"),
        deviates: Some(NO_STOPOVER),
    },
    Row {
        given: "Backfilling, suspended",
        theirs: "delete, the request stays open; Suspended",
        world: Some(|| backfilling(|world| world.user.is_suspended = true)),
        ours: ("Suspended", "Suspended"),
        deviates: None,
    },
    Row {
        given: "Backfilling, the request is deleted",
        theirs: "delete; Pending",
        world: Some(|| backfilling(|world| world.requests.clear())),
        ours: ("BackfillCancelled", "Running, Job"),
        deviates: None,
    },
    Row {
        given: "Backfilling, the Job is missing",
        theirs: "create it; the same phase",
        world: Some(|| backfilling(lose_job)),
        ours: ("StopRecorded", "Backfilling, backfill Job"),
        deviates: Some(PENDING),
    },
    Row {
        given: "Backfilling, the Job is complete",
        theirs: "the request is completed, delete; Pending",
        world: Some(|| backfilling(World::complete)),
        ours: ("OutcomeRecorded", "Running, Job"),
        deviates: None,
    },
    Row {
        given: "Backfilling, the Job runs",
        theirs: "nothing",
        world: Some(|| backfilling(|_| {})),
        ours: ("Backfilling", "Backfilling, backfill Job"),
        deviates: None,
    },
    Row {
        given: "Backfilling, the spec has changed",
        theirs: "nothing, though its documentation promises a restart",
        world: Some(|| backfilling(|world| world.user.spec = 1)),
        ours: ("SpecChanged", "Backfilling, backfill Job"),
        deviates: Some(
            "A backfill by a spec that nobody wants any more is of no use: it is begun again with the new one.",
        ),
    },
];
