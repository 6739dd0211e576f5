//! Watches: the state, or a place in history, and then every change, as a stream of lines.
//!
//! A watch pulls from the store's history at the client's pace, so a slow client costs no more memory than a quick one; one
//! that falls behind what is retained is told so (410) and ends. Whoever embeds the server can put a
//! [`WatchDelivery`] between store and client to hold, drop, repeat or cut.

use crate::body::Body;
use crate::kind::Kind;
use crate::negotiate::Form;
use crate::options::{At, ListOptions, Selection};
use crate::read;
use crate::respond::{Reply, order};
use crate::server::{Call, Server};
use crate::status::ApiError;
use crate::store::{Event, Expired, Fate, Follower, Key, Object, Revision, Unreadable, event_line};
use crate::table::{self, IncludeObject, TableRequest};
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, Sleep};

/// How long a watch lasts that does not say.
const TIMEOUT_DEFAULT: Duration = Duration::from_mins(45);
/// The longest time a watch can ask for. Beyond it, timers could not be set.
const TIMEOUT_MAX: Duration = Duration::from_hours(24 * 365);
/// How often a quiet watch is told how far it is.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// The number of events that a watch takes out of history at a time.
const PENDING_MAX: usize = 64;
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Decides what becomes of each event of each watch. For tests and simulations.
pub trait WatchDelivery: Send + Sync + 'static {
    /// Called for every event before it is sent, in order; the watch waits for the answer.
    fn deliver<'a>(&'a self, watch: &'a WatchInfo, event: &'a WatchEvent) -> BoxFuture<'a, Delivery>;
}

/// What a [`WatchDelivery`] wants done with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Send it.
    Send,
    /// Leave it out: the client never learns of it.
    Skip,
    /// Send it twice.
    Repeat,
    /// End the watch without it, as when a connection breaks.
    Close,
    /// End the watch with 410 Gone: the client must list again.
    Expire,
}

/// Which watch an event belongs to.
#[derive(Clone, Debug)]
pub struct WatchInfo {
    /// API group, empty for the core one.
    pub group: String,
    /// The plural resource name.
    pub resource: String,
    /// None for all namespaces.
    pub namespace: Option<String>,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// Who watches.
    pub user: String,
}

/// An event that is about to be sent.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    /// `ADDED`, `MODIFIED`, `DELETED` or `BOOKMARK`.
    pub kind: &'static str,
    /// The object's namespace, empty if it has none.
    pub namespace: String,
    /// The object's name, empty for a bookmark.
    pub name: String,
    /// The revision of the change, or the one up to which a bookmark says that the client has seen everything.
    pub revision: u64,
}

/// When to tell the client how far its watch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bookmarks {
    /// It does not want to know.
    Never,
    Later,
    Now,
}

struct Watch {
    server: Arc<Server>,
    call: Call,
    selection: Selection,
    follower: Follower,
    /// What is left to show of the state at the beginning.
    initial: std::vec::IntoIter<Arc<Object>>,
    /// The revision of that state, if the client wants to be told where it ends.
    initial_end: Option<Revision>,
    /// Turns true when the kind is no longer served.
    closed: Receiver<bool>,
    /// Events that are still to be considered: a few, however many there are.
    pending: std::vec::IntoIter<Arc<Event>>,
    /// What one event came to.
    queue: VecDeque<Bytes>,
    deadline: Instant,
    bookmarks: Bookmarks,
    /// Rings at the deadline and at the time of each bookmark before it. Kept from wait to wait, because setting one costs more than an event.
    alarm: Pin<Box<Sleep>>,
    done: bool,
    /// The column definitions of a table have been sent.
    columns_sent: bool,
    include: IncludeObject,
    info: WatchInfo,
}

/// Answers with a stream of events.
pub(crate) fn watch(server: Arc<Server>, call: Call, options: ListOptions) -> Result<Reply, ApiError> {
    let include = IncludeObject::parse(call.query.get("includeObject"))?;
    let revision = match options.at {
        At::Newest => 0,
        At::NotOlderThan(revision) | At::Exactly(revision) => revision,
    };
    let shows_state = match options.initial_events {
        Some(wanted) => wanted,
        None => revision == 0,
    };
    if options.initial_events.is_some()
        && let Err(error) = read::refuse_future(&server, revision)
    {
        return Ok(stream(futures::stream::iter([error_line(&error)])));
    }
    let id = call.kind.collection.clone();
    let (listing, follower) = if shows_state {
        let (listing, follower) = server.store.list_and_follow(&id, call.namespace.as_deref());
        (Some(listing), follower)
    } else {
        let from = if revision == 0 { server.store.revision() } else { revision };
        match server.store.follow(&id, from) {
            Ok(follower) => (None, follower),
            Err(Expired { oldest }) => return Ok(stream(futures::stream::iter([expired(from, oldest)]))),
        }
    };
    let timeout = options.timeout_seconds.map_or(TIMEOUT_DEFAULT, Duration::from_secs).min(TIMEOUT_MAX);
    let info = WatchInfo {
        group: call.kind.group.clone(),
        resource: call.kind.plural.clone(),
        namespace: call.namespace.clone(),
        user_agent: header(&call, "user-agent"),
        user: call.user.name.clone(),
    };
    let end_told = options.initial_events == Some(true) && options.bookmarks;
    let watch = Watch {
        initial_end: listing.as_ref().filter(|_| end_told).map(|listing| listing.revision),
        initial: listing.map(|listing| listing.items).unwrap_or_default().into_iter(),
        closed: server.registry.closed(&call.kind),
        server,
        selection: options.selection,
        follower,
        pending: Vec::new().into_iter(),
        queue: VecDeque::new(),
        deadline: Instant::now() + timeout,
        bookmarks: if options.bookmarks { Bookmarks::Later } else { Bookmarks::Never },
        alarm: Box::pin(tokio::time::sleep(timeout.min(BOOKMARK_EVERY))),
        done: false,
        columns_sent: false,
        include,
        info,
        call,
    };
    Ok(stream(futures::stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((line, watch))
    })))
}

fn header(call: &Call, name: &str) -> String {
    call.headers.get(name).and_then(|h| h.to_str().ok()).unwrap_or_default().to_owned()
}

fn stream(lines: impl futures::Stream<Item = Bytes> + Send + 'static) -> Reply {
    Reply::new(200, Body::stream(lines), "application/json")
}

fn expired(from: u64, oldest: u64) -> Bytes {
    error_line(&ApiError::expired(format!("too old resource version: {from} ({oldest})")))
}

fn error_line(error: &ApiError) -> Bytes {
    format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", order::text(&error.to_status())).into()
}

impl Watch {
    /// The next piece of the stream, or its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.queue.pop_front() {
                return Some(line);
            }
            if self.done {
                return None;
            }
            if let Some(object) = self.initial.next() {
                if let Err(error) = self.begin(&object).await {
                    self.fail(error);
                }
                continue;
            }
            if let Some(revision) = self.initial_end.take() {
                self.deliver_bookmark(revision, true).await;
                continue;
            }
            let is_up_to_date = self.follow().await;
            if is_up_to_date && self.queue.is_empty() && !self.done {
                self.wait().await;
            }
        }
    }

    /// Queues an object that was there when the watch began.
    async fn begin(&mut self, object: &Object) -> Result<(), Unreadable> {
        if self.selection.selects(&self.call.kind, object)? {
            let line = self.line("ADDED", object)?;
            self.deliver("ADDED", object, line).await;
        }
        Ok(())
    }

    /// Ends the watch with the reason why it cannot go on.
    fn fail(&mut self, error: Unreadable) {
        self.queue.push_back(error_line(&error.into()));
        self.done = true;
    }

    /// Queues what the next event comes to. True if there is none. Lines are made one event at a time, when the client has
    /// read those before, so that one that reads slowly keeps nothing for itself but the few events taken out of history.
    async fn follow(&mut self) -> bool {
        if self.pending.len() == 0 {
            let from = self.follower.position;
            match self.follower.take(&self.server.store, PENDING_MAX) {
                Ok(events) => self.pending = events.into_iter(),
                Err(Expired { oldest }) => {
                    self.queue.push_back(expired(from, oldest));
                    self.done = true;
                    return true;
                }
            }
        }
        let next = self.pending.next();
        if let Some(event) = &next {
            if let Err(error) = self.consider(event).await {
                self.fail(error);
            }
        } else if self.bookmarks == Bookmarks::Now {
            // After the events, as it speaks of them.
            self.bookmarks = Bookmarks::Later;
            self.deliver_bookmark(self.follower.position, false).await;
        }
        self.done |= Instant::now() >= self.deadline;
        next.is_none()
    }

    /// Waits for a change, the time for a bookmark, or the end.
    async fn wait(&mut self) {
        enum Woken {
            Change,
            End,
            Alarm,
        }
        let woken = tokio::select! {
            biased;
            () = self.follower.changed() => Woken::Change,
            _ = self.closed.wait_for(|closed| *closed) => Woken::End,
            () = self.alarm.as_mut() => Woken::Alarm,
        };
        let now = Instant::now();
        match woken {
            Woken::Change => {}
            Woken::End => self.done = true,
            Woken::Alarm => {
                self.alarm.as_mut().reset(self.deadline.min(now + BOOKMARK_EVERY));
                if self.bookmarks == Bookmarks::Later {
                    self.bookmarks = Bookmarks::Now;
                }
            }
        }
    }

    /// Queues what this watch is to see of an event.
    async fn consider(&mut self, event: &Event) -> Result<(), Unreadable> {
        let namespace = self.call.namespace.as_deref();
        if namespace.is_some_and(|ns| ns != &*event.object.key.namespace) {
            return Ok(());
        }
        let kind = self.call.kind.clone();
        if self.selection.is_everything() {
            let plain = self.call.accept.form == Form::Object && kind.stored_as_sent(&event.object);
            let line =
                if plain { event.line(kind.prefix()) } else { self.line(event.kind(), &event.object)? };
            self.deliver(event.kind(), &event.object, line).await;
            return Ok(());
        }
        let before = match &event.previous {
            Some(previous) => self.selection.selects(&kind, previous)?,
            None => false,
        };
        let now = event.fate == Fate::Kept && self.selection.selects(&kind, &event.object)?;
        match (before, now) {
            (false, false) => {}
            (false, true) => {
                let line = self.line("ADDED", &event.object)?;
                self.deliver("ADDED", &event.object, line).await;
            }
            (true, true) => {
                let line = self.line("MODIFIED", &event.object)?;
                self.deliver("MODIFIED", &event.object, line).await;
            }
            (true, false) if event.fate == Fate::Removed => {
                let line = self.line("DELETED", &event.object)?;
                self.deliver("DELETED", &event.object, line).await;
            }
            (true, false) => {
                // The object as the client knew it, under the revision at which it left the selection.
                if let Some(previous) = &event.previous {
                    let mut tree = previous.value()?;
                    tree["metadata"]["resourceVersion"] = event.revision.to_string().into();
                    let json = tree.to_string().into();
                    let left = Object::new(previous.key.clone(), event.revision, json);
                    let line = self.line("DELETED", &left)?;
                    self.deliver("DELETED", &left, line).await;
                }
            }
        }
        Ok(())
    }

    async fn deliver(&mut self, kind: &'static str, object: &Object, line: Bytes) {
        self.deliver_line(kind, &object.key, object.revision, line).await;
    }

    async fn deliver_bookmark(&mut self, revision: Revision, initial_end: bool) {
        let line = self.bookmark(revision, initial_end);
        self.deliver_line("BOOKMARK", &Key::new("", ""), revision, line).await;
    }

    async fn deliver_line(&mut self, kind: &'static str, key: &Key, revision: Revision, line: Bytes) {
        let Some(delivery) = self.server.delivery.clone() else {
            self.queue.push_back(line);
            return;
        };
        let event =
            WatchEvent { kind, namespace: key.namespace.to_string(), name: key.name.to_string(), revision };
        match delivery.deliver(&self.info, &event).await {
            Delivery::Send => self.queue.push_back(line),
            Delivery::Skip => {}
            Delivery::Repeat => self.queue.extend([line.clone(), line]),
            Delivery::Close => self.done = true,
            Delivery::Expire => {
                self.queue.push_back(expired(revision, revision));
                self.done = true;
            }
        }
    }

    /// An event in the form the client wants.
    fn line(&mut self, event: &str, object: &Object) -> Result<Bytes, Unreadable> {
        let kind = self.call.kind.clone();
        let shown = match self.call.accept.form {
            Form::Object if kind.stored_as_sent(object) => {
                return Ok(event_line(event, kind.prefix(), &object.json));
            }
            Form::Object => kind.tree(object)?,
            Form::Metadata | Form::MetadataList => {
                table::partial_object_metadata(&kind.tree(object)?, self.call.accept.meta_version)
            }
            Form::Table => self.table(&kind, &kind.tree(object)?),
        };
        Ok(format!("{{\"type\":\"{event}\",\"object\":{}}}\n", self.text(&shown)).into())
    }

    /// The text of an object; those of custom kinds are written in the order of their keys, as in Kubernetes.
    fn text(&self, shown: &Value) -> String {
        let is_custom = self.call.kind.custom().is_some() && self.call.accept.form == Form::Object;
        if is_custom { shown.to_string() } else { order::text(shown) }
    }

    /// A table of one row; only the first says what its columns are.
    fn table(&mut self, kind: &Kind, tree: &Value) -> Value {
        let headers = !std::mem::replace(&mut self.columns_sent, true);
        let request = TableRequest { include: self.include, headers, version: self.call.accept.meta_version };
        let metadata = tree.get("metadata").unwrap_or(&Value::Null);
        kind.printer.table(metadata, [tree], self.server.clock.now(), request)
    }

    /// Tells the client that it has seen everything up to a revision.
    fn bookmark(&mut self, revision: u64, initial_end: bool) -> Bytes {
        let kind = self.call.kind.clone();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let mut tree = json!({"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata});
        if kind.builtin().is_some() {
            // What is left are the zero values that Go writes of every kind.
            let _ = crate::builtin::conform::conform(&mut tree, kind.schema());
        }
        let shown = match self.call.accept.form {
            Form::Object => tree,
            Form::Metadata | Form::MetadataList => {
                table::partial_object_metadata(&tree, self.call.accept.meta_version)
            }
            Form::Table => self.table(&kind, &tree),
        };
        format!("{{\"type\":\"BOOKMARK\",\"object\":{}}}\n", self.text(&shown)).into()
    }
}
