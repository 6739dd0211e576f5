//! The operator as an author of Mainstay writes it.

use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use mainstay::{Controller, Error, Key, Kind, Operator, SyncRequest, SyncResponse};
use serde_json::json;
use tokio::sync::mpsc;

use super::shop::{Shop, children, shop_name};
use super::tally::Tally;
use crate::objects::NAMESPACE;

/// Runs until the process ends. Every message syncs all shops once more.
pub(crate) async fn run(
    client: kube::Client,
    tally: Arc<Tally>,
    shops: usize,
    mut resync: mpsc::Receiver<()>,
) -> Result<()> {
    let controller =
        Controller::of::<Shop>().owns::<ConfigMap>().owns::<Service>().owns::<Deployment>().sync(
            move |request: &SyncRequest| {
                tally.sync();
                sync(request)
            },
        );
    let operator = Operator::builder("ours", client.clone()).controller(controller).build()?;
    let (resynced, kind) = (operator.clone(), Kind::of::<Shop>());
    tokio::spawn(async move {
        while resync.recv().await.is_some() {
            for number in 0..shops {
                resynced.reconcile_now(&kind, &Key::namespaced(NAMESPACE, &shop_name(number)));
            }
        }
    });
    operator.run(std::future::pending()).await?;
    Ok(())
}

fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let shop: Shop = request.parent()?;
    let wanted = children(&shop, None);
    SyncResponse::from_status(json!({"children": request.all_children().count()}))?
        .with_child(wanted.config_map)?
        .with_child(wanted.service)?
        .with_child(wanted.deployment)
}
