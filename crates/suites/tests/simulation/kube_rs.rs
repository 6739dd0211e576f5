//! An operator as users of kube-rs write one: `Controller`, server-side apply of two children, the finalizer helper, and
//! a look at everything again every few minutes. Nothing of it knows that it is simulated.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource as _, ResourceExt as _};
use kube_runtime::controller::{Action, Controller};
use kube_runtime::finalizer::{Error as FinalizerError, Event, finalizer};
use kube_runtime::watcher;
use mainstay::Kind;
use mainstay_testkit::simulation::{
    Check, External, ExternalError, Family, Program, Script, Violation, check, program,
};
use serde_json::{Value, json};

const FINALIZER: &str = "example.dev/bucket";

struct Context {
    client: Client,
    /// None: it has nothing outside of the cluster.
    buckets: Option<External>,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the cluster: {0}")]
    Cluster(#[from] kube::Error),
    #[error("the bucket: {0}")]
    Bucket(#[from] ExternalError),
}

/// A Secret and a service account for each config map with a label, and perhaps a bucket outside of the cluster.
fn tenants(have_buckets: bool) -> Program {
    program("tenants", move |seat| async move {
        let client = seat.client();
        let parents: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let secrets: Api<Secret> = Api::default_namespaced(client.clone());
        let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
        let labelled = watcher::Config::default().labels("example.dev/tenant");
        let again = |_: Arc<ConfigMap>, _: &FinalizerError<Failure>, _: Arc<Context>| {
            Action::requeue(Duration::from_secs(5))
        };
        Controller::new(parents, labelled)
            .owns(secrets, watcher::Config::default())
            .owns(accounts, watcher::Config::default())
            .run(
                reconcile,
                again,
                Arc::new(Context { client, buckets: have_buckets.then(|| seat.external()) }),
            )
            .for_each(async |_| ())
            .await;
    })
}

async fn reconcile(parent: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, FinalizerError<Failure>> {
    let parents: Api<ConfigMap> = Api::default_namespaced(context.client.clone());
    finalizer(&parents, FINALIZER, parent, async |event| match event {
        Event::Apply(parent) => apply(&parent, &context).await,
        Event::Cleanup(parent) => {
            if let Some(buckets) = &context.buckets {
                buckets.remove(&parent.name_any()).await?;
            }
            Ok(Action::await_change())
        }
    })
    .await
}

async fn apply(parent: &ConfigMap, context: &Context) -> Result<Action, Failure> {
    let name = parent.name_any();
    let size = parent.data.as_ref().and_then(|data| data.get("size")).cloned().unwrap_or_default();
    if let Some(buckets) = &context.buckets {
        buckets.put(&name, json!({"size": size})).await?;
    }
    let metadata = json!({"name": name, "ownerReferences": [parent.controller_owner_ref(&())]});
    let params = PatchParams::apply("tenants").force();
    let secrets: Api<Secret> = Api::default_namespaced(context.client.clone());
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"size": size}});
    secrets.patch(&name, &params, &Patch::Apply(secret)).await?;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(context.client.clone());
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    accounts.patch(&name, &params, &Patch::Apply(account)).await?;
    Ok(Action::requeue(Duration::from_mins(5)))
}

fn tenant(name: &str) -> Value {
    let metadata = json!({"name": name, "labels": {"example.dev/tenant": "yes"}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"size": "small"}})
}

fn moves_to_a_large_one() -> Script {
    Script::new().create(tenant("ant")).patch(
        &Kind::of::<ConfigMap>(),
        "ant",
        json!({"data": {"size": "large"}}),
    )
}

fn moves_and_leaves(have_buckets: bool) -> Check {
    let script = moves_to_a_large_one().delete(&Kind::of::<ConfigMap>(), "ant");
    check(tenants(have_buckets)).script(script)
}

#[test]
fn controller_that_is_alone_passes_everything() {
    let faults = Family::ALL.into_iter().filter(|family| *family != Family::TwoLeaders);
    faults.fold(moves_and_leaves(true), Check::every).seeds(10).run();
}

#[test]
fn two_controllers_of_objects_that_have_owners_pass() {
    moves_and_leaves(false).every_second_leader().run();
}

/// Kube has no leases. An instance that was stalled knows nothing of what another has done since, and what is outside of the
/// cluster has no owner that would take it along.
#[test]
fn bucket_that_a_stalled_instance_makes_again_is_caught() {
    let report = moves_and_leaves(true).every_second_leader().report();
    let found = report.failures.first().unwrap_or_else(|| panic!("{report}"));
    let left = |violation: &Violation| {
        matches!(violation, Violation::EndState { differences }
        if differences == &["external ant: should not exist"])
    };
    assert!(found.violations.iter().any(left), "{}", found.story);
    assert!(found.story.contains("tenants#2      external ant: removed"), "{}", found.story);
}

#[test]
fn writing_again_what_is_there_is_no_change() {
    // The further pass finds a bucket and two children, and writes all three of them as they are.
    check(tenants(true)).script(moves_to_a_large_one()).every_crash_point().run();
}

/// Three at once are reconciled at the same time, and kube keeps what is under way in a `HashMap`.
fn three_tenants() -> Check {
    let names = ["ant", "bee", "cat"];
    let script = names.iter().fold(Script::new(), |script, name| script.create(tenant(name)).at_once());
    let script = script.wait(Duration::from_secs(1));
    let delete = |script: Script, name: &&str| script.delete(&Kind::of::<ConfigMap>(), name).at_once();
    check(tenants(true)).script(names.iter().fold(script, delete))
}

#[test]
fn three_at_once_survive_every_crash() {
    three_tenants().every_crash_point().seeds(10).run();
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let expired = "expire at event 2, answer 503 to read 4";
    for (seed, faults) in [(0, "nothing"), (0, expired), (7, "crash after write 9"), (8, expired)] {
        let check = three_tenants().replay(seed, faults);
        let first = check.trace().to_string();
        assert!(first.contains("secrets default/cat: created"), "{first}");
        for _ in 1..5 {
            let again = check.trace().to_string();
            let other = again.lines().zip(first.lines()).find(|(again, first)| again != first);
            assert!(again == first, "seed {seed}, {faults}: {other:#?}");
        }
    }
    let of_seed = |seed| three_tenants().replay(seed, "nothing").trace();
    assert!(of_seed(1) != of_seed(2), "the seed makes no difference");
}
