//! Hundreds of CRDs with many versions: they are served, cost nothing afterwards, and keep nobody from ending the command.

use crate::up::run::Run;
use crate::up::text;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, PostParams};
use mainstay_testkit::real::client_from;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const CRDS: usize = 200;
const VERSIONS: usize = 20;
const PATIENCE: Duration = Duration::from_mins(2);
/// Of one core, when there is nothing to do.
const IDLE_SHARE_MAX: f64 = 0.1;

fn definition(number: usize) -> CustomResourceDefinition {
    let field = json!({"type": "string", "maxLength": 100, "pattern": "^[a-z]+$"});
    let fields: serde_json::Map<String, Value> =
        (0..10).map(|index| (format!("field{index}"), field.clone())).collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    let version = |version: usize| {
        json!({
            "name": format!("v{version}"), "served": true, "storage": version == 1,
            "schema": {"openAPIV3Schema": schema},
        })
    };
    let versions: Vec<Value> = (1..=VERSIONS).map(version).collect();
    serde_json::from_value(json!({
        "metadata": {"name": format!("things{number}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": versions,
            "names": {"plural": format!("things{number}"), "kind": format!("Thing{number}")},
        },
    }))
    .unwrap()
}

async fn create_all(kubeconfig: &Path) -> Api<CustomResourceDefinition> {
    let crds: Api<CustomResourceDefinition> = Api::all(client_from(kubeconfig).await.unwrap());
    let (api, parameters) = (&crds, &PostParams::default());
    let creations = (0..CRDS).map(|number| async move { api.create(parameters, &definition(number)).await });
    let made = futures::stream::iter(creations).buffer_unordered(8).try_collect::<Vec<_>>().await;
    assert_eq!(made.unwrap().len(), CRDS);
    crds
}

/// The versions of all CRDs that are established.
async fn established(crds: &Api<CustomResourceDefinition>) -> Vec<String> {
    let list = crds.list(&ListParams::default()).await.unwrap();
    let is_established = |crd: &CustomResourceDefinition| {
        let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|c| c.type_ == "Established" && c.status == "True")
    };
    let ours = list.items.into_iter().filter(|crd| crd.spec.group == "example.com" && is_established(crd));
    ours.filter_map(|crd| crd.metadata.resource_version).collect()
}

/// The time that a process has had on processors, in hundredths of a second.
fn cpu_ticks(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The second field is the program's name in parentheses.
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum()
}

/// The part of a core that a process takes, over a few seconds.
async fn cpu_share(pid: u32) -> f64 {
    let (begin, before) = (Instant::now(), cpu_ticks(pid));
    tokio::time::sleep(Duration::from_secs(3)).await;
    (cpu_ticks(pid) - before) / (begin.elapsed().as_secs_f64() * 100.0)
}

#[tokio::test]
async fn hundreds_of_crds_are_served_and_then_cost_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut run, kubeconfig) = Run::up(&["--data", text(directory.path())]);
    let crds = create_all(&kubeconfig).await;
    let begin = Instant::now();
    while established(&crds).await.len() < CRDS {
        assert!(begin.elapsed() < PATIENCE, "not all are established");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut share = cpu_share(run.id()).await;
    while share > IDLE_SHARE_MAX {
        assert!(begin.elapsed() < PATIENCE, "it takes {share:.2} of a core, with nothing to do");
        share = cpu_share(run.id()).await;
    }
    let settled = established(&crds).await;
    let share = cpu_share(run.id()).await;
    assert!(share <= IDLE_SHARE_MAX, "{share:.2} of a core");
    assert_eq!(established(&crds).await, settled, "nothing is written");
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
}

#[tokio::test]
async fn it_ends_while_hundreds_of_crds_settle() {
    let directory = tempfile::tempdir().unwrap();
    let (mut run, kubeconfig) = Run::up(&["--data", text(directory.path())]);
    create_all(&kubeconfig).await;
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
}
