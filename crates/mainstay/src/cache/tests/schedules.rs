//! Own writes and the watch that brings them, in thousands of interleavings.
//!
//! [`in_flight`] is compiled a second time here, with the locks of `shuttle`.

#![expect(clippy::duplicate_mod, reason = "the same code, with other locks")]

use in_flight::InFlight;
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

mod sync {
    pub(super) use shuttle::sync::{Mutex, MutexGuard};
}

#[path = "../in_flight.rs"]
mod in_flight;

const SCHEDULES: usize = 5_000;

/// A cache of one object, whose versions are numbers.
struct Cache {
    shelf: Mutex<u32>,
    in_flight: InFlight<(), u32>,
    /// Versions of which listeners, or the writer, were told.
    told: Mutex<Vec<u32>>,
}

impl Cache {
    /// Takes a version in, if it is newer.
    fn put(&self, version: u32) -> Option<u32> {
        let mut shelf = self.shelf.lock().unwrap();
        let is_newer = version > *shelf;
        *shelf = version.max(*shelf);
        is_newer.then_some(version)
    }

    fn tell(&self, versions: impl IntoIterator<Item = u32>) {
        self.told.lock().unwrap().extend(versions);
    }

    /// The watch brings a version.
    fn receive(&self, version: u32) {
        if let Some(change) = self.put(version) {
            self.tell(self.in_flight.withhold(&(), change));
        }
    }

    /// The answer to an own write has come.
    fn answered(&self, version: u32) {
        let own = self.put(version).or_else(|| self.in_flight.claim(&(), |change| *change == version));
        self.tell(own);
        self.tell(self.in_flight.end(&()));
    }
}

/// Two writers and others change an object; the watch brings all of it, before or after the answers.
#[test]
fn every_change_is_told_once_to_the_writer_or_to_the_listeners() {
    let schedule = || {
        let cache = Arc::new(Cache {
            shelf: Mutex::new(0),
            in_flight: InFlight::default(),
            told: Mutex::new(Vec::new()),
        });
        let watch = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || (1..=4).for_each(|version| cache.receive(version)))
        };
        let writers: Vec<_> = [2, 3]
            .into_iter()
            .map(|version| {
                let cache = Arc::clone(&cache);
                thread::spawn(move || {
                    cache.in_flight.begin(&());
                    thread::yield_now();
                    cache.answered(version);
                })
            })
            .collect();
        watch.join().unwrap();
        for writer in writers {
            writer.join().unwrap();
        }
        let mut told = cache.told.lock().unwrap().clone();
        told.sort_unstable();
        assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "told twice: {told:?}");
        // A version may be passed over for a newer one, but the last is never missed.
        assert_eq!(told.last(), Some(&4), "{told:?}");
        assert_eq!(*cache.shelf.lock().unwrap(), 4);
        assert_eq!(cache.in_flight.withhold(&(), 5), Some(5), "nothing is in flight any more");
    };
    shuttle::check_random(schedule, SCHEDULES);
}
