//! Finds streams: whatever is of a kind that a `StreamClass` names.

use crate::cluster::{Cluster, Connection, get, list, selected};
use crate::failure::Failure;
use crate::systems;
use jiff::Timestamp;
use kube::ResourceExt as _;
use mainstay::{Key, Kind, Scope};
use mainstay_streams::config::StreamClassConfig;
use mainstay_streams::kinds::{StreamClass, StreamStatus};
use mainstay_streams::wish::Stream;
use serde_json::Value;
use std::rc::Rc;

/// Where to look.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// In this namespace [default: the context's].
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// In all namespaces.
    #[arg(short = 'A', long)]
    pub(super) all_namespaces: bool,
    /// Streams of this class only.
    #[arg(long, value_name = "CLASS")]
    pub(super) class: Option<String>,
    #[command(flatten)]
    pub(super) connection: Connection,
}

impl Place {
    /// The namespace, if it is one.
    pub(super) fn namespace<'a>(&'a self, cluster: &'a Cluster) -> Option<&'a str> {
        (!self.all_namespaces).then(|| cluster.or_default(self.namespace.as_deref()))
    }

    /// For a sentence.
    pub(super) fn told(&self, cluster: &Cluster) -> String {
        let class = self.class.as_ref().map_or_else(String::new, |class| format!(" of class {class}"));
        match self.namespace(cluster) {
            Some(namespace) => format!("{class} in namespace {namespace}"),
            None => class,
        }
    }
}

/// A class, and the kind that it names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) config: StreamClassConfig,
}

impl Class {
    pub(super) fn new(class: &StreamClass) -> Self {
        let config = StreamClassConfig::from(&class.spec);
        let version = format!("{}/{}", config.api_group_ref, config.api_version);
        let kind = Kind::new(&version, &config.kind_ref, &config.plural_name, Scope::Namespaced);
        Class { name: class.name_any(), kind, config }
    }
}

/// A stream.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) class: Rc<Class>,
    pub(super) object: Value,
}

impl Found {
    pub(super) fn new(class: &Rc<Class>, mut object: Value) -> Self {
        object["kind"] = class.kind.kind().into();
        object["apiVersion"] = class.kind.api_version().into();
        Found { class: Rc::clone(class), object }
    }

    /// Its fields, as its class reads them.
    pub(super) fn stream(&self) -> Stream<'_> {
        Stream::new(&self.object, &self.class.config)
    }

    pub(super) fn key(&self) -> Key {
        Key::new(Some(self.stream().namespace()), self.stream().name())
    }

    /// What the operator knows of it.
    pub(super) fn status(&self) -> StreamStatus {
        mainstay_streams::record::read(&self.object)
    }

    pub(super) fn created(&self) -> Option<Timestamp> {
        self.object["metadata"]["creationTimestamp"].as_str()?.parse().ok()
    }

    /// As kubectl names it.
    pub(super) fn named(&self) -> String {
        crate::output::name(&self.object)
    }
}

/// All classes; of several that name a kind, the one that has it.
pub(super) async fn classes(cluster: &Cluster) -> Result<Vec<Rc<Class>>, Failure> {
    let kind = Kind::of::<StreamClass>();
    let found = match list(&cluster.client, &kind.collection_path(None)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let system = systems::find(mainstay_streams::NAME, "look at")?;
            let error = anyhow::anyhow!("the cluster does not have the kind {kind}");
            return Err(Failure::new(error).next(system.define()));
        }
        found => found.map_err(|error| cluster.failed("list streamclasses", error))?,
    };
    Ok(holders(found.into_iter().filter_map(|class| serde_json::from_value(class).ok()).collect()))
}

/// Whoever was there first has the kind, as the operator sees it.
fn holders(mut classes: Vec<StreamClass>) -> Vec<Rc<Class>> {
    let is_stopped = |class: &StreamClass| class.spec.stopped == Some(true);
    classes.sort_by_key(|class| (is_stopped(class), class.creation_timestamp(), class.name_any()));
    let mut holders: Vec<Rc<Class>> = Vec::new();
    for class in &classes {
        let class = Class::new(class);
        let is_same = |held: &Rc<Class>| {
            held.kind.group() == class.kind.group() && held.kind.plural() == class.kind.plural()
        };
        if !holders.iter().any(is_same) {
            holders.push(Rc::new(class));
        }
    }
    holders.sort_by(|one, other| one.name.cmp(&other.name));
    holders
}

/// The classes that are meant.
pub(super) async fn chosen(cluster: &Cluster, place: &Place) -> Result<Vec<Rc<Class>>, Failure> {
    let mut classes = classes(cluster).await?;
    let Some(name) = &place.class else { return Ok(classes) };
    let known: Vec<String> = classes.iter().map(|class| class.name.clone()).collect();
    classes.retain(|class| class.name == *name);
    if classes.is_empty() {
        let error = if known.is_empty() {
            anyhow::anyhow!("there is no StreamClass at all")
        } else {
            anyhow::anyhow!("those that have a kind are {}", known.join(", "))
        };
        let error = error.context(format!("there is no StreamClass {name} that has a kind"));
        return Err(Failure::new(error).next("mainstay status streamclasses shows what is wrong with others"));
    }
    Ok(classes)
}

/// Streams, and the classes whose streams could not be looked at, with the reason.
#[derive(Debug, Default)]
pub(super) struct Streams {
    pub(super) found: Vec<Found>,
    pub(super) left_out: Vec<(String, String)>,
}

/// All streams of these classes that the selector selects, by namespace and name.
pub(super) async fn streams(
    cluster: &Cluster,
    place: &Place,
    selector: Option<&str>,
) -> Result<Streams, Failure> {
    let mut streams = Streams::default();
    for class in chosen(cluster, place).await? {
        let path = selected(&class.kind.collection_path(place.namespace(cluster)), selector);
        match list(&cluster.client, &path).await {
            Ok(found) => {
                streams.found.extend(found.into_iter().map(|object| Found::new(&class, object)));
            }
            // Who asked for nothing in particular is shown what there is to see.
            Err(kube::Error::Api(status)) if status.code == 404 => {
                let why = format!("the cluster does not have the kind {}", class.kind);
                streams.left_out.push((class.name.clone(), why));
            }
            Err(kube::Error::Api(status)) if status.code == 403 && place.class.is_none() => {
                streams.left_out.push((class.name.clone(), status.message));
            }
            Err(error) => return Err(cluster.failed(&format!("list {}", class.kind.plural()), error)),
        }
    }
    streams.found.sort_by_key(|found| (found.key(), found.class.name.clone()));
    Ok(streams)
}

/// What was not looked at.
pub(super) fn left_out(left_out: &[(String, String)]) -> String {
    left_out.iter().flat_map(|(class, why)| ["left out: class ", class, ": ", why, "\n"]).collect()
}

/// The one stream of this name.
pub(super) async fn one(cluster: &Cluster, place: &Place, name: &str) -> Result<Found, Failure> {
    let key = Key::new(place.namespace(cluster), name);
    let mut found = Vec::new();
    for class in chosen(cluster, place).await? {
        match get(&cluster.client, &class.kind.object_path(&key)).await {
            Ok(object) => found.extend(object.map(|object| Found::new(&class, object))),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) && place.class.is_none() => {}
            Err(error) => return Err(cluster.failed(&format!("read {} {key}", class.kind.kind()), error)),
        }
    }
    only(found, name, &place.told(cluster))
}

/// Of several with one name, none is meant.
fn only(mut found: Vec<Found>, name: &str, place: &str) -> Result<Found, Failure> {
    let classes: Vec<String> = found.iter().map(|found| found.class.name.clone()).collect();
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (None, _) => Err(Failure::new(anyhow::anyhow!("there is no stream {name}{place}"))
            .next("mainstay streams list -A shows those that there are")),
        (Some(_), false) => {
            let error = anyhow::anyhow!("the classes {} have one of this name each", classes.join(" and "))
                .context(format!("which stream {name} is meant cannot be told"));
            Err(Failure::new(error)
                .unchanged("all of them")
                .next(format!("--class {} or another", classes[0])))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{class, found};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_kind_is_of_the_class_that_was_there_first() {
        let aged = |name: &str, second: &str, stopped: bool| {
            let mut class = class(name);
            class.metadata.creation_timestamp =
                serde_json::from_value(json!(format!("2026-01-01T00:00:{second}Z"))).unwrap();
            class.spec.stopped = Some(stopped);
            class
        };
        let mut other = aged("other", "09", false);
        other.spec.plural_name = "others".into();
        let classes =
            vec![aged("young", "02", false), aged("old", "01", false), aged("oldest", "00", true), other];
        let names: Vec<String> = holders(classes).iter().map(|class| class.name.clone()).collect();
        assert_eq!(names, ["old", "other"]);
    }

    #[test]
    fn a_name_that_two_classes_have_means_none() {
        let refused = only(vec![found("a", json!({})), found("b", json!({}))], "orders", " in namespace x");
        assert_eq!(
            refused.unwrap_err().render(),
            "error: which stream orders is meant cannot be told\n  the classes a and b have one of this name each\n  \
             unchanged: all of them\n  next: --class a or another\n"
        );
        let refused = only(vec![], "orders", " in namespace x").unwrap_err().render();
        assert!(refused.starts_with("error: there is no stream orders in namespace x\n"), "{refused}");
    }
}
