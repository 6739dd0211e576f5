//! Finds whoever runs a system, and asks about an object.

use super::render::Report;
use crate::cluster::{Cluster, list, reason};
use crate::failure::Failure;
use crate::manifests::{APP, PORT};
use crate::run::announce::announced;
use crate::systems::{Parent, System};
use http::{Request, Uri};
use kube::{Client, Config};
use mainstay::Key;
use std::time::Duration;

/// How long an operator may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where an operator may be.
struct Place {
    /// As people read it.
    name: String,
    client: Client,
    /// What comes before the path.
    prefix: String,
}

/// What came of asking.
enum Asked {
    Told(Box<Report>),
    /// It has no such object.
    Unknown,
    NoAnswer(String),
}

/// What an operator tells about an object. Of several replicas the one that did the work knows most.
pub(super) async fn ask(
    cluster: &Cluster,
    system: &System,
    (at, token): (Option<&Uri>, Option<&str>),
    parent: &Parent,
    key: &Key,
) -> Result<Report, Failure> {
    let places = match at {
        Some(uri) => vec![direct(uri.clone(), token)?],
        None => places(cluster, system).await?,
    };
    let mut told: Option<Report> = None;
    let mut others = Vec::new();
    for place in places {
        let path = format!("{}{}", place.prefix, path(parent, key));
        let answer = ask_one(&place.client, &path).await;
        match answer {
            Asked::Told(report) => {
                if told.as_ref().is_none_or(|known| known.history.len() < report.history.len()) {
                    told = Some(*report);
                }
            }
            Asked::Unknown => others.push(format!("{} does not look after it", place.name)),
            Asked::NoAnswer(why) => others.push(format!("{} does not answer: {why}", place.name)),
        }
    }
    told.ok_or_else(|| nobody(system, &others))
}

fn nobody(system: &System, asked: &[String]) -> Failure {
    let name = system.name;
    let why = match asked {
        [] => "no running operator of it was found".to_owned(),
        asked => asked.join("\n"),
    };
    Failure::new(anyhow::anyhow!(why)).context(format!("cannot tell what {name} did")).next(format!(
        "mainstay run {name} runs it; to ask one in a pod that cannot be reached:\n    \
         kubectl port-forward -n NAMESPACE deploy/mainstay-{name} {PORT}, and --at http://127.0.0.1:{PORT}"
    ))
}

/// The page about an object.
fn path(parent: &Parent, key: &Key) -> String {
    let namespace = key.namespace().unwrap_or("-");
    format!("/debug/parents/{}/{namespace}/{}", parent.kind.kind(), key.name())
}

async fn ask_one(client: &Client, path: &str) -> Asked {
    let request = match Request::get(path).header("accept", "application/json").body(Vec::new()) {
        Ok(request) => request,
        Err(error) => return Asked::NoAnswer(error.to_string()),
    };
    match tokio::time::timeout(PATIENCE, client.request::<Report>(request)).await {
        Ok(Ok(report)) => Asked::Told(Box::new(report)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Asked::Unknown,
        Ok(Err(error)) => Asked::NoAnswer(reason(&error)),
        Err(_) => Asked::NoAnswer(format!("nothing came within {} s", PATIENCE.as_secs())),
    }
}

/// Everywhere that an operator of the system may be.
async fn places(cluster: &Cluster, system: &System) -> Result<Vec<Place>, Failure> {
    let failed = |error| cluster.failed("look for operators", error);
    let mut places = Vec::new();
    for url in announced(cluster, system.name).await.map_err(failed)? {
        // What is no address was written by somebody else.
        places.extend(url.parse().ok().and_then(|uri| direct(uri, None).ok()));
    }
    let selector = format!("app.kubernetes.io/name={APP},app.kubernetes.io/component={}", system.name);
    let pods = match list(&cluster.client, &format!("/api/v1/pods?labelSelector={selector}")).await {
        // Who may not see pods may still see addresses.
        Err(kube::Error::Api(status)) if status.code == 403 => Vec::new(),
        pods => pods.map_err(failed)?,
    };
    for pod in &pods {
        let text = |pointer: &str| pod.pointer(pointer).and_then(|value| value.as_str()).unwrap_or_default();
        if text("/status/phase") == "Running" {
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            places.push(Place {
                name: format!("pod {namespace}/{name}"),
                client: cluster.client.clone(),
                prefix: format!("/api/v1/namespaces/{namespace}/pods/{name}:{PORT}/proxy"),
            });
        }
    }
    Ok(places)
}

/// An operator at an address.
fn direct(uri: Uri, token: Option<&str>) -> Result<Place, Failure> {
    let name = uri.to_string().trim_end_matches('/').to_owned();
    let mut config = Config::new(uri);
    config.connect_timeout = Some(PATIENCE);
    config.default_retry = false;
    config.auth_info.token = token.map(|token| token.to_owned().into());
    let client = Client::try_from(config);
    let client = client.map_err(|error| Failure::new(error).context(format!("cannot ask {name}")))?;
    Ok(Place { name, client, prefix: String::new() })
}
