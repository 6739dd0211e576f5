//! How many connections there are, and for how long a client may keep one without using it.
//!
//! Every connection has a place. One that does nothing loses it after a while: soon if its client has not shown who it is, later
//! if it has. When all places are taken, a newcomer gets that of whoever has done nothing for longest, strangers first. So sockets
//! that are opened and left alone keep nobody out.

use super::pace::Pace;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub connections_max: usize,
    /// For a TLS handshake.
    pub handshake: Duration,
    /// Without a request, for a client that has not shown who it is. Its first request must be there by then.
    pub stranger_idle: Duration,
    /// Without a request, for one that has.
    pub idle: Duration,
    /// How far a client may be behind with reading what it is sent.
    pub stalled: Duration,
}

/// The most connections there are, if the system allows as many.
const CONNECTIONS_MAX: usize = 4000;
/// Descriptors that are left for everything but connections: the store, webhooks, processes of pods.
const DESCRIPTORS_KEPT: usize = 256;

impl Default for Bounds {
    fn default() -> Self {
        let descriptors = super::descriptors::raise_limit();
        Bounds {
            connections_max: descriptors.saturating_sub(DESCRIPTORS_KEPT).clamp(16, CONNECTIONS_MAX),
            handshake: Duration::from_secs(10),
            stranger_idle: Duration::from_secs(32),
            // Most clients close after 90 seconds, and must not find a connection closed that they are about to use.
            idle: Duration::from_mins(3),
            stalled: Duration::from_mins(2),
        }
    }
}

/// All connections of a served API.
pub(super) struct Connections {
    pub bounds: Bounds,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u64,
    places: BTreeMap<u64, Arc<Place>>,
}

impl Open {
    fn close_idle(&mut self) -> Option<()> {
        let idle = self.places.iter().filter_map(|(id, place)| Some((place.idle_order()?, *id)));
        let (_, id) = idle.min()?;
        self.places.remove(&id)?.change(|state| state.lost = true);
        Some(())
    }
}

/// One connection, as the others see it.
pub(super) struct Place {
    state: Mutex<State>,
    /// Told of each change of the state.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// Requests whose answers the client does not have yet, watches among them, by number.
    requests: BTreeMap<u64, Arc<Pace>>,
    last: u64,
    /// When the last of them came to its end.
    since: Instant,
    /// The client has shown who it is.
    known: bool,
    /// Somebody else has the place now.
    lost: bool,
}

impl Connections {
    pub(super) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Connections { bounds, open: Mutex::default() })
    }

    /// A place for a newcomer. None if all are taken by connections that are in use.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Entry> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while open.places.len() >= self.bounds.connections_max {
            open.close_idle()?;
        }
        open.last += 1;
        let id = open.last;
        let state =
            State { requests: BTreeMap::new(), last: 0, since: Instant::now(), known: false, lost: false };
        let place = Arc::new(Place { state: Mutex::new(state), changed: Notify::new() });
        open.places.insert(id, place.clone());
        Some(Entry { connections: self.clone(), id, place })
    }

    /// Closes the connection that a newcomer would get the place of, if there is one.
    pub(super) fn close_idle(&self) {
        let _ = self.open.lock().unwrap_or_else(PoisonError::into_inner).close_idle();
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).places.len()
    }
}

/// A connection's hold on its place.
pub(super) struct Entry {
    connections: Arc<Connections>,
    id: u64,
    pub place: Arc<Place>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.places.remove(&self.id);
    }
}

impl Place {
    fn read(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.read());
        self.changed.notify_one();
        result
    }

    /// Strangers before others, then by how long they have done nothing. None while there is something to do.
    fn idle_order(&self) -> Option<(bool, Instant)> {
        let state = self.read();
        state.requests.is_empty().then_some((state.known, state.since))
    }

    /// The client has shown who it is.
    pub(super) fn know(&self) {
        if !self.read().known {
            self.change(|state| state.known = true);
        }
    }

    /// Counts a request until what is returned is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Request {
        let pace = Arc::new(Pace::new());
        let id = self.change(|state| {
            state.last += 1;
            state.requests.insert(state.last, pace.clone());
            state.last
        });
        Request { place: self.clone(), id, pace }
    }

    /// When to look again whether the connection must be closed. None if that is now: it has done nothing for too long, its
    /// client does not read what it asked for, or somebody else has its place.
    fn look_again(&self, bounds: &Bounds) -> Option<Instant> {
        let (state, now) = (self.read(), Instant::now());
        if state.lost {
            return None;
        }
        if state.requests.is_empty() {
            let patience = if state.known { bounds.idle } else { bounds.stranger_idle };
            return Some(state.since + patience).filter(|end| *end > now);
        }
        let is_read = state.requests.values().all(|pace| !pace.is_behind(bounds.stalled));
        is_read.then(|| now + bounds.stalled / 4)
    }

    /// Returns when the connection must be closed.
    pub(super) async fn unused(&self, bounds: &Bounds) {
        let mut alarm = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
        loop {
            let changed = self.changed.notified();
            let Some(next) = self.look_again(bounds) else { return };
            // One that rings too early does no harm, and setting it costs more than most requests.
            if next < alarm.deadline() || alarm.is_elapsed() {
                alarm.as_mut().reset(next);
            }
            tokio::select! {
                () = changed => {}
                () = alarm.as_mut() => {}
            }
        }
    }
}

/// A request that is under way.
pub(super) struct Request {
    place: Arc<Place>,
    id: u64,
    /// How its client reads the answer.
    pub pace: Arc<Pace>,
}

impl Drop for Request {
    fn drop(&mut self) {
        self.place.change(|state| {
            state.requests.remove(&self.id);
            state.since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(max: usize) -> Arc<Connections> {
        let second = Duration::from_secs(1);
        Connections::new(Bounds {
            connections_max: max,
            handshake: second,
            stranger_idle: second,
            idle: second * 10,
            stalled: second,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_gets_the_place_of_the_stranger_that_has_waited_longest() {
        let connections = connections(3);
        let known = connections.enter().unwrap();
        known.place.know();
        tokio::time::advance(Duration::from_millis(1)).await;
        let first = connections.enter().unwrap();
        tokio::time::advance(Duration::from_millis(1)).await;
        let second = connections.enter().unwrap();
        let newcomer = connections.enter().unwrap();
        assert!(first.place.read().lost);
        assert!(!known.place.read().lost && !second.place.read().lost && !newcomer.place.read().lost);
        // It leaves later than its place was given away, and takes nobody's with it.
        drop(first);
        assert_eq!(connections.count(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_at_work_keeps_its_place() {
        let connections = connections(2);
        let (watching, idle) = (connections.enter().unwrap(), connections.enter().unwrap());
        watching.place.know();
        idle.place.know();
        let watch = watching.place.begin();
        let newcomer = connections.enter().unwrap();
        assert!(idle.place.read().lost);
        let busy = newcomer.place.begin();
        assert!(connections.enter().is_none());
        drop((watch, busy));
        assert!(connections.enter().is_some());
        assert!(newcomer.place.read().lost && !watching.place.read().lost);
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_nothing_is_closed_in_time() {
        let connections = connections(9);
        let entry = connections.enter().unwrap();
        let start = Instant::now();
        entry.place.unused(&connections.bounds).await;
        assert_eq!(start.elapsed(), Duration::from_secs(1));
        entry.place.know();
        let request = entry.place.begin();
        tokio::select! {
            () = entry.place.unused(&connections.bounds) => panic!("it is in use"),
            () = tokio::time::sleep(Duration::from_hours(1)) => {}
        }
        drop(request);
        let start = Instant::now();
        entry.place.unused(&connections.bounds).await;
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }
}
