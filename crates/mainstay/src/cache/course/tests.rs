use super::*;

fn refused(code: u16) -> Failure {
    refused_for(code, None)
}

fn refused_for(code: u16, seconds: Option<u64>) -> Failure {
    Failure::Refused(Refusal {
        code,
        reason: String::new(),
        message: "no".into(),
        retry_after: seconds.map(Duration::from_secs),
    })
}

/// A course with what its next attempt comes to.
struct Trip(Course, Rng);

impl Trip {
    fn new() -> Self {
        Self(Course::new(), Rng::with_seed(7))
    }

    fn live() -> Self {
        let mut trip = Self::new();
        trip.0.listed("5");
        trip
    }

    fn fail(&mut self, failure: &Failure) -> Verdict {
        let attempt = self.0.attempt();
        self.0.failed(&attempt, failure, &mut self.1)
    }
}

fn changes(from: &str) -> Attempt {
    Attempt::Changes { from: from.into() }
}

#[test]
fn cut_watch_resumes_where_it_was() {
    let mut trip = Trip::live();
    trip.0.heard("17");
    assert_eq!(trip.fail(&Failure::Silent(Duration::ZERO)).finding, Finding::Trouble);
    assert_eq!(trip.0.attempt(), Attempt::Revision);
    assert!(!trip.0.found_revision("17"));
    assert_eq!(trip.0.attempt(), changes("17"));
    assert_eq!(trip.0.ended(Duration::from_mins(5), &mut trip.1), Duration::ZERO);
    assert_eq!(trip.0.attempt(), changes("17"), "it ended at its own timeout");
    assert_eq!(trip.0.ended(Duration::from_mins(4), &mut trip.1), Duration::ZERO);
    assert_eq!(trip.0.attempt(), Attempt::Revision, "the server may have been restarted");
    assert!(trip.0.ended(Duration::ZERO, &mut trip.1) > Duration::ZERO, "never in a hot loop");
}

#[test]
fn revision_that_went_back_leads_to_a_list() {
    let mut trip = Trip::live();
    trip.0.heard("17");
    trip.fail(&Failure::Silent(Duration::ZERO));
    assert!(trip.0.found_revision("16"));
    assert_eq!(trip.0.attempt(), Attempt::StreamedList);
    trip.0.listed("16");
    assert_eq!(trip.0.attempt(), changes("16"));
    trip.fail(&Failure::Silent(Duration::ZERO));
    assert!(!trip.0.found_revision("abc"), "it cannot be compared");
    assert_eq!(trip.0.attempt(), changes("16"));
}

#[test]
fn quiet_watch_is_no_trouble_as_long_as_the_server_answers() {
    let mut trip = Trip::live();
    let quiet = Failure::Quiet(Duration::ZERO);
    assert_eq!(trip.fail(&quiet), Verdict { wait: Duration::ZERO, finding: Finding::Usual });
    assert_eq!(trip.0.attempt(), Attempt::Revision);
    assert_eq!(trip.fail(&Failure::Silent(Duration::ZERO)).finding, Finding::Trouble);
    assert_eq!(trip.fail(&refused(403)).finding, Finding::Usual, "who may not list goes on unchecked");
    assert_eq!(trip.0.attempt(), changes("5"));
    assert_eq!(Trip::new().fail(&quiet).finding, Finding::Trouble, "a list must not be quiet");
}

#[test]
fn forgotten_version_leads_to_a_list_at_once_but_not_again_and_again() {
    let mut trip = Trip::live();
    assert_eq!(trip.fail(&refused(410)), Verdict { wait: Duration::ZERO, finding: Finding::Usual });
    assert_eq!(trip.0.attempt(), Attempt::StreamedList);
    assert!(trip.fail(&refused(410)).wait > Duration::ZERO);
    trip.0.listed("9");
    assert_eq!(trip.0.attempt(), changes("9"));
    assert_eq!(trip.fail(&refused(410)).wait, Duration::ZERO);
}

#[test]
fn server_that_does_not_stream_lists_is_asked_for_pages() {
    for code in [400, 422] {
        let mut trip = Trip::new();
        assert_eq!(trip.fail(&refused(code)), Verdict { wait: Duration::ZERO, finding: Finding::Usual });
        assert_eq!(trip.0.attempt(), Attempt::Pages { limited: true });
        assert_eq!(trip.fail(&refused(code)).finding, Finding::Trouble, "what is wrong is something else");
        trip.0.listed("5");
        trip.0.list_again();
        assert_eq!(trip.0.attempt(), Attempt::Pages { limited: true }, "it is not asked again");
    }
}

#[test]
fn streamed_list_without_an_end_is_read_in_pages_once() {
    let mut trip = Trip::new();
    trip.fail(&Failure::Endless);
    assert_eq!(trip.0.attempt(), Attempt::Pages { limited: true });
    trip.0.listed("5");
    trip.0.list_again();
    assert_eq!(trip.0.attempt(), Attempt::StreamedList);
}

#[test]
fn pages_that_expire_again_and_again_are_read_in_one_piece() {
    let mut trip = Trip::new();
    trip.fail(&refused(422));
    for _ in 0..LOST_PLACES_MAX {
        assert_eq!(trip.0.attempt(), Attempt::Pages { limited: true });
        trip.fail(&refused(410));
    }
    assert_eq!(trip.0.attempt(), Attempt::Pages { limited: false });
}

#[test]
fn kind_that_was_there_is_missing_only_when_that_is_said_twice_in_a_row() {
    let mut trip = Trip::live();
    assert_eq!(trip.fail(&refused(404)).finding, Finding::Trouble);
    trip.0.answered();
    assert_eq!(trip.fail(&refused(404)).finding, Finding::Trouble);
    assert_eq!(trip.0.attempt(), Attempt::Revision);
    assert_eq!(trip.fail(&refused(404)).finding, Finding::Missing);
    assert_eq!(trip.0.attempt(), Attempt::StreamedList);
    assert_eq!(Trip::new().fail(&refused(404)).finding, Finding::Missing, "one that never was");
}

#[test]
fn waits_grow_are_bounded_and_begin_anew() {
    let mut trip = Trip::live();
    let mut full = BACKOFF_MIN;
    for _ in 0..50 {
        let wait = trip.fail(&refused(500)).wait;
        assert!(wait >= full / 2 && wait <= full, "{wait:?} of {full:?}");
        full = (full * 2).min(BACKOFF_MAX);
    }
    trip.0.heard("6");
    assert!(trip.fail(&refused(500)).wait <= BACKOFF_MIN);
    let mut trip = Trip::new();
    for _ in 0..50 {
        assert!(trip.fail(&refused(404)).wait <= MISSING_MAX);
    }
}

#[test]
fn server_is_left_alone_as_long_as_it_asks() {
    let mut trip = Trip::live();
    assert_eq!(trip.fail(&refused_for(429, Some(60))).wait, Duration::from_mins(1));
    assert!(!trip.0.found_revision("5"));
    assert_eq!(trip.fail(&refused_for(403, Some(60))).finding, Finding::Forbidden { message: "no".into() });
    assert!(!trip.0.found_revision("5"));
    assert_eq!(trip.0.attempt(), changes("5"));
}

#[test]
fn chain_says_each_cause_once() {
    let failure = refused(500);
    assert_eq!(render_chain(&failure), "the server refused: 500 : no");
}
