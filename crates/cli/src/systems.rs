//! The systems that come with Mainstay: one registry for all commands.
//!
//! A system is an operator with its kinds. Everything that a command wants to know of one follows from its entry here; a
//! further system is one entry.

mod simulations;

use crate::failure::Failure;
use crate::output::listed;
use k8s_openapi::api::batch::v1::Job;
use kube::CustomResourceExt as _;
use mainstay::config::Origins;
use mainstay::{Config as _, Kind, Operator, OperatorBuilder, Replicas, Scope};
use mainstay_networks::config::{NetworkConfig, SimulationConfig};
use mainstay_networks::kinds::{Network, Simulation};
use mainstay_streams::config::StreamClassConfig;
use mainstay_testkit::simulation::Check;
use serde_json::{Value, json};
use webapp::config::WebAppConfig;
use webapp::kinds::WebApp;

/// Systems that are to come. Asking for one of them is no slip of the finger, and is told so.
const TO_COME: [&str; 2] = ["resources", "fleet"];

/// See the [module](self).
pub(crate) struct System {
    /// As people call it, and as its operator signs its writes.
    pub(crate) name: &'static str,
    /// What it does, in a line.
    pub(crate) about: &'static str,
    /// Whether it is there to copy from. Such a system is run and installed only if it is asked for by name.
    pub(crate) is_example: bool,
    definitions: fn() -> Result<Vec<Value>, Failure>,
    configure: fn(OperatorBuilder) -> OperatorBuilder,
    check: fn() -> Check,
    /// Which values of an object's spec were given, for kinds that have defaults in code.
    origins: fn(object: &Value) -> Option<Origins>,
    /// Finalizers that it puts on objects of others' kinds. That on its own parents follows from its name.
    pub(crate) held: &'static [Held],
    /// The kind that an object of its own has it look after, too.
    pub(crate) names: fn(object: &Value) -> Option<Kind>,
    /// Objects to try it with, in YAML: of its own kinds, and of what these need. They are applied in this order, kinds first.
    demo: &'static [&'static str],
}

/// A finalizer that a system puts on objects of a kind that is not its own, and that nobody else takes off.
pub(crate) struct Held {
    pub(crate) kind: fn() -> Kind,
    /// The labels of such objects.
    pub(crate) selector: &'static str,
    pub(crate) finalizer: &'static str,
}

/// All of them.
pub(crate) static ALL: [System; 4] = [
    STREAMS,
    NETWORKS,
    System {
        name: echo_server::NAME,
        about: "an operator in plain JSON: a Pod and a Service for every EchoServer",
        is_example: true,
        definitions: || {
            let read = serde_saphyr::from_str(echo_server::kinds::CRD);
            let read =
                read.map_err(|error| Failure::new(error).context("cannot read the definition of EchoServer"));
            Ok(vec![read?])
        },
        configure: echo_server::configure,
        check: simulations::echo_server_check,
        origins: |_| None,
        held: &[],
        names: |_| None,
        demo: &[echo_server::kinds::DEMO],
    },
    System {
        name: webapp::NAME,
        about: "an operator with Rust types: a Deployment, a Service and a ConfigMap for every WebApp",
        is_example: true,
        definitions: || Ok(vec![json!(WebApp::crd())]),
        configure: webapp::configure,
        check: simulations::webapp_check,
        origins: |object| {
            let spec = serde_json::from_value(object["spec"].clone()).ok()?;
            Some(WebAppConfig::resolve(&spec).origins().clone())
        },
        held: &[],
        names: |_| None,
        demo: &[webapp::kinds::DEMO],
    },
];

const STREAMS: System = System {
    name: mainstay_streams::NAME,
    about: "kinds registered at run time: a supervised Job for every object of a kind that a StreamClass names",
    is_example: false,
    definitions: || Ok(mainstay_streams::kinds::definitions()),
    configure: mainstay_streams::configure,
    check: simulations::streams_check,
    origins: |object| {
        let is_class = object["kind"] == "StreamClass";
        let spec = is_class.then(|| serde_json::from_value(object["spec"].clone()).ok()).flatten()?;
        Some(StreamClassConfig::resolve(&spec).origins().clone())
    },
    held: &[Held {
        kind: Kind::of::<Job>,
        selector: mainstay_streams::kinds::labels::STREAM_UID,
        finalizer: mainstay_streams::kinds::labels::OUTCOME,
    }],
    names: |object| {
        let text = |field: &str| object["spec"][field].as_str();
        let is_class = object["kind"] == "StreamClass";
        let version = format!("{}/{}", text("apiGroupRef").filter(|_| is_class)?, text("apiVersion")?);
        Some(Kind::new(&version, text("kindRef")?, text("pluralName")?, Scope::Namespaced))
    },
    demo: &[
        feed_plugin::CRD,
        feed_plugin::PLUGIN[0],
        feed_plugin::PLUGIN[1],
        feed_plugin::FEEDS[0],
        feed_plugin::FEEDS[1],
    ],
};

const NETWORKS: System = System {
    name: mainstay_networks::NAME,
    about: "networks of peers: assembled, connected as declared, kept so, put under load and judged",
    is_example: false,
    definitions: || Ok(vec![json!(Network::crd()), json!(Simulation::crd())]),
    configure: mainstay_networks::configure,
    check: simulations::networks_check,
    origins: |object| match object["kind"].as_str()? {
        "Network" => {
            let spec = serde_json::from_value(object["spec"].clone()).ok()?;
            Some(NetworkConfig::resolve(&spec).origins().clone())
        }
        "Simulation" => {
            let spec = serde_json::from_value(object["spec"].clone()).ok()?;
            Some(SimulationConfig::resolve(&spec).origins().clone())
        }
        _ => None,
    },
    held: &[],
    names: |_| None,
    demo: &[include_str!("../demo/network.yaml")],
};

/// What an operator looks at, and where its leases are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach<'a> {
    /// One namespace only.
    pub(crate) namespace: Option<&'a str>,
    /// Replicas agree on who works by leases in this one.
    pub(crate) leases: Option<&'a str>,
}

impl System {
    /// The definitions of its kinds, as they are applied.
    pub(crate) fn definitions(&self) -> Result<Vec<Value>, Failure> {
        (self.definitions)()
    }

    /// The command that has a cluster know its kinds.
    pub(crate) fn define(&self) -> String {
        format!("mainstay crds {} | kubectl apply --server-side -f -", self.name)
    }

    /// The kinds that users write.
    pub(crate) fn parents(&self) -> Result<Vec<Parent>, Failure> {
        Ok(self.definitions()?.iter().filter_map(Parent::of).collect())
    }

    /// Its operator, yet to be run.
    pub(crate) fn operator(&self, client: kube::Client, reach: Reach<'_>) -> OperatorBuilder {
        self.reaching(Operator::builder(self.name, client), reach)
    }

    /// Its operator without a cluster: what it needs can be asked of it. Within a runtime.
    pub(crate) fn unconnected(&self, reach: Reach<'_>) -> OperatorBuilder {
        self.reaching(Operator::unconnected(self.name), reach)
    }

    fn reaching(&self, mut operator: OperatorBuilder, reach: Reach<'_>) -> OperatorBuilder {
        if let Some(namespace) = reach.namespace {
            operator = operator.namespace(namespace);
        }
        if let Some(namespace) = reach.leases {
            operator = operator.replicas(Replicas::leader(namespace));
        }
        (self.configure)(operator.version(env!("CARGO_PKG_VERSION")))
    }

    /// Its program, what it needs, and what its user does. Nothing goes wrong yet.
    pub(crate) fn check(&self) -> Result<Check, Failure> {
        let given = self.definitions()?.into_iter().fold((self.check)(), Check::given);
        Ok(given.silent())
    }

    /// Which values of one of its objects were given and which are defaults, if its kind can tell.
    pub(crate) fn origins(&self, object: &Value) -> Option<Origins> {
        (self.origins)(object)
    }

    /// Objects to try it with, as they are applied.
    pub(crate) fn demo(&self) -> Result<Vec<Value>, Failure> {
        let mut objects = Vec::new();
        for text in self.demo {
            let read: Result<Vec<Value>, _> = serde_saphyr::from_multiple(text);
            objects.extend(read.map_err(|error| {
                Failure::new(error).context(format!("cannot read what {} is shown with", self.name))
            })?);
        }
        Ok(objects)
    }
}

/// A kind that users of a system write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parent {
    pub(crate) kind: Kind,
    /// Whether its objects say how they do.
    pub(crate) has_status: bool,
    /// Other names for it on a command line, in lower case.
    aliases: Vec<String>,
}

impl Parent {
    /// What a definition defines, in the version that is stored.
    fn of(definition: &Value) -> Option<Self> {
        let spec = definition.get("spec")?;
        let names = spec.get("names")?;
        let text = |value: &Value| value.as_str().map(str::to_lowercase);
        let versions = spec.get("versions")?.as_array()?;
        let stored = versions.iter().find(|version| version["storage"] == true)?;
        let (version, has_status) = (stored["name"].as_str()?, stored["subresources"]["status"].is_object());
        let (group, kind) = (spec["group"].as_str()?, names["kind"].as_str()?);
        let scope = if spec["scope"] == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
        let kind = Kind::new(&format!("{group}/{version}"), kind, names["plural"].as_str()?, scope);
        let mut aliases = vec![kind.kind().to_lowercase(), kind.plural().to_owned()];
        aliases.extend(text(&names["singular"]));
        aliases.extend(names["shortNames"].as_array().into_iter().flatten().filter_map(text));
        Some(Parent { kind, has_status, aliases })
    }

    /// A kind that is known by nothing but its own name.
    pub(crate) fn plain(kind: Kind) -> Self {
        let aliases = vec![kind.kind().to_lowercase(), kind.plural().to_owned()];
        Parent { kind, has_status: true, aliases }
    }

    /// That the cluster does not have it.
    pub(crate) fn undefined(&self, system: &System) -> Failure {
        Failure::new(anyhow::anyhow!("the cluster does not have the kind {}", self.kind))
            .next(system.define())
    }

    /// Whether a command line means this kind: `WebApp`, `webapps`, `wa`, `webapps.examples.mainstay.dev`.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let (short, group) = name.split_once('.').unwrap_or((&name, ""));
        let group = group.split('/').next().unwrap_or_default();
        self.aliases.iter().any(|alias| alias == short) && (group.is_empty() || group == self.kind.group())
    }
}

/// The system of this name. What is to be done with it ends `cannot …` if there is none.
pub(crate) fn find(name: &str, doing: &str) -> Result<&'static System, Failure> {
    if let Some(system) = ALL.iter().find(|system| system.name == name) {
        return Ok(system);
    }
    let there = format!("there are {}", names());
    let error = if TO_COME.contains(&name) {
        anyhow::anyhow!(there).context(format!("cannot {doing} {name}: it is not there yet"))
    } else {
        anyhow::anyhow!(there).context(format!("cannot {doing} {name}: no system has this name"))
    };
    Err(Failure::new(error).next("mainstay simulate lists the systems"))
}

/// The systems that are named; without a name, all but the examples.
pub(crate) fn chosen(names: &[String], doing: &str) -> Result<Vec<&'static System>, Failure> {
    if names.is_empty() {
        return Ok(ALL.iter().filter(|system| !system.is_example).collect());
    }
    let mut systems: Vec<&System> = Vec::new();
    for name in names {
        let system = find(name, doing)?;
        if !systems.iter().any(|known| known.name == system.name) {
            systems.push(system);
        }
    }
    Ok(systems)
}

/// The system whose users write a kind that is called so, and that kind.
pub(crate) fn of_kind(name: &str) -> Result<Option<(&'static System, Parent)>, Failure> {
    for system in &ALL {
        if let Some(parent) = system.parents()?.into_iter().find(|parent| parent.is_called(name)) {
            return Ok(Some((system, parent)));
        }
    }
    Ok(None)
}

/// The system that a word means, with those of its kinds that are meant: `webapp`, `wa`, `WebApp`.
pub(crate) fn meant(word: &str, doing: &str) -> Result<(&'static System, Vec<Parent>), Failure> {
    if let Some((system, parent)) = of_kind(word)? {
        return Ok((system, vec![parent]));
    }
    match find(word, doing) {
        Ok(system) => Ok((system, system.parents()?)),
        Err(failure) => {
            let parents = ALL.iter().flat_map(System::parents).flatten();
            let kinds: Vec<_> = parents.map(|parent| parent.kind.kind().to_owned()).collect();
            let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            Err(failure.next(format!("name a system, or what its users write: {}", listed(&kinds, "or"))))
        }
    }
}

/// All names, for a sentence.
pub(crate) fn names() -> String {
    let names: Vec<&str> = ALL.iter().map(|system| system.name).collect();
    listed(&names, "and")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn what_a_system_is_shown_with_is_of_its_kinds() {
        for system in &ALL {
            let own = system.parents().unwrap();
            assert!(!own.is_empty(), "{}", system.name);
            let shown = system.demo().unwrap();
            let others: Vec<Parent> = shown.iter().filter_map(Parent::of).collect();
            for object in &shown {
                let is_of = |parent: &Parent| {
                    object["kind"] == parent.kind.kind() && object["apiVersion"] == parent.kind.api_version()
                };
                let is_needed = object["kind"] == "CustomResourceDefinition" || object["kind"] == "Secret";
                assert!(is_needed || own.iter().chain(&others).any(is_of), "{}: {object}", system.name);
            }
            for parent in own {
                let is_of = |object: &Value| object["kind"] == parent.kind.kind();
                assert!(shown.iter().any(is_of), "{}: no {}", system.name, parent.kind);
            }
        }
    }

    /// Every name that `kubectl` takes for a kind.
    fn names_of(names: &Value) -> Vec<String> {
        let one = ["kind", "plural", "singular"].map(|field| &names[field]);
        let short = names["shortNames"].as_array().into_iter().flatten();
        let texts = one.into_iter().chain(short).filter_map(Value::as_str).filter(|name| !name.is_empty());
        texts.map(str::to_lowercase).collect()
    }

    #[test]
    fn no_kind_has_the_name_of_a_built_in_one() {
        let resources = include_str!("../../apiserver/data/resources.json");
        let resources: Vec<Value> = serde_json::from_str(resources).unwrap();
        let built_in: BTreeSet<String> = resources.iter().flat_map(names_of).collect();
        assert!(["sc", "storageclass", "storageclasses"].iter().all(|name| built_in.contains(*name)));
        let plugin = include_str!("../../../examples/feed-plugin/crd.yaml");
        let mut definitions: Vec<Value> = vec![serde_saphyr::from_str(plugin).unwrap()];
        definitions.extend(ALL.iter().flat_map(|system| system.definitions().unwrap()));
        let mut owners = BTreeMap::new();
        for definition in &definitions {
            let owner = definition["metadata"]["name"].as_str().unwrap();
            let names: BTreeSet<String> = names_of(&definition["spec"]["names"]).into_iter().collect();
            assert!(!names.is_empty(), "{owner}");
            for name in names {
                assert!(!built_in.contains(&name), "{owner}: {name} is a name of a built-in kind");
                let other = owners.insert(name.clone(), owner);
                assert_eq!(other, None, "{owner}: {name}");
            }
        }
    }

    #[test]
    fn a_kind_is_known_by_all_its_names() {
        let parent = |name: &str| of_kind(name).unwrap().map(|(system, _)| system.name);
        for name in
            ["WebApp", "webapps", "wa", "webapp.examples.mainstay.dev", "WebApp.examples.mainstay.dev/v1"]
        {
            assert_eq!(parent(name), Some("webapp"), "{name}");
        }
        assert_eq!(parent("echoserver"), Some("echo-server"));
        for name in ["deployments", "webapps.example.com", ""] {
            assert_eq!(parent(name), None, "{name}");
        }
    }

    #[test]
    fn values_of_a_spec_tell_where_they_come_from() {
        let app = json!({"spec": {"image": "shop:1"}});
        let system = |name| find(name, "test").unwrap();
        let origins = system("webapp").origins(&app).unwrap().to_string();
        assert!(origins.contains("image = \"shop:1\" (given)\nreplicas = 2 (default)\n"), "{origins}");
        assert_eq!(system("echo-server").origins(&json!({"spec": {}})), None);
        let spec = json!({"apiGroupRef": "a", "apiVersion": "v1", "kindRef": "Feed", "pluralName": "feeds"});
        let origins =
            system("streams").origins(&json!({"kind": "StreamClass", "spec": spec})).unwrap().to_string();
        assert!(origins.contains("restart.budget = 0 (default)\n"), "{origins}");
        assert_eq!(system("streams").origins(&json!({"kind": "BackfillRequest", "spec": {}})), None);
    }

    /// Paths of properties that `kubectl` cannot read from YAML without quotes: its YAML takes these words for booleans.
    fn booleans(path: &str, schema: &Value, found: &mut Vec<String>) {
        const WORDS: [&str; 8] = ["y", "n", "yes", "no", "on", "off", "true", "false"];
        for (name, below) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            if WORDS.contains(&name.to_lowercase().as_str()) {
                found.push(path.clone());
            }
            booleans(&path, below, found);
        }
        for below in ["items", "additionalProperties"].iter().filter_map(|below| schema.get(below)) {
            booleans(path, below, found);
        }
    }

    #[test]
    fn no_property_of_a_kind_is_a_boolean_in_yaml() {
        let mut found = Vec::new();
        for definition in ALL.iter().flat_map(|system| system.definitions().unwrap()) {
            let kind = definition["spec"]["names"]["kind"].as_str().unwrap().to_owned();
            for version in definition["spec"]["versions"].as_array().unwrap() {
                booleans(&kind, &version["schema"]["openAPIV3Schema"], &mut found);
            }
        }
        // The former name of `degree`, which is still read.
        assert_eq!(found, ["Network.spec.bootstrap.n"]);
    }

    #[test]
    fn examples_are_chosen_by_name_only() {
        let all: Vec<_> = chosen(&[], "run").unwrap().iter().map(|system| system.name).collect();
        assert_eq!(all, ["streams", "networks"]);
        let twice = chosen(&["webapp".into(), "webapp".into()], "run").unwrap();
        assert_eq!(twice.len(), 1);
    }
}
