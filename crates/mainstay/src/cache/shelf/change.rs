//! What happened to an object.

use std::sync::Arc;

use crate::cache::Object;

/// What happened to a cached object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing new: an echo of an own write, a repetition, or something older than what is held.
    Nothing,
    /// It was not there before.
    Added {
        /// The object.
        new: Arc<Object>,
    },
    /// There is a newer version. With another uid it is another object of the same name.
    Updated {
        /// The object before.
        old: Arc<Object>,
        /// The object now.
        new: Arc<Object>,
    },
    /// It is no longer there.
    Deleted {
        /// The object as it was last seen.
        old: Arc<Object>,
        /// What ended it.
        departure: Departure,
    },
}

/// What ended an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// The object itself was deleted, or left the scope of the watch.
    Object,
    /// Its kind is no longer served: the definition was deleted.
    Kind,
}

impl Change {
    /// Whether there is nothing to do about it.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// The object before.
    pub fn before(&self) -> Option<&Arc<Object>> {
        match self {
            Self::Updated { old, .. } | Self::Deleted { old, .. } => Some(old),
            Self::Nothing | Self::Added { .. } => None,
        }
    }

    /// The object now.
    pub fn now(&self) -> Option<&Arc<Object>> {
        match self {
            Self::Added { new } | Self::Updated { new, .. } => Some(new),
            Self::Nothing | Self::Deleted { .. } => None,
        }
    }

    /// The newest form of the object that the change speaks of.
    pub fn object(&self) -> Option<&Arc<Object>> {
        self.now().or_else(|| self.before())
    }
}
