//! x
pub(crate) fn publish() {}
