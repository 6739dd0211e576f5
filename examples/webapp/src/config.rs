//! What code uses: every field is there. The defaults are here and nowhere else.

use std::collections::BTreeMap;

use mainstay::Config;

use crate::kinds::{ProbeSpec, WebAppSpec};

/// A [`WebAppSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = WebAppSpec, rename_all = "camelCase")]
pub struct WebAppConfig {
    /// The image to run.
    #[config(required)]
    pub image: String,
    /// How many pods run it.
    pub replicas: i32,
    /// Where its container listens.
    pub port: i32,
    /// Environment variables.
    pub settings: BTreeMap<String, String>,
    /// How a pod is asked whether it is ready.
    #[config(nested)]
    pub probe: ProbeConfig,
}

impl Default for WebAppConfig {
    fn default() -> Self {
        Self {
            image: String::new(),
            replicas: 2,
            port: 8080,
            settings: BTreeMap::new(),
            probe: ProbeConfig::default(),
        }
    }
}

/// A [`ProbeSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = ProbeSpec, rename_all = "camelCase")]
pub struct ProbeConfig {
    /// The path that is asked for.
    pub path: String,
    /// The seconds between two questions.
    pub period_seconds: i32,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self { path: "/".into(), period_seconds: 10 }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_value_knows_whether_it_was_given() {
        let spec = r#"{"image": "shop:1", "replicas": 3, "probe": {"path": "/healthz"}}"#;
        let config = WebAppConfig::resolve(&serde_json::from_str(spec).unwrap());
        expect![[r#"
            image = "shop:1" (given)
            replicas = 3 (given)
            port = 8080 (default)
            settings = {} (default)
            probe.path = "/healthz" (given)
            probe.periodSeconds = 10 (default)
        "#]]
        .assert_eq(&config.origins().to_string());
    }
}
