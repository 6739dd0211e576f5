//! A node that runs nothing, and a scheduler: what a control plane without machines lacks.
//!
//! All pods are [simulated](crate::node::simulated). For tests and trials against any API server, one with kube-controller-manager
//! included.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use mainstay::{BuildError, Operator};

use crate::node::heartbeat::{self, CannotRegister, Description};
use crate::node::{self, Node};
use crate::scheduler;

const ADDRESS: &str = "127.0.0.1";

/// Why there is no node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StandInError {
    /// It cannot be registered.
    #[error(transparent)]
    Register(#[from] CannotRegister),
    /// One of its operators cannot be built.
    #[error("an operator of the node cannot be built")]
    Build(#[from] BuildError),
}

/// Registers a node of this name, with room for many pods. The operators are yet to be run.
///
/// # Errors
/// If the API server refuses something or does not answer.
pub async fn simulated_node(client: kube::Client, name: &str) -> Result<Vec<Operator>, StandInError> {
    let capacity = [("cpu", "64"), ("memory", "256Gi"), ("pods", "5000")];
    let capacity = capacity.map(|(resource, amount)| (resource.to_owned(), Quantity(amount.to_owned())));
    let description = Description {
        name: name.to_owned(),
        address: ADDRESS.to_owned(),
        capacity: capacity.clone().into(),
        allocatable: capacity.into(),
        labels: [].into(),
        version: "v1.36.3".to_owned(),
    };
    heartbeat::register(client.clone(), &description, Timestamp::now()).await?;
    let node = Node::new(name, ADDRESS);
    let builder = node::configure(Operator::builder(node::NAME, client.clone()), &node);
    Ok(vec![
        heartbeat::configure(builder, description).build()?,
        scheduler::configure(Operator::builder(scheduler::NAME, client)).build()?,
    ])
}
