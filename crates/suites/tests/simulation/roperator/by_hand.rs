//! Roperator in small, as far as its defects need it: caches that watches fill, a loop that looks at the parents whenever
//! something has changed, and writes as data. The parents are config maps unless somebody says otherwise; children carry
//! the parent's uid in a label and in a reference.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _, select_all};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, PostParams, Preconditions};
use kube_runtime::watcher::Event;
use kube_runtime::{WatchStreamExt as _, watcher};
use mainstay::Kind;
use mainstay_testkit::simulation::{Failure, Part, Program, Report, program};
use serde_json::{Value, json};
use tokio::time::timeout;

/// The label of parents: not every config map is one.
const PARENT: &str = "example.dev/parent";
/// The label by which children are found, with the uid of the parent.
pub(crate) const TRACKING: &str = "app.kubernetes.io/instance";
/// When a pass that failed is tried again.
const RETRY: Duration = Duration::from_secs(5);
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// One request that changes something.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Create(Value),
    /// The second in the place of the first, if that is still as it was seen.
    Replace(Value, Value),
    /// This very object, if it is given with its uid; else whatever has its name.
    Delete {
        object: Value,
        uid: Option<String>,
    },
    /// This status, of the object as it was seen.
    Status(Value, Value),
}

/// A kind that is watched: all of its objects, or those with a label.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) kind: Kind,
    pub(crate) label: Option<&'static str>,
}

impl Watched {
    /// Parents are config maps with a label.
    pub(crate) fn parents() -> Self {
        Self { kind: Kind::of::<ConfigMap>(), label: Some(PARENT) }
    }

    pub(crate) fn all(kind: &Kind) -> Self {
        Self { kind: kind.clone(), label: None }
    }
}

pub(crate) type Told = (Kind, Event<DynamicObject>);

/// What happens to the objects of a kind, for ever.
pub(crate) fn watch(client: &Client, watched: &Watched) -> BoxStream<'static, Result<Told, watcher::Error>> {
    let config =
        watched.label.map_or_else(watcher::Config::default, |label| watcher::Config::default().labels(label));
    let kind = watched.kind.clone();
    let events = watcher(api(client, &kind), config).default_backoff();
    events.map(move |event| event.map(|event| (kind.clone(), event))).boxed()
}

/// The objects of a kind that the watch has told of, by name.
#[derive(Clone, Default)]
struct Shelf {
    objects: BTreeMap<String, Value>,
    /// What a list that has not ended has shown.
    listed: Option<BTreeMap<String, Value>>,
    is_full: bool,
}

/// What the watches have told.
#[derive(Clone, Default)]
pub(crate) struct Cache(BTreeMap<String, Shelf>);

impl Cache {
    pub(crate) fn take(&mut self, (kind, event): Told) {
        let shelf = self.0.entry(kind.kind().to_owned()).or_default();
        let entry = |object: DynamicObject| {
            let name = object.metadata.name.clone().unwrap_or_default();
            let mut object = serde_json::to_value(object).unwrap();
            object["apiVersion"] = kind.api_version().into();
            object["kind"] = kind.kind().into();
            (name, object)
        };
        match event {
            Event::Init => shelf.listed = Some(BTreeMap::new()),
            Event::InitApply(object) => shelf.listed.get_or_insert_default().extend([entry(object)]),
            Event::InitDone => {
                shelf.objects = shelf.listed.take().unwrap_or_default();
                shelf.is_full = true;
            }
            Event::Apply(object) => shelf.objects.extend([entry(object)]),
            Event::Delete(object) => drop(shelf.objects.remove(&entry(object).0)),
        }
    }

    /// Whether all of so many kinds have been listed.
    pub(crate) fn is_full(&self, kinds: usize) -> bool {
        self.0.values().filter(|shelf| shelf.is_full).count() == kinds
    }

    pub(crate) fn of(&self, kind: &Kind) -> Vec<Value> {
        self.0.get(kind.kind()).map(|shelf| shelf.objects.values().cloned().collect()).unwrap_or_default()
    }

    /// What a parent owns.
    pub(crate) fn children_of(&self, parent: &Value) -> Vec<Value> {
        let owner = &parent["metadata"]["uid"];
        let all = self.0.values().flat_map(|shelf| shelf.objects.values());
        all.filter(|object| object["metadata"]["ownerReferences"][0]["uid"] == *owner).cloned().collect()
    }
}

/// Whenever something has changed, `sync` is called for each parent with its children. When it fails, it is called again
/// after a while. The first of the kinds is that of the parents.
pub(crate) async fn each_parent<F, E>(
    client: Client,
    watched: Vec<Watched>,
    sync: impl Fn(Value, Vec<Value>) -> F,
) where
    F: Future<Output = Result<(), E>>,
{
    let mut events = select_all(watched.iter().map(|watched| watch(&client, watched)));
    let mut cache = Cache::default();
    let mut patience = FOR_EVER;
    loop {
        if let Ok(Some(Ok(told))) = timeout(patience, events.next()).await {
            cache.take(told);
        }
        while let Some(Some(told)) = events.next().now_or_never() {
            if let Ok(told) = told {
                cache.take(told);
            }
        }
        if !cache.is_full(watched.len()) {
            continue;
        }
        patience = FOR_EVER;
        for parent in cache.of(&watched[0].kind) {
            let children = cache.children_of(&parent);
            if sync(parent, children).await.is_err() {
                patience = RETRY;
            }
        }
    }
}

/// An operator that is a pure function of a parent and its children.
pub(crate) fn operator(
    name: &str,
    watched: Vec<Watched>,
    decide: impl Fn(&Value, &[Value]) -> Vec<Write> + Clone + Send + Sync + 'static,
) -> Program {
    program(name, move |seat| {
        let (watched, decide, client) = (watched.clone(), decide.clone(), seat.client());
        each_parent(client.clone(), watched, move |parent, children| {
            let (writes, client) = (decide(&parent, &children), client.clone());
            async move {
                for write in writes {
                    carry_out(&client, &write).await?;
                }
                Ok::<_, kube::Error>(())
            }
        })
    })
}

/// The writes that make the children what is desired, where `fits` tells whether one is as desired already.
pub(crate) fn plan(
    desired: &[Value],
    children: &[Value],
    fits: impl Fn(&Value, &Value) -> bool,
) -> Vec<Write> {
    let is_same = |one: &Value, other: &Value| {
        one["kind"] == other["kind"] && one["metadata"]["name"] == other["metadata"]["name"]
    };
    let mut writes = Vec::new();
    for wish in desired {
        match children.iter().find(|child| is_same(child, wish)) {
            None => writes.push(Write::Create(wish.clone())),
            Some(child) if fits(wish, child) => {}
            Some(child) => writes.push(Write::Replace(child.clone(), wish.clone())),
        }
    }
    let surplus = children.iter().filter(|child| !desired.iter().any(|wish| is_same(wish, child)));
    writes.extend(surplus.map(|child| Write::Delete { object: child.clone(), uid: uid_of(child) }));
    writes
}

pub(crate) async fn carry_out(client: &Client, write: &Write) -> Result<(), kube::Error> {
    let params = PostParams::default();
    let at = |seen: &Value, mut object: Value| {
        object["metadata"]["resourceVersion"] = seen["metadata"]["resourceVersion"].clone();
        object
    };
    match write {
        Write::Create(object) => api_of(client, object).create(&params, &dynamic(object)).await.map(drop),
        Write::Replace(seen, desired) => {
            let desired = at(seen, desired.clone());
            api_of(client, seen).replace(name_of(seen), &params, &dynamic(&desired)).await.map(drop)
        }
        Write::Delete { object, uid } => {
            let preconditions =
                uid.clone().map(|uid| Preconditions { uid: Some(uid), resource_version: None });
            let params = DeleteParams { preconditions, ..DeleteParams::default() };
            match api_of(client, object).delete(name_of(object), &params).await {
                Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
                answer => answer.map(drop),
            }
        }
        Write::Status(object, status) => {
            let mut object = object.clone();
            object["status"] = status.clone();
            api_of(client, &object)
                .replace_status(name_of(&object), &params, &dynamic(&object))
                .await
                .map(drop)
        }
    }
}

/// A child of a parent.
pub(crate) fn child(parent: &Value, kind: &Kind, name: &str, mut body: Value) -> Value {
    let (uid, owner) = (&parent["metadata"]["uid"], &parent["metadata"]["name"]);
    body["apiVersion"] = kind.api_version().into();
    body["kind"] = kind.kind().into();
    body["metadata"] = json!({
        "name": name,
        "labels": {TRACKING: uid},
        "ownerReferences": [{
            "apiVersion": parent["apiVersion"], "kind": parent["kind"], "name": owner, "uid": uid, "controller": true,
        }],
    });
    body
}

pub(crate) fn parent(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {PARENT: "yes"}}, "data": data})
}

/// A text of a parent's data; empty if it is not there.
pub(crate) fn text<'a>(parent: &'a Value, field: &str) -> &'a str {
    parent["data"][field].as_str().unwrap_or_default()
}

pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn uid_of(object: &Value) -> Option<String> {
    object["metadata"]["uid"].as_str().map(str::to_owned)
}

pub(crate) fn api(client: &Client, kind: &Kind) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        api_version: kind.api_version(),
        kind: kind.kind().to_owned(),
        plural: kind.plural().to_owned(),
    };
    Api::default_namespaced_with(client.clone(), &resource)
}

fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let plural = format!("{}s", kind.to_lowercase());
    api(client, &Kind::new(api_version, kind, &plural, mainstay::Scope::Namespaced))
}

pub(crate) fn dynamic(object: &Value) -> DynamicObject {
    serde_json::from_value(object.clone()).unwrap()
}

/// What was found in a part of a check.
pub(crate) fn failure(report: &Report, part: Part) -> Failure {
    let failure = report.failures.iter().find(|failure| failure.part == part);
    failure.unwrap_or_else(|| panic!("nothing was found in {part}:\n{report}")).clone()
}
