//! Carries faults out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Preconditions};
use kube::{Client, Error};

use super::faults::{Outcome, Step};
use crate::peers::Peer;
use crate::rpc::{Ending, Endpoint, Rpc, RpcError};

/// As many steps are under way at once.
const AT_ONCE: usize = 16;
/// How long a peer may take.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Where faults are carried out.
#[derive(Clone)]
pub(super) struct Faults {
    pub(super) client: Client,
    pub(super) rpc: Arc<dyn Rpc>,
    /// Nothing is done: somebody wants to know what would be.
    pub(super) only_looks: bool,
}

impl Faults {
    /// Carries steps out, and tells what became of each.
    pub(super) async fn carry_out(
        &self,
        namespace: &str,
        peers: &[Peer],
        steps: Vec<Step>,
    ) -> Vec<(Step, Outcome)> {
        let by_name: BTreeMap<&str, &Peer> = peers.iter().map(|peer| (peer.name.as_str(), peer)).collect();
        let by_name = &by_name;
        let each = steps.into_iter().map(|step| async move {
            let outcome = match &step {
                Step::Delete { pod, uid, .. } => self.delete(namespace, pod, uid).await,
                Step::Disturb { peer, .. } => match by_name.get(peer.as_str()) {
                    Some(peer) => self.disturb(peer, &step).await,
                    None => Outcome::Failed("does not answer".into()),
                },
            };
            (step, outcome)
        });
        futures::stream::iter(each).buffered(AT_ONCE).collect().await
    }

    async fn delete(&self, namespace: &str, pod: &str, uid: &str) -> Outcome {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let preconditions = Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None });
        let options = DeleteParams { preconditions, dry_run: self.only_looks, ..DeleteParams::default() };
        match pods.delete(pod, &options).await {
            Ok(_) => Outcome::Done,
            // It is gone, or another one is in its place.
            Err(Error::Api(status)) if matches!(status.code, 404 | 409) => Outcome::Done,
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    async fn disturb(&self, peer: &Peer, step: &Step) -> Outcome {
        let Step::Disturb { disturbance, .. } = step else { return Outcome::Done };
        if self.only_looks {
            return Outcome::Done;
        }
        let endpoint = Endpoint { adapter: peer.adapter, url: peer.rpc_addr.clone(), timeout: TIMEOUT };
        match self.rpc.disturb(&endpoint, disturbance).await {
            Ok(Ending::ByItself) => Outcome::Done,
            Ok(Ending::WhenUndone) => Outcome::DoneWithoutEnd,
            Err(RpcError::Unsupported(_)) => Outcome::Unsupported,
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }
}
