//! Operators with one bug each, and the check that finds it.

mod patterns;
