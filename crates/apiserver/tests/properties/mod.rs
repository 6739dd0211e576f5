//! Random requests against a server in process: it never panics, every answer is well formed, a dry run changes nothing,
//! and after any sequence a list is what a watch built up.
//!
//! A failure prints its seed; `PROPTEST_RNG_SEED=seed` replays it. `PROPTEST_CASES` runs more of them.

mod answer;
mod follow;
mod garbage;
mod world;

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::Once;
use std::time::Duration;

use mainstay_apiserver::{ApiServer, SeededIdentities};
use proptest::collection::vec;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

use crate::properties::answer::{Sent, send};
use crate::properties::follow::Following;
use crate::properties::world::{KINDS, SENTINELS};

thread_local! {
    /// Panics of this thread, on which the server and all its tasks run: those of tasks are caught and would go unseen.
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            before(panic);
        }));
    });
}

/// Runs a property for a number of cases and says how to replay the one that fails.
fn check<T: Debug>(
    cases: u32,
    inputs: impl Strategy<Value = T>,
    property: impl AsyncFn(T) -> Result<(), TestCaseError>,
) {
    count_panics();
    let mut config = Config { failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if config.rng_seed == RngSeed::Random {
        use std::hash::{BuildHasher as _, Hasher as _};
        config.rng_seed =
            RngSeed::Fixed(std::collections::hash_map::RandomState::new().build_hasher().finish());
    }
    let seed = config.rng_seed;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let outcome = TestRunner::new(config).run(&inputs, |input| {
        let before = PANICS.get();
        let outcome = runtime.block_on(property(input));
        if PANICS.get() != before {
            return Err(TestCaseError::fail("something panicked"));
        }
        outcome
    });
    if let Err(failure) = outcome {
        panic!("{failure}\nreplay with PROPTEST_RNG_SEED={seed}");
    }
}

/// A server with the custom kind and the namespaces that requests speak of.
async fn start() -> ApiServer {
    let server = ApiServer::builder().identities(SeededIdentities::new(1)).build().expect("a server");
    for request in world::setup() {
        let answer = send(&server, &request).await.expect("a well-formed answer");
        assert!(answer.status < 300, "{request:?}: {answer:?}");
    }
    // The custom kind is served a moment after it was defined.
    for _ in 0..1000 {
        let probe = Sent::get(&format!("{}?limit=1", world::GADGETS.collection("n1")));
        if send(&server, &probe).await.is_ok_and(|answer| answer.status == 200) {
            return server;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the custom kind is not served");
}

#[test]
fn any_sequence_leaves_list_and_watch_in_agreement() {
    let sequences = (vec(world::requests(), 1..40), proptest::num::u64::ANY);
    check(40, sequences, async |(requests, choice)| {
        let server = start().await;
        let mut following = Vec::new();
        for kind in KINDS {
            following.push(Following::start(&server, kind, choice).await);
        }
        for request in &requests {
            send(&server, request).await.map_err(|why| TestCaseError::fail(format!("{request:?}: {why}")))?;
            // The controllers take part as they get to it.
            tokio::task::yield_now().await;
        }
        for following in following {
            following.agrees(&server).await.map_err(TestCaseError::fail)?;
        }
        Ok(())
    });
}

#[test]
fn garbage_is_answered_properly() {
    let sequences = vec(garbage::requests(), 1..60);
    check(60, sequences, async |requests| {
        let server = start().await;
        for request in &requests {
            send(&server, request).await.map_err(|why| TestCaseError::fail(format!("{request:?}: {why}")))?;
        }
        Ok(())
    });
}

#[test]
fn a_dry_run_changes_nothing() {
    let sequences = (vec(world::requests(), 0..15), vec(world::requests(), 1..30));
    check(40, sequences, async |(before, dry)| {
        let server = start().await;
        for request in &before {
            send(&server, request).await.map_err(TestCaseError::fail)?;
        }
        let settled = settle(&server).await;
        for request in &dry {
            let request = request.clone().dry();
            send(&server, &request)
                .await
                .map_err(|why| TestCaseError::fail(format!("{request:?}: {why}")))?;
            proptest::prop_assert_eq!(server.revision(), settled, "changed by {:?}", request);
        }
        Ok(())
    });
}

/// Waits until the controllers have nothing more to do.
async fn settle(server: &ApiServer) -> u64 {
    let (mut revision, mut quiet) = (server.revision(), 0);
    while quiet < 5 {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let now = server.revision();
        quiet = if now == revision { quiet + 1 } else { 0 };
        revision = now;
    }
    revision
}

/// Nesting must not cost the stack, and references must not cost the memory.
#[test]
fn bombs_do_no_harm() {
    count_panics();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = start().await;
        for bomb in garbage::bombs() {
            let answer = send(&server, &bomb).await.unwrap_or_else(|why| panic!("{}: {why}", bomb.summary()));
            assert!((400..500).contains(&answer.status), "{}: {}", bomb.summary(), answer.status);
        }
        let sentinels = send(&server, &Sent::get(&format!("/api/v1/namespaces/{SENTINELS}"))).await;
        assert_eq!(sentinels.expect("still answering").status, 200);
    });
    assert_eq!(PANICS.get(), 0);
}
