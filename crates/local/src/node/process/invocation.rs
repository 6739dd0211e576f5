//! How a command of a container is run: which program, with which variables, and where.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use k8s_openapi::api::core::v1::Container;
use tokio::process::Command;

use super::environment::expand;
use super::images::Entrypoint;
use super::signals::Group;
use super::strays;

/// What all commands of a container have in common.
#[derive(Clone)]
pub(super) struct Invocation {
    /// All of their variables.
    pub(super) variables: BTreeMap<String, String>,
    /// The directory that stands for the container's root.
    pub(super) root: PathBuf,
    /// Where they run.
    pub(super) directory: PathBuf,
}

/// The command of a container: its own, or its image's with its arguments, with references to variables expanded.
pub(super) fn command_line(
    container: &Container,
    image: &Entrypoint,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<String>, String> {
    let own = |given: &Option<Vec<String>>| {
        let given = given.as_ref().filter(|given| !given.is_empty())?;
        Some(given.iter().map(|part| expand(part, |name| variables.get(name).cloned())).collect::<Vec<_>>())
    };
    let line = match (own(&container.command), own(&container.args)) {
        (Some(command), args) => [command, args.unwrap_or_default()].concat(),
        (None, Some(args)) => [image.command.clone(), args].concat(),
        (None, None) => [image.command.clone(), image.args.clone()].concat(),
    };
    match line.first() {
        Some(program) if !program.is_empty() => Ok(line),
        _ => Err("no command specified".to_owned()),
    }
}

/// Where a container runs: in its `workingDir` below its root if that is there, else as it is given.
pub(super) fn working_directory(
    container: &Container,
    image: &Entrypoint,
    root: &Path,
) -> Result<PathBuf, String> {
    let Some(given) = container.working_dir.as_deref().filter(|given| !given.is_empty()) else {
        return Ok(image.working_dir.as_ref().map_or_else(|| root.to_owned(), |given| root.join(given)));
    };
    let inside = root.join(given.trim_start_matches('/'));
    let directory = if inside.is_dir() { inside } else { PathBuf::from(given) };
    if directory.is_dir() { Ok(directory) } else { Err(format!("workingDir {given:?} is not there")) }
}

impl Invocation {
    /// A command that is ready to be started, in a process group of its own.
    pub(super) fn command(&self, line: &[String]) -> Result<Command, String> {
        let (program, arguments) = line.split_first().ok_or("no command specified")?;
        let mut command = Command::new(self.find(program)?);
        command
            .args(arguments)
            .env_clear()
            .envs(&self.variables)
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        #[cfg(unix)]
        command.process_group(0);
        Ok(command)
    }

    /// Runs a command to its end. It and all that it started are ended when nobody waits for it any more.
    pub(super) async fn run(&self, line: &[String]) -> Result<(), String> {
        let mut command = self.command(line)?;
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = strays::spawn(&mut command).map_err(|error| error.to_string())?;
        let group = Group::of(&child);
        let status = child.wait().await.map_err(|error| error.to_string())?;
        group.end_rest();
        if status.success() { Ok(()) } else { Err(status.to_string()) }
    }

    /// The file of a program: a path below the container's root, a path, or a name that is looked for in `PATH`.
    fn find(&self, program: &str) -> Result<PathBuf, String> {
        if program.contains('/') {
            let inside = self.root.join(program.trim_start_matches('/'));
            let candidates = if program.starts_with('/') {
                [inside, PathBuf::from(program)]
            } else {
                [self.directory.join(program), inside]
            };
            let found = candidates.into_iter().find(|candidate| candidate.is_file());
            return found.ok_or_else(|| format!("exec: {program:?}: no such file or directory"));
        }
        let path = self.variables.get("PATH").map(String::as_str).unwrap_or_default();
        let found = std::env::split_paths(path)
            .map(|directory| directory.join(program))
            .find(|file| is_program(file));
        found.ok_or_else(|| format!("exec: {program:?}: executable file not found in $PATH"))
    }
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "fixtures and expectations are literals")]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn line(container: Value) -> Result<String, String> {
        let mut fields = json!({"name": "main"});
        fields.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
        let container = serde_json::from_value(fields).unwrap();
        let image =
            Entrypoint { command: vec!["image".into()], args: vec!["$(A)".into()], ..Entrypoint::default() };
        command_line(&container, &image, &[("A".to_owned(), "a".to_owned())].into())
            .map(|line| line.join(" "))
    }

    #[test]
    fn command_and_args_stand_for_the_images() {
        for (container, expected) in [
            (json!({}), "image $(A)"),
            (json!({"args": ["$(A)", "$$(A)"]}), "image a $(A)"),
            (json!({"command": ["own", "$(B)"]}), "own $(B)"),
            (json!({"command": ["own"], "args": ["x"]}), "own x"),
            (json!({"command": [], "args": []}), "image $(A)"),
        ] {
            assert_eq!(line(container).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn image_without_command_needs_one() {
        let nothing = command_line(&Container::default(), &Entrypoint::default(), &BTreeMap::new());
        assert_eq!(nothing, Err("no command specified".into()));
    }

    fn invocation(root: &Path) -> Invocation {
        let variables = [("PATH".to_owned(), "/nowhere:/bin:/usr/bin".to_owned())].into();
        Invocation { variables, root: root.to_owned(), directory: root.to_owned() }
    }

    #[test]
    fn programs_are_found_below_the_root_first() {
        let root = tempfile::tempdir().unwrap();
        let invocation = invocation(root.path());
        let missing = |program: &str| invocation.find(program).unwrap_err();
        assert!(invocation.find("sh").unwrap().is_absolute());
        assert_eq!(
            missing("no-such-program"),
            "exec: \"no-such-program\": executable file not found in $PATH"
        );
        assert_eq!(missing("/no/such"), "exec: \"/no/such\": no such file or directory");
        assert_eq!(invocation.find("/bin/sh").unwrap(), Path::new("/bin/sh"));
        std::fs::create_dir_all(root.path().join("bin")).unwrap();
        std::fs::write(root.path().join("bin/sh"), "").unwrap();
        assert_eq!(invocation.find("/bin/sh").unwrap(), root.path().join("bin/sh"));
    }

    #[test]
    fn working_directory_is_below_the_root_if_it_is_there() {
        let root = tempfile::tempdir().unwrap();
        let container = |dir: &str| Container { working_dir: Some(dir.into()), ..Container::default() };
        let image = Entrypoint { working_dir: Some("/image".into()), ..Entrypoint::default() };
        let find = |container: &Container| working_directory(container, &image, root.path());
        std::fs::create_dir_all(root.path().join("data")).unwrap();
        assert_eq!(find(&container("/data")), Ok(root.path().join("data")));
        assert_eq!(find(&container("/")), Ok(root.path().join("")));
        assert_eq!(find(&container("/no/such")), Err("workingDir \"/no/such\" is not there".into()));
        assert_eq!(find(&Container::default()), Ok("/image".into()));
        assert_eq!(
            working_directory(&Container::default(), &Entrypoint::default(), root.path()),
            Ok(root.path().into())
        );
    }
}
