//! What a handler has done outside of the cluster.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::{Boxed, Error};
use crate::events::Event;

/// Something to be done outside of the cluster: a call of another API, say.
///
/// It is part of a plan, so it is told before it is done and not done when only a plan is asked for. It is done when nothing is left to
/// write: whatever the same answer says of it in status or children is in the cluster by then, and is there after a crash. It is
/// done again with every sync whose answer names it, so doing it twice must be as good as once.
#[derive(Clone)]
pub struct Effect {
    what: Arc<str>,
    act: Act,
}

type Act = Arc<dyn Fn() -> Boxed<'static, Result<Vec<Event>, Error>> + Send + Sync>;

impl Effect {
    /// Something that can be named, `connect a to b`, and how it is done. The events that this gives are recorded on the parent; an error is
    /// a failed sync, tried again after a backoff.
    pub fn new<A>(what: impl Into<Arc<str>>, act: impl Fn() -> A + Send + Sync + 'static) -> Self
    where
        A: Future<Output = Result<Vec<Event>, Error>> + Send + 'static,
    {
        Self { what: what.into(), act: Arc::new(move || Box::pin(act())) }
    }

    /// As plans name it.
    pub fn what(&self) -> &str {
        &self.what
    }

    pub(crate) fn act(&self) -> Boxed<'static, Result<Vec<Event>, Error>> {
        (self.act)()
    }
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Effect").field(&self.what).finish()
    }
}

/// Effects that are told alike are alike.
impl PartialEq for Effect {
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what
    }
}
