//! The whole environment of a container: what every process has, what its image brings, services, and what it declares itself, each
//! before those that come after it.
//!
//! Nothing of the node's own environment is handed on but [`INHERITED`]: what is in it may be secret, and a container must not
//! behave differently because of who started the node.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;

use super::environment::host_name;
use super::record::ROOT;

/// The variables of the node's own environment that containers get: where programs are, and how texts and times are shown.
pub const INHERITED: [&str; 5] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// Names the hosts file.
const HOSTS: &str = "MAINSTAY_HOSTS";

/// Where a container is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// What stands for its root.
    pub(super) root: &'a Path,
    /// Its pod's hosts file.
    pub(super) hosts: &'a Path,
    /// Its pod's address.
    pub(super) address: &'a str,
    /// How it reaches the API server, if it may.
    pub(super) kubeconfig: Option<&'a Path>,
}

/// All variables of a container.
pub(super) fn whole(
    own: impl Fn(&str) -> Option<String>,
    pod: &Pod,
    place: &Place<'_>,
    layers: [&BTreeMap<String, String>; 3],
) -> BTreeMap<String, String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut all: BTreeMap<String, String> =
        INHERITED.into_iter().filter_map(|name| Some((name.to_owned(), own(name)?))).collect();
    let mut set = |name: &str, value: String| all.insert(name.to_owned(), value);
    set("HOME", text(&place.root.join("home")));
    set("TMPDIR", text(&place.root.join("tmp")));
    set("HOSTNAME", full_host_name(pod));
    set("POD_IP", place.address.to_owned());
    if let Some(path) = place.kubeconfig {
        set("KUBECONFIG", text(path));
    }
    for layer in layers {
        all.extend(layer.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    // Nobody else can say these: by them a process is known again, and finds what is its own.
    all.insert(ROOT.to_owned(), text(place.root));
    all.insert(HOSTS.to_owned(), text(place.hosts));
    all
}

fn full_host_name(pod: &Pod) -> String {
    let metadata = &pod.metadata;
    let (name, namespace) =
        (metadata.name.as_deref().unwrap_or_default(), metadata.namespace.as_deref().unwrap_or_default());
    let spec = pod.spec.clone().unwrap_or_default();
    match host_name(name, namespace, &spec) {
        (host, Some(domain)) if spec.set_hostname_as_fqdn == Some(true) => format!("{host}.{domain}"),
        (host, _) => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn variables(layers: [&BTreeMap<String, String>; 3]) -> String {
        let pod = serde_json::from_value(json!({"metadata": {"name": "web-0"}, "spec": {"containers": []}}))
            .unwrap();
        let place = Place {
            root: Path::new("/pod/roots/main"),
            hosts: Path::new("/pod/hosts"),
            address: "127.4.5.6",
            kubeconfig: Some(Path::new("/config")),
        };
        let own = |name: &str| match name {
            "PATH" => Some("/bin".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("hunter2".to_owned()),
            _ => None,
        };
        let all = whole(own, &pod, &place, layers);
        all.iter().flat_map(|(name, value)| [name, "=", value, "\n"]).collect()
    }

    #[test]
    fn only_what_is_listed_is_inherited() {
        let none = BTreeMap::new();
        expect_test::expect![[r#"
            HOME=/pod/roots/main/home
            HOSTNAME=web-0
            KUBECONFIG=/config
            MAINSTAY_HOSTS=/pod/hosts
            MAINSTAY_ROOT=/pod/roots/main
            PATH=/bin
            POD_IP=127.4.5.6
            TMPDIR=/pod/roots/main/tmp
        "#]]
        .assert_eq(&variables([&none, &none, &none]));
    }

    #[test]
    fn later_layers_win_but_not_over_what_a_process_is_known_by() {
        let layer = |all: &[(&str, &str)]| {
            all.iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let image = layer(&[("PATH", "/image"), ("A", "image"), ("HOME", "/image")]);
        let declared = layer(&[("A", "own"), ("MAINSTAY_ROOT", "/elsewhere")]);
        let text = variables([&image, &BTreeMap::new(), &declared]);
        for expected in ["A=own\n", "PATH=/image\n", "HOME=/image\n", "MAINSTAY_ROOT=/pod/roots/main\n"] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }
}
