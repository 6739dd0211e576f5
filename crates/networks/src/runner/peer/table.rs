//! Whom a peer is connected to, and whom it won't be. Pure.
//!
//! Two peers that dial each other at the same time have two connections for a moment. Both ends keep the same one without asking: that which the
//! lesser id dialled, and of two by the same peer the later. Only where the other peer has been started anew is the older one dead in any case.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use tokio::time::Instant;

use super::filters::{Filter, Filters};

/// A connection. It ends when its handle is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link<Handle> {
    /// No other connection of this peer has it.
    pub(super) number: u64,
    /// Whether this peer dialled.
    pub(super) dialled: bool,
    /// Which dial of whoever dialled.
    pub(super) attempt: u64,
    /// Which run of the other peer's program.
    pub(super) session: u64,
    /// Where the other end is.
    pub(super) remote: SocketAddr,
    pub(super) handle: Handle,
}

pub(super) struct Table<Handle> {
    me: String,
    links: BTreeMap<String, Link<Handle>>,
    filters: Filters,
    closed: bool,
}

/// Why a connection is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// There is one that both ends keep.
    Duplicate,
    /// The other end's address is not wanted.
    Filtered,
    /// There are no more connections.
    Closed,
}

impl<Handle> Table<Handle> {
    pub(super) fn new(me: String) -> Self {
        Self { me, links: BTreeMap::new(), filters: Filters::default(), closed: false }
    }

    /// Takes a connection, if it is the one to keep. One that was there ends.
    pub(super) fn admit(&mut self, peer: &str, link: Link<Handle>, now: Instant) -> Result<(), NotTaken> {
        if self.closed {
            return Err(NotTaken::Closed);
        }
        if self.is_filtered(link.remote.ip(), now) {
            return Err(NotTaken::Filtered);
        }
        if self.links.get(peer).is_some_and(|old| !self.is_preferred(peer, &link, old)) {
            return Err(NotTaken::Duplicate);
        }
        self.links.insert(peer.to_owned(), link);
        Ok(())
    }

    fn is_preferred(&self, peer: &str, new: &Link<Handle>, old: &Link<Handle>) -> bool {
        if new.session != old.session {
            return true;
        }
        if new.dialled == old.dialled {
            return new.attempt > old.attempt;
        }
        new.dialled == (self.me.as_str() < peer)
    }

    /// Forgets a connection that has ended, unless another has taken its place.
    pub(super) fn remove(&mut self, peer: &str, number: u64) {
        if self.links.get(peer).is_some_and(|link| link.number == number) {
            self.links.remove(peer);
        }
    }

    /// Ends the connection with a peer, if there is one.
    pub(super) fn disconnect(&mut self, peer: &str) -> bool {
        self.links.remove(peer).is_some()
    }

    pub(super) fn contains(&self, peer: &str) -> bool {
        self.links.contains_key(peer)
    }

    pub(super) fn links(&self) -> impl Iterator<Item = (&String, &Link<Handle>)> {
        self.links.iter()
    }

    /// Ends connections with these addresses and takes none, until then or until they are taken off.
    pub(super) fn filter(&mut self, filters: &[Filter], until: Option<Instant>, now: Instant) {
        self.filters.add(filters, until, now);
        let filters = &self.filters;
        self.links.retain(|_, link| !filters.matches(link.remote.ip(), now));
    }

    pub(super) fn unfilter(&mut self, filter: &Filter) -> bool {
        self.filters.remove(filter)
    }

    pub(super) fn filters(&self, now: Instant) -> Vec<Filter> {
        self.filters.all(now)
    }

    pub(super) fn is_filtered(&self, ip: IpAddr, now: Instant) -> bool {
        self.filters.matches(ip, now)
    }

    /// Ends all and takes no more.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.links.clear();
    }
}
