//! Admission: what else has a say in a write.
//!
//! First what is [compiled] in, then the webhooks that are configured.

mod compiled;

use crate::admission::{Attributes, Equivalents, Gvk, Gvr, Notes, Operation as Verb, Served, Steps};
use crate::apply;
use crate::builtin::rules::json::text_at;
use crate::builtin::rules::pod::admit as pod;
use crate::builtin::tables;
use crate::delete::DeleteOptions;
use crate::incoming;
use crate::kind::Kind;
use crate::server::{Call, Server};
use crate::status::ApiError;
use crate::store::{CollectionId, Key, Unreadable};
use crate::strategy;
use compiled::{admit_builtin, around_pod, stored};
pub(crate) use compiled::{check_namespace, is_terminating};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
}

/// What a subresource is sent in place of the object itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Binding,
    Eviction,
    Scale,
}

impl Sent {
    const fn kind(self) -> Gvk<'static> {
        match self {
            Sent::Binding => Gvk { group: "", version: "v1", kind: "Binding" },
            Sent::Eviction => Gvk { group: "policy", version: "v1", kind: "Eviction" },
            Sent::Scale => Gvk { group: "autoscaling", version: "v1", kind: "Scale" },
        }
    }
}

/// Namespaces that nobody may delete.
const IMMORTAL: &[&str] = &["default", "kube-system", "kube-public"];

/// Lets everybody have a say in what is written.
pub(crate) async fn mutate(
    server: &Server,
    call: &Call,
    operation: Operation,
    dry_run: bool,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    check_namespace(server, call, operation, object)?;
    let plugins = |object: &mut Value| {
        if call.subresource.is_none() && call.kind.builtin().is_some() {
            admit_builtin(server, call, dry_run, object, old)?;
        }
        Ok(())
    };
    plugins(object)?;
    let configurations = configurations(server, call, Stage::Mutating)?;
    if configurations.is_empty() {
        return Ok(());
    }
    let fit = |object: &mut Value| {
        incoming::fit(&call.kind, object, |why| ApiError::internal(why))?;
        strategy::default(&call.kind, object)?;
        Ok(())
    };
    let asked = Asked::about(server, call, operation, dry_run, object)?;
    let managers = object.pointer("/metadata/managedFields").cloned();
    let steps = Steps::new(&fit).reinvoking(&plugins);
    // Asking is rare and its state large: kept apart, it does not weigh on every write.
    let answer = asked.with(server, call, async |attributes, notes| {
        server.webhooks.mutate(&configurations, attributes, Some(object), old, steps, notes).await
    });
    Box::pin(answer).await?;
    if let Some(warning) = apply::undo_unreadable(managers, object) {
        call.warn(warning);
    }
    Ok(())
}

/// Lets everybody have a say in what a subresource is sent.
pub(crate) async fn mutate_sent(
    server: &Server,
    call: &Call,
    sent: Sent,
    dry_run: bool,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let configurations = configurations(server, call, Stage::Mutating)?;
    if configurations.is_empty() {
        return Ok(());
    }
    let Gvk { group, version, kind } = sent.kind();
    let schema = tables::schema_of(group, version, kind).ok_or_else(ApiError::no_such_resource)?;
    let fit = |object: &mut Value| incoming::fit_other(object, &schema).map_err(ApiError::internal);
    let asked = Asked::about_sent(server, call, sent, dry_run, object, old)?;
    asked
        .with(server, call, async |attributes, notes| {
            let steps = Steps::new(&fit);
            server.webhooks.mutate(&configurations, attributes, Some(object), old, steps, notes).await
        })
        .await
}

/// Lets everybody refuse what a subresource is sent.
pub(crate) async fn validate_sent(
    server: &Server,
    call: &Call,
    sent: Sent,
    dry_run: bool,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let configurations = configurations(server, call, Stage::Validating)?;
    if configurations.is_empty() {
        return Ok(());
    }
    let asked = Asked::about_sent(server, call, sent, dry_run, object, old)?;
    asked
        .with(server, call, async |attributes, notes| {
            server.webhooks.validate(&configurations, attributes, Some(object), old, notes).await
        })
        .await
}

/// Lets everybody refuse what is about to be stored.
pub(crate) async fn validate(
    server: &Server,
    call: &Call,
    name: &str,
    operation: Operation,
    dry_run: bool,
    (object, old): (&Value, Option<&Value>),
) -> Result<(), ApiError> {
    let configurations = configurations(server, call, Stage::Validating)?;
    if configurations.is_empty() {
        return Ok(());
    }
    let mut asked = Asked::about(server, call, operation, dry_run, object)?;
    if !name.is_empty() {
        name.clone_into(&mut asked.name);
    }
    let answer = asked.with(server, call, async |attributes, notes| {
        server.webhooks.validate(&configurations, attributes, Some(object), old, notes).await
    });
    Box::pin(answer).await
}

/// Lets everybody refuse a deletion.
pub(crate) async fn delete(
    server: &Server,
    call: &Call,
    key: &Key,
    options: &DeleteOptions,
    live: &Value,
) -> Result<(), ApiError> {
    let kind = &*call.kind;
    if kind.builtin().is_some() && kind.kind == "Namespace" && IMMORTAL.contains(&&*key.name) {
        return Err(ApiError::forbidden(&kind.resource(), &key.name, "this namespace may not be deleted"));
    }
    for stage in [Stage::Mutating, Stage::Validating] {
        let configurations = configurations(server, call, stage)?;
        if configurations.is_empty() {
            continue;
        }
        let mut asked = Asked::about(server, call, Operation::Update, options.dry_run, live)?;
        asked.operation = Verb::Delete;
        // A collection is deleted without a name, though object by object.
        call.name().clone_into(&mut asked.name);
        asked.options = delete_options(kind, options, live);
        let answer = asked.with(server, call, async |attributes, notes| match stage {
            Stage::Mutating => {
                server
                    .webhooks
                    .mutate(&configurations, attributes, None, Some(live), Steps::new(&|_| Ok(())), notes)
                    .await
            }
            Stage::Validating => {
                server.webhooks.validate(&configurations, attributes, None, Some(live), notes).await
            }
        });
        Box::pin(answer).await?;
    }
    Ok(())
}

/// The options of a deletion as webhooks are shown them.
fn delete_options(kind: &Kind, options: &DeleteOptions, live: &Value) -> Value {
    let mut shown = options.raw.clone();
    shown["kind"] = "DeleteOptions".into();
    shown["apiVersion"] = "meta.k8s.io/v1".into();
    // These two must not be deleted and made anew between admission and deletion.
    let bound = kind.builtin().is_some() && matches!(&*kind.kind, "Namespace" | "CustomResourceDefinition");
    let uid = options.uid.as_deref().or_else(|| bound.then(|| text_at(live, "/metadata/uid")));
    for (field, value) in [("uid", uid), ("resourceVersion", options.version.as_deref())] {
        if let Some(value) = value {
            shown["preconditions"][field] = value.into();
        }
    }
    if let (None, Some(policy)) = (shown.get("propagationPolicy"), options.propagation)
        && shown.get("orphanDependents").is_none()
    {
        shown["propagationPolicy"] = format!("{policy:?}").into();
    }
    shown
}

/// Gives a binding the labels of its node.
pub(crate) fn binding(server: &Server, binding: &mut Value) -> Result<(), Unreadable> {
    around_pod(server, "", |around| pod::admit_binding(binding, around))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Mutating,
    Validating,
}

/// The configurations that may concern a call, in the order of their names. Mostly none, found at once.
fn configurations(server: &Server, call: &Call, stage: Stage) -> Result<Vec<Value>, Unreadable> {
    static MUTATING: LazyLock<CollectionId> =
        LazyLock::new(|| CollectionId::new("admissionregistration.k8s.io", "mutatingwebhookconfigurations"));
    static VALIDATING: LazyLock<CollectionId> = LazyLock::new(|| {
        CollectionId::new("admissionregistration.k8s.io", "validatingwebhookconfigurations")
    });
    let id: &CollectionId = if stage == Stage::Mutating { &MUTATING } else { &VALIDATING };
    // Webhooks have no say in their own configuration.
    if call.kind.group == "admissionregistration.k8s.io" || server.store.count(id) == 0 {
        return Ok(Vec::new());
    }
    let Ok(listing) = server.store.list(id, None, None, None) else { return Ok(Vec::new()) };
    listing.items.iter().map(|object| object.value()).collect()
}

/// What webhooks are told of a request beside the objects.
struct Asked {
    /// What is sent, if it is not the object itself.
    sent: Option<Sent>,
    operation: Verb,
    name: String,
    namespace: String,
    namespace_object: Option<Value>,
    dry_run: bool,
    options: Value,
}

impl Asked {
    fn about(
        server: &Server,
        call: &Call,
        operation: Operation,
        dry_run: bool,
        object: &Value,
    ) -> Result<Asked, Unreadable> {
        let (operation, options) = match operation {
            Operation::Create => (Verb::Create, "CreateOptions"),
            Operation::Update => (Verb::Update, "UpdateOptions"),
        };
        let mut options = json!({"kind": options, "apiVersion": "meta.k8s.io/v1"});
        for field in ["fieldManager", "fieldValidation"] {
            if let Some(value) = call.query.get(field) {
                options[field] = value.into();
            }
        }
        if dry_run {
            options["dryRun"] = json!(["All"]);
        }
        let name = call.name.as_deref().unwrap_or_else(|| text_at(object, "/metadata/name")).to_owned();
        let is_namespace = call.kind.builtin().is_some() && call.kind.kind == "Namespace";
        Ok(Asked {
            sent: None,
            operation,
            namespace: if is_namespace { name.clone() } else { call.namespace().to_owned() },
            name,
            namespace_object: namespace_object(server, call, object)?,
            dry_run,
            options,
        })
    }

    /// About what a subresource is sent: something that changes, or something that is only posted.
    fn about_sent(
        server: &Server,
        call: &Call,
        sent: Sent,
        dry_run: bool,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Asked, Unreadable> {
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        Ok(Asked { sent: Some(sent), ..Asked::about(server, call, operation, dry_run, object)? })
    }

    /// Asks, and passes on what webhooks have to say beside yes and no.
    async fn with(
        &self,
        server: &Server,
        call: &Call,
        ask: impl AsyncFnOnce(&Attributes<'_>, &mut Notes) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let kind = &*call.kind;
        let others: Vec<_> = server
            .registry
            .all()
            .into_iter()
            .filter(|other| other.collection == kind.collection && other.api_version != kind.api_version)
            .collect();
        let forms: Vec<Served<'_>> = others.iter().map(|other| self.form(other)).collect();
        let convert = |object: &Value, to: Gvk<'_>| {
            let from = server.registry.of_kind(
                &kind.group,
                text_at(object, "/apiVersion").rsplit('/').next().unwrap_or(""),
                &kind.kind,
            );
            let to = server.registry.of_kind(to.group, to.version, to.kind);
            let converted = from.zip(to).and_then(|(from, to)| to.converted_from(&from, object.clone()));
            converted.ok_or_else(ApiError::no_such_resource)
        };
        let own = self.form(kind);
        let attributes = Attributes {
            operation: self.operation,
            kind: own.kind,
            resource: own.resource,
            subresource: call.subresource.as_deref().unwrap_or_default(),
            namespace: &self.namespace,
            name: &self.name,
            namespace_object: self.namespace_object.as_ref(),
            user: &call.user,
            dry_run: self.dry_run,
            options: &self.options,
            equivalents: Equivalents { served: &forms, convert: &convert },
        };
        let mut notes = Notes::default();
        let answer = ask(&attributes, &mut notes).await;
        notes.warnings.into_iter().for_each(|warning| call.warn(warning));
        answer
    }

    /// How a kind, or what is sent to a subresource of it, is served.
    fn form<'k>(&self, kind: &'k Kind) -> Served<'k> {
        let own = Gvk { group: &kind.group, version: &kind.version, kind: &kind.kind };
        Served {
            resource: Gvr { group: &kind.group, version: &kind.version, resource: &kind.plural },
            kind: match self.sent {
                Some(sent) => sent.kind(),
                None => own,
            },
        }
    }
}

/// The namespace that selectors of webhooks look at: a namespace is its own.
fn namespace_object(server: &Server, call: &Call, object: &Value) -> Result<Option<Value>, Unreadable> {
    let kind = &*call.kind;
    if kind.builtin().is_some() && kind.kind == "Namespace" {
        return Ok(Some(object.clone()));
    }
    let Some(namespace) = call.namespace.as_deref() else { return Ok(None) };
    stored(server, "", "namespaces", "", namespace)
}
