//! Logs of containers: [`capture`] writes what a process prints into files in the format that container runtimes have,
//! [`endpoint`] serves them as `pods/log`, as [`query`] asks for it. [`line`] is the format, both ways; [`which`] decides whose log is
//! meant.

pub(super) mod capture;
pub(super) mod endpoint;
pub(super) mod line;
mod query;
mod reader;
mod which;
