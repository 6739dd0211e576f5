//! How much memory a server takes for a moment when it is asked for a Table of many pods.

use crate::caller::Caller;
use crate::process::{forget_peak, resident, resident_peak};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use mainstay_apiserver::ApiServer;
use serde::{Deserialize, Serialize};
use serde_json::json;

const PODS: &str = "/api/v1/namespaces/default/pods";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

#[derive(Serialize, Deserialize)]
pub(crate) struct Peak {
    /// The most memory that was resident meanwhile, over what was before.
    pub more_bytes: u64,
    /// The size of the table.
    pub table_bytes: u64,
}

/// Creates this number of pods in this process and reads them as a table, piece by piece, as a client that prints them does.
pub(crate) async fn measure(rows: usize) -> Result<Peak> {
    let server = ApiServer::builder().build()?;
    let mut caller = Caller::InProcess(server.clone());
    for row in 0..rows {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("pod-{row}"), "labels": {"app": "many", "number": row.to_string()}},
            "spec": {"containers": [{"name": "main", "image": "web:1"}]},
        });
        caller.post(PODS, pod.to_string()).await?;
    }
    // What is made once per process is not the rows'.
    read(&server, "?limit=10").await?;
    forget_peak()?;
    let before = resident(std::process::id())?;
    let table_bytes = read(&server, "").await?;
    let more_bytes = resident_peak(std::process::id())?.saturating_sub(before);
    Ok(Peak { more_bytes, table_bytes })
}

/// Reads a table and keeps nothing of it; gives its size.
async fn read(server: &ApiServer, query: &str) -> Result<u64> {
    let request = Request::get(format!("{PODS}{query}")).header(header::ACCEPT, TABLE);
    let response = server.handle(request.body(Full::<Bytes>::default())?).await;
    ensure!(response.status().is_success(), "{}", response.status());
    let mut body = response.into_body();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let data = frame?.into_data().ok().context("a frame without data")?;
        size += u64::try_from(data.len())?;
    }
    Ok(size)
}
