//! Telling whoever embeds the server of every change, at the moment at which it is made.

use super::{CollectionId, Event, Fate};

/// Sees every change of every object, whoever makes it: clients, garbage collection, the server itself.
/// For simulations, which judge each state that a cluster is ever in.
pub trait Observer: Send + Sync + 'static {
    /// Called right after a change was made and before it is answered; in the order of revisions, and before any watch
    /// delivers it, if everything runs on one thread. With a directory, the thread that writes calls it as soon as the change is
    /// durable. Other requests may be going on, so it must not wait.
    fn committed(&self, change: &Change<'_>);
}

/// One change of one object.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// API group, empty for the core one.
    pub group: &'a str,
    /// The plural resource name.
    pub resource: &'a str,
    /// The object's namespace, empty if it has none.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// The revision that the change made.
    pub revision: u64,
    /// The object before it as JSON without `apiVersion` and `kind`; none if it was created.
    pub before: Option<&'a [u8]>,
    /// The object after it; none if it was removed.
    pub after: Option<&'a [u8]>,
}

impl<'a> Change<'a> {
    pub(super) fn of(id: &'a CollectionId, event: &'a Event) -> Self {
        let (group, resource) = id.parts();
        Change {
            group,
            resource,
            namespace: &event.object.key.namespace,
            name: &event.object.key.name,
            revision: event.revision,
            before: event.previous.as_ref().map(|object| &*object.json),
            after: (event.fate == Fate::Kept).then_some(&*event.object.json),
        }
    }
}
