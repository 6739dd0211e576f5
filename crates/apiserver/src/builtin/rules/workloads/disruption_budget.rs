//! `PodDisruptionBudget`.

use super::super::{Rules, names};
use super::common;

pub(super) const RULES: Rules = Rules {
    prepare_create: common::prepare_create,
    prepare_update: common::prepare_update,
    prepare_status: common::prepare_status,
    name: names::dns1123_subdomain,
    ..Rules::NONE
};
