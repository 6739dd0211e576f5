//! Which objects of a kind a command is about.

use super::Cluster;

/// Which objects of a kind.
#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// One object [default: all].
    pub(crate) name: Option<String>,
    /// In this namespace [default: the context's].
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// In all namespaces.
    #[arg(short = 'A', long, conflicts_with = "name")]
    pub(crate) all_namespaces: bool,
}

impl Selection {
    /// One cluster-scoped object, or all of them.
    pub(crate) fn named(name: Option<String>) -> Self {
        Self { name, namespace: None, all_namespaces: false }
    }

    /// The namespace they are in, if they are in one; none if it does not matter.
    pub(crate) fn namespace<'a>(&'a self, cluster: &'a Cluster) -> Option<&'a str> {
        (!self.all_namespaces).then(|| cluster.or_default(self.namespace.as_deref()))
    }
}
