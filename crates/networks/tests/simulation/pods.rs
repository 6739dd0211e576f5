//! What becomes of pods. Who is at which address is kept outside of the cluster, where peers look it up: a pod's image, or an annotation that somebody
//! puts on it, says how its peer behaves.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use mainstay::{Controller, Error, SyncRequest, SyncResponse};
use mainstay_networks::kinds::labels::{self, role};
use mainstay_testkit::simulation::{External, ExternalError, Program, operator_at};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// A pod starts after so long.
const STARTS_AFTER: Duration = Duration::from_secs(1);
/// The pod of the Job that connects peers ends after so long. It dials nobody, so that all dials are the operator's.
const ENDS_AFTER: Duration = Duration::from_secs(5);
/// A Job that connects peers itself does so this long after its pod runs.
const CONNECTS_AFTER: Duration = Duration::from_millis(300);
/// Such a Job ends after this long, which is sooner than peers are asked again.
const ENDS_SOON_AFTER: Duration = Duration::from_millis(600);
/// How often a pod looks whether its run is over.
const LOOKS_AFTER: Duration = Duration::from_secs(1);

/// An annotation that makes a peer another one while it runs.
pub(crate) const BEHAVES: &str = "example.com/behaves";
/// An annotation that cuts the wire between a peer and the one that it names.
pub(crate) const CUT: &str = "example.com/cut";
/// Under this everybody who was ever there is kept, by address.
pub(crate) const REGISTER: &str = "peers";

/// What is kept of pods besides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing.
    Nothing,
    /// How often each was started, which tells how often it was killed.
    Starts,
    /// Nothing, and with a peer all that is known of it goes.
    OnlyOfLiving,
    /// Nothing. The Job that connects peers makes all wires, a moment after it started.
    WiresOfTheJob,
}

/// What becomes of pods: peers run, the Job that connects them ends well, and so do a manager that was dismissed and its workers.
pub(crate) fn pods(kept: Kept) -> Program {
    operator_at("pods", move |operator, seat| {
        let pods = Arc::new(Pods { outside: seat.external(), register: Mutex::default(), kept });
        let gone = Arc::clone(&pods);
        let controller = Controller::of::<Pod>().when_gone(move |key, uid| {
            if kept == Kept::OnlyOfLiving {
                let (pods, name, uid) = (Arc::clone(&gone), key.name().to_owned(), uid.to_owned());
                tokio::spawn(async move { pods.forget(&name, &uid).await });
            }
        });
        operator.controller(controller.sync_async(move |request: SyncRequest| {
            let pods = Arc::clone(&pods);
            async move { pods.become_of(&request).await }
        }))
    })
}

struct Pods {
    outside: External,
    /// Two pods that start at once are noted one after the other.
    register: Mutex<()>,
    kept: Kept,
}

impl Pods {
    async fn become_of(&self, request: &SyncRequest) -> Result<SyncResponse, Error> {
        let pod = request.parent_json();
        let created: Timestamp = pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default().parse()?;
        let age = Duration::try_from(request.now().duration_since(created)).unwrap_or_default();
        if let Some(left) = STARTS_AFTER.checked_sub(age).filter(|left| !left.is_zero()) {
            return Ok(SyncResponse::from_status(&pod["status"])?.requeue_after(left));
        }
        let ends_in = match pod["metadata"]["labels"][labels::ROLE].as_str().unwrap_or_default() {
            role::PEER => {
                self.note_peer(request).await?;
                None
            }
            role::BOOTSTRAP if self.kept == Kept::WiresOfTheJob => {
                let left = (STARTS_AFTER + CONNECTS_AFTER).saturating_sub(age);
                if left.is_zero() {
                    self.connect_all().await?;
                    Some((STARTS_AFTER + ENDS_SOON_AFTER).saturating_sub(age))
                } else {
                    Some(left)
                }
            }
            role::BOOTSTRAP => Some((STARTS_AFTER + ENDS_AFTER).saturating_sub(age)),
            _ => {
                let run = pod["metadata"]["annotations"][labels::RUN].as_str().unwrap_or_default();
                let is_over = self.outside.get(&dismissed(run)).await?.is_some();
                Some(if is_over { Duration::ZERO } else { LOOKS_AFTER })
            }
        };
        let (phase, ready) =
            if ends_in == Some(Duration::ZERO) { ("Succeeded", "False") } else { ("Running", "True") };
        let ip = address(request.name());
        let status = json!({
            "phase": phase, "podIP": ip, "podIPs": [{"ip": ip}], "startTime": created.to_string(),
            "conditions": [{"type": "Ready", "status": ready}],
        });
        let response = SyncResponse::from_status(status)?;
        Ok(match ends_in.filter(|left| !left.is_zero()) {
            Some(left) => response.requeue_after(left),
            None => response,
        })
    }

    async fn note_peer(&self, request: &SyncRequest) -> Result<(), Error> {
        let _alone = self.register.lock().await;
        let pod = request.parent_json();
        let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        let by_image = image.trim_start_matches("example.com/").split(':').next().unwrap_or_default();
        let said = |annotation: &str| pod["metadata"]["annotations"][annotation].as_str();
        let cut = said(CUT).unwrap_or_default();
        let record = json!({
            "name": request.name(), "uid": request.uid(), "behaves": said(BEHAVES).unwrap_or(by_image), "cut": cut,
        });
        let mut all = self.outside.get(REGISTER).await?.unwrap_or_else(|| json!({}));
        let known = std::mem::replace(&mut all[address(request.name())], record.clone());
        if known == record {
            return Ok(());
        }
        if !cut.is_empty() && known["cut"] != cut {
            self.outside.put(&wire(request.name(), cut), json!([])).await?;
        }
        self.outside.put(REGISTER, all).await?;
        if self.kept == Kept::Starts && known["uid"] != record["uid"] {
            let name = format!("starts of {}", request.name());
            let times = self.outside.get(&name).await?.as_ref().and_then(Value::as_i64).unwrap_or_default();
            self.outside.put(&name, json!(times + 1)).await?;
        }
        Ok(())
    }

    /// Connects everybody with everybody.
    async fn connect_all(&self) -> Result<(), ExternalError> {
        let all = self.outside.get(REGISTER).await?.unwrap_or_default();
        let mut peers: Vec<&Value> = all.as_object().into_iter().flat_map(serde_json::Map::values).collect();
        peers.sort_by_key(|peer| peer["name"].as_str());
        for (place, one) in peers.iter().enumerate() {
            for other in &peers[place + 1..] {
                let name = |peer: &Value| peer["name"].as_str().unwrap_or_default().to_owned();
                let (wire, ends) = (wire(&name(one), &name(other)), json!([one["uid"], other["uid"]]));
                if self.outside.get(&wire).await?.is_none() {
                    self.outside.put(&wire, ends).await?;
                }
            }
        }
        Ok(())
    }

    async fn forget(&self, name: &str, uid: &str) -> Result<(), ExternalError> {
        let _alone = self.register.lock().await;
        let mut all = self.outside.get(REGISTER).await?.unwrap_or_else(|| json!({}));
        if all[address(name)]["uid"] != uid {
            return Ok(());
        }
        let others = all.as_object_mut().map(std::mem::take).unwrap_or_default();
        let others: serde_json::Map<String, Value> =
            others.into_iter().filter(|(_, other)| other["name"] != name).collect();
        for other in others.values() {
            self.outside.remove(&wire(name, other["name"].as_str().unwrap_or_default())).await?;
        }
        self.outside.put(REGISTER, Value::Object(others)).await
    }
}

/// Under this it is kept that a run is over.
pub(crate) fn dismissed(run: &str) -> String {
    format!("dismissed {run}")
}

/// Under this the wire between two peers is kept.
pub(crate) fn wire(one: &str, other: &str) -> String {
    format!("wire {} {}", one.min(other), one.max(other))
}

/// The address of a peer follows from the numbers in its name. All others share one.
pub(crate) fn address(name: &str) -> String {
    let numbers: Vec<u8> = name.split('-').skip(1).map_while(|part| part.parse().ok()).collect();
    match numbers.as_slice() {
        [group, ordinal] => format!("10.1.{group}.{}", ordinal + 1),
        _ => "10.2.0.1".into(),
    }
}
