//! Builds the programs of `hack/kubernetes` that suites run.

use std::path::Path;

use mainstay_testkit::process::dies_with_us;
use tokio::process::Command;

/// The status with which a `build.sh` says that it has no Go toolchain.
const NO_TOOLCHAIN: i32 = 3;

/// Builds `hack/kubernetes/NAME` into a file. The error says why there is no Go toolchain.
///
/// # Panics
/// When there is one, and it cannot build the program.
pub(crate) async fn build(name: &str, program: &Path) -> Result<(), String> {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/kubernetes").join(name).join("build.sh");
    let output = Command::from(dies_with_us(script)).arg(program).output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => Ok(()),
        Some(NO_TOOLCHAIN) => Err(errors),
        _ => panic!("building {name}: {}\n{errors}", output.status),
    }
}
