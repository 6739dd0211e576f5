//! `ControllerRevision`.

use super::super::{Rules, names};

pub(super) const RULES: Rules = Rules { name: names::dns1123_subdomain, ..Rules::NONE };
