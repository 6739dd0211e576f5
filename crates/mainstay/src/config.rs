//! From what users write to what code uses, with the origin of every value.
//!
//! A spec is what users write: whatever can have a default is an `Option`. A config is what code uses: nothing is
//! missing. The config's `Default`, written by hand, is the one place for defaults; the derive writes the rest.
//!
//! ```
//! use mainstay::Config;
//!
//! #[derive(Clone, Default)]
//! struct WebAppSpec {
//!     image: String,
//!     replicas: Option<u32>,
//!     probe: Option<ProbeSpec>,
//! }
//!
//! #[derive(Clone, Default)]
//! struct ProbeSpec {
//!     path: Option<String>,
//!     period_seconds: Option<u32>,
//! }
//!
//! #[derive(Config)]
//! #[config(spec = WebAppSpec)]
//! struct WebAppConfig {
//!     #[config(required)]
//!     image: String,
//!     replicas: u32,
//!     #[config(nested)]
//!     probe: ProbeConfig,
//! }
//!
//! impl Default for WebAppConfig {
//!     fn default() -> Self {
//!         Self { image: String::new(), replicas: 2, probe: ProbeConfig::default() }
//!     }
//! }
//!
//! #[derive(Config)]
//! #[config(spec = ProbeSpec, rename_all = "camelCase")]
//! struct ProbeConfig {
//!     path: String,
//!     period_seconds: u32,
//! }
//!
//! impl Default for ProbeConfig {
//!     fn default() -> Self {
//!         Self { path: "/healthz".into(), period_seconds: 10 }
//!     }
//! }
//!
//! let probe = ProbeSpec { path: Some("/ready".into()), ..Default::default() };
//! let spec = WebAppSpec { image: "shop/web:2".into(), probe: Some(probe), ..Default::default() };
//! let config = WebAppConfig::resolve(&spec);
//! assert_eq!((config.replicas, config.probe.path.as_str()), (2, "/ready"));
//! assert_eq!(
//!     config.origins().to_string(),
//!     r#"image = "shop/web:2" (given)
//! replicas = 2 (default)
//! probe.path = "/ready" (given)
//! probe.periodSeconds = 10 (default)
//! "#
//! );
//!
//! // Where no origins are needed, it is a conversion.
//! assert_eq!(WebAppConfig::from(spec).replicas, 2);
//! ```
//!
//! # Attributes
//!
//! Of the struct: `spec = Type`; `rename_all = "camelCase"` (or serde's own attribute) for the names in origins.
//!
//! Of a field, which has the same name in both structs:
//!
//! | attribute | the spec has | |
//! |---|---|---|
//! | none | `Option<T>`, where `T` goes `into` the field's type | taken if given |
//! | `required` | the value itself | always taken |
//! | `nested` | `Option` of the nested config's spec | each of its fields taken if given, over this config's default |
//! | `each` | `Option<Vec>` of specs; the field is a `Vec` of configs | taken if given |
//! | `skip` | nothing | always the default |
//! | `secret` | as without | taken if given; origins do not show the value |
//! | `rename = "name"` | as without | the name in origins |
//! | `former = field` | as without, and the same under a former name | the former one is taken if the present one is not given |
//!
//! `required` goes together with `nested`, `each` and `secret`.
//!
//! A field that the spec does not have does not compile:
//!
//! ```compile_fail,E0609
//! # use mainstay::Config;
//! #[derive(Clone)]
//! struct Spec {
//!     replicas: Option<u32>,
//! }
//!
//! #[derive(Default, Config)]
//! #[config(spec = Spec)]
//! struct AppConfig {
//!     replica: u32,
//! }
//! ```

use std::fmt;
use std::ops::Deref;

use serde::Serialize;
use serde_json::Value;

pub use mainstay_derive::Config;

/// What code uses, made of what users write. See the [module](self); this is derived, not written.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the config of a spec",
    label = "derive `Config` for it and name its spec: #[config(spec = …)]"
)]
pub trait Config: Default {
    /// What users write.
    type Spec: Clone;

    /// Puts what the spec gives over what is here.
    fn overlay(&mut self, spec: Self::Spec);

    /// Tells of every value here whether the spec gave it. Without a spec, all are defaults.
    fn trace(&self, spec: Option<&Self::Spec>, origins: &mut Origins);

    /// The config of a spec, with the origin of every value.
    fn resolve(spec: &Self::Spec) -> Resolved<Self> {
        let mut config = Self::default();
        config.overlay(spec.clone());
        let mut origins = Origins::default();
        config.trace(Some(spec), &mut origins);
        Resolved { config, origins }
    }
}

/// A config with the origins of its values. Its fields are used as the config's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved<C> {
    config: C,
    origins: Origins,
}

impl<C> Resolved<C> {
    /// Where the values came from.
    pub fn origins(&self) -> &Origins {
        &self.origins
    }

    /// The config alone.
    pub fn into_config(self) -> C {
        self.config
    }
}

impl<C> Deref for Resolved<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.config
    }
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The spec gave it.
    Given,
    /// The spec did not: it is the config's default.
    Default,
}

/// A value of a config.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// Which one: field names with dots between, as they are in the spec's JSON.
    pub path: String,
    /// Where it came from.
    pub origin: Origin,
    /// The value itself; none if it is secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// All values of a config with their origins, in the order of its fields. As text, one on each line.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Origins {
    settings: Vec<Setting>,
    #[serde(skip)]
    prefix: String,
}

impl Origins {
    /// All values.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter()
    }

    /// The value of a path.
    pub fn get(&self, path: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.path == path)
    }

    /// Adds a value. This and the following are for [`Config::trace`].
    pub fn value(&mut self, name: &str, value: &impl Serialize, is_given: bool) {
        // What JSON cannot say, such as a map by numbers, is told of without its value.
        self.add(name, is_given, serde_json::to_value(value).ok());
    }

    /// Adds a value that is not shown.
    pub fn secret(&mut self, name: &str, is_given: bool) {
        self.add(name, is_given, None);
    }

    /// Adds the values of a config inside this one.
    pub fn nested<C: Config>(&mut self, name: &str, config: &C, spec: Option<&C::Spec>) {
        let before = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        config.trace(spec, self);
        self.prefix.truncate(before);
    }

    /// Adds the values of all configs of a list.
    pub fn each<C: Config>(&mut self, name: &str, configs: &[C], specs: Option<&[C::Spec]>) {
        if configs.is_empty() {
            self.value(name, &[(); 0], specs.is_some());
        }
        for (index, config) in configs.iter().enumerate() {
            let spec = specs.and_then(|specs| specs.get(index));
            self.nested(&format!("{name}[{index}]"), config, spec);
        }
    }

    fn add(&mut self, name: &str, is_given: bool, value: Option<Value>) {
        let origin = if is_given { Origin::Given } else { Origin::Default };
        self.settings.push(Setting { path: format!("{}{name}", self.prefix), origin, value });
    }
}

impl fmt::Display for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.iter().try_for_each(|setting| writeln!(f, "{setting}"))
    }
}

/// As `replicas = 3 (given)`.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match self.origin {
            Origin::Given => "given",
            Origin::Default => "default",
        };
        match &self.value {
            Some(value) => write!(f, "{} = {value} ({origin})", self.path),
            None => write!(f, "{} is not shown ({origin})", self.path),
        }
    }
}

/// So that the compiler asks for an `Option` where a spec's field is none. Used by the derive.
#[doc(hidden)]
pub fn optional<T>(given: Option<T>) -> Option<T> {
    given
}
