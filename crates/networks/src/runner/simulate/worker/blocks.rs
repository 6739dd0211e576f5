//! Blocks: put into one's own peer, and got from it after others have put them into theirs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::load::{Ground, lock};
use crate::fetch::{Body, Fetch};
use crate::kinds::Adapter;
use crate::rpc::{Endpoint, RpcError};
use crate::runner::simulate::wire::Block;

/// How large a block is.
const BLOCK_BYTES: usize = 1024;
/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// What parts of a form are told apart by. No block has it in it: blocks are hexadecimal digits.
const BOUNDARY: &str = "mainstay-block-boundary";

/// What is known of blocks.
#[derive(Default)]
pub(super) struct Blocks {
    fetch: Fetch,
    turns: AtomicU64,
    others: Mutex<Vec<Block>>,
}

#[derive(Deserialize)]
struct Put {
    #[serde(rename = "Key")]
    key: String,
}

impl Blocks {
    /// What others have put.
    pub(super) fn learn(&self, blocks: Vec<Block>) {
        if !blocks.is_empty() {
            *lock(&self.others) = blocks;
        }
    }

    /// Puts a block, or every second time gets one of another's, once there are any.
    pub(super) async fn act(&self, ground: &Ground<'_>, endpoint: &Endpoint) -> Result<(), RpcError> {
        if endpoint.adapter != Adapter::Kubo {
            return Err(RpcError::Unsupported("put blocks"));
        }
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        let other = if turn % 2 == 1 { self.pick(turn) } else { None };
        match other {
            Some(block) => self.get(ground, endpoint, &block).await,
            None => self.put(ground, endpoint, turn).await,
        }
    }

    fn pick(&self, turn: u64) -> Option<Block> {
        let others = lock(&self.others);
        let place = usize::try_from(turn / 2).unwrap_or_default().checked_rem(others.len())?;
        others.get(place).cloned()
    }

    async fn put(&self, ground: &Ground<'_>, endpoint: &Endpoint, number: u64) -> Result<(), RpcError> {
        let worker = ground.settings.worker;
        let form = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"data\"; filename=\"block\"\r\nContent-Type: application/octet-stream\r\n\r\n{}\r\n--{BOUNDARY}--\r\n",
            content(ground.settings.seed, worker, number),
        );
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let body = Body { content_type, bytes: form.into() };
        let answer = self.ask(endpoint, "/api/v0/block/put", body).await?;
        let put: Put =
            serde_json::from_slice(&answer).map_err(|error| RpcError::Garbage(error.to_string()))?;
        ground.manager.announce(&Block { worker, number, key: put.key }).await;
        Ok(())
    }

    async fn get(&self, ground: &Ground<'_>, endpoint: &Endpoint, block: &Block) -> Result<(), RpcError> {
        let key = utf8_percent_encode(&block.key, NON_ALPHANUMERIC);
        let answer = self.ask(endpoint, &format!("/api/v0/block/get?arg={key}"), Body::default()).await?;
        if answer == content(ground.settings.seed, block.worker, block.number).as_bytes() {
            return Ok(());
        }
        Err(RpcError::Garbage(format!("block {} has {} other bytes in it", block.key, answer.len())))
    }

    async fn ask(&self, endpoint: &Endpoint, path: &str, body: Body) -> Result<Bytes, RpcError> {
        let limits = (endpoint.timeout, ANSWER_BYTES_MAX);
        self.fetch.ask(&Method::POST, &format!("{}{path}", endpoint.url), &body, limits).await
    }
}

/// What is in a block: the same for whoever asks.
fn content(seed: i64, worker: usize, number: u64) -> String {
    use std::fmt::Write as _;
    let name = format!("{seed} {worker} {number}");
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    let mut digits = String::new();
    for byte in digest.as_ref() {
        // Writing to a String does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits.repeat(BLOCK_BYTES / digits.len().max(1))
}
