//! `xtask test`: compiles the tests of this repository, runs them in suites, and says what came of it.
//!
//! ```text
//! changed ─▶ compile ─▶ suite ─▶ run ─▶ outcome ─▶ report, times
//!            (cargo)    (pure)    │      (pure)     (pure)
//!                                 └ one control plane for all suites that want a real one
//! ```
//!
//! A suite is a process: the unit tests of a crate, or one module of its integration tests. Suites run beside each other, so
//! that those that wait leave the processor to those that compute. When this process ends, however that happens, so do
//! all suites, whatever they have started, and their files.

mod changed;
mod compile;
mod options;
mod outcome;
mod report;
mod run;
mod servers;
mod suite;
mod times;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let options::Arguments::Test(options) = options::Arguments::parse();
    match run::run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
