//! Which images run as local processes, and what they run.

use std::collections::BTreeMap;

/// What an image would bring: what is run for a container that says nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entrypoint {
    /// The program and its first arguments. A container's `command` stands in its place.
    pub command: Vec<String>,
    /// Further arguments. A container's `command` or `args` stand in their place.
    pub args: Vec<String>,
    /// Variables, which a container's own come before.
    pub env: BTreeMap<String, String>,
    /// Where it runs, if the container does not say.
    pub working_dir: Option<String>,
    /// Whether it is told how to reach the cluster, by `KUBECONFIG`: for images of this project.
    pub cluster_access: bool,
}

/// Images by patterns of their names. The first pattern that fits decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Images(Vec<(String, Entrypoint)>);

impl Images {
    /// Adds a pattern: a name in which `*` stands for any characters.
    #[must_use]
    pub fn with(mut self, pattern: impl Into<String>, entrypoint: Entrypoint) -> Self {
        self.0.push((pattern.into(), entrypoint));
        self
    }

    /// What is run for an image, if it runs as a process.
    pub fn find(&self, image: &str) -> Option<&Entrypoint> {
        self.0.iter().find(|(pattern, _)| fits(pattern, image)).map(|(_, entrypoint)| entrypoint)
    }
}

/// Whether a name is as a pattern says.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(found) = rest.find(part) else { return false };
        rest = &rest[found + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_with_stars() {
        for (pattern, name, expected) in [
            ("mainstay:*", "mainstay:v1", true),
            ("mainstay:*", "mainstay", false),
            ("mainstay", "mainstay", true),
            ("mainstay", "mainstay:v1", false),
            ("*/peer:*", "registry.local/team/peer:2", true),
            ("*/peer:*", "registry.local/team/peers", false),
            ("a*b*a", "aba", true),
            ("a*b*a", "ab", false),
            ("*", "", true),
            ("aa*aa", "aaa", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn first_pattern_that_fits_decides() {
        let run = |program: &str| Entrypoint { command: vec![program.into()], ..Entrypoint::default() };
        let images = Images::default().with("a:1", run("first")).with("a:*", run("second"));
        assert_eq!(images.find("a:1"), Some(&run("first")));
        assert_eq!(images.find("a:2"), Some(&run("second")));
        assert_eq!(images.find("b"), None);
    }
}
