//! The part of Kubo's RPC that networks use: `POST /api/v0/…`, arguments in the query, and errors as it words them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, RawQuery, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use percent_encoding::percent_decode_str;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::filters::Filter;
use super::multipart;
use super::swarm::Swarm;
use super::wire::BLOCK_MAX;
use crate::rpc::multiaddr::{Multiaddr, NotAnAddress, is_peer_id, of_ip};

/// What may be around a block in a body.
const FORM_MAX: usize = 64 * 1024;
/// The longest that a peer can be disturbed at once.
const DISTURBED_MAX: Duration = Duration::from_hours(1);
/// The one request that is answered during a pause, or it could never be ended.
const DISTURB: &str = "/api/v0/mainstay/disturb";

type Peer = State<Arc<Swarm>>;

pub(super) fn router(swarm: Arc<Swarm>) -> Router {
    Router::new()
        .route("/api/v0/id", post(identity))
        .route("/api/v0/version", post(version))
        .route("/api/v0/swarm/peers", post(connections))
        .route("/api/v0/swarm/connect", post(connect))
        .route("/api/v0/swarm/disconnect", post(disconnect))
        .route("/api/v0/swarm/filters", post(filters))
        .route("/api/v0/swarm/filters/add", post(add_filters))
        .route("/api/v0/swarm/filters/rm", post(remove_filters))
        .route("/api/v0/block/put", post(put_block))
        .route("/api/v0/block/get", post(get_block))
        .route("/api/v0/block/stat", post(stat_block))
        .route(DISTURB, post(disturb))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .fallback(|| async { (StatusCode::NOT_FOUND, "404 page not found\n") })
        .method_not_allowed_fallback(|| async {
            (StatusCode::METHOD_NOT_ALLOWED, "405 - Method Not Allowed\n")
        })
        .layer(DefaultBodyLimit::max(BLOCK_MAX + FORM_MAX))
        .layer(from_fn_with_state(Arc::clone(&swarm), suffer))
        .with_state(swarm)
}

/// A request that was not done, with the words for it.
struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        // What could not even be read is refused before any command is run, in plain text.
        if self.0 == StatusCode::BAD_REQUEST {
            return (self.0, self.1).into_response();
        }
        (self.0, Json(json!({ "Message": self.1, "Code": 0, "Type": "error" }))).into_response()
    }
}

fn failed(message: impl Into<String>) -> Refused {
    Refused(StatusCode::INTERNAL_SERVER_ERROR, message.into())
}

async fn suffer(State(swarm): Peer, request: Request, next: Next) -> Response {
    if request.uri().path() == DISTURB {
        return next.run(request).await;
    }
    swarm.gate.pass().await;
    let response = next.run(request).await;
    swarm.hesitate().await;
    swarm.gate.pass().await;
    response
}

/// The fields of a query in their order.
fn query(raw: Option<&str>) -> Vec<(String, String)> {
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let field = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    };
    raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).map(field).collect()
}

/// All arguments, of which there has to be one.
fn arguments(raw: Option<&str>, name: &str) -> Result<Vec<String>, Refused> {
    let fields = query(raw).into_iter().filter(|(field, _)| field == "arg");
    let arguments: Vec<String> = fields.map(|(_, value)| value).collect();
    if arguments.is_empty() {
        return Err(Refused(StatusCode::BAD_REQUEST, format!("argument \"{name}\" is required")));
    }
    Ok(arguments)
}

async fn identity(State(swarm): Peer) -> Json<Value> {
    let agent = concat!("mainstay/", env!("CARGO_PKG_VERSION"));
    Json(
        json!({ "ID": swarm.me, "PublicKey": "", "Addresses": swarm.listen, "AgentVersion": agent, "Protocols": null }),
    )
}

async fn version() -> Json<Value> {
    Json(
        json!({ "Version": env!("CARGO_PKG_VERSION"), "Commit": "", "Repo": "", "System": "", "Golang": "" }),
    )
}

async fn connections(State(swarm): Peer) -> Json<Value> {
    let table = swarm.table();
    let connection = |(id, remote): (&String, std::net::SocketAddr)| {
        let ip = remote.ip().to_canonical();
        json!({ "Addr": format!("{}/tcp/{}", of_ip(ip), remote.port()), "Peer": id, "Identify": {} })
    };
    let peers: Vec<Value> = table.links().map(|(id, link)| connection((id, link.remote))).collect();
    Json(json!({ "Peers": if peers.is_empty() { Value::Null } else { peers.into() } }))
}

/// The peers that are named in addresses, each with all of its own, in the order of their first.
fn named(addresses: &[String]) -> Result<Vec<(String, Vec<Multiaddr>)>, Refused> {
    let mut peers: Vec<(String, Vec<Multiaddr>)> = Vec::new();
    for text in addresses {
        let (id, address) = if let Some(id) = text.strip_prefix("/p2p/").filter(|id| is_peer_id(id)) {
            (id.to_owned(), None)
        } else {
            let wrong = |error: NotAnAddress| {
                let why = error.why().trim_start_matches("it ");
                failed(format!("failed to parse multiaddr {text:?}: {why}"))
            };
            let address: Multiaddr = text.parse().map_err(wrong)?;
            let nobody = || failed(format!("found no ipfs peers at {text}"));
            (address.peer_id().ok_or_else(nobody)?.to_owned(), Some(address))
        };
        match peers.iter_mut().find(|(known, _)| *known == id) {
            Some((_, addresses)) => addresses.extend(address),
            None => peers.push((id, address.into_iter().collect())),
        }
    }
    Ok(peers)
}

async fn connect(State(swarm): Peer, RawQuery(raw): RawQuery) -> Result<Json<Value>, Refused> {
    let mut lines = Vec::new();
    for (peer, addresses) in named(&arguments(raw.as_deref(), "address")?)? {
        swarm
            .connect(&peer, &addresses)
            .await
            .map_err(|error| failed(format!("connect {peer} failure: {error}")))?;
        lines.push(format!("connect {peer} success"));
    }
    Ok(Json(json!({ "Strings": lines })))
}

async fn disconnect(State(swarm): Peer, RawQuery(raw): RawQuery) -> Result<Json<Value>, Refused> {
    let peers = named(&arguments(raw.as_deref(), "address")?)?;
    let mut table = swarm.table();
    let end = |(peer, _): (String, _)| {
        let ended = if table.disconnect(&peer) { "success" } else { "failure: not connected" };
        format!("disconnect {peer} {ended}")
    };
    let lines: Vec<String> = peers.into_iter().map(end).collect();
    Ok(Json(json!({ "Strings": lines })))
}

async fn filters(State(swarm): Peer) -> Json<Value> {
    let filters: Vec<String> =
        swarm.table().filters(Instant::now()).iter().map(ToString::to_string).collect();
    Json(json!({ "Strings": if filters.is_empty() { Value::Null } else { filters.into() } }))
}

fn read_filters(raw: Option<&str>) -> Result<Vec<Filter>, Refused> {
    let read = |text: &String| text.parse().map_err(failed);
    arguments(raw, "address")?.iter().map(read).collect()
}

fn written<'a>(filters: impl IntoIterator<Item = &'a Filter>) -> Json<Value> {
    let filters: Vec<String> = filters.into_iter().map(ToString::to_string).collect();
    Json(json!({ "Strings": filters }))
}

async fn add_filters(State(swarm): Peer, RawQuery(raw): RawQuery) -> Result<Json<Value>, Refused> {
    let filters = read_filters(raw.as_deref())?;
    swarm.table().filter(&filters, None, Instant::now());
    Ok(written(&filters))
}

async fn remove_filters(State(swarm): Peer, RawQuery(raw): RawQuery) -> Result<Json<Value>, Refused> {
    let mut filters = if arguments(raw.as_deref(), "address")? == ["all"] {
        swarm.table().filters(Instant::now())
    } else {
        read_filters(raw.as_deref())?
    };
    let mut table = swarm.table();
    filters.retain(|filter| table.unfilter(filter));
    Ok(written(&filters))
}

async fn put_block(State(swarm): Peer, headers: HeaderMap, body: Bytes) -> Result<Response, Refused> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let wrong = || Refused(StatusCode::BAD_REQUEST, "file argument 'data' is required".into());
    let parts = multipart::parts(kind, &body).filter(|parts| !parts.is_empty()).ok_or_else(wrong)?;
    let mut lines = Vec::new();
    for part in parts {
        if part.len() > BLOCK_MAX {
            return Err(failed(format!("produced block is over {BLOCK_MAX} bytes")));
        }
        let size = part.len();
        // A copy: the whole body would stay for the smallest part of it.
        let name = swarm.blocks().put(Bytes::copy_from_slice(&part));
        lines.push(format!("{}\n", json!({ "Key": name, "Size": size })));
    }
    Ok(([(header::CONTENT_TYPE, "application/json")], lines.concat()).into_response())
}

async fn found(swarm: &Swarm, raw: Option<&str>) -> Result<(String, Bytes), Refused> {
    let arguments = arguments(raw, "cid")?;
    let name = arguments[0].trim_start_matches("/ipfs/").to_owned();
    match swarm.fetch(&name).await {
        Some(block) => Ok((name, block)),
        None => Err(failed(format!("block was not found: ipld: could not find {name}"))),
    }
}

async fn get_block(State(swarm): Peer, RawQuery(raw): RawQuery) -> Result<Response, Refused> {
    let (_, block) = found(&swarm, raw.as_deref()).await?;
    Ok(([(header::CONTENT_TYPE, "application/vnd.ipld.raw")], block).into_response())
}

async fn stat_block(State(swarm): Peer, RawQuery(raw): RawQuery) -> Result<Json<Value>, Refused> {
    let (name, block) = found(&swarm, raw.as_deref()).await?;
    Ok(Json(json!({ "Key": name, "Size": block.len() })))
}

/// A partition, as the body of a request has it: a query would be too short for thousands of addresses.
#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "camelCase")]
enum Partition {
    Block { addresses: Vec<IpAddr>, milliseconds: u64 },
    Unblock { addresses: Vec<IpAddr> },
}

fn part(swarm: &Swarm, body: &[u8]) -> Result<(), Refused> {
    let wrong = |message: String| Refused(StatusCode::BAD_REQUEST, message);
    let hosts = |ips: Vec<IpAddr>| ips.into_iter().map(Filter::host).collect::<Vec<_>>();
    match serde_json::from_slice(body).map_err(|error| wrong(error.to_string()))? {
        Partition::Block { addresses, milliseconds } => {
            let lasts = Duration::from_millis(milliseconds);
            if lasts > DISTURBED_MAX {
                return Err(wrong(format!("milliseconds is more than {}", DISTURBED_MAX.as_millis())));
            }
            let now = Instant::now();
            swarm.table().filter(&hosts(addresses), Some(now + lasts), now);
        }
        Partition::Unblock { addresses } => {
            let mut table = swarm.table();
            for filter in hosts(addresses) {
                table.unfilter(&filter);
            }
        }
    }
    Ok(())
}

async fn disturb(State(swarm): Peer, RawQuery(raw): RawQuery, body: Bytes) -> Result<Json<Value>, Refused> {
    if !body.is_empty() {
        return part(&swarm, &body).map(|()| Json(json!({})));
    }
    let fields: BTreeMap<String, String> = query(raw.as_deref()).into_iter().collect();
    let wrong = |message: String| Refused(StatusCode::BAD_REQUEST, message);
    let time = |name: &str| {
        let given = fields.get(name).and_then(|given| given.parse().ok()).map(Duration::from_millis);
        let within = given.filter(|given| *given <= DISTURBED_MAX);
        within.ok_or_else(|| wrong(format!("{name} is not a number from 0 to {}", DISTURBED_MAX.as_millis())))
    };
    match fields.get("action").map(String::as_str) {
        Some("pause") => swarm.gate.pause(time("milliseconds")?),
        Some("latency") => swarm.gate.delay(time("lateMilliseconds")?, time("milliseconds")?),
        _ => return Err(wrong("action is neither `pause` nor `latency`".into())),
    }
    Ok(Json(json!({})))
}

async fn metrics(State(swarm): Peer) -> Result<Response, Refused> {
    let mut registry = Registry::with_prefix("mainstay_peer");
    let (connections, blocks) = (swarm.table().links().count(), swarm.blocks().count());
    for (name, help, count) in [
        ("connections", "Peers that it is connected to", connections),
        ("blocks", "Blocks that it keeps", blocks),
    ] {
        let gauge: Gauge = Gauge::default();
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        registry.register(name, help, gauge);
    }
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| failed(error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
