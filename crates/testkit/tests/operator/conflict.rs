//! conflict
