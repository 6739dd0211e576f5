//! The kinds that are not workloads.

use super::Rules;

/// The rules of one of these kinds.
pub(crate) fn rules(_group: &str, _kind: &str) -> Option<&'static Rules> {
    None
}
