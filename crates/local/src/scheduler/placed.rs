//! Pods that have a place, as far as they matter to those that have none.
//!
//! All pods of the cluster are read for each one that waits, so no more of them is read than their requests need.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{self, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

use crate::controllers::pods::is_end;

/// A pod's node, what it asks for there, and whether it still does.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Placed {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Needs,
    status: Option<Status>,
}

/// What of a pod's spec says where it is and what it asks for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Needs {
    pub(super) node_name: Option<String>,
    #[serde(default)]
    pub(super) containers: Vec<Container>,
    pub(super) init_containers: Option<Vec<Container>>,
    pub(super) resources: Option<Resources>,
    pub(super) overhead: Option<Quantities>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Container {
    pub(super) resources: Option<Resources>,
    pub(super) restart_policy: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Resources {
    pub(super) requests: Option<Quantities>,
}

type Quantities = BTreeMap<String, Quantity>;

#[derive(Debug, Clone, Deserialize)]
struct Status {
    phase: Option<String>,
}

impl Placed {
    /// Where it is; none if it waits for a place itself.
    pub(super) fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|node| !node.is_empty())
    }

    /// Whether it needs nothing any more.
    pub(super) fn has_ended(&self) -> bool {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).is_some_and(is_end)
    }
}

/// It is asked for as the pod that it is.
impl Resource for Placed {
    type DynamicType = ();
    type Scope = <Pod as Resource>::Scope;

    fn kind(of: &()) -> Cow<'_, str> {
        Pod::kind(of)
    }

    fn group(of: &()) -> Cow<'_, str> {
        Pod::group(of)
    }

    fn version(of: &()) -> Cow<'_, str> {
        Pod::version(of)
    }

    fn plural(of: &()) -> Cow<'_, str> {
        Pod::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl From<&PodSpec> for Needs {
    fn from(spec: &PodSpec) -> Self {
        let all = |containers: &[v1::Container]| containers.iter().map(Container::from).collect();
        Self {
            node_name: spec.node_name.clone(),
            containers: all(&spec.containers),
            init_containers: spec.init_containers.as_deref().map(all),
            resources: spec.resources.as_ref().map(Resources::from),
            overhead: spec.overhead.clone(),
        }
    }
}

impl From<&v1::Container> for Container {
    fn from(container: &v1::Container) -> Self {
        Self {
            resources: container.resources.as_ref().map(Resources::from),
            restart_policy: container.restart_policy.clone(),
        }
    }
}

impl From<&v1::ResourceRequirements> for Resources {
    fn from(resources: &v1::ResourceRequirements) -> Self {
        Self { requests: resources.requests.clone() }
    }
}
