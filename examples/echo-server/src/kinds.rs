//! The kinds, by name: nothing here needs a Rust type of them.

use mainstay::{Kind, Scope};

/// What users write.
pub fn echo_server() -> Kind {
    Kind::new("examples.mainstay.dev/v1", "EchoServer", "echoservers", Scope::Namespaced)
}

/// What answers.
pub fn pod() -> Kind {
    Kind::new("v1", "Pod", "pods", Scope::Namespaced)
}

/// Where it is reached.
pub fn service() -> Kind {
    Kind::new("v1", "Service", "services", Scope::Namespaced)
}

/// The definition of [`echo_server`], as `kubectl apply -f -` takes it.
pub const CRD: &str = include_str!("../crd.yaml");

/// One to try it with, as `kubectl apply -f -` takes it.
pub const DEMO: &str = include_str!("../hello.yaml");
