//! The measurements that both servers go through.

use crate::caller::{Address, Target};
use crate::objects::{NAMESPACE, config_map};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CONFIG_MAPS: &str = "/api/v1/namespaces/bench/configmaps";
/// How long each rate is measured.
const RATE_FOR: Duration = Duration::from_secs(3);
/// So many objects are listed.
pub(crate) const LISTED: u64 = 10_000;
const PAGE: u64 = 500;
const LISTS: usize = 5;
pub(crate) const WATCHERS: u64 = 100;
/// The writer stops after so many events, well within what a watch may be behind.
const FAN_OUT_EVENTS_MAX: u64 = 2_000;
const PACED_EVENTS: u64 = 150;
const PACE: Duration = Duration::from_millis(20);

/// Makes the namespace that everything happens in.
pub(crate) async fn make_namespace(target: &Target) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    target.caller().await?.post("/api/v1/namespaces", namespace.to_string()).await?;
    Ok(())
}

/// Names that are made once and never again.
fn next_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("config-{:08}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A `ConfigMap` as it is sent, made without making a tree of it each time.
fn body(name: &str) -> Bytes {
    static TEMPLATE: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| config_map("NAME").to_string());
    TEMPLATE.replacen("NAME", name, 1).into()
}

/// Creates per second by so many clients, each with one request at a time.
pub(crate) async fn create_rate(target: &Target, clients: usize) -> Result<f64> {
    let started = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..clients {
        tasks.push(tokio::spawn(create_until(target.clone(), started + RATE_FOR)));
    }
    let mut created = 0;
    for task in tasks {
        created += task.await??;
    }
    Ok(as_f64(created) / started.elapsed().as_secs_f64())
}

async fn create_until(target: Target, end: Instant) -> Result<u64> {
    let mut caller = target.caller().await?;
    let mut created = 0;
    while Instant::now() < end {
        caller.post(CONFIG_MAPS, body(&next_name())).await?;
        created += 1;
    }
    Ok(created)
}

/// Fills the collection up to a number of objects.
pub(crate) async fn fill(target: &Target, wanted: u64) -> Result<()> {
    let first: Value =
        serde_json::from_slice(&target.caller().await?.get(&format!("{CONFIG_MAPS}?limit=1")).await?)?;
    let have = 1 + first["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    let missing = Arc::new(AtomicU64::new(wanted.saturating_sub(have)));
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let (target, missing) = (target.clone(), missing.clone());
        tasks.push(tokio::spawn(async move {
            let mut caller = target.caller().await?;
            while missing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                caller.post(CONFIG_MAPS, body(&next_name())).await?;
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// Deletes all of them.
pub(crate) async fn clear(target: &Target) -> Result<()> {
    let mut caller = target.caller().await?;
    caller.send(http::Method::DELETE, CONFIG_MAPS, "application/json", Bytes::new()).await?;
    Ok(())
}

/// Lists of 10,000 objects.
pub(crate) struct Lists {
    /// In one answer, in milliseconds.
    pub full_ms: f64,
    /// By pages, in milliseconds.
    pub paged_ms: f64,
}

/// Times lists of the first 10,000 objects there are, which is all of them.
pub(crate) async fn lists(target: &Target) -> Result<Lists> {
    let mut caller = target.caller().await?;
    let (mut full, mut paged) = (Vec::new(), Vec::new());
    for _ in 0..LISTS {
        let started = Instant::now();
        caller.get(CONFIG_MAPS).await?;
        full.push(started.elapsed());
        let started = Instant::now();
        let mut path = format!("{CONFIG_MAPS}?limit={PAGE}");
        let mut pages = 1;
        while let Some(token) = continue_token(&caller.get(&path).await?) {
            path = format!("{CONFIG_MAPS}?limit={PAGE}&continue={token}");
            pages += 1;
        }
        paged.push(started.elapsed());
        ensure!(pages >= LISTED / PAGE, "{pages} pages are too few");
    }
    Ok(Lists { full_ms: median_ms(full), paged_ms: median_ms(paged) })
}

/// The token of a page, found without reading the page: both servers write it near the beginning.
fn continue_token(page: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(page.get(..1000).unwrap_or(page)).into_owned();
    let (_, token) = head.split_once("\"continue\":\"")?;
    let (token, _) = token.split_once('"')?;
    (!token.is_empty()).then(|| token.replace('=', "%3D"))
}

/// What watchers see of one writer's writes.
pub(crate) struct FanOut {
    /// Events times watchers, per second, from the first write to the last delivery.
    pub deliveries_per_second: f64,
    /// From sending the write to having the event, at 50 writes per second.
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// One writer, a hundred watchers.
pub(crate) async fn fan_out(address: &Address) -> Result<FanOut> {
    let target = Target::Served(address.clone());
    let mut writer = target.caller().await?;
    let page: Value = serde_json::from_slice(&writer.get(&format!("{CONFIG_MAPS}?limit=1")).await?)?;
    let revision =
        page["metadata"]["resourceVersion"].as_str().context("a list without a revision")?.to_owned();
    let epoch = Instant::now();
    let seen: Arc<Vec<AtomicU64>> = Arc::new((0..WATCHERS).map(|_| AtomicU64::new(0)).collect());
    let mut watchers = Vec::new();
    for index in 0..WATCHERS {
        let mut caller = target.caller().await?;
        let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={revision}");
        let body = caller.watch(&path).await?;
        let seen = seen.clone();
        watchers.push(tokio::spawn(async move {
            let _open = caller;
            follow(body, epoch, &seen[usize::try_from(index).unwrap_or(0)]).await
        }));
    }
    let mut written = 0;
    let started = Instant::now();
    while started.elapsed() < RATE_FOR && written < FAN_OUT_EVENTS_MAX {
        writer.post(CONFIG_MAPS, stamped(epoch)).await?;
        written += 1;
    }
    wait_for(&seen, written).await?;
    let elapsed = started.elapsed().as_secs_f64();
    let mut ticks = tokio::time::interval(PACE);
    for _ in 0..PACED_EVENTS {
        ticks.tick().await;
        writer.post(CONFIG_MAPS, stamped(epoch)).await?;
    }
    wait_for(&seen, written + PACED_EVENTS).await?;
    let mut delays = Vec::new();
    for watcher in watchers {
        watcher.abort();
        if let Ok(result) = watcher.await {
            result?;
        }
    }
    for delay in DELAYS.lock().map_err(|_| anyhow::anyhow!("a watcher panicked"))?.drain(..) {
        if delay.0 >= written {
            delays.push(delay.1);
        }
    }
    delays.sort_unstable();
    let at = |percent: usize| delays.get(delays.len() * percent / 100).copied().unwrap_or_default();
    Ok(FanOut {
        deliveries_per_second: as_f64(written * WATCHERS) / elapsed,
        p50_ms: at(50).as_secs_f64() * 1e3,
        p99_ms: at(99).as_secs_f64() * 1e3,
    })
}

/// Which event a watcher saw after how long. All watchers' in one place: they are ended from outside.
static DELAYS: std::sync::Mutex<Vec<(u64, Duration)>> = std::sync::Mutex::new(Vec::new());

const SENT: &str = "\"sent\":\"";

fn stamped(epoch: Instant) -> Bytes {
    let mut object = config_map(&next_name());
    object["data"]["sent"] = epoch.elapsed().as_nanos().to_string().into();
    object.to_string().into()
}

/// Counts the events of a watch and notes how late each is.
async fn follow(mut body: Incoming, epoch: Instant, seen: &AtomicU64) -> Result<()> {
    let mut rest: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let now = epoch.elapsed();
        rest.extend_from_slice(&data);
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { continue };
        let whole = String::from_utf8_lossy(&rest[..end]).into_owned();
        for line in whole.lines() {
            let (_, sent) = line.split_once(SENT).with_context(|| format!("unexpected event {line}"))?;
            let sent: u64 = sent.split('"').next().unwrap_or_default().parse()?;
            let delay = now.saturating_sub(Duration::from_nanos(sent));
            let index = seen.fetch_add(1, Ordering::Relaxed);
            DELAYS.lock().map_err(|_| anyhow::anyhow!("a watcher panicked"))?.push((index, delay));
        }
        rest.drain(..=end);
    }
    anyhow::bail!("a watch ended")
}

async fn wait_for(seen: &[AtomicU64], events: u64) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while seen.iter().any(|seen| seen.load(Ordering::Relaxed) < events) {
        ensure!(Instant::now() < deadline, "not every watcher has seen all {events} events");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default().as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "counts of what happens in seconds")]
pub(crate) fn as_f64(count: u64) -> f64 {
    count as f64
}
