//! What a pod may ask for that a local process cannot have. All of it is refused by name before anything is started: a pod is never
//! a way to gain more rights than the user who runs the node, and nothing is quietly left out that a workload counts on.

use std::path::Path;

use k8s_openapi::api::core::v1::{Capabilities, Container, PersistentVolume, PodSpec, Probe, Volume};

use crate::controllers::storage::{PROVISIONED_BY, PROVISIONER};

/// Who the node runs as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Identity {
    /// The user.
    pub(super) user: u32,
    /// The groups, the first of which is the main one.
    pub(super) groups: Vec<u32>,
}

impl Identity {
    /// Who this process runs as.
    #[cfg(unix)]
    pub(super) fn own() -> Self {
        let mut groups = vec![rustix::process::getegid().as_raw()];
        groups.extend(rustix::process::getgroups().unwrap_or_default().iter().map(|group| group.as_raw()));
        Self { user: rustix::process::geteuid().as_raw(), groups }
    }

    /// Who this process runs as: nobody that a pod could name.
    #[cfg(not(unix))]
    pub(super) fn own() -> Self {
        Self { user: u32::MAX, groups: Vec::new() }
    }

    fn is_user(&self, user: i64) -> bool {
        u32::try_from(user) == Ok(self.user)
    }

    fn has_group(&self, group: i64) -> bool {
        u32::try_from(group).is_ok_and(|group| self.groups.contains(&group))
    }

    fn is_main_group(&self, group: i64) -> bool {
        u32::try_from(group).is_ok_and(|group| self.groups.first() == Some(&group))
    }
}

/// Why a container cannot run as a local process, if it cannot.
pub(super) fn refused(spec: &PodSpec, container: &Container, own: &Identity) -> Option<String> {
    let what = of_pod(spec)
        .or_else(|| spec.volumes.iter().flatten().find_map(of_volume))
        .or_else(|| of_identity(spec, container, own))
        .or_else(|| of_rights(container))
        .or_else(|| of_mounts(spec, container))
        .or_else(|| of_container(container))
        .or_else(|| of_probes(container))?;
    Some(impossible(&what))
}

fn impossible(what: &str) -> String {
    format!("{what} is not possible for a pod that runs as a local process")
}

/// Why a claim's volume cannot be had, if it cannot. Only those are directories of the node that were made for it: one that was made
/// by hand has its data elsewhere.
pub(super) fn refused_volume(name: &str, volume: &PersistentVolume) -> Option<String> {
    let annotations = volume.metadata.annotations.as_ref();
    if annotations.and_then(|all| all.get(PROVISIONED_BY)).is_some_and(|by| by == PROVISIONER) {
        return None;
    }
    // A volume's spec serialises to these and its one source.
    let others = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    let fields = serde_json::to_value(&volume.spec).unwrap_or_default();
    let source =
        fields.as_object().and_then(|fields| fields.keys().find(|key| !others.contains(&key.as_str())));
    let source = source.map_or("no source", String::as_str);
    let own = volume.metadata.name.as_deref().unwrap_or_default();
    Some(impossible(&format!("volume {name:?}: persistentvolume {own:?} with {source}")))
}

fn of_pod(spec: &PodSpec) -> Option<String> {
    let security = spec.security_context.as_ref();
    let first = [
        ("spec.hostNetwork", spec.host_network == Some(true)),
        ("spec.hostPID", spec.host_pid == Some(true)),
        ("spec.hostIPC", spec.host_ipc == Some(true)),
        ("spec.runtimeClassName", spec.runtime_class_name.as_ref().is_some_and(|name| !name.is_empty())),
        ("spec.resourceClaims", spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty())),
        (
            "spec.securityContext.sysctls",
            security.and_then(|s| s.sysctls.as_ref()).is_some_and(|sysctls| !sysctls.is_empty()),
        ),
    ];
    first.into_iter().find(|(_, asked)| *asked).map(|(field, _)| field.to_owned())
}

/// The sources that there are; all others are refused, whatever they are called.
fn of_volume(volume: &Volume) -> Option<String> {
    let supported = volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.projected.is_some()
        || volume.downward_api.is_some()
        || volume.empty_dir.is_some()
        || volume.persistent_volume_claim.is_some()
        || volume.ephemeral.is_some();
    if supported {
        return None;
    }
    // A volume serialises to its name and its one source.
    let fields = serde_json::to_value(volume).unwrap_or_default();
    let source = fields.as_object().and_then(|fields| fields.keys().find(|key| *key != "name"));
    Some(match source {
        Some(source) => format!("volume {:?}: {source}", volume.name),
        None => format!("volume {:?} without a source", volume.name),
    })
}

/// A mount is a link, and one inside another is written into the outer volume. In a claim it would outlive the pod, and be seen by
/// all others that have the claim.
fn of_mounts(spec: &PodSpec, container: &Container) -> Option<String> {
    let is_claim = |name: &str| {
        let volume = spec.volumes.iter().flatten().find(|volume| volume.name == name);
        volume.is_some_and(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some())
    };
    let mounts = container.volume_mounts.as_deref().unwrap_or_default();
    let claims = mounts.iter().filter(|mount| is_claim(&mount.name));
    claims.into_iter().find_map(|outer| {
        let below = |path: &str| {
            let (path, outer) = (Path::new(path), Path::new(&outer.mount_path));
            path != outer && path.starts_with(outer)
        };
        let inner = mounts.iter().find(|inner| below(&inner.mount_path))?;
        Some(format!(
            "container {:?}: mountPath {:?} inside {:?}, which is a claim,",
            container.name, inner.mount_path, outer.mount_path
        ))
    })
}

fn of_identity(spec: &PodSpec, container: &Container, own: &Identity) -> Option<String> {
    let (of_pod, of_container) = (spec.security_context.as_ref(), container.security_context.as_ref());
    let user = of_container.and_then(|s| s.run_as_user).or(of_pod.and_then(|s| s.run_as_user));
    let group = of_container.and_then(|s| s.run_as_group).or(of_pod.and_then(|s| s.run_as_group));
    let no_root = of_container.and_then(|s| s.run_as_non_root).or(of_pod.and_then(|s| s.run_as_non_root));
    let further = of_pod.and_then(|s| s.supplemental_groups.as_ref()).into_iter().flatten();
    if let Some(user) = user.filter(|user| !own.is_user(*user)) {
        return Some(format!("runAsUser {user} (the node runs as user {})", own.user));
    }
    if let Some(group) = group.filter(|group| !own.is_main_group(*group)) {
        return Some(format!("runAsGroup {group} (the node runs with groups {:?})", own.groups));
    }
    if no_root == Some(true) && own.is_user(0) {
        return Some("runAsNonRoot (the node runs as root)".to_owned());
    }
    let foreign = further.into_iter().find(|group| !own.has_group(**group));
    foreign.map(|group| format!("supplementalGroups {group} (the node runs with groups {:?})", own.groups))
}

fn of_rights(container: &Container) -> Option<String> {
    let security = container.security_context.as_ref()?;
    let added = |capabilities: &Capabilities| capabilities.add.clone().filter(|add| !add.is_empty());
    if security.privileged == Some(true) {
        return Some("securityContext.privileged".into());
    }
    if let Some(added) = security.capabilities.as_ref().and_then(added) {
        return Some(format!("securityContext.capabilities.add {}", added.join(", ")));
    }
    let mount = security.proc_mount.as_deref().filter(|mount| *mount != "Default" && !mount.is_empty());
    mount.map(|mount| format!("securityContext.procMount {mount}"))
}

fn of_container(container: &Container) -> Option<String> {
    let lifecycle = container.lifecycle.as_ref();
    let signal = lifecycle.and_then(|l| l.stop_signal.as_deref()).filter(|signal| *signal != "SIGTERM");
    let host_port =
        container.ports.iter().flatten().find_map(|port| port.host_port.filter(|port| *port != 0));
    let claims = container.resources.as_ref().and_then(|r| r.claims.as_ref());
    let first = [
        ("lifecycle.postStart".to_owned(), lifecycle.is_some_and(|l| l.post_start.is_some())),
        ("lifecycle.preStop".to_owned(), lifecycle.is_some_and(|l| l.pre_stop.is_some())),
        (format!("lifecycle.stopSignal {}", signal.unwrap_or_default()), signal.is_some()),
        ("volumeDevices".to_owned(), container.volume_devices.as_ref().is_some_and(|all| !all.is_empty())),
        ("resources.claims".to_owned(), claims.is_some_and(|claims| !claims.is_empty())),
        (format!("hostPort {}", host_port.unwrap_or_default()), host_port.is_some()),
        ("stdin".to_owned(), container.stdin == Some(true)),
        ("tty".to_owned(), container.tty == Some(true)),
    ];
    let (field, _) = first.into_iter().find(|(_, asked)| *asked)?;
    Some(format!("container {:?}: {field}", container.name))
}

fn of_probes(container: &Container) -> Option<String> {
    let probes = [
        ("startupProbe", &container.startup_probe),
        ("livenessProbe", &container.liveness_probe),
        ("readinessProbe", &container.readiness_probe),
    ];
    let https = |probe: &Probe| {
        probe
            .http_get
            .as_ref()
            .is_some_and(|get| get.scheme.as_deref().is_some_and(|s| s.eq_ignore_ascii_case("https")))
    };
    probes.into_iter().find_map(|(name, probe)| {
        let probe = probe.as_ref()?;
        let kind = match probe {
            probe if probe.grpc.is_some() => "grpc",
            probe if https(probe) => "httpGet with scheme HTTPS",
            _ => return None,
        };
        Some(format!("container {:?}: {name}.{kind}", container.name))
    })
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "fixtures and expectations are literals")]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn asked(pod: Value, container: Value) -> Option<String> {
        let mut spec = json!({"containers": []});
        spec.as_object_mut().unwrap().extend(pod.as_object().unwrap().clone());
        let mut fields = json!({"name": "main", "image": "mainstay:1"});
        fields.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
        let spec: PodSpec = serde_json::from_value(spec).unwrap();
        let container: Container = serde_json::from_value(fields).unwrap();
        refused(&spec, &container, &Identity { user: 1000, groups: vec![1000, 27] })
    }

    #[test]
    fn what_needs_more_rights_is_refused_by_name() {
        let of_pod = [
            (json!({"hostNetwork": true}), "spec.hostNetwork"),
            (json!({"hostPID": true}), "spec.hostPID"),
            (json!({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}), "volume \"host\": hostPath"),
            (json!({"volumes": [{"name": "n", "nfs": {"path": "/", "server": "s"}}]}), "volume \"n\": nfs"),
            (json!({"securityContext": {"runAsUser": 0}}), "runAsUser 0 (the node runs as user 1000)"),
            (
                json!({"securityContext": {"runAsGroup": 27}}),
                "runAsGroup 27 (the node runs with groups [1000, 27])",
            ),
            (
                json!({"securityContext": {"supplementalGroups": [27, 5]}}),
                "supplementalGroups 5 (the node runs with groups [1000, 27])",
            ),
        ];
        let of_container = [
            (json!({"securityContext": {"privileged": true}}), "securityContext.privileged"),
            (
                json!({"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}),
                "securityContext.capabilities.add NET_ADMIN",
            ),
            (
                json!({"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}),
                "container \"main\": lifecycle.preStop",
            ),
            (json!({"ports": [{"containerPort": 80, "hostPort": 80}]}), "container \"main\": hostPort 80"),
            (json!({"livenessProbe": {"grpc": {"port": 1}}}), "container \"main\": livenessProbe.grpc"),
            (
                json!({"readinessProbe": {"httpGet": {"port": 1, "scheme": "HTTPS"}}}),
                "container \"main\": readinessProbe.httpGet with scheme HTTPS",
            ),
            (json!({"stdin": true}), "container \"main\": stdin"),
        ];
        let all = of_pod.into_iter().map(|(pod, what)| (asked(pod, json!({})), what));
        let all =
            all.chain(of_container.into_iter().map(|(container, what)| (asked(json!({}), container), what)));
        for (refused, what) in all.collect::<Vec<_>>() {
            let expected = format!("{what} is not possible for a pod that runs as a local process");
            assert_eq!(refused.as_deref(), Some(expected.as_str()));
        }
    }

    #[test]
    fn what_asks_for_no_more_than_one_has_is_let_through() {
        let pod = json!({
            "securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": true, "supplementalGroups": [27]},
            "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "c"}}],
        });
        let container = json!({
            "securityContext": {"privileged": false, "capabilities": {"drop": ["ALL"]}},
            "readinessProbe": {"httpGet": {"port": 1, "scheme": "HTTP"}},
            "livenessProbe": {"exec": {"command": ["true"]}},
        });
        assert_eq!(asked(pod, container), None);
    }

    #[test]
    fn mounts_inside_a_claim_are_refused_and_no_others() {
        let volumes = json!({"volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "tmp", "emptyDir": {}},
        ]});
        let mounts = |all: &[(&str, &str)]| {
            let mount = |(name, path): &(&str, &str)| json!({"name": name, "mountPath": path});
            let all: Vec<Value> = all.iter().map(mount).collect();
            asked(volumes.clone(), json!({"volumeMounts": all}))
        };
        let refused = mounts(&[("tmp", "/data/x"), ("data", "/data/")]).unwrap();
        let named = "container \"main\": mountPath \"/data/x\" inside \"/data/\", which is a claim, is not";
        assert!(refused.starts_with(named), "{refused}");
        assert_eq!(mounts(&[("data", "/data"), ("tmp", "/data-x")]), None);
        assert_eq!(mounts(&[("tmp", "/scratch"), ("data", "/scratch/data")]), None);
    }

    #[test]
    fn containers_user_stands_before_the_pods() {
        let pod = json!({"securityContext": {"runAsUser": 0}});
        assert_eq!(asked(pod, json!({"securityContext": {"runAsUser": 1000}})), None);
    }

    #[test]
    fn root_cannot_be_somebody_else() {
        let spec: PodSpec =
            serde_json::from_value(json!({"containers": [], "securityContext": {"runAsNonRoot": true}}))
                .unwrap();
        let root = Identity { user: 0, groups: vec![0] };
        let refused = refused(&spec, &Container::default(), &root).unwrap();
        assert!(refused.starts_with("runAsNonRoot (the node runs as root)"), "{refused}");
    }
}
