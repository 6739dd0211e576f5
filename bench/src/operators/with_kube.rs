//! The same operator with kube's `Controller`, as its documentation and examples have it: everything is applied in
//! every reconcile.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _, ResourceExt as _};
use kube_runtime::controller::{Action, Controller};
use kube_runtime::watcher;
use serde_json::json;
use tokio::sync::mpsc;

use super::shop::{Shop, ShopStatus, children};
use super::tally::Tally;

struct Context {
    client: kube::Client,
    tally: Arc<Tally>,
}

/// Runs until the process ends. Every message reconciles all shops once more.
pub(crate) async fn run(client: kube::Client, tally: Arc<Tally>, resync: mpsc::Receiver<()>) -> Result<()> {
    let resync = stream::unfold(resync, async |mut resync| Some((resync.recv().await?, resync)));
    let config = watcher::Config::default;
    let context = Arc::new(Context { client: client.clone(), tally });
    Controller::new(Api::<Shop>::all(client.clone()), config())
        .owns(Api::<ConfigMap>::all(client.clone()), config())
        .owns(Api::<Service>::all(client.clone()), config())
        .owns(Api::<Deployment>::all(client), config())
        .reconcile_all_on(resync.boxed())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(5)), context)
        .for_each(|_| std::future::ready(()))
        .await;
    Ok(())
}

async fn reconcile(shop: Arc<Shop>, context: Arc<Context>) -> Result<Action, kube::Error> {
    context.tally.sync();
    let (name, namespace) = (shop.name_any(), shop.namespace().unwrap_or_default());
    let apply = PatchParams::apply("with-kube").force();
    let wanted = children(&shop, shop.controller_owner_ref(&()).as_ref());
    let client = || context.client.clone();
    let config_maps = Api::<ConfigMap>::namespaced(client(), &namespace);
    config_maps.patch(&name, &apply, &Patch::Apply(&wanted.config_map)).await?;
    let services = Api::<Service>::namespaced(client(), &namespace);
    services.patch(&name, &apply, &Patch::Apply(&wanted.service)).await?;
    let deployments = Api::<Deployment>::namespaced(client(), &namespace);
    deployments.patch(&name, &apply, &Patch::Apply(&wanted.deployment)).await?;
    let status = ShopStatus { observed_generation: shop.meta().generation, children: 3 };
    let shops = Api::<Shop>::namespaced(client(), &namespace);
    let status = json!({"status": status});
    shops.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(Action::await_change())
}
