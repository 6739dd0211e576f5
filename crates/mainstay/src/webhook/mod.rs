//! Admission and conversion in the same operator: handlers, served over TLS, registered with the API server.
//!
//! ```no_run
//! # async fn run(client: kube::Client) -> Result<(), mainstay::webhook::WebhookError> {
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use mainstay::webhook::{Denied, Serving, Webhooks};
//!
//! let webhooks = Webhooks::new("settings-operator")
//!     .validate::<ConfigMap>(|request| match request.object().data {
//!         Some(_) => Ok(()),
//!         None => Err(Denied::invalid("data", "must not be empty")),
//!     })
//!     .mutate::<ConfigMap>(|request, map| {
//!         if map.immutable.is_none() {
//!             request.warn("made immutable, as all settings are");
//!             map.immutable = Some(true);
//!         }
//!         Ok(())
//!     });
//! let server = webhooks.serve(client, Serving::behind_service("settings", "settings-webhooks")).await?;
//! server.run(async { /* until this ends */ }).await;
//! # Ok(())
//! # }
//! ```
//!
//! That is all: the server makes its own certificate, shares it with the other replicas in a Secret, renews it in time
//! without a request that fails, and registers the handlers with every field that is in the hooks. A [`Hook`] tells more of
//! what a handler is asked, [`Serving`] of where and how it is served.
//!
//! # What happens to a review
//!
//! ```text
//! API server ─▶ server (TLS) ─▶ admission or conversion (pure) ─▶ your function
//!     ▲
//!     └── keep: certificates (pure plan) ─▶ Secret ─▶ register (pure plan) ─▶ configurations, definitions
//! ```
//!
//! The modules below the two pure ones do nothing but move bytes. What is absent: calling webhooks, which is the API
//! server's part, and authentication of the caller: whoever reaches the port may ask, and learns what a handler answers.

mod admission;
mod certificate;
mod conversion;
mod hook;
mod keep;
mod permissions;
mod register;
mod server;
mod serving;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kube::core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use admission::{AdmissionRequest, Denied, Operation};
pub use certificate::IssueError;
pub use certificate::files::FilesError;
pub use certificate::secret::SecretError;
pub use certificate::served::PairError;
pub use conversion::ConvertError;
pub use hook::{FailurePolicy, Hook};
pub use keep::{Pending, WebhookState};
pub use permissions::WebhookPermissions;
pub use register::apply::RegisterError;
pub use server::{WebhookError, WebhookServer};
pub use serving::Serving;

use crate::Kind;
use conversion::ConvertFn;
use hook::resource_name;

/// The admission handlers and conversions of an operator.
pub struct Webhooks {
    name: String,
    hooks: Vec<Hook>,
    /// By the name of the kind's definition.
    conversions: BTreeMap<String, Conversion>,
}

struct Conversion {
    kind: Kind,
    convert: ConvertFn,
}

impl Webhooks {
    /// None yet. `name` is the operator's; configurations are named after it, and what it applies is managed under it.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), hooks: Vec::new(), conversions: BTreeMap::new() }
    }

    /// Adds a function that says yes or no to objects of a type. Short for [`Hook::validate`].
    #[must_use]
    pub fn validate<T>(
        self,
        decide: impl Fn(&AdmissionRequest<T>) -> Result<(), Denied> + Send + Sync + 'static,
    ) -> Self
    where
        T: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        T::Scope: 'static,
    {
        self.with(Hook::validate(decide))
    }

    /// Adds a function that may change objects of a type, or refuse them. Short for [`Hook::mutate`].
    #[must_use]
    pub fn mutate<T>(
        self,
        change: impl Fn(&AdmissionRequest<T>, &mut T) -> Result<(), Denied> + Send + Sync + 'static,
    ) -> Self
    where
        T: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Clone + Send + Sync + 'static,
        T::Scope: 'static,
    {
        self.with(Hook::mutate(change))
    }

    /// Adds a hook that was made by itself.
    #[must_use]
    pub fn with(mut self, hook: Hook) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Adds the conversion of a kind between its versions. The function gets an object in any version and the version that
    /// is wanted, `v2` say, and gives the object in that version; `apiVersion` is set for it.
    ///
    /// It must be quick and do no I/O, as every read of the kind may wait for it. It may not change `metadata`, except for
    /// labels and annotations, and what it cannot express in a version it must keep, in an annotation say, so that there and
    /// back changes nothing.
    #[must_use]
    pub fn convert(
        mut self,
        kind: Kind,
        convert: impl Fn(Value, &str) -> Result<Value, ConvertError> + Send + Sync + 'static,
    ) -> Self {
        let conversion = Conversion { convert: Arc::new(convert), kind };
        self.conversions.insert(resource_name(&conversion.kind), conversion);
        self
    }

    /// Whether there is nothing to serve.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty() && self.conversions.is_empty()
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks")
            .field("name", &self.name)
            .field("hooks", &self.hooks)
            .field("conversions", &self.conversions.keys())
            .finish()
    }
}
