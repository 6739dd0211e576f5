//! The Kubernetes API in one process: for tests without containers, for simulation under virtual time,
//! and as the API of a single machine. It behaves as kube-apiserver does, and a differential suite that
//! runs the same requests against both holds it to that.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use mainstay_apiserver::ApiServer;
//!
//! let server = ApiServer::builder().build()?;
//! // `server` is a tower service: `kube::Client::new(server.clone(), "default")` needs no socket.
//! let served = server.serve_https("127.0.0.1:0".parse()?).await?;
//! println!("{}", served.kubeconfig());
//! # Ok(())
//! # }
//! ```
//!
//! What happens to a request:
//!
//! ```text
//!              ┌─▶ read, watch ──────────────────────────────────────────┐
//! service ─────┼─▶ incoming ─▶ strategy ─▶ apply ─▶ admit ─▶ write ──┐   ├─▶ respond
//!  (request,   ├─▶ delete ───────────────────────────────────────────┼─▶ store
//!   negotiate) └─▶ endpoints (discovery, OpenAPI)                     │   │
//!                                                                    disk ▼
//!                                    controllers ◀── every event ── history
//! ```
//!
//! - [`store`]: every object at every retained revision, in memory or durable.
//! - [`schema`], [`builtin`]: what objects of a kind look like, and what is done with them.
//! - [`apply`], [`patch`]: changes other than whole objects.
//! - [`schedule`]: when a `CronJob` is due, for the rules here and for controllers elsewhere.
//! - [`controllers`]: garbage collection, namespaces, definitions.
//! - [`serve`]: the same service behind a socket.
//!
//! Writes of what Kubernetes has and this server has not are refused by name with 501, never approximated;
//! `DIFFERENCES.md` lists what differs.

#![allow(rustdoc::private_intra_doc_links, reason = "the docs of modules are for who reads the source")]
// No input may end in a panic. Tests panic when they fail.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::get_unwrap)
)]

mod admission;
mod admit;
mod allocate;
mod apply;
mod body;
mod bounds;
mod builder;
mod builtin;
mod clock;
mod controllers;
mod credentials;
mod decode;
mod delete;
mod discovery;
mod endpoints;
#[cfg(test)]
mod extremes;
mod faults;
mod field;
mod gotext;
mod health;
mod incoming;
mod jsonpath;
mod kind;
mod negotiate;
mod offload;
mod openapi;
mod options;
mod parts;
mod patch;
mod protobuf;
mod read;
mod registry;
mod replicas;
mod request;
mod respond;
mod review;
mod scale;
mod schedule;
mod schema;
mod selectors;
mod serve;
mod server;
mod service;
mod status;
mod store;
mod strategy;
mod subresource;
mod table;
mod warnings;
mod watch;
mod write;

pub use admission::{ServiceResolver, WebhookTransport};
pub use body::Body;
pub use builder::{ApiServer, BuildError, Builder};
pub use clock::{Clock, Identities, RandomIdentities, SeededIdentities, SystemClock, TokioClock};
pub use credentials::{Credentials, CredentialsError, Pair, write_private};
pub use endpoints::KUBERNETES_VERSION;
pub use faults::{Broken, Fault, FaultLayer, Faults, Faulty};
pub use schedule::{NoSchedule, Schedule};
pub use schema::declare_schema;
pub use serve::{ServeError, Served};
pub use server::User;
pub use store::disk::DiskError;
pub use store::{Change, Observer};
pub use subresource::{SubresourceProvider, SubresourceRequest};
pub use watch::{Delivery, WatchDelivery, WatchEvent, WatchInfo};
