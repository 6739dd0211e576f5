//! One webhook of a configuration, read in place.

use serde_json::Value;
use std::borrow::Borrow;
use std::time::Duration;

/// The longest time that validation lets a webhook ask for.
const TIMEOUT_SECONDS_MAX: u64 = 30;

/// What to do when a webhook cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailurePolicy {
    Fail,
    Ignore,
}

/// Whether a webhook may be asked about a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SideEffects {
    /// It says nothing about them.
    Unset,
    /// It has none, or none when told that it is a dry run.
    None,
    /// It has some, or does not know.
    Possible,
}

/// One entry of `webhooks` of a stored, defaulted configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hook<'a> {
    pub name: &'a str,
    spec: &'a Value,
}

impl<'a> Hook<'a> {
    pub(super) fn new(spec: &'a Value) -> Self {
        Hook { name: spec.get("name").and_then(Value::as_str).unwrap_or_default(), spec }
    }

    /// The webhooks of all configurations in the order in which they are called.
    pub(super) fn in_order<C: Borrow<Value>>(configurations: &'a [C]) -> Vec<Hook<'a>> {
        let mut sorted: Vec<&Value> = configurations.iter().map(Borrow::borrow).collect();
        sorted.sort_by_key(|configuration| configuration.pointer("/metadata/name").and_then(Value::as_str));
        let hooks = sorted.into_iter().filter_map(|c| c.get("webhooks").and_then(Value::as_array)).flatten();
        hooks.map(Hook::new).collect()
    }

    fn text(&self, field: &str) -> Option<&'a str> {
        self.spec.get(field).and_then(Value::as_str)
    }

    fn list(&self, field: &str) -> &'a [Value] {
        self.spec.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn rules(&self) -> &'a [Value] {
        self.list("rules")
    }

    pub(super) fn match_conditions(&self) -> &'a [Value] {
        self.list("matchConditions")
    }

    pub(super) fn review_versions(&self) -> impl Iterator<Item = &'a str> {
        self.list("admissionReviewVersions").iter().filter_map(Value::as_str)
    }

    /// A field that holds a `LabelSelector`; an absent one is `null`.
    pub(super) fn selector(&self, field: &str) -> &'a Value {
        self.spec.get(field).unwrap_or(&Value::Null)
    }

    pub(super) fn client_config(&self) -> &'a Value {
        self.selector("clientConfig")
    }

    pub(super) fn failure_policy(&self) -> FailurePolicy {
        match self.text("failurePolicy") {
            Some("Ignore") => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        }
    }

    pub(super) fn side_effects(&self) -> SideEffects {
        match self.text("sideEffects") {
            None => SideEffects::Unset,
            Some("None" | "NoneOnDryRun") => SideEffects::None,
            Some(_) => SideEffects::Possible,
        }
    }

    pub(super) fn matches_equivalents(&self) -> bool {
        self.text("matchPolicy") == Some("Equivalent")
    }

    pub(super) fn is_reinvocable(&self) -> bool {
        self.text("reinvocationPolicy") == Some("IfNeeded")
    }

    pub(super) fn timeout(&self) -> Duration {
        let seconds = self.spec.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10);
        // Validation refuses more. What was stored before it did is held to it here.
        Duration::from_secs(seconds.min(TIMEOUT_SECONDS_MAX))
    }
}
