//! One admission handler with what the API server is told about it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::admission::{AdmissionRequest, Denied, Handler, Operation};
use crate::Kind;

/// What happens to a request when its webhook does not answer, or fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// The request is refused.
    #[default]
    Fail,
    /// The request goes on as if there were no webhook.
    Ignore,
}

/// Whether a hook may change what it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Validate,
    Mutate,
}

impl Role {
    /// As it stands in paths and names.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Mutate => "mutate",
        }
    }
}

/// An admission handler: which requests it is asked about, and what it says to them.
///
/// Handlers are asked about creations and updates, in every namespace, have ten seconds, and a failure refuses the
/// request. Each of these can be changed:
///
/// ```
/// # use mainstay::webhook::{AdmissionRequest, Denied, FailurePolicy, Hook, Operation};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// let keep = Hook::validate::<ConfigMap>(|request| match request.user().username.as_deref() {
///     Some("admin") => Ok(()),
///     _ => Err("only the administrator deletes these".into()),
/// })
/// .on([Operation::Delete])
/// .failure_policy(FailurePolicy::Ignore);
/// ```
///
/// Plain functions must not block: they run where all reviews are answered. What waits for something is for the `_async`
/// forms.
pub struct Hook {
    kind: Kind,
    role: Role,
    label: Option<String>,
    operations: BTreeSet<Operation>,
    subresources: BTreeSet<String>,
    failure_policy: FailurePolicy,
    timeout: Duration,
    namespaces: LabelSelector,
    objects: LabelSelector,
    again: bool,
    handler: Handler,
}

impl Hook {
    /// A function that says yes or no to objects of a type.
    pub fn validate<T>(
        decide: impl Fn(&AdmissionRequest<T>) -> Result<(), Denied> + Send + Sync + 'static,
    ) -> Self
    where
        T: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        T::Scope: 'static,
    {
        Self::new(Kind::of::<T>(), Role::Validate, validating(decide))
    }

    /// [`validate`](Self::validate) for a function that does I/O.
    pub fn validate_async<T, Answer>(
        decide: impl Fn(Arc<AdmissionRequest<T>>) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        T: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        T::Scope: 'static,
        Answer: Future<Output = Result<(), Denied>> + Send + 'static,
    {
        Self::new(Kind::of::<T>(), Role::Validate, Handler::validating(decide))
    }

    /// [`validate`](Self::validate) for a kind that is known as JSON only.
    pub fn validate_json(
        kind: Kind,
        decide: impl Fn(&AdmissionRequest<Value>) -> Result<(), Denied> + Send + Sync + 'static,
    ) -> Self {
        Self::new(kind, Role::Validate, validating(decide))
    }

    /// A function that may change objects of a type before they are stored, or refuse them. It gets the object to change
    /// beside the request, which holds it unchanged.
    ///
    /// The patch is made from what the type sees: fields that it does not know stay as they are.
    pub fn mutate<T>(
        change: impl Fn(&AdmissionRequest<T>, &mut T) -> Result<(), Denied> + Send + Sync + 'static,
    ) -> Self
    where
        T: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Clone + Send + Sync + 'static,
        T::Scope: 'static,
    {
        Self::new(Kind::of::<T>(), Role::Mutate, mutating(change))
    }

    /// [`mutate`](Self::mutate) for a function that does I/O. It gets the object as its own and gives it back.
    pub fn mutate_async<T, Answer>(
        change: impl Fn(Arc<AdmissionRequest<T>>, T) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        T: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Clone + Send + Sync + 'static,
        T::Scope: 'static,
        Answer: Future<Output = Result<T, Denied>> + Send + 'static,
    {
        Self::new(Kind::of::<T>(), Role::Mutate, Handler::mutating(change))
    }

    /// [`mutate`](Self::mutate) for a kind that is known as JSON only.
    pub fn mutate_json(
        kind: Kind,
        change: impl Fn(&AdmissionRequest<Value>, &mut Value) -> Result<(), Denied> + Send + Sync + 'static,
    ) -> Self {
        Self::new(kind, Role::Mutate, mutating(change))
    }

    fn new(kind: Kind, role: Role, handler: Handler) -> Self {
        Self {
            kind,
            role,
            label: None,
            operations: BTreeSet::from([Operation::Create, Operation::Update]),
            subresources: BTreeSet::new(),
            failure_policy: FailurePolicy::default(),
            timeout: Duration::from_secs(10),
            namespaces: LabelSelector::default(),
            objects: LabelSelector::default(),
            again: false,
            handler,
        }
    }

    /// A name, a DNS label, that tells it from another hook of the same sort for the same kind.
    #[must_use]
    pub fn named(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// The operations it is asked about, instead of creations and updates.
    #[must_use]
    pub fn on(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.operations = operations.into_iter().collect();
        self
    }

    /// Also asks it about writes of a subresource such as `status`.
    #[must_use]
    pub fn also_on_subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresources.insert(subresource.into());
        self
    }

    /// What a failure of the webhook does to the request.
    #[must_use]
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.failure_policy = policy;
        self
    }

    /// How long the API server waits, in whole seconds from 1 to 30. The handler has nine tenths of it, so that there is
    /// time to say that it was too slow.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Duration::from_secs(timeout.as_secs().clamp(1, 30));
        self
    }

    /// Only asks it about objects in namespaces with these labels.
    #[must_use]
    pub fn in_namespaces(mut self, selector: LabelSelector) -> Self {
        self.namespaces = selector;
        self
    }

    /// Only asks it about objects with these labels, before or after the change.
    #[must_use]
    pub fn for_objects(mut self, selector: LabelSelector) -> Self {
        self.objects = selector;
        self
    }

    /// Asks a mutating handler again when others have changed the object after it.
    #[must_use]
    pub fn asked_again(mut self) -> Self {
        self.again = true;
        self
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(super) fn role(&self) -> Role {
        self.role
    }

    pub(super) fn handler(&self) -> &Handler {
        &self.handler
    }

    pub(super) fn policy(&self) -> FailurePolicy {
        self.failure_policy
    }

    pub(super) fn patience(&self) -> Duration {
        self.timeout
    }

    pub(super) fn operations(&self) -> &BTreeSet<Operation> {
        &self.operations
    }

    pub(super) fn selectors(&self) -> (&LabelSelector, &LabelSelector) {
        (&self.namespaces, &self.objects)
    }

    pub(super) fn is_asked_again(&self) -> bool {
        self.again
    }

    /// As rules name it: the kind's plural, and with it each subresource.
    pub(super) fn resources(&self) -> Vec<String> {
        let plural = self.kind.plural();
        let below = self.subresources.iter().map(|subresource| format!("{plural}/{subresource}"));
        std::iter::once(plural.to_owned()).chain(below).collect()
    }

    /// Where it is served.
    pub(super) fn path(&self) -> String {
        let resource = resource_name(&self.kind);
        match &self.label {
            Some(label) => format!("/{}/{resource}/{label}", self.role.verb()),
            None => format!("/{}/{resource}", self.role.verb()),
        }
    }

    /// As the API server names it in refusals. It has three parts or more, as it must.
    pub(super) fn webhook_name(&self) -> String {
        let group = if self.kind.group().is_empty() { "core" } else { self.kind.group() };
        let label = self.label.as_deref().map(|label| format!("{label}.")).unwrap_or_default();
        format!("{label}{}.{}.{group}", self.role.verb(), self.kind.plural())
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("name", &self.webhook_name())
            .field("operations", &self.operations)
            .field("failure_policy", &self.failure_policy)
            .finish_non_exhaustive()
    }
}

/// The name of a kind's resource with its group, as its definition is named: `webapps.example.com`.
pub(super) fn resource_name(kind: &Kind) -> String {
    if kind.group().is_empty() {
        kind.plural().to_owned()
    } else {
        format!("{}.{}", kind.plural(), kind.group())
    }
}

fn validating<T: DeserializeOwned + Send + Sync + 'static>(
    decide: impl Fn(&AdmissionRequest<T>) -> Result<(), Denied> + Send + Sync + 'static,
) -> Handler {
    Handler::validating(move |request: Arc<AdmissionRequest<T>>| std::future::ready(decide(&request)))
}

fn mutating<T: DeserializeOwned + Serialize + Clone + Send + Sync + 'static>(
    change: impl Fn(&AdmissionRequest<T>, &mut T) -> Result<(), Denied> + Send + Sync + 'static,
) -> Handler {
    Handler::mutating(move |request: Arc<AdmissionRequest<T>>, mut object: T| {
        let changed = change(&request, &mut object);
        std::future::ready(changed.map(|()| object))
    })
}
