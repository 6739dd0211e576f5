//! From specs to configs, as an operator's author writes them.

use std::collections::BTreeMap;

use expect_test::expect;
use mainstay::Config;
use mainstay::config::Origin;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NetworkSpec {
    name: String,
    replicas: Option<u16>,
    storage_class: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    api_token: Option<String>,
    bootstrap: Option<BootstrapSpec>,
    monitor: BootstrapSpec,
    peers: Option<Vec<BootstrapSpec>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct BootstrapSpec {
    method: Option<String>,
    r#type: Option<u8>,
}

#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = NetworkSpec, rename_all = "camelCase")]
struct NetworkConfig {
    #[config(required)]
    name: String,
    /// Wider than the spec's.
    replicas: u32,
    /// Nothing is a choice here: the cluster's own default.
    storage_class: Option<String>,
    labels: BTreeMap<String, String>,
    #[config(secret)]
    api_token: String,
    #[config(nested)]
    bootstrap: BootstrapConfig,
    #[config(nested, required)]
    monitor: BootstrapConfig,
    #[config(each)]
    peers: Vec<BootstrapConfig>,
    #[config(skip)]
    retries: u8,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            replicas: 3,
            storage_class: None,
            labels: BTreeMap::new(),
            api_token: "none".to_owned(),
            // Other than the default of its type: the outer default wins.
            bootstrap: BootstrapConfig { method: "star".to_owned(), ..BootstrapConfig::default() },
            monitor: BootstrapConfig::default(),
            peers: Vec::new(),
            retries: 5,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = BootstrapSpec)]
struct BootstrapConfig {
    method: String,
    r#type: u8,
}

impl Default for BootstrapConfig {
    fn default() -> Self {
        Self { method: "ring".to_owned(), r#type: 1 }
    }
}

fn spec(json: Value) -> NetworkSpec {
    serde_json::from_value(json).unwrap()
}

#[test]
fn an_empty_spec_gives_the_defaults() {
    assert_eq!(NetworkConfig::from(NetworkSpec::default()), NetworkConfig::default());
    assert_eq!(NetworkConfig::from(&NetworkSpec::default()), NetworkConfig::default());
    assert_eq!(NetworkConfig::from(None), NetworkConfig::default());
    let config = NetworkConfig::resolve(&NetworkSpec::default());
    expect![[r#"
        name = "" (given)
        replicas = 3 (default)
        storageClass = null (default)
        labels = {} (default)
        apiToken is not shown (default)
        bootstrap.method = "star" (default)
        bootstrap.type = 1 (default)
        monitor.method = "ring" (default)
        monitor.type = 1 (default)
        peers = [] (default)
        retries = 5 (default)
    "#]]
    .assert_eq(&config.origins().to_string());
}

#[test]
fn what_is_given_is_taken_and_told() {
    let config = NetworkConfig::resolve(&spec(serde_json::json!({
        "name": "a", "replicas": 3, "storageClass": "fast", "apiToken": "hush", "bootstrap": {"type": 7},
        "monitor": {"method": "none"}, "peers": [{"type": 2}, {}],
    })));
    assert_eq!(
        (config.replicas, config.storage_class.as_deref(), config.api_token.as_str()),
        (3, Some("fast"), "hush")
    );
    assert_eq!(config.bootstrap, BootstrapConfig { method: "star".to_owned(), r#type: 7 });
    expect![[r#"
        name = "a" (given)
        replicas = 3 (given)
        storageClass = "fast" (given)
        labels = {} (default)
        apiToken is not shown (given)
        bootstrap.method = "star" (default)
        bootstrap.type = 7 (given)
        monitor.method = "none" (given)
        monitor.type = 1 (default)
        peers[0].method = "ring" (default)
        peers[0].type = 2 (given)
        peers[1].method = "ring" (default)
        peers[1].type = 1 (default)
        retries = 5 (default)
    "#]]
    .assert_eq(&config.origins().to_string());
    assert_eq!(config.clone().into_config(), *config);
}

#[test]
fn origins_are_data_without_secrets() {
    let config = NetworkConfig::resolve(&spec(serde_json::json!({"apiToken": "hush", "peers": []})));
    let json = serde_json::to_value(config.origins()).unwrap();
    assert_eq!(json[1], serde_json::json!({"path": "replicas", "origin": "default", "value": 3}));
    assert_eq!(json[4], serde_json::json!({"path": "apiToken", "origin": "given"}));
    assert_eq!(config.origins().get("peers").unwrap().origin, Origin::Given);
    assert!(!json.to_string().contains("hush"));
}

proptest! {
    /// A value is told to be given exactly when it was, and both ways to a config lead to the same one.
    #[test]
    fn origins_are_true(replicas in any::<Option<u16>>(), method in any::<Option<String>>(), nested in any::<bool>()) {
        let bootstrap = nested.then(|| BootstrapSpec { method: method.clone(), r#type: None });
        let spec = NetworkSpec { replicas, bootstrap, ..NetworkSpec::default() };
        let config = NetworkConfig::resolve(&spec);
        let is_given = |path: &str| config.origins().get(path).unwrap().origin == Origin::Given;
        prop_assert_eq!(is_given("replicas"), replicas.is_some());
        prop_assert_eq!(is_given("bootstrap.method"), nested && method.is_some());
        prop_assert_eq!(config.replicas, replicas.map_or(3, u32::from));
        prop_assert_eq!(NetworkConfig::from(spec.clone()), config.into_config());
    }
}
