//! children
