//! `mainstay up` as a person runs it.

#[cfg(target_os = "linux")]
mod crds;
mod demo;
#[cfg(target_os = "linux")]
mod full;
#[cfg(target_os = "linux")]
mod kubectl;
#[cfg(target_os = "linux")]
#[path = "../../../apiserver/tests/durability/mount.rs"]
mod mount;
#[cfg(target_os = "linux")]
mod processes;
mod refused;
#[cfg(target_os = "linux")]
mod restarts;
mod run;
#[cfg(target_os = "linux")]
mod workloads;

use expect_test::expect;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use mainstay_testkit::real::client_from;
use run::{Run, mainstay};
use std::path::Path;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

async fn create(kubeconfig: &Path, name: &str) {
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    let maps: Api<ConfigMap> = Api::namespaced(client_from(kubeconfig).await.unwrap(), "default");
    maps.create(&PostParams::default(), &map).await.unwrap();
}

async fn exists(kubeconfig: &Path, name: &str) -> bool {
    let maps: Api<ConfigMap> = Api::namespaced(client_from(kubeconfig).await.unwrap(), "default");
    maps.get_opt(name).await.unwrap().is_some()
}

/// Everything in a kubeconfig but where the server is.
fn identity(kubeconfig: &Path) -> String {
    let text = std::fs::read_to_string(kubeconfig).unwrap();
    text.lines().filter(|line| !line.trim_start().starts_with("server:")).collect()
}

#[tokio::test]
async fn the_kubeconfigs_token_lets_a_client_in() {
    let directory = tempfile::tempdir().unwrap();
    let (run, kubeconfig) = Run::up(&["--data", text(directory.path())]);
    assert_eq!(kubeconfig, directory.path().join("kubeconfig"));
    // Installs what TLS is made with; the client itself is not wanted here.
    client_from(&kubeconfig).await.unwrap();

    let with = async |change: fn(&mut kube::config::AuthInfo, kube::config::AuthInfo)| {
        let mut parsed = Kubeconfig::read_from(&kubeconfig).unwrap();
        let certified = parsed.auth_infos[1].auth_info.clone().unwrap();
        change(parsed.auth_infos[0].auth_info.as_mut().unwrap(), certified);
        let config = kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await;
        let client = kube::Client::try_from(config.unwrap()).unwrap();
        let version = client.apiserver_version().await.unwrap();
        assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
        Api::<Namespace>::all(client).list(&ListParams::default()).await
    };
    let token = with(|user, _| assert!(user.client_key_data.is_none()));
    assert!(token.await.unwrap().items.len() >= 4);
    assert!(with(|user, certified| *user = certified).await.is_ok(), "the certificate lets in too");
    let neither = with(|user, _| *user = kube::config::AuthInfo::default()).await.unwrap_err();
    assert!(matches!(neither, kube::Error::Api(status) if status.code == 401));
    drop(run);
}

#[test]
fn it_says_where_things_are_and_what_to_do_and_ends_on_either_signal() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    for signal in ["INT", "TERM"] {
        let (mut run, kubeconfig) = Run::up(&["--data", text(&state)]);
        run.signal(signal);
        let ended = run.end();
        assert_eq!((ended.code, ended.stdout.as_slice()), (Some(0), &[][..]), "{ended:?}");
        let server = std::fs::read_to_string(&kubeconfig).unwrap();
        let url = server.lines().find_map(|line| line.trim().strip_prefix("server: ")).unwrap();
        // Whatever takes long on a busy machine is told too.
        let said: String = ended.stderr.split_inclusive('\n').filter(|line| !line.ends_with("…\n")).collect();
        let said = said.replace(url, "URL").replace(text(&state), "DIR");
        let (before, after) = said.split_once(" ready in ").unwrap();
        let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
        expect![[r#"
            Kubernetes v1.36.3 at URL, ms
            pods of mainstay:* run as processes of this machine, all others are simulated
            state in DIR
            kubeconfig:
            next, in another terminal:
              export KUBECONFIG=DIR/kubeconfig
              kubectl create deployment web --image=nginx
            Ctrl-C ends it
            ended; state stays in DIR
        "#]]
        .assert_eq(&format!("{before}{after}"));
    }
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_keys_or_state() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let (_run, kubeconfig) = Run::up(&["--data", text(&state)]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    for file in [kubeconfig, state.join("credentials.json"), state.join("store.redb")] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn objects_and_credentials_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--data", text(directory.path())];
    let (mut run, kubeconfig) = Run::up(&arguments);
    create(&kubeconfig, "kept").await;
    let known = identity(&kubeconfig);
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));

    let (_run, kubeconfig) = Run::up(&arguments);
    assert!(exists(&kubeconfig, "kept").await);
    assert_eq!(identity(&kubeconfig), known);
}

#[tokio::test]
async fn objects_survive_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--data", text(directory.path())];
    for round in 0..3 {
        let (run, kubeconfig) = Run::up(&arguments);
        for earlier in 0..round {
            assert!(exists(&kubeconfig, &format!("kept-{earlier}")).await, "round {round}");
        }
        create(&kubeconfig, &format!("kept-{round}")).await;
        run.kill();
    }
}

#[tokio::test]
async fn in_memory_nothing_is_left_behind() {
    let world = tempfile::tempdir().unwrap();
    let named = world.path().join("named");
    for arguments in [&[][..], &["--kubeconfig", text(&named)]] {
        let arguments = [&["up", "--memory", "--listen", "127.0.0.1:0"], arguments].concat();
        let mut command = mainstay(&arguments);
        command.env("HOME", world.path()).env("TMPDIR", world.path()).current_dir(world.path());
        let (mut run, kubeconfig) = Run::up_with(command);
        assert!(kubeconfig.starts_with(world.path()));
        create(&kubeconfig, "forgotten").await;
        run.signal("TERM");
        let ended = run.end();
        assert_eq!(ended.code, Some(0));
        assert!(ended.stderr.ends_with("ended; nothing is kept\n"), "{ended:?}");
        assert_eq!(std::fs::read_dir(world.path()).unwrap().count(), 0);
    }
}

#[test]
fn state_goes_to_the_users_data_directory() {
    let world = tempfile::tempdir().unwrap();
    let mut command = mainstay(&["up", "--listen", "127.0.0.1:0"]);
    command.env("XDG_DATA_HOME", world.path());
    let (_run, kubeconfig) = Run::up_with(command);
    assert_eq!(kubeconfig, world.path().join("mainstay/kubeconfig"));
}

#[test]
fn wrong_usage_ends_with_2() {
    for arguments in
        [&["up", "--memory", "--data", "x"][..], &["up", "--listen", "0.0.0.0:6443"], &["down"], &[]]
    {
        let ended = Run::start(mainstay(arguments)).end();
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stdout.is_empty(), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn version_and_completion_are_data() {
    let ended = Run::start(mainstay(&["--version"])).end();
    assert_eq!(ended.stdout, [concat!("mainstay ", env!("CARGO_PKG_VERSION"))]);
    for shell in ["bash", "zsh", "fish"] {
        let ended = Run::start(mainstay(&["completion", shell])).end();
        assert_eq!(ended.code, Some(0));
        assert!(ended.stdout.iter().any(|line| line.contains("kubeconfig")), "{shell}");
        assert!(ended.stderr.is_empty());
    }
}
