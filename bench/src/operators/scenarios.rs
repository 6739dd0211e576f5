//! What both contenders go through: a cold start with all shops waiting, a resync, a change of one field in a hundredth of
//! the shops, and a restart with nothing to do.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, CustomResourceExt as _};
use serde_json::json;

use super::contender::{Contender, Which, client};
use super::progress::{PATIENCE, Progress};
use super::shop::{Shop, shop, shop_name};
use super::tally::{Counts, Tally};
use crate::objects::NAMESPACE;
use crate::process;

/// A contender that does nothing for so long has come to rest.
const QUIET: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Of so many shops one is changed.
pub(crate) const CHANGED_OF: usize = 100;
const CLIENTS: usize = 16;

/// What one scenario took.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scenario {
    /// Until all shops had the status of their generation, where that was still to come.
    pub converged_seconds: f64,
    pub writes_until_converged: u64,
    /// Until the contender came to rest.
    pub quiet_seconds: f64,
    pub counts: Counts,
    pub cpu_seconds: f64,
    pub server_cpu_seconds: f64,
    /// Since the process began.
    pub peak_bytes: u64,
    pub resident_bytes: u64,
}

/// All scenarios of one contender.
pub(crate) struct Run {
    pub cold: Scenario,
    pub resync: Scenario,
    pub change: Scenario,
    pub restart: Scenario,
}

/// A cluster with shops in it.
pub(crate) struct Stage<'a> {
    pub kubeconfig: &'a Path,
    /// The processes that are the API server.
    pub servers: Vec<u32>,
    pub shops: usize,
}

impl Stage<'_> {
    /// Lets a contender go through everything, on a cluster that has never seen a shop.
    pub(crate) async fn run(&self, which: Which) -> Result<Run> {
        let client = client(self.kubeconfig, &Tally::new()).await?;
        self.set_up(&client).await?;
        let shops = Api::<Shop>::namespaced(client, NAMESPACE);
        let progress = Progress::watch(shops.clone());
        progress.seen(self.shops).await?;
        let mut contender = Contender::start(which, self.kubeconfig, self.shops)?;
        let cold = Measured::begin(self, &mut contender).await?.converge(&progress, self.shops).await?;
        let resync = Measured::begin(self, &mut contender).await?;
        resync.contender.resync().await?;
        let resync = resync.rest(self.shops).await?;
        let change = Measured::begin(self, &mut contender).await?;
        let changed = self.change(&shops, &progress).await?;
        let change = change.converge(&progress, changed).await?;
        contender.stop().await?;
        let mut contender = Contender::start(which, self.kubeconfig, self.shops)?;
        let restart = Measured::begin(self, &mut contender).await?.rest(self.shops).await?;
        Ok(Run { cold, resync, change, restart })
    }

    async fn set_up(&self, client: &kube::Client) -> Result<()> {
        make_namespace(client).await?;
        let create = PostParams::default();
        Api::<CustomResourceDefinition>::all(client.clone()).create(&create, &Shop::crd()).await?;
        let shops = Api::<Shop>::namespaced(client.clone(), NAMESPACE);
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = shops.list(&ListParams::default().limit(1)).await {
            ensure!(Instant::now() < deadline, "shops are not served: {error}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let create = &create;
        let creating = stream::iter((0..self.shops).map(|number| {
            let shops = shops.clone();
            async move { shops.create(create, &shop(number)).await }
        }));
        creating.buffer_unordered(CLIENTS).try_for_each(|_| std::future::ready(Ok(()))).await?;
        Ok(())
    }

    /// Changes one field of a hundredth of the shops. Returns of how many.
    async fn change(&self, shops: &Api<Shop>, progress: &Progress) -> Result<usize> {
        let numbers: Vec<usize> = (0..self.shops).step_by(CHANGED_OF).collect();
        let patch = &Patch::Merge(json!({"spec": {"replicas": 4}}));
        let changing = stream::iter(numbers.iter().map(async |number| {
            progress.note(&shops.patch(&shop_name(*number), &PatchParams::default(), patch).await?);
            anyhow::Ok(())
        }));
        changing.buffer_unordered(CLIENTS).try_for_each(|()| std::future::ready(Ok(()))).await?;
        Ok(numbers.len())
    }

    fn server_cpu_seconds(&self) -> Result<f64> {
        self.servers.iter().map(|pid| process::cpu_seconds(*pid)).sum()
    }
}

/// Makes the namespace that everything happens in.
pub(crate) async fn make_namespace(client: &kube::Client) -> Result<()> {
    let metadata = ObjectMeta { name: Some(NAMESPACE.into()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    Ok(())
}

/// A scenario that has begun.
struct Measured<'a> {
    stage: &'a Stage<'a>,
    contender: &'a mut Contender,
    started: Instant,
    before: Counts,
    cpu_seconds: f64,
    server_cpu_seconds: f64,
}

impl<'a> Measured<'a> {
    async fn begin(stage: &'a Stage<'a>, contender: &'a mut Contender) -> Result<Self> {
        // A process that has just begun is charged with all that it ever did.
        let (started, before, cpu_seconds) = match contender.fresh_since() {
            Some(started) => (started, Counts::default(), 0.0),
            None => (Instant::now(), contender.counts().await?, process::cpu_seconds(contender.pid()?)?),
        };
        let server_cpu_seconds = stage.server_cpu_seconds()?;
        Ok(Self { stage, contender, started, before, cpu_seconds, server_cpu_seconds })
    }

    /// Waits until all shops have the status of their generation, and then for rest.
    async fn converge(self, progress: &Progress, syncs: usize) -> Result<Scenario> {
        progress.settled().await?;
        let converged_seconds = self.started.elapsed().as_secs_f64();
        let writes = self.contender.counts().await?.writes() - self.before.writes();
        Ok(Scenario { converged_seconds, writes_until_converged: writes, ..self.rest(syncs).await? })
    }

    /// Waits until at least so many syncs have run and nothing happens any more.
    async fn rest(self, syncs: usize) -> Result<Scenario> {
        let deadline = Instant::now() + PATIENCE;
        let wanted = self.before.syncs + u64::try_from(syncs)?;
        let counts = loop {
            let counts = self.contender.counts().await?;
            if counts.syncs >= wanted && Duration::from_millis(counts.idle_ms) >= QUIET {
                break counts;
            }
            ensure!(Instant::now() < deadline, "the operator does not come to rest");
            tokio::time::sleep(LOOK_EVERY).await;
        };
        let rested = self.started.elapsed().checked_sub(Duration::from_millis(counts.idle_ms));
        let pid = self.contender.pid()?;
        let counts = counts.since(&self.before);
        if counts.failures > 0 {
            eprintln!("  {} requests failed", counts.failures);
        }
        Ok(Scenario {
            quiet_seconds: rested.context("rest before the beginning")?.as_secs_f64(),
            counts,
            cpu_seconds: process::cpu_seconds(pid)? - self.cpu_seconds,
            server_cpu_seconds: self.stage.server_cpu_seconds()? - self.server_cpu_seconds,
            peak_bytes: process::resident_peak(pid)?,
            resident_bytes: process::resident(pid)?,
            ..Scenario::default()
        })
    }
}
