//! The atomics that `work` uses.

pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
