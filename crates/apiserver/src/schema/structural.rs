//! x
pub(crate) fn check_crd_schema() {}
