//! What an adapter says on the wire: requests out, answers in. Pure, so that what an answer means is tested without a socket.

use bytes::Bytes;
use http::Method;
use serde::de::DeserializeOwned;

use super::multiaddr::{Multiaddr, is_peer_id};
use super::{Disturbance, Ending, Identity, RpcError, kubo, plain};
pub(super) use crate::fetch::Answer;
use crate::kinds::Adapter;

/// The longest text of a peer that is repeated in an error.
const QUOTED_MAX: usize = 500;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) method: Method,
    /// Path and query.
    pub(super) path: String,
    /// A JSON document, or nothing.
    pub(super) body: Bytes,
}

/// The requests of one adapter, and what their answers mean.
pub(super) trait Dialect: Sync {
    fn ask_identity(&self) -> Ask;
    fn identity(&self, answer: &Answer) -> Result<Identity, RpcError>;

    fn ask_connections(&self) -> Ask;
    fn connections(&self, answer: &Answer) -> Result<Vec<String>, RpcError>;

    fn ask_connect(&self, addresses: &[String]) -> Ask;
    fn connected(&self, answer: &Answer, addresses: &[String]) -> Result<(), RpcError>;

    /// What has to be asked next, after these answers to all that was asked before. Nothing: it is done.
    fn disturb(&self, disturbance: &Disturbance, answers: &[Answer]) -> Result<Vec<Ask>, RpcError>;

    /// How a disturbance ends that was done, after these answers.
    fn ending(&self, _: &Disturbance, _: &[Answer]) -> Ending {
        Ending::ByItself
    }
}

/// What this adapter speaks.
pub(super) fn of(adapter: Adapter) -> &'static dyn Dialect {
    match adapter {
        Adapter::Kubo => &kubo::Kubo,
        Adapter::Json => &plain::Plain,
    }
}

impl Answer {
    /// The answer if it is a document of this shape.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        let mut json = serde_json::Deserializer::from_slice(&self.body);
        serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let (path, error) = (error.path().to_string(), error.inner());
            let place = if path == "." { String::new() } else { format!("{path}: ") };
            RpcError::Garbage(format!("{place}{error}, in `{}`", self.quoted()))
        })
    }

    /// That it refused, with these words.
    pub(super) fn refused(&self, message: Option<String>) -> RpcError {
        let message = message.map_or_else(|| self.quoted(), |message| quote(&message));
        RpcError::Refused { status: self.status, message }
    }

    fn quoted(&self) -> String {
        // A character takes at most four bytes.
        let start = self.body.get(..QUOTED_MAX * 4).unwrap_or(&self.body);
        quote(&String::from_utf8_lossy(start))
    }
}

/// The beginning of what a peer said, in one line.
pub(super) fn quote(text: &str) -> String {
    let mut words = text.split(|character: char| character.is_whitespace() || character.is_control());
    let mut line = String::new();
    for word in words.by_ref().filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > QUOTED_MAX * 4 {
            break;
        }
    }
    if line.chars().count() > QUOTED_MAX {
        line = line.chars().take(QUOTED_MAX).collect::<String>() + "…";
    }
    line
}

/// An identity that can be one: the id is a word, and no address of it names somebody else.
pub(super) fn plausible(peer_id: String, addresses: Vec<String>) -> Result<Identity, RpcError> {
    if !is_peer_id(&peer_id) {
        return Err(RpcError::Garbage(format!("`{}` is no id of a peer", quote(&peer_id))));
    }
    for address in addresses.iter().filter_map(|text| text.parse::<Multiaddr>().ok()) {
        if let Some(other) = address.peer_id().filter(|other| *other != peer_id) {
            return Err(RpcError::Garbage(format!("it is {peer_id}, but {address} is of {other}")));
        }
    }
    Ok(Identity { peer_id, addresses })
}

/// Ids of others, each once, if all of them are some.
pub(super) fn ids(told: impl IntoIterator<Item = String>) -> Result<Vec<String>, RpcError> {
    let mut ids: Vec<String> = told.into_iter().collect();
    if let Some(wrong) = ids.iter().find(|id| !is_peer_id(id)) {
        return Err(RpcError::Garbage(format!("`{}` is no id of a peer", quote(wrong))));
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}
