//! Cluster IPs and node ports: given out once, known from the services that hold them.

use crate::builtin::rules::names::address::Cidr;
use crate::builtin::rules::objects::service::allocate::{Allocations, Ranges, begin_create, begin_update};
use crate::kind::Kind;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::{CollectionId, Fate, Follower, Object};
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
    /// Runs `with` on what is taken now. What it claims stays claimed until the service that has it goes,
    /// or is never stored and [`released`](Book::release).
    fn with<R>(&self, server: &Server, with: impl FnOnce(&mut Allocations) -> R) -> R {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = CollectionId::new("", "services");
        let pages = match &mut *book {
            Some(pages) => pages,
            empty => empty.insert(open(server, &id)),
        };
        match pages.follower.take(&server.store) {
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
        with(&mut pages.taken)
    }

    /// Gives back what a service was given that is not stored after all.
    fn release(&self, server: &Server, service: &Value) {
        self.with(server, |taken| taken.release(service));
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

fn is_service(kind: &Kind) -> bool {
    kind.kind == "Service" && kind.builtin().is_some()
}

/// Gives a new service what it needs.
pub(crate) fn on_create(
    server: &Server,
    kind: &Kind,
    object: &mut Value,
    dry_run: bool,
) -> Result<(), ApiError> {
    if !is_service(kind) {
        return Ok(());
    }
    let mut random = || server.identities.next();
    server.allocations.with(server, |taken| {
        begin_create(object, &ranges(), taken, &mut random, dry_run)?;
        if !dry_run {
            taken.claim(object);
        }
        Ok(())
    })
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

/// A service that was given something is not stored after all.
pub(crate) fn undo_create(server: &Server, kind: &Kind, object: &Value, dry_run: bool) {
    if is_service(kind) && !dry_run {
        server.allocations.release(server, object);
    }
}
