//! The whole pipeline of each kind of write, in process on one thread: for work on the hot path.

use crate::caller::Caller;
use crate::measure::as_f64;
use crate::objects::{config_map, definition, pod, shop};
use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::Method;
use mainstay_apiserver::ApiServer;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const EACH_FOR: Duration = Duration::from_millis(400);

/// A kind with all that is needed to write its objects.
struct Subject {
    name: &'static str,
    path: &'static str,
    object: fn(&str) -> Value,
    /// Where a write changes the object.
    field: &'static [&'static str],
}

const SUBJECTS: &[Subject] = &[
    Subject {
        name: "ConfigMap",
        path: "/api/v1/namespaces/bench/configmaps",
        object: config_map,
        field: &["data", "log.level"],
    },
    Subject {
        name: "Pod",
        path: "/api/v1/namespaces/bench/pods",
        object: pod,
        field: &["metadata", "labels", "tier"],
    },
    Subject {
        name: "custom with CEL",
        path: "/apis/bench.example.com/v1/namespaces/bench/shops",
        object: shop,
        field: &["spec", "settings", "level"],
    },
];

/// Requests per second of one operation on one kind.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Rate {
    pub subject: String,
    pub operation: String,
    pub per_second: f64,
}

/// Runs everything whose `kind/operation` contains `filter`, each for `each` or so many times.
pub(crate) async fn run(filter: &str, times: Option<u64>) -> Result<Vec<Rate>> {
    let server = ApiServer::builder().build()?;
    let mut caller = Caller::InProcess(server);
    crate::measure::make_namespace(&crate::caller::Target::InProcess(match &caller {
        Caller::InProcess(server) => server.clone(),
        Caller::Wire { .. } => bail!("not in process"),
    }))
    .await?;
    caller.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition().to_string()).await?;
    wait_until(&mut caller, SUBJECTS[2].path).await?;
    wait_until(&mut caller, "/api/v1/namespaces/bench/serviceaccounts/default").await?;
    let mut rates = Vec::new();
    for subject in SUBJECTS {
        for operation in ["create", "get", "update", "merge patch", "apply", "apply unchanged"] {
            if !format!("{}/{operation}", subject.name).contains(filter) {
                continue;
            }
            let per_second = rate(&mut caller, subject, operation, times).await?;
            rates.push(Rate { subject: subject.name.into(), operation: operation.into(), per_second });
        }
    }
    Ok(rates)
}

async fn wait_until(caller: &mut Caller, path: &str) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(5);
    while let Err(error) = caller.get(path).await {
        if Instant::now() > deadline {
            return Err(error);
        }
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn rate(caller: &mut Caller, subject: &Subject, operation: &str, times: Option<u64>) -> Result<f64> {
    let prefix = operation.replace(' ', "-");
    let path = format!("{}/{prefix}", subject.path);
    let object = (subject.object)(&prefix);
    // As a client that reads, changes and replaces has it.
    let mut read = Value::Null;
    if operation != "create" {
        let path = format!("{path}?fieldManager=bench");
        read = serde_json::from_slice(
            &caller.send(Method::PATCH, &path, APPLY, object.to_string().into()).await?,
        )?;
    }
    let started = Instant::now();
    let mut done = 0;
    while times.map_or_else(|| started.elapsed() < EACH_FOR, |times| done < times) {
        let value = format!("v{}", done % 1000);
        match operation {
            "create" => {
                let mut object = object.clone();
                object["metadata"]["name"] = format!("create-{done:07}").into();
                caller.post(subject.path, object.to_string()).await?;
            }
            "get" => drop(caller.get(&path).await?),
            "update" => {
                set(&mut read, subject.field, &value);
                let written =
                    caller.send(Method::PUT, &path, "application/json", read.to_string().into()).await?;
                read["metadata"]["resourceVersion"] = revision(&written)?.into();
            }
            "merge patch" => {
                let patch = subject.field.iter().rev().fold(json!(value), |inner, key| json!({*key: inner}));
                let patch: Bytes = patch.to_string().into();
                caller.send(Method::PATCH, &path, "application/merge-patch+json", patch).await?;
            }
            _ => {
                let changed =
                    if operation == "apply" { with(&object, subject.field, &value) } else { object.clone() };
                let path = format!("{path}?fieldManager=bench");
                caller.send(Method::PATCH, &path, APPLY, changed.to_string().into()).await?;
            }
        }
        done += 1;
        // Lets the controllers have their turn, as they would with more threads.
        if done % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    Ok(as_f64(done) / started.elapsed().as_secs_f64())
}

const APPLY: &str = "application/apply-patch+yaml";

/// An object with one field changed.
fn with(object: &Value, field: &[&str], value: &str) -> Value {
    let mut changed = object.clone();
    set(&mut changed, field, value);
    changed
}

fn set(object: &mut Value, field: &[&str], value: &str) {
    let mut at = object;
    for key in field {
        at = &mut at[*key];
    }
    *at = value.into();
}

/// The revision of an object, found without reading all of it.
fn revision(object: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(object)?;
    let (_, revision) = text.split_once("\"resourceVersion\":\"").context("an object without a revision")?;
    Ok(revision.split('"').next().unwrap_or_default().to_owned())
}
