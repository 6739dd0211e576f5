//! Sums over the containers of a pod: resources of the pod as a whole, and its quality-of-service class.

use super::super::json::{ensure_object, is_empty, list, object_mut, set, text};
use crate::builtin::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;

type Sums = BTreeMap<String, Quantity>;

/// Whether a resource can be given for the pod as a whole.
pub(super) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_page(name)
}

/// Whether a resource is huge pages of some size.
pub(super) fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Whether requests may be below limits: only for the standard resources, huge pages excepted.
pub(super) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Whether a resource is Kubernetes' own rather than an extension's.
pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Completes the resources of the pod as a whole, if some are given.
pub(super) fn default_pod_level(spec: &mut Value) {
    let Some(resources) = set(spec, "resources") else { return };
    if is_empty(resources.get("limits")) && is_empty(resources.get("requests")) {
        return;
    }
    let limits = aggregate(spec, "limits");
    let requests = aggregate(spec, "requests");
    let Some(resources) = object_mut(spec, "resources") else { return };
    for (name, limit) in limits {
        let requested = resources.get("requests").is_some_and(|r| r.get(&name).is_some());
        if is_huge_page(&name) && !requested {
            insert_absent(resources, "limits", name, limit.to_string().into());
        }
    }
    let Some(Value::Object(limits)) = resources.get("limits") else { return };
    if limits.is_empty() {
        return;
    }
    let limits = limits.clone();
    for (name, request) in requests {
        if is_pod_level(&name) && may_overcommit(&name) {
            insert_absent(resources, "requests", name, request.to_string().into());
        }
    }
    for (name, limit) in limits {
        if is_pod_level(&name) {
            insert_absent(resources, "requests", name, limit);
        }
    }
}

fn insert_absent(resources: &mut Value, field: &str, name: String, value: Value) {
    if let Some(Value::Object(map)) = ensure_object(resources, field) {
        map.entry(name).or_insert(value);
    }
}

/// What the containers of a pod need at the same time. Init containers run one after the other before
/// the others, except those that restart always: they stay.
pub(super) fn aggregate(spec: &Value, field: &str) -> Sums {
    let mut total = Sums::new();
    for container in list(spec, "containers") {
        add(&mut total, container, field);
    }
    let mut staying = Sums::new();
    let mut peak = Sums::new();
    for container in list(spec, "initContainers") {
        if text(container, "restartPolicy") == "Always" {
            add(&mut total, container, field);
            add(&mut staying, container, field);
            raise(&mut peak, &staying);
        } else {
            let mut during = Sums::new();
            add(&mut during, container, field);
            for (name, quantity) in &staying {
                let sum = during.entry(name.clone()).or_insert(Quantity::ZERO);
                *sum += quantity;
            }
            raise(&mut peak, &during);
        }
    }
    raise(&mut total, &peak);
    total
}

fn add(sums: &mut Sums, container: &Value, field: &str) {
    for (name, quantity) in quantities(container.get("resources"), field) {
        let sum = sums.entry(name.to_owned()).or_insert(Quantity::ZERO);
        *sum += &quantity;
    }
}

fn raise(sums: &mut Sums, to: &Sums) {
    for (name, quantity) in to {
        let sum = sums.entry(name.clone()).or_insert_with(|| quantity.clone());
        if *sum < *quantity {
            sum.clone_from(quantity);
        }
    }
}

fn quantities<'a>(resources: Option<&'a Value>, field: &str) -> impl Iterator<Item = (&'a str, Quantity)> {
    let map = resources.and_then(|r| r.get(field)).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(name, v)| Some((name.as_str(), Quantity::read(v)?)))
}

/// `Guaranteed`, `Burstable` or `BestEffort`, from CPU and memory alone.
pub(super) fn qos_class(spec: &Value) -> &'static str {
    let mut requests = Sums::new();
    let mut limits = Sums::new();
    let mut guaranteed = true;
    let mut count = |resources: Option<&Value>, limits_required: bool| {
        positive(resources, "requests", &mut requests);
        let limited = positive(resources, "limits", &mut limits);
        if limits_required && limited < 2 {
            guaranteed = false;
        }
    };
    if let Some(resources) = set(spec, "resources") {
        count(Some(resources), !is_empty(resources.get("limits")));
    } else {
        for container in list(spec, "containers").iter().chain(list(spec, "initContainers")) {
            count(container.get("resources"), true);
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds CPU and memory above zero to `sums` and says how many of the two there were.
fn positive(resources: Option<&Value>, field: &str, sums: &mut Sums) -> usize {
    let mut found = 0;
    for (name, quantity) in quantities(resources, field) {
        if matches!(name, "cpu" | "memory") && quantity.is_positive() {
            found += 1;
            let sum = sums.entry(name.to_owned()).or_insert(Quantity::ZERO);
            *sum += &quantity;
        }
    }
    found
}
