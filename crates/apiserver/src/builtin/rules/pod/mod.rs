//! Pods, and the pod templates inside workloads.

pub(crate) mod admit;
pub(crate) mod binding;
pub(crate) mod conditions;
pub(crate) mod defaults;
pub(crate) mod deletion;
pub(crate) mod ephemeral;
pub(crate) mod eviction;
mod image;
pub(crate) mod internal;
mod overlaps;
pub(crate) mod prepare;
mod resources;
pub(crate) mod validate;
pub(crate) mod warnings;

use super::{Rules, names};

pub(super) const RULES: Rules = Rules {
    default: defaults::default_pod,
    prepare_create: prepare::prepare_create,
    prepare_update: prepare::prepare_update,
    prepare_status: prepare::prepare_status,
    validate: validate::validate_create,
    validate_update: validate::update::validate,
    validate_status: validate::status::validate,
    warnings: warnings::for_pod,
    name: names::dns1123_subdomain,
};
