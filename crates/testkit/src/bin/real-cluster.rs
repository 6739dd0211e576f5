//! Runs a command beside a real control plane: `real-cluster COMMAND [ARGUMENT…]`.
//!
//! Starts the control plane, names its kubeconfig in `MAINSTAY_TEST_REAL_KUBECONFIG` and `KUBECONFIG`, runs the
//! command, stops everything and returns the command's exit code. This is how several test processes share one. When this
//! program is killed, so are the control plane and the command.

use std::error::Error;
use std::process::ExitCode;

use mainstay_testkit::binaries::Binaries;
use mainstay_testkit::cluster::REAL_KUBECONFIG;
use mainstay_testkit::process::dies_with_us;
use mainstay_testkit::real::{RealControlPlane, RealOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let Some((program, arguments)) = arguments.split_first() else {
        eprintln!("usage: real-cluster COMMAND [ARGUMENT…]");
        return ExitCode::from(2);
    };
    match run(program, arguments).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  caused by: {cause}");
                source = cause.source();
            }
            ExitCode::from(2)
        }
    }
}

async fn run(
    program: &std::ffi::OsString,
    arguments: &[std::ffi::OsString],
) -> Result<ExitCode, Box<dyn Error>> {
    let mut command = tokio::process::Command::from(dies_with_us(program));
    command.args(arguments);
    let control_plane = match Binaries::find() {
        Ok(binaries) => Some(RealControlPlane::start(&binaries, &RealOptions::default()).await?),
        Err(missing) if std::env::var("MAINSTAY_REQUIRE_REAL").is_ok_and(|value| value == "1") => {
            return Err(missing.into());
        }
        Err(missing) => {
            eprintln!("warning: going on without a real control plane: {missing}");
            None
        }
    };
    if let Some(control_plane) = &control_plane {
        eprintln!("real control plane at {}", control_plane.url());
        command
            .env(REAL_KUBECONFIG, control_plane.kubeconfig())
            .env("KUBECONFIG", control_plane.kubeconfig());
    }
    let status = command.status().await?;
    // Ended by a signal: the shell's convention has no place for it in a portable exit code, so plain failure.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
