//! `--demo`.

use crate::up::run::Run;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams};
use mainstay_networks::kinds::{FaultPhase, Simulation, Verdict};
use mainstay_testkit::real::client_from;

#[tokio::test]
async fn the_demo_shows_every_system_and_all_of_it_becomes_ready() {
    let (mut run, kubeconfig) = Run::up(&["--memory", "--demo"]);
    let said = run.hear("demo: all is ready").to_owned();
    let objects = ["Deployment web", "Service web", "StatefulSet db", "Job hello", "CronJob hourly"];
    for object in objects {
        assert!(said.contains(&format!("demo: {object} is ready after ")), "{object}: {said}");
    }
    // What systems there are, the kinds that they have defined tell.
    let client = client_from(&kubeconfig).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definitions = definitions.list(&ListParams::default()).await.unwrap().items;
    let kinds: Vec<_> = definitions.iter().map(|definition| &definition.spec.names.kind).collect();
    assert!(kinds.len() >= 2, "{kinds:?}");
    for kind in kinds {
        let of_kind = |line: &str| line.starts_with(&format!("demo: {kind} ")) && line.contains(" is ready ");
        assert!(said.lines().any(of_kind), "{kind}: {said}");
    }

    // One peer was killed and two were cut off; all are connected again, and the load was there all the time.
    let simulations: Api<Simulation> = Api::namespaced(client, "network-demo");
    let status = simulations.get("storm").await.unwrap().status.unwrap();
    assert_eq!(status.verdict, Some(Verdict::Passed), "{:?}", status.criteria);
    assert!(status.faults.iter().all(|fault| fault.phase == FaultPhase::Over), "{:?}", status.faults);
}
