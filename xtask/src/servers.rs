//! The real control plane that suites share. Everything of it ends with this value, or with this process.

use anyhow::{Result, bail};
use mainstay_testkit::binaries::Binaries;
use mainstay_testkit::cluster::REAL_KUBECONFIG;
use mainstay_testkit::real::{RealControlPlane, RealOptions};

/// What suites are given besides their own environment.
pub(crate) struct Servers {
    real: Option<RealControlPlane>,
}

impl Servers {
    /// None at all, for suites that use the embedded API only.
    pub(crate) fn none() -> Self {
        Self { real: None }
    }

    /// Starts them. Without the programs they need, suites skip what they would do there, unless that is not allowed.
    pub(crate) fn start() -> Result<Self> {
        let binaries = match Binaries::find() {
            Ok(binaries) => binaries,
            Err(missing) if std::env::var("MAINSTAY_REQUIRE_REAL").is_ok_and(|value| value == "1") => {
                bail!(missing)
            }
            Err(missing) => {
                eprintln!("warning: going on without a real control plane: {missing}");
                return Ok(Self::none());
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let real = runtime.block_on(RealControlPlane::start(&binaries, &RealOptions::default()))?;
        eprintln!("real control plane at {}", real.url());
        Ok(Self { real: Some(real) })
    }

    /// Variables that tell suites where the servers are.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let kubeconfig = self.real.as_ref().map(|real| real.kubeconfig().display().to_string());
        let named = |path: String| [(REAL_KUBECONFIG, path.clone()), ("KUBECONFIG", path)];
        kubeconfig.map(named).into_iter().flatten().collect()
    }
}
