//! What a handler is asked.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::authentication::v1::UserInfo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Denied;
use super::wire::Asked;
use crate::typed::{self, Misfit};

/// What is being done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is new.
    Create,
    /// It is there and changes.
    Update,
    /// It is to go.
    Delete,
    /// A subresource such as `exec` is connected to.
    Connect,
}

/// A request to the API server on which a handler has a say.
///
/// `T` is the object's type, or [`serde_json::Value`] for kinds that are known as JSON only.
#[derive(Debug)]
pub struct AdmissionRequest<T> {
    operation: Operation,
    name: String,
    namespace: Option<String>,
    subresource: Option<String>,
    user: UserInfo,
    dry_run: bool,
    options: Value,
    object: Option<T>,
    old: Option<T>,
    notes: Mutex<Notes>,
}

/// What a handler says beside yes or no.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) warnings: Vec<String>,
    pub(super) audit: BTreeMap<String, String>,
}

impl<T> AdmissionRequest<T> {
    /// The object as it would be stored; of a deletion, the object that is to go.
    ///
    /// # Panics
    /// Never: a request without any object does not become an `AdmissionRequest`.
    #[expect(clippy::expect_used, reason = "reading a request refuses it without either object")]
    pub fn object(&self) -> &T {
        self.object.as_ref().or(self.old.as_ref()).expect("one of the two is there")
    }

    /// The object as it is stored now; `None` while it is being created.
    pub fn old(&self) -> Option<&T> {
        self.old.as_ref()
    }

    /// What is being done.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The object's name. Empty while an object with `generateName` is being created.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The object's namespace, unless its kind is cluster-scoped.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The subresource that is written, as in `status`, unless it is the object itself.
    pub fn subresource(&self) -> Option<&str> {
        self.subresource.as_deref()
    }

    /// Who asks.
    pub fn user(&self) -> &UserInfo {
        &self.user
    }

    /// Whether nothing will be stored. A handler with side effects must then have none.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// The request's options as JSON: `CreateOptions`, `UpdateOptions` or `DeleteOptions`; null where there are none.
    pub fn options(&self) -> &Value {
        &self.options
    }

    /// Shows a warning to whoever sent the request, whether it is then refused or not. Short ones are best: the API
    /// server cuts those over 256 characters.
    pub fn warn(&self, warning: impl Into<String>) {
        self.notes().warnings.push(warning.into());
    }

    /// Adds an entry to the API server's audit log. It puts the webhook's name in front of the key.
    pub fn annotate_audit(&self, key: impl Into<String>, value: impl Into<String>) {
        self.notes().audit.insert(key.into(), value.into());
    }

    /// A lock that a panicking handler held is as good as any: entries are added whole.
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_notes(&self) -> Notes {
        std::mem::take(&mut *self.notes())
    }
}

impl<T: DeserializeOwned> AdmissionRequest<T> {
    /// Refused where an object does not fit `T`, naming the field.
    pub(super) fn read(asked: &Asked<'_>) -> Result<Self, Denied> {
        let object = asked.object.map(|raw| read_object(raw, "")).transpose()?;
        let old = asked.old_object.map(|raw| read_object(raw, "the stored object: ")).transpose()?;
        if object.is_none() && old.is_none() {
            return Err(Denied::new("the request holds no object").code(400));
        }
        let options = asked.options.and_then(|raw| serde_json::from_str(raw.get()).ok());
        Ok(Self {
            operation: asked.operation,
            name: asked.name.clone(),
            namespace: asked.namespace.clone(),
            subresource: asked.sub_resource.clone(),
            user: asked.user_info.clone(),
            dry_run: asked.dry_run.unwrap_or(false),
            options: options.unwrap_or(Value::Null),
            object,
            old,
            notes: Mutex::default(),
        })
    }
}

fn read_object<T: DeserializeOwned>(raw: &RawValue, which: &str) -> Result<T, Denied> {
    typed::read(raw.get()).map_err(|Misfit { field, error }| {
        Denied::invalid(field, format!("{which}{}", without_position(&error.to_string())))
    })
}

/// An error of the parser without the line and column, which mean nothing to somebody who wrote YAML.
fn without_position(error: &str) -> &str {
    error.rfind(" at line ").map_or(error, |at| &error[..at])
}
