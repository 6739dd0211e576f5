//! Whether a class can have its kind: is it defined, do the class's paths fit it, and is it nobody else's? Pure.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use kube::ResourceExt as _;
use mainstay::conditions::State;
use mainstay::{Kind, Scope};
use serde_json::Value;

use crate::config::StreamClassConfig;
use crate::kinds::StreamClass;
use crate::paths;

/// One thing that must be so, and whether it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) state: State,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn good(reason: &'static str, message: impl Into<String>) -> Self {
        Self { state: State::True, reason, message: message.into() }
    }

    pub(crate) fn bad(reason: &'static str, message: impl Into<String>) -> Self {
        Self { state: State::False, reason, message: message.into() }
    }

    pub(crate) fn unknown(reason: &'static str, message: impl Into<String>) -> Self {
        Self { state: State::Unknown, reason, message: message.into() }
    }

    pub(crate) fn is_good(&self) -> bool {
        self.state == State::True
    }
}

/// What a class finds when it looks for its kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    /// The kind, whether or not it can be had.
    pub(crate) kind: Kind,
    /// It is defined, and in a form that can be used.
    pub(crate) defined: Finding,
    /// It may come to be defined by itself: nothing in the class has to change.
    pub(crate) may_come: bool,
    /// No other class has it.
    pub(crate) unclaimed: Finding,
    /// The class's paths lead somewhere in it.
    pub(crate) paths_fit: Finding,
    /// The schema of its status, if that does not keep all that the operator writes.
    pub(crate) narrow_status: Option<Value>,
    /// That schema takes nothing of it.
    pub(crate) keeps_nothing: bool,
}

impl Claim {
    pub(crate) fn is_good(&self) -> bool {
        [&self.defined, &self.unclaimed, &self.paths_fit].into_iter().all(Finding::is_good)
    }

    pub(crate) fn findings(&self) -> [(&'static str, &Finding); 3] {
        [("Defined", &self.defined), ("Unclaimed", &self.unclaimed), ("PathsFit", &self.paths_fit)]
    }
}

/// The kind that a class names.
pub(crate) fn kind_of(class: &StreamClassConfig) -> Kind {
    let api_version = format!("{}/{}", class.api_group_ref, class.api_version);
    Kind::new(&api_version, &class.kind_ref, &class.plural_name, Scope::Namespaced)
}

/// The name of the definition of the kind that a class names.
pub(crate) fn definition_name(class: &StreamClassConfig) -> String {
    format!("{}.{}", class.plural_name, class.api_group_ref)
}

/// Looks for the class's kind. `others` are all classes, itself included or not.
pub(crate) fn examine(
    class: &StreamClass,
    config: &StreamClassConfig,
    definition: Option<&CustomResourceDefinition>,
    others: &[StreamClass],
) -> Claim {
    let kind = kind_of(config);
    let unclaimed = find_rival(class, others);
    let waits = |reason, message: String| Finding::unknown(reason, message);
    let Some(definition) = definition else {
        let message = format!("there is no CustomResourceDefinition {}", definition_name(config));
        return Claim {
            kind,
            defined: Finding::bad("NotDefined", message),
            may_come: true,
            unclaimed,
            paths_fit: waits("NotDefined", "the kind is not defined yet".to_owned()),
            narrow_status: None,
            keeps_nothing: false,
        };
    };
    let (defined, may_come) = check_definition(config, definition);
    let schema = version_of(config, definition)
        .and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
    let schema = schema.and_then(|schema| serde_json::to_value(schema).ok());
    let paths_fit = match &schema {
        None => waits("NoSchema", "the definition has no schema for this version".to_owned()),
        Some(schema) => {
            let problems = paths::check(&config.paths, &config.secret_refs, schema);
            let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
            if told.is_empty() {
                Finding::good("PathsFit", "all paths lead to a field of the kind")
            } else {
                Finding::bad("PathsDoNotFit", told.join("; "))
            }
        }
    };
    let narrow = schema.as_ref().filter(|schema| !paths::status_problems(schema).is_empty());
    let narrow_status = narrow.map(|schema| schema["properties"]["status"].clone());
    let keeps_nothing = narrow_status.as_ref().is_some_and(paths::keeps_nothing);
    Claim { kind, defined, may_come, unclaimed, paths_fit, narrow_status, keeps_nothing }
}

fn version_of<'a>(
    config: &StreamClassConfig,
    definition: &'a CustomResourceDefinition,
) -> Option<&'a CustomResourceDefinitionVersion> {
    definition.spec.versions.iter().find(|version| version.name == config.api_version)
}

/// Whether the definition is of use, and if not, whether time alone may help.
fn check_definition(config: &StreamClassConfig, definition: &CustomResourceDefinition) -> (Finding, bool) {
    let name = definition.name_any();
    let wrong = |reason, message: String| (Finding::bad(reason, message), false);
    let names = &definition.spec.names;
    if names.kind != config.kind_ref {
        return wrong(
            "OtherKind",
            format!("spec.kindRef: {name} defines {}, not {}", names.kind, config.kind_ref),
        );
    }
    if definition.spec.scope != "Namespaced" {
        return wrong("ClusterScoped", format!("{name} is cluster-scoped, and Jobs are in namespaces"));
    }
    let served: Vec<_> = definition.spec.versions.iter().filter(|version| version.served).collect();
    let Some(version) = served.iter().find(|version| version.name == config.api_version) else {
        let known: Vec<_> = served.iter().map(|version| version.name.as_str()).collect();
        let message = format!(
            "spec.apiVersion: {name} does not serve {}, but {}",
            config.api_version,
            if known.is_empty() { "nothing".to_owned() } else { known.join(", ") }
        );
        return wrong("VersionNotServed", message);
    };
    if version.subresources.as_ref().is_none_or(|parts| parts.status.is_none()) {
        let message = format!(
            "{name} has no status subresource in {}: a stream could not tell its phase",
            version.name
        );
        return wrong("NoStatus", message);
    }
    if definition.metadata.deletion_timestamp.is_some() {
        return (Finding::bad("Terminating", format!("{name} is being deleted")), true);
    }
    let conditions =
        definition.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    match conditions.iter().find(|condition| condition.type_ == "Established") {
        Some(condition) if condition.status == "True" => {
            (Finding::good("Established", format!("{name} is established")), true)
        }
        _ => (Finding::unknown("NotEstablished", format!("{name} is not established yet")), true),
    }
}

/// Whoever was there first has the kind.
fn find_rival(class: &StreamClass, others: &[StreamClass]) -> Finding {
    let age = |class: &StreamClass| (class.creation_timestamp(), class.name_any());
    let same_kind = |other: &&StreamClass| {
        other.spec.api_group_ref == class.spec.api_group_ref
            && other.spec.plural_name == class.spec.plural_name
            && other.spec.stopped != Some(true)
            && other.name_any() != class.name_any()
    };
    match others
        .iter()
        .filter(same_kind)
        .filter(|other| age(other) < age(class))
        .min_by_key(|other| age(other))
    {
        Some(rival) => Finding::bad(
            "ClaimedByAnother",
            format!("the StreamClass {} has {} already", rival.name_any(), class.spec.kind_ref),
        ),
        None => Finding::good("Unclaimed", "no other class claims the kind"),
    }
}
