//! How work grows with its size: the same thing at 1×, 4× and 16×, in one process and one run. Linear work takes sixteen times as
//! long at 16×; quadratic work 256 times.

use crate::caller::Caller;
use crate::child;
use crate::measure::as_f64;
use crate::process::cpu_seconds;
use crate::report::{number, render_lines};
use crate::table::Peak;
use anyhow::{Result, ensure};
use bytes::Bytes;
use http::Method;
use mainstay_apiserver::ApiServer;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// 16× takes at most so many times as long as 1×: twice what is linear, for caches and allocators.
const AIM: f64 = 32.0;
const WAIT_MAX: Duration = Duration::from_mins(10);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const VERSIONS: usize = 20;
const IDLE_CRDS: usize = 208;

/// One thing that is measured.
#[derive(Clone, Copy)]
enum Work {
    OwnerReferences,
    Dependents,
    Definitions,
    Namespace,
}

const ALL: [(Work, &str, usize); 4] = [
    // 16× is about what fits into one object.
    (Work::OwnerReferences, "owner references of one object, until all but one are dropped, ms", 1000),
    (Work::Dependents, "dependents of one owner, until all are deleted in the foreground, ms", 250),
    (Work::Definitions, "CRDs of 20 versions, until all are served, ms", 13),
    (Work::Namespace, "objects of a namespace, until it is gone, ms", 500),
];

/// The rows of a table at 1×.
const ROWS: usize = 6250;
/// A table is sent as it is written, so its memory does not grow with its rows.
const TABLE_AIM_MIB: f64 = 16.0;
const MIB: f64 = 1024.0 * 1024.0;

/// Measures and prints all.
pub(crate) async fn measure() -> Result<()> {
    let header = ["", "1× is", "1×", "4×", "16×", "16× over 1×", "holds"].map(str::to_owned);
    let mut lines = vec![header];
    for (work, what, size) in ALL {
        let mut took = Vec::new();
        for times in [1, 4, 16] {
            took.push(run(work, size * times).await?.as_secs_f64() * 1e3);
        }
        let ratio = took[2] / took[0].max(1e-9);
        lines.push([
            what.to_owned(),
            size.to_string(),
            number(took[0]),
            number(took[1]),
            number(took[2]),
            format!("{} (aim ≤ {AIM})", number(ratio)),
            if ratio <= AIM { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    lines.push(table().await?);
    print!("{}", render_lines(&lines));
    println!("\nidle with {} CRDs: {} of a core", IDLE_CRDS, number(idle(IDLE_CRDS).await?));
    Ok(())
}

/// The memory that a table takes while it is sent, each in a process of its own.
async fn table() -> Result<[String; 7]> {
    let mut more = Vec::new();
    for times in [1, 4, 16] {
        let peak: Peak = child::ask(&["table", &(ROWS * times).to_string()]).await?;
        more.push(as_f64(peak.more_bytes) / MIB);
    }
    Ok([
        "pods in a table, peak memory while it is sent, MiB more".to_owned(),
        ROWS.to_string(),
        number(more[0]),
        number(more[1]),
        number(more[2]),
        format!("(aim ≤ {TABLE_AIM_MIB} MiB)"),
        if more[2] <= TABLE_AIM_MIB { "yes" } else { "NO" }.to_owned(),
    ])
}

async fn run(work: Work, size: usize) -> Result<Duration> {
    let mut caller = Caller::InProcess(ApiServer::builder().build()?);
    caller.get(MAPS).await?;
    match work {
        Work::OwnerReferences => owner_references(&mut caller, size).await,
        Work::Dependents => dependents(&mut caller, size).await,
        Work::Definitions => definitions(&mut caller, size).await,
        Work::Namespace => namespace(&mut caller, size).await,
    }
}

fn map(name: &str, owners: &[Value]) -> String {
    let metadata = json!({"name": name, "ownerReferences": owners});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).to_string()
}

fn owner(name: &str, uid: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true})
}

/// Makes an owner; gives its uid.
async fn make_owner(caller: &mut Caller) -> Result<Value> {
    let made: Value = serde_json::from_slice(&caller.post(MAPS, map("owner", &[])).await?)?;
    Ok(made["metadata"]["uid"].clone())
}

async fn owner_references(caller: &mut Caller, size: usize) -> Result<Duration> {
    let uid = make_owner(caller).await?;
    // As short as they can be.
    let missing = |index: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": format!("{index:x}")});
    let mut owners: Vec<Value> = (1..size).map(missing).collect();
    owners.push(owner("owner", &uid));
    let begin = Instant::now();
    caller.post(MAPS, map("child", &owners)).await?;
    wait(begin, async || {
        let child: Value = serde_json::from_slice(&caller.get(&format!("{MAPS}/child")).await?)?;
        Ok(child["metadata"]["ownerReferences"].as_array().is_some_and(|owners| owners.len() == 1))
    })
    .await
}

async fn dependents(caller: &mut Caller, size: usize) -> Result<Duration> {
    let uid = make_owner(caller).await?;
    for index in 0..size {
        caller.post(MAPS, map(&format!("child-{index}"), &[owner("owner", &uid)])).await?;
    }
    let begin = Instant::now();
    let path = format!("{MAPS}/owner?propagationPolicy=Foreground");
    caller.send(Method::DELETE, &path, "application/json", Bytes::new()).await?;
    wait(begin, async || Ok(caller.get(&format!("{MAPS}/owner")).await.is_err())).await
}

fn definition(number: usize) -> Value {
    let field = json!({"type": "string", "maxLength": 100, "pattern": "^[a-z]+$"});
    let fields: serde_json::Map<String, Value> =
        (0..20).map(|index| (format!("field{index}"), field.clone())).collect();
    let versions: Vec<Value> = (1..=VERSIONS)
        .map(|version| {
            json!({
                "name": format!("v{version}"), "served": true, "storage": version == 1,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": fields},
                }}},
            })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things{number}.bench.example.com")},
        "spec": {
            "group": "bench.example.com", "scope": "Namespaced", "versions": versions,
            "names": {"plural": format!("things{number}"), "kind": format!("Thing{number}")},
        },
    })
}

async fn definitions(caller: &mut Caller, size: usize) -> Result<Duration> {
    let begin = Instant::now();
    for number in 0..size {
        caller.post(DEFINITIONS, definition(number).to_string()).await?;
    }
    for number in 0..size {
        let path = format!("/apis/bench.example.com/v20/namespaces/default/things{number}");
        wait(begin, async || Ok(caller.get(&path).await.is_ok())).await?;
    }
    Ok(begin.elapsed())
}

async fn namespace(caller: &mut Caller, size: usize) -> Result<Duration> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "full"}});
    caller.post("/api/v1/namespaces", namespace.to_string()).await?;
    for index in 0..size {
        caller.post("/api/v1/namespaces/full/configmaps", map(&format!("m{index}"), &[])).await?;
    }
    let begin = Instant::now();
    caller.send(Method::DELETE, "/api/v1/namespaces/full", "application/json", Bytes::new()).await?;
    wait(begin, async || Ok(caller.get("/api/v1/namespaces/full").await.is_err())).await
}

/// The part of a core that a server takes which has CRDs and nothing to do.
async fn idle(size: usize) -> Result<f64> {
    const OBSERVED: Duration = Duration::from_secs(3);
    let mut caller = Caller::InProcess(ApiServer::builder().build()?);
    definitions(&mut caller, size).await?;
    let before = cpu_seconds(std::process::id())?;
    tokio::time::sleep(OBSERVED).await;
    Ok((cpu_seconds(std::process::id())? - before) / as_f64(OBSERVED.as_secs()))
}

/// Asks until it is so; gives the time since `begin`.
async fn wait(begin: Instant, mut is_so: impl AsyncFnMut() -> Result<bool>) -> Result<Duration> {
    while !is_so().await? {
        ensure!(begin.elapsed() < WAIT_MAX, "it did not end");
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    Ok(begin.elapsed())
}
