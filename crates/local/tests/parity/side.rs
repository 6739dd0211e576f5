//! The two clusters.

use mainstay::Operator;
use mainstay_local::controllers;
use mainstay_local::stand_in::simulated_node;
use mainstay_testkit::binaries::Binaries;
use mainstay_testkit::cluster::report_missing;
use mainstay_testkit::real::{Controllers, RealControlPlane, RealOptions};
use mainstay_testkit::{Cluster, RunningOperator};
use serde_json::{Value, json};

/// On a pod: its image cannot be pulled.
pub(crate) const UNPULLABLE: &str = "mainstay.dev/cannot-pull";
/// A storage class that nobody provides volumes for.
pub(crate) const NO_CLASS: &str = "by-hand";

const NODE: &str = "local";

/// A simulated task that ends soon, in this way.
pub(crate) fn exits(code: u8) -> Value {
    json!({"mainstay.dev/ends-after": "1s", "mainstay.dev/exit-code": code.to_string()})
}

/// A simulated task that does not end by itself.
pub(crate) fn runs() -> Value {
    json!({"mainstay.dev/ends-after": "never"})
}

/// A cluster with a node.
pub(crate) struct Side {
    cluster: Cluster,
    _running: Vec<RunningOperator>,
    /// Goes last.
    _control_plane: Option<RealControlPlane>,
}

impl Side {
    /// Ours, unless the test run leaves it out.
    pub(crate) async fn embedded() -> Option<Self> {
        if wanted() == Some("real") {
            return None;
        }
        let cluster = Cluster::embedded().await?;
        let controllers = controllers::configure(Operator::builder(controllers::NAME, cluster.client()));
        let controllers = controllers.build().unwrap();
        Some(Self::with(cluster, None, vec![controllers]).await)
    }

    /// The real one, if it is there and not left out.
    pub(crate) async fn real() -> Option<Self> {
        if wanted() == Some("embedded") {
            return None;
        }
        let binaries = match Binaries::find() {
            Ok(binaries) => binaries,
            Err(missing) => {
                report_missing("the comparison with kube-controller-manager", &missing);
                return None;
            }
        };
        let options = RealOptions { controllers: Controllers::All, ..RealOptions::default() };
        let control_plane = RealControlPlane::start(&binaries, &options).await.unwrap();
        let cluster = Cluster::at(&control_plane.kubeconfig()).await;
        Some(Self::with(cluster, Some(control_plane), Vec::new()).await)
    }

    async fn with(
        cluster: Cluster,
        control_plane: Option<RealControlPlane>,
        mut operators: Vec<Operator>,
    ) -> Self {
        operators.extend(simulated_node(cluster.client(), NODE).await.unwrap());
        let running = operators.into_iter().map(RunningOperator::start).collect();
        Self { cluster, _running: running, _control_plane: control_plane }
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }
}

/// Which cluster the test run is limited to, if it is.
fn wanted() -> Option<&'static str> {
    match std::env::var("MAINSTAY_TEST_CLUSTER").ok().as_deref() {
        Some("embedded") => Some("embedded"),
        Some("real") => Some("real"),
        _ => None,
    }
}
