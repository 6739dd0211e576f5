//! What operators that are written by hand have in common: they are told when to look, look at everything, and look again
//! after an error. None of the bugs is here.

use std::fmt::Debug;
use std::time::Duration;

use futures::stream::{BoxStream, select_all};
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt as _};
use kube_runtime::WatchStreamExt as _;
use kube_runtime::reflector::{Store, reflector, store};
use kube_runtime::utils::Backoff;
use kube_runtime::watcher::{self, Event, watcher};
use mainstay_testkit::simulation::{ExternalError, Failure, Part, Program, Report, Violation, program};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// How long an operator waits after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// All but what every cluster has by itself.
const OURS: &str = "metadata.name!=kube-root-ca.crt,metadata.name!=kubernetes";

/// Rings when there may be something to do.
pub(super) type Bell = BoxStream<'static, ()>;

/// A kind of the default namespace, such as all of these operators use.
pub(super) trait Known:
    Resource<Scope = NamespaceResourceScope, DynamicType = ()>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Known for K where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// The same pause after each error, as randomness is the world's.
struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(PAUSE)
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}

/// The events of a kind, for ever.
pub(super) fn events<K: Known>(client: &Client, config: watcher::Config) -> BoxStream<'static, Event<K>> {
    let events = watcher(Api::default_namespaced(client.clone()), config.fields(OURS)).backoff(Steady);
    events.filter_map(async |event| event.ok()).boxed()
}

/// Rings when something of this kind has changed.
pub(super) fn changes<K: Known>(client: &Client) -> Bell {
    rings(events::<K>(client, watcher::Config::default()))
}

/// A cache of a kind, and what rings when it has changed.
pub(super) fn cache<K: Known>(client: &Client, config: watcher::Config) -> (Store<K>, Bell) {
    let (cache, writer) = store();
    let filled = reflector(writer, events::<K>(client, config).map(Ok::<_, watcher::Error>));
    (cache, rings(filled.filter_map(async |event| event.ok()).boxed()))
}

fn rings<K: Known>(events: BoxStream<'static, Event<K>>) -> Bell {
    let shows = |event: &Event<K>| matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_));
    events.filter(move |event| std::future::ready(shows(event))).map(|_| ()).boxed()
}

/// Rings now and then every so often.
pub(super) fn every(time: Duration) -> Bell {
    let later = futures::stream::unfold((), move |()| sleep(time).map(|()| Some(((), ()))));
    futures::stream::once(std::future::ready(())).chain(later).boxed()
}

/// When an operator looks at everything: first when each bell has rung, then whenever one does, and soon after an error.
pub(super) struct Due {
    bells: Vec<Bell>,
    started: bool,
    failed: bool,
}

impl Due {
    pub(super) fn on(bells: Vec<Bell>) -> Self {
        Self { bells, started: false, failed: false }
    }

    /// Waits until it is time.
    pub(super) async fn wait(&mut self) {
        let is_first = !std::mem::replace(&mut self.started, true);
        if is_first {
            for bell in &mut self.bells {
                bell.next().await;
            }
            return;
        }
        let mut any = select_all(&mut self.bells);
        if std::mem::take(&mut self.failed) {
            // Caches are filled only by who listens to their bells.
            let listening = async { while any.next().await.is_some() {} };
            let _ = timeout(PAUSE, listening).await;
            return;
        }
        any.next().await;
        while any.next().now_or_never().is_some() {}
    }

    /// What came of it.
    pub(super) fn done(&mut self, done: &kube::Result<()>) {
        self.failed |= done.is_err();
    }
}

/// After an error.
pub(super) async fn pause() {
    sleep(PAUSE).await;
}

/// All objects of a kind, as they are now.
pub(super) async fn list<K: Known>(client: &Client) -> kube::Result<Vec<K>> {
    let listed =
        Api::<K>::default_namespaced(client.clone()).list(&ListParams::default().fields(OURS)).await?;
    Ok(listed.items)
}

/// Creates an object; that it is there already is no error.
pub(super) async fn create<K: Known>(client: &Client, object: &K) -> kube::Result<()> {
    match Api::default_namespaced(client.clone()).create(&PostParams::default(), object).await {
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        other => other.map(drop),
    }
}

/// A program that makes a pass whenever parents or children have changed, and again if it failed.
pub(super) fn on_changes<Parent: Known, Child: Known, F>(
    name: &str,
    pass: impl Fn(Client) -> F + Clone + Send + Sync + 'static,
) -> Program
where
    F: Future<Output = kube::Result<()>> + Send,
{
    program(name, move |seat| {
        let pass = pass.clone();
        async move {
            let client = seat.client();
            let mut due = Due::on(vec![changes::<Parent>(&client), changes::<Child>(&client)]);
            loop {
                due.wait().await;
                due.done(&pass(client.clone()).await);
            }
        }
    })
}

/// Deletes an object; that it is gone already is no error.
pub(super) async fn delete<K: Known>(client: &Client, name: &str) -> kube::Result<()> {
    match Api::<K>::default_namespaced(client.clone()).delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}

/// Deletes an object, if it is still the one that was seen.
pub(super) async fn delete_seen<K: Known>(client: &Client, seen: &K) -> kube::Result<()> {
    let preconditions = Preconditions { uid: seen.uid(), resource_version: None };
    let options = DeleteParams::default().preconditions(preconditions);
    Api::<K>::default_namespaced(client.clone()).delete(&seen.name_any(), &options).await.map(drop)
}

/// Changes an object by a merge patch, if it is still the one that was seen.
pub(super) async fn patch<K: Known>(client: &Client, seen: &K, mut change: Value) -> kube::Result<()> {
    change["metadata"]["uid"] = json!(seen.uid());
    change["metadata"]["resourceVersion"] = json!(seen.resource_version());
    let api = Api::<K>::default_namespaced(client.clone());
    api.patch(&seen.name_any(), &PatchParams::default(), &Patch::Merge(change)).await.map(drop)
}

/// An object from its JSON.
pub(super) fn object<K: DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).expect("an object of its kind")
}

/// The ConfigMap that most of these operators serve, with this data.
pub(super) fn paint(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "paint"}, "data": data})
}

/// A claim under this name.
pub(super) fn claim<K: DeserializeOwned>(name: &str) -> K {
    object(json!({
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }))
}

/// What was found in a part of a check.
///
/// # Panics
/// If nothing was found there, or something in another part.
pub(super) fn found_in(report: &Report, part: Part) -> &Failure {
    match report.failures.as_slice() {
        [failure] if failure.part == part => failure,
        _ => panic!("not found in {part}: {report}"),
    }
}

/// In what the end state differs.
///
/// # Panics
/// If it does not.
pub(super) fn end_state(failure: &Failure) -> String {
    let differences = |violation: &Violation| match violation {
        Violation::EndState { differences } => Some(differences.join("\n")),
        _ => None,
    };
    failure.violations.iter().find_map(differences).unwrap_or_else(|| panic!("{}", failure.story))
}

/// What is outside of the cluster could not be reached: to be tried again, as a failed request is.
pub(super) fn unreachable_outside(error: ExternalError) -> kube::Error {
    kube::Error::Service(error.into())
}
