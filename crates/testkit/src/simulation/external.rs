//! What an operator keeps outside of the cluster: buckets, records of DNS, rows. Its changes are points of a world as
//! requests are, and what is there belongs to the end state.

use std::sync::Arc;

use serde_json::Value;

use super::ask::{Ask, Class};
use super::life::Life;
use super::stage::{Stage, Trouble};
use super::state::Place;

/// Resources outside of the clusters, by name. Each program has its own connection to the same ones.
#[derive(Clone)]
pub struct External {
    pub(super) life: Arc<Life>,
    pub(super) stage: Arc<Stage>,
}

/// The call came to nothing, or nobody knows what it came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExternalError {
    /// It was refused, and not carried out.
    #[error("refused with {0}")]
    Refused(u16),
    /// The connection broke.
    #[error("the connection broke")]
    Broken,
}

impl External {
    /// What is there under this name.
    ///
    /// # Errors
    /// If something goes wrong by intent.
    pub async fn get(&self, name: &str) -> Result<Option<Value>, ExternalError> {
        self.call("get", Class::Read, name, || self.stage.record.external(name)).await
    }

    /// Makes something, or makes it another.
    ///
    /// # Errors
    /// If something goes wrong by intent.
    pub async fn put(&self, name: &str, value: Value) -> Result<(), ExternalError> {
        self.call("put", Class::Write, name, || self.stage.record.set_external(name, Some(&value))).await
    }

    /// Removes something; that it is not there is no error.
    ///
    /// # Errors
    /// If something goes wrong by intent.
    pub async fn remove(&self, name: &str) -> Result<(), ExternalError> {
        self.call("remove", Class::Write, name, || self.stage.record.set_external(name, None)).await
    }

    async fn call<T>(
        &self,
        verb: &'static str,
        class: Class,
        name: &str,
        work: impl FnOnce() -> T,
    ) -> Result<T, ExternalError> {
        let place = Place::new("external", "", name);
        let ask =
            Ask { verb, text: format!("{verb} {name}"), place, part: String::new(), class, takes_old: false };
        let text = format!("{} {verb} external {name}", self.life.actor);
        let passed = self.stage.pass(&self.life, &ask, text, async { work() }, |_| 200).await;
        passed.map_err(|trouble| match trouble {
            Trouble::Refused { code, .. } => ExternalError::Refused(code),
            Trouble::Broken => ExternalError::Broken,
        })
    }
}

#[cfg(test)]
mod tests;
