//! Cluster IPs and node ports, known from the services that have them. What is chosen here is free as far as is known; the store
//! refuses a service that claims what another one has got meanwhile, and then the choice is made again.

use crate::builtin::rules::names::address::Cidr;
use crate::builtin::rules::objects::service::allocate::{
    Allocations, Ranges, begin_create, begin_update, claimed,
};
use crate::kind::Kind;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::{Claim, CollectionId, Fate, Follower, Object};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};

/// Who holds what, as of the newest service.
#[derive(Default)]
pub(crate) struct Book(Mutex<Option<Pages>>);

struct Pages {
    follower: Follower,
    taken: Allocations,
}

impl Book {
    /// Runs `with` on what is taken now.
    fn with<R>(&self, server: &Server, with: impl FnOnce(&Allocations) -> R) -> R {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = CollectionId::new("", "services");
        let pages = match &mut *book {
            Some(pages) => pages,
            empty => empty.insert(open(server, &id)),
        };
        match pages.follower.take(&server.store, usize::MAX) {
            Ok(events) => {
                for event in events {
                    if let Some(before) = event.previous.as_deref().and_then(read) {
                        pages.taken.release(&before);
                    }
                    if let (Fate::Kept, Some(service)) = (event.fate, read(&event.object)) {
                        pages.taken.claim(&service);
                    }
                }
            }
            Err(_) => *pages = open(server, &id),
        }
        with(&pages.taken)
    }
}

/// A service; nothing, and a line in the log, if it cannot be read.
fn read(service: &Object) -> Option<Value> {
    service.value().inspect_err(|error| tracing::error!("{error}")).ok()
}

fn open(server: &Server, id: &CollectionId) -> Pages {
    let (listing, follower) = server.store.list_and_follow(id, None);
    let mut taken = Allocations::default();
    listing.items.iter().filter_map(|service| read(service)).for_each(|service| taken.claim(&service));
    Pages { follower, taken }
}

/// What is given out: addresses of 10.96.0.0/16, as most clusters have it.
fn ranges() -> Ranges {
    let address = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 0));
    Ranges { cluster_ips: Cidr { address, prefix: 16 }, ..Ranges::default() }
}

pub(crate) fn is_service(kind: &Kind) -> bool {
    kind.kind == "Service" && kind.builtin().is_some()
}

/// What a stored object has for itself alone.
pub(crate) fn claims(id: &CollectionId, object: &Value) -> Vec<Claim> {
    if id.parts() != ("", "services") {
        return Vec::new();
    }
    let mut claims = claimed(object);
    claims.sort();
    claims.dedup();
    claims
}

/// Gives a new service what it needs.
pub(crate) fn on_create(server: &Server, object: &mut Value, dry_run: bool) -> Result<(), ApiError> {
    let mut random = || server.identities.next();
    server.allocations.with(server, |taken| begin_create(object, &ranges(), taken, &mut random, dry_run))
}

/// Gives a changed service what it needs beyond what it has.
pub(crate) fn on_update(
    server: &Server,
    kind: &Kind,
    new: &mut Value,
    old: &Value,
    dry_run: bool,
) -> Result<(), ApiError> {
    if !is_service(kind) {
        return Ok(());
    }
    let mut random = || server.identities.next();
    server.allocations.with(server, |taken| begin_update(new, old, &ranges(), taken, &mut random, dry_run))
}
