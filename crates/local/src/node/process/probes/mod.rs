//! Probes of a container: first the startup probe, then readiness and liveness beside each other, until the container ends.

mod health;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, ContainerPort, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use mainstay::clock::later;
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use self::health::{Gauge, Schedule};
use super::environment::expand;
use super::invocation::Invocation;

/// What probes find out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    /// The container has started.
    Started,
    /// It is ready, or no longer.
    Ready(bool),
    /// It has to be ended.
    Unhealthy {
        /// Why.
        message: String,
        /// How long it has to end by itself, if the probe says so.
        grace: Option<Duration>,
    },
}

/// A container whose health is watched.
pub(super) struct Patient {
    /// The container.
    pub(super) container: Container,
    /// Its pod's address.
    pub(super) address: String,
    /// How its commands are run.
    pub(super) invocation: Arc<Invocation>,
    /// When it was started.
    pub(super) since: Instant,
}

impl Patient {
    /// Probes until the container has to be ended. Whoever calls it stops it when the container ends.
    pub(super) async fn attend(self, report: impl Fn(Finding)) {
        if let Some(probe) = &self.container.startup_probe {
            let mut gauge = Gauge::default();
            if !self.watch(probe, |success, schedule| gauge.take(success, schedule)).await {
                return report(self.unhealthy("startup", probe));
            }
            report(Finding::Started);
        }
        tokio::join!(self.attend_readiness(&report), self.attend_liveness(&report));
    }

    async fn attend_readiness(&self, report: &impl Fn(Finding)) {
        let Some(probe) = &self.container.readiness_probe else { return };
        let (mut gauge, mut ready) = (Gauge::default(), false);
        let take = |success: bool, schedule: &Schedule| {
            if let Some(now) = gauge.take(success, schedule).filter(|now| *now != ready) {
                ready = now;
                report(Finding::Ready(now));
            }
            None
        };
        self.watch(probe, take).await;
    }

    async fn attend_liveness(&self, report: &impl Fn(Finding)) {
        let Some(probe) = &self.container.liveness_probe else { return };
        let mut gauge = Gauge::default();
        self.watch(probe, |success, schedule| gauge.take(success, schedule).filter(|alive| !alive)).await;
        report(self.unhealthy("liveness", probe));
    }

    fn unhealthy(&self, which: &str, probe: &Probe) -> Finding {
        let message = format!("Container {} failed {which} probe, will be restarted", self.container.name);
        let grace = probe.termination_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Finding::Unhealthy { message, grace: grace.map(Duration::from_secs) }
    }

    /// Tries a probe again and again until its answers come to something.
    async fn watch(&self, probe: &Probe, mut take: impl FnMut(bool, &Schedule) -> Option<bool>) -> bool {
        let schedule = Schedule::of(probe);
        let first = later(self.since, schedule.delay).max(Instant::now());
        let mut ticks = interval_at(first, schedule.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let answer = self.try_once(probe, schedule.timeout).await;
            if let Err(why) = &answer {
                tracing::debug!(container = self.container.name, why, "a probe failed");
            }
            if let Some(verdict) = take(answer.is_ok(), &schedule) {
                return verdict;
            }
        }
    }

    async fn try_once(&self, probe: &Probe, patience: Duration) -> Result<(), String> {
        let answer = async {
            if let Some(get) = &probe.http_get {
                let port = port(&get.port, self.container.ports.as_deref())?;
                ask(host(get.host.as_deref(), &self.address), port, get).await
            } else if let Some(socket) = &probe.tcp_socket {
                let port = port(&socket.port, self.container.ports.as_deref())?;
                let host = host(socket.host.as_deref(), &self.address);
                TcpStream::connect((host, port)).await.map(drop).map_err(|error| error.to_string())
            } else if let Some(exec) = &probe.exec {
                let line: Vec<String> =
                    exec.command.iter().flatten().map(|part| self.expanded(part)).collect();
                self.invocation.run(&line).await
            } else {
                Err("the probe does nothing".to_owned())
            }
        };
        timeout(patience, answer).await.unwrap_or_else(|_| Err(format!("timed out after {patience:?}")))
    }

    /// Only what a container sets itself is known in a probe's command, and only what is set plainly.
    fn expanded(&self, part: &str) -> String {
        let known = |name: &str| {
            let variable = self.container.env.iter().flatten().rfind(|variable| variable.name == name)?;
            Some(variable.value.clone().unwrap_or_default())
        };
        expand(part, known)
    }
}

fn host<'a>(given: Option<&'a str>, own: &'a str) -> &'a str {
    given.filter(|host| !host.is_empty()).unwrap_or(own)
}

/// A port by number, or by the name that one of the container's has.
fn port(wanted: &IntOrString, ports: Option<&[ContainerPort]>) -> Result<u16, String> {
    let number = match wanted {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let named = ports.iter().copied().flatten().find(|port| port.name.as_deref() == Some(name));
            named.map(|port| port.container_port).or_else(|| name.parse().ok())
        }
    };
    let number = number.and_then(|number| u16::try_from(number).ok()).filter(|number| *number > 0);
    number.ok_or_else(|| format!("invalid port: {wanted:?}"))
}

/// Asks by HTTP. Everything from 200 to 399 is a yes.
async fn ask(host: &str, port: u16, get: &HTTPGetAction) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let stream = TcpStream::connect((host, port)).await.map_err(|error| text(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| text(&error))?;
    let path = get.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let mut request = http::Request::get(path);
    let headers = get.http_headers.as_deref().unwrap_or_default();
    let given = |name: &str| headers.iter().any(|header| header.name.eq_ignore_ascii_case(name));
    for (name, value) in
        [("host", format!("{host}:{port}")), ("user-agent", USER_AGENT.into()), ("accept", "*/*".into())]
    {
        if !given(name) {
            request = request.header(name, value);
        }
    }
    for header in headers {
        request = request.header(&header.name, &header.value);
    }
    let request = request.body(Empty::<bytes::Bytes>::new()).map_err(|error| text(&error))?;
    let mut answer = std::pin::pin!(sender.send_request(request));
    let answer = tokio::select! {
        answer = &mut answer => answer,
        // Whoever answers and hangs up at once has answered.
        _ = connection => answer.await,
    };
    match answer.map_err(|error| text(&error))?.status().as_u16() {
        200..400 => Ok(()),
        code => Err(format!("HTTP probe failed with statuscode: {code}")),
    }
}

/// How probes introduce themselves, as the kubelet's do.
const USER_AGENT: &str = "kube-probe/1.36";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_numbers_or_names() {
        let ports =
            [ContainerPort { name: Some("http".into()), container_port: 8080, ..ContainerPort::default() }];
        let find = |wanted| port(&wanted, Some(&ports));
        assert_eq!(find(IntOrString::Int(80)), Ok(80));
        assert_eq!(find(IntOrString::String("http".into())), Ok(8080));
        assert_eq!(find(IntOrString::String("81".into())), Ok(81));
        assert!(find(IntOrString::String("absent".into())).is_err());
        assert!(find(IntOrString::Int(0)).is_err());
    }
}
