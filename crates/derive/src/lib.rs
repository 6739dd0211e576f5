//! Derives of the `mainstay` crate, which exports them.
