//! The locks that `in_flight` uses.

pub(super) use std::sync::{Mutex, MutexGuard};
