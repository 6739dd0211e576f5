//! Which images run as local processes, and what they run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::rules::{Glob, ImageRule};

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
    pub working_dir: Option<PathBuf>,
    /// Whether it is told how to reach the cluster, by `KUBECONFIG`: for images of this project.
    pub cluster_access: bool,
}

impl Entrypoint {
    /// As a rule has it. Its paths are relative to `base`.
    pub fn of_rule(rule: &ImageRule, base: &Path) -> Self {
        let mut command = rule.command.clone();
        // A mere name is looked for in PATH.
        if let Some(program) = command.first_mut().filter(|program| program.contains('/')) {
            *program = base.join(&*program).to_string_lossy().into_owned();
        }
        let working_dir = rule.working_dir.as_ref().map(|directory| base.join(directory));
        Self { command, args: rule.args.clone(), env: rule.env.clone(), working_dir, cluster_access: false }
    }
}

/// Images by patterns of their names. The first pattern that fits decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Images(Vec<(Glob, Entrypoint)>);

impl Images {
    /// Adds images.
    #[must_use]
    pub fn with(mut self, images: Glob, entrypoint: Entrypoint) -> Self {
        self.0.push((images, entrypoint));
        self
    }

    /// Adds those of a rules file. Paths in it are relative to `base`.
    #[must_use]
    pub fn with_rules(self, rules: &[ImageRule], base: &Path) -> Self {
        let add = |all: Self, rule: &ImageRule| all.with(rule.image.clone(), Entrypoint::of_rule(rule, base));
        rules.iter().fold(self, add)
    }

    /// What is run for an image, if it runs as a process.
    pub fn find(&self, image: &str) -> Option<&Entrypoint> {
        self.0.iter().find(|(glob, _)| glob.fits(image)).map(|(_, entrypoint)| entrypoint)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rules::Rules;
    use super::*;

    #[test]
    fn first_pattern_that_fits_decides() {
        let run = |program: &str| Entrypoint { command: vec![program.into()], ..Entrypoint::default() };
        let glob = |text: &str| Glob::try_from(text.to_owned()).unwrap();
        let images = Images::default().with(glob("a:1"), run("first")).with(glob("a:*"), run("second"));
        assert_eq!(images.find("a:1"), Some(&run("first")));
        assert_eq!(images.find("a:2"), Some(&run("second")));
        assert_eq!(images.find("b"), None);
    }

    #[test]
    fn paths_of_rules_are_relative_to_where_the_rules_are() {
        let rules: Rules = r"
            images:
            - {image: a, command: [./bin/a, ./x], workingDir: work}
            - {image: b, command: [b], workingDir: /work}
            - {image: c, command: [/bin/c]}
        "
        .parse()
        .unwrap();
        let images = Images::default().with_rules(&rules.images, Path::new("/base"));
        let seen = |image: &str| {
            let found = images.find(image).unwrap();
            (found.command.join(" "), found.working_dir.clone())
        };
        assert_eq!(seen("a"), ("/base/./bin/a ./x".into(), Some("/base/work".into())));
        assert_eq!(seen("b"), ("b".into(), Some("/work".into())));
        assert_eq!(seen("c"), ("/bin/c".into(), None));
    }
}
