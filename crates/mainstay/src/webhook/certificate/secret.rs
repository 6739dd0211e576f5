//! The list of certificates in a Secret that all replicas share.
//!
//! The Secret is written only in the version that was read, or created only if there is none, so of two writers one loses
//! and reads again.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, PostParams};

use super::Issued;
use super::plan::bundle;
use crate::Key;

/// The list itself, with the keys.
const LIST: &str = "certificates.json";

/// The authorities, for others who want to trust the webhooks.
const BUNDLE: &str = "ca.crt";

/// The Secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Reading it failed.
    #[error("reading Secret {0}")]
    Read(Key, #[source] kube::Error),
    /// Creating or updating it failed.
    #[error("writing Secret {0}")]
    Write(Key, #[source] kube::Error),
    /// It was made by somebody else, or for something else.
    #[error("Secret {0} holds no list of certificates in {LIST}; delete it, or name another one")]
    Foreign(Key),
}

/// The Secret as it was read. Without a version there is none yet.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    version: Option<String>,
    pub(crate) listed: Vec<Issued>,
}

impl Stored {
    /// A list that is kept nowhere else.
    pub(crate) fn in_memory(listed: Vec<Issued>) -> Self {
        Self { version: Some(String::new()), listed }
    }

    /// Whether there is no Secret.
    pub(crate) fn is_missing(&self) -> bool {
        self.version.is_none()
    }
}

/// Whether a write was in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Done,
    /// Somebody else wrote in the meantime: what was read is old.
    TooLate,
}

/// Where the list is.
pub(crate) struct SharedList {
    api: Api<Secret>,
    key: Key,
    manager: String,
}

impl SharedList {
    /// `key` has a namespace; without one it is the client's.
    pub(crate) fn new(client: kube::Client, key: Key, manager: &str) -> Self {
        let api = match key.namespace() {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::default_namespaced(client),
        };
        Self { api, key, manager: manager.to_owned() }
    }

    pub(crate) async fn observe(&self) -> Result<Stored, SecretError> {
        let found = self.api.get_opt(self.key.name()).await;
        let Some(secret) = found.map_err(|error| SecretError::Read(self.key.clone(), error))? else {
            return Ok(Stored::default());
        };
        let list = secret.data.as_ref().and_then(|data| data.get(LIST));
        // The parser's own words are left out: they may quote what is secret.
        let listed = list.and_then(|ByteString(text)| serde_json::from_slice(text).ok());
        let listed = listed.ok_or_else(|| SecretError::Foreign(self.key.clone()))?;
        Ok(Stored { version: secret.metadata.resource_version, listed })
    }

    /// Replaces what `stored` held.
    pub(crate) async fn write(&self, stored: &Stored, listed: &[Issued]) -> Result<Written, SecretError> {
        // Strings and times always have a JSON form.
        let list = serde_json::to_vec(listed).unwrap_or_default();
        let data = [(LIST, list), (BUNDLE, bundle(listed).into_bytes())];
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(self.key.name().to_owned()),
                resource_version: stored.version.clone(),
                ..ObjectMeta::default()
            },
            data: Some(data.map(|(name, value)| (name.to_owned(), ByteString(value))).into()),
            ..Secret::default()
        };
        let params = PostParams { field_manager: Some(self.manager.clone()), ..PostParams::default() };
        let written = if stored.is_missing() {
            self.api.create(&params, &secret).await
        } else {
            self.api.replace(self.key.name(), &params, &secret).await
        };
        match written {
            Ok(_) => Ok(Written::Done),
            // Not found: it was deleted after it was read.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) && !is_namespace(&status) => {
                Ok(Written::TooLate)
            }
            Err(error) => Err(SecretError::Write(self.key.clone(), error)),
        }
    }
}

/// Whether it is the namespace that is missing, which reading again does not mend.
fn is_namespace(status: &kube::core::Status) -> bool {
    status.details.as_ref().is_some_and(|details| details.kind == "namespaces")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use mainstay_apiserver::ApiServer;

    use super::super::issue;
    use super::*;

    fn list() -> (kube::Client, SharedList) {
        let client = kube::Client::new(ApiServer::builder().build().unwrap(), "default");
        (client.clone(), SharedList::new(client, Key::namespaced("default", "hooks"), "op"))
    }

    fn issued() -> Issued {
        issue(&["a".to_owned()], "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap(), Duration::from_mins(1))
            .unwrap()
    }

    #[tokio::test]
    async fn of_two_writers_the_first_wins() {
        let (_, list) = list();
        let (one, other) = (list.observe().await.unwrap(), list.observe().await.unwrap());
        assert!(one.is_missing());
        let first = issued();
        assert_eq!(list.write(&one, std::slice::from_ref(&first)).await.unwrap(), Written::Done);
        assert_eq!(list.write(&other, &[issued()]).await.unwrap(), Written::TooLate);
        let (one, other) = (list.observe().await.unwrap(), list.observe().await.unwrap());
        assert_eq!(one.listed, std::slice::from_ref(&first));
        let two = [first, issued()];
        assert_eq!(list.write(&one, &two).await.unwrap(), Written::Done);
        assert_eq!(list.write(&other, &[]).await.unwrap(), Written::TooLate);
        assert_eq!(list.observe().await.unwrap().listed, two);
    }

    #[tokio::test]
    async fn a_secret_of_somebody_else_is_left_alone() {
        let (client, list) = list();
        let secret = Secret {
            metadata: ObjectMeta { name: Some("hooks".into()), ..ObjectMeta::default() },
            data: Some([("password".to_owned(), ByteString(b"x".to_vec()))].into()),
            ..Secret::default()
        };
        let secrets: Api<Secret> = Api::default_namespaced(client);
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        assert!(matches!(list.observe().await, Err(SecretError::Foreign(_))));
    }

    #[tokio::test]
    async fn a_missing_namespace_is_an_error() {
        let (client, _) = list();
        let list = SharedList::new(client, Key::namespaced("nowhere", "hooks"), "op");
        let stored = list.observe().await.unwrap();
        let error = list.write(&stored, &[]).await.unwrap_err();
        assert_eq!(error.to_string(), "writing Secret nowhere/hooks");
    }
}
