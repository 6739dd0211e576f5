//! `--demo`: a small example of everything, followed until all of it is ready.

use crate::cluster::{Catalog, Cluster, get, named};
use crate::failure::Failure;
use crate::output::say;
use crate::systems::System;
use k8s_openapi::api::core::v1::Namespace;
use mainstay::readiness::{Readiness, readiness};
use mainstay::{Key, Kind, Scope};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Where the examples are.
const NAMESPACE: &str = "demo";
/// What a cluster itself is shown with.
const WORKLOADS: &str = include_str!("../../demo/workloads.yaml");

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// After so long without news the person who watches is told what is waited for.
const SILENCE: Duration = Duration::from_secs(10);

/// Applies everything and tells of each object when it is ready.
pub(super) async fn show(cluster: Cluster, systems: Vec<&'static System>) {
    if let Err(failure) = follow(&cluster, &systems).await {
        say(&failure.render());
    }
}

async fn follow(cluster: &Cluster, systems: &[&'static System]) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut objects = objects(systems)?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let catalog = cluster.catalog().await?;
    cluster.apply(&catalog, &namespace).await?;
    // Kinds first: those of other objects are among them.
    for definition in objects.iter().filter(|object| defines_a_kind(object)) {
        cluster.apply(&catalog, definition).await?;
    }
    let catalog = catalog_of(cluster, &objects).await?;
    for object in &mut objects {
        if catalog.kind_of(object).is_some_and(|kind| kind.scope() == Scope::Namespaced) {
            let place = &mut object["metadata"]["namespace"];
            if place.is_null() {
                *place = NAMESPACE.into();
            }
        }
        if !defines_a_kind(object) {
            apply(cluster, &catalog, object).await?;
        }
    }
    say(&format!("demo: {} objects in namespace {NAMESPACE}\n", objects.len()));
    let mut waiting = objects;
    let mut told = Instant::now();
    while !waiting.is_empty() {
        tokio::time::sleep(LOOK_EVERY).await;
        let mut still = Vec::new();
        let mut reasons = Vec::new();
        for object in waiting {
            let live = match catalog.path_of(&object) {
                Some(path) => get(&cluster.client, &path).await,
                None => Ok(None),
            };
            let live = live.map_err(|error| cluster.failed(&format!("look at {}", named(&object)), error))?;
            match live.as_ref().map(readiness) {
                Some(Readiness::Ready) => {
                    told = Instant::now();
                    say(&format!(
                        "demo: {} is ready after {:.1} s\n",
                        named(&object),
                        begun.elapsed().as_secs_f64()
                    ));
                }
                Some(Readiness::NotReady(why)) => {
                    reasons.push(format!("{}: {why}", named(&object)));
                    still.push(object);
                }
                // Whoever deletes it does not wait for it.
                None => {}
            }
        }
        waiting = still;
        if told.elapsed() > SILENCE {
            told = Instant::now();
            say(&format!("demo: waiting for {}\n", reasons.join("; ")));
        }
    }
    say(&format!(
        "demo: all is ready\n  next: kubectl get all -n {NAMESPACE}, or mainstay status -n {NAMESPACE}\n  \
         kubectl logs -n {NAMESPACE} job/hello\n"
    ));
    Ok(())
}

/// Applies an object, once its namespace is there: some are made by operators.
async fn apply(cluster: &Cluster, catalog: &Catalog, object: &Value) -> Result<(), Failure> {
    let namespaces = Kind::of::<Namespace>();
    if let Some(namespace) = object["metadata"]["namespace"].as_str() {
        let path = namespaces.object_path(&Key::new(None, namespace));
        let begun = Instant::now();
        while begun.elapsed() < SILENCE && get(&cluster.client, &path).await.ok().flatten().is_none() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    cluster.apply(catalog, object).await
}

fn defines_a_kind(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

/// All examples.
fn objects(systems: &[&'static System]) -> Result<Vec<Value>, Failure> {
    let read = serde_saphyr::from_multiple(WORKLOADS);
    let mut objects: Vec<Value> =
        read.map_err(|error| Failure::new(error).context("cannot read what a cluster is shown with"))?;
    for system in systems {
        objects.extend(system.demo()?);
    }
    Ok(objects)
}

/// The kinds of the cluster, once those of all objects are served.
async fn catalog_of(cluster: &Cluster, objects: &[Value]) -> Result<Catalog, Failure> {
    loop {
        let catalog = cluster.catalog().await?;
        if objects.iter().all(|object| catalog.path_of(object).is_some()) {
            return Ok(catalog);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_is_in_the_demo() {
        let all: Vec<&'static System> = crate::systems::ALL.iter().collect();
        let shown = objects(&all).unwrap();
        for system in &all {
            let of_system = |object: &&Value| {
                system.parents().unwrap().iter().any(|parent| object["kind"] == parent.kind.kind())
            };
            assert!(shown.iter().any(|object| of_system(&object)), "{}", system.name);
        }
    }
}
