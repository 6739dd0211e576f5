//! What `mainstay up` says. The kubeconfig's path is the data; the rest is for the person who watches.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use mainstay_local::cluster::OWN_IMAGES;

/// Says where things are and what to do next.
pub(super) fn serving(url: &str, directory: Option<&Path>, kubeconfig: &Path, took: Duration) {
    let version = mainstay_apiserver::KUBERNETES_VERSION;
    let state = directory.map_or_else(|| "memory, nothing is kept".into(), |path| path.display().to_string());
    let before = format!(
        "Kubernetes {version} at {url}, ready in {} ms\n\
         pods of {OWN_IMAGES} run as processes of this machine, all others are simulated\n\
         state in {state}\nkubeconfig:\n",
        took.as_millis()
    );
    let mut after = String::from("next, in another terminal:\n");
    let _ = writeln!(after, "  export KUBECONFIG={}", quoted(kubeconfig));
    after.push_str("  kubectl create deployment web --image=nginx\nCtrl-C ends it\n");
    say(&before);
    // A reader that is gone does not end the server.
    let _ = writeln!(std::io::stdout(), "{}", kubeconfig.display());
    say(&after);
}

/// Says that there was data of volumes and pods that the cluster does not know.
pub(super) fn quarantined(paths: &[std::path::PathBuf]) {
    for path in paths {
        say(&format!(
            "there is no such volume or pod: its files were moved to {}; delete them if nobody needs them\n",
            path.display()
        ));
    }
}

/// Says what remains.
pub(super) fn stopped(directory: Option<&Path>) {
    match directory {
        Some(path) => say(&format!("ended; state stays in {}\n", path.display())),
        None => say("ended; nothing is kept\n"),
    }
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// A path as one word of a shell command.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted(Path::new("/a/b-c.d")), "/a/b-c.d");
        assert_eq!(quoted(Path::new("/a b/c")), "'/a b/c'");
        assert_eq!(quoted(Path::new("/it's")), r"'/it'\''s'");
    }
}
