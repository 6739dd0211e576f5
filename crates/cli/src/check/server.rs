//! Whether the server answers, which one it is, and what it thinks the time is.

use super::finding::Finding;
use crate::cluster::Cluster;
use http::Request;
use http::header::DATE;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use kube::client::Body;

/// The oldest that is supported: 1.33.
const OLDEST: (u32, u32) = (1, 33);

/// Clocks that differ by more than this make ages, leases and certificates hard to understand. The server tells whole seconds
/// only, and takes time to answer.
const SKEW_SECONDS_MAX: i64 = 5;

/// The findings, and whether it makes sense to ask more.
pub(super) async fn examine(cluster: &Cluster) -> (Vec<Finding>, bool) {
    let version = match cluster.client.apiserver_version().await {
        Ok(version) => version,
        Err(error) => {
            return (
                vec![Finding::failed_with("server", &cluster.failed("ask for the version", error))],
                false,
            );
        }
    };
    let mut findings = vec![version_finding(&version.major, &version.minor, &version.git_version)];
    findings.push(clock(cluster).await);
    // Most things are forbidden to whom the server does not know, but not the version.
    let known = match crate::cluster::list(&cluster.client, "/api/v1/namespaces?limit=1").await {
        Err(kube::Error::Api(status)) if status.code == 401 => {
            let detail = "the server does not know who asks (HTTP 401)";
            findings.push(Finding::failed("identity", detail, "renew the credentials in the kubeconfig"));
            false
        }
        _ => true,
    };
    (findings, known)
}

fn version_finding(major: &str, minor: &str, text: &str) -> Finding {
    let number = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().ok();
    match (number(major), number(minor)) {
        (Some(major), Some(minor)) if (major, minor) >= OLDEST => {
            Finding::passed("server", format!("Kubernetes {text}"))
        }
        _ => Finding::failed(
            "server",
            format!("Kubernetes {text} is older than {}.{}", OLDEST.0, OLDEST.1),
            "upgrade the cluster",
        ),
    }
}

async fn clock(cluster: &Cluster) -> Finding {
    let date = async {
        let request = Request::get("/version").body(Body::empty()).ok()?;
        let asked = Timestamp::now();
        let response = cluster.client.send(request).await.ok()?;
        let told = response.headers().get(DATE)?.to_str().ok()?.to_owned();
        Some((asked, told))
    };
    match date.await {
        Some((asked, told)) => clock_finding(asked, &told),
        None => Finding::noted("clock", "the server does not tell its time"),
    }
}

fn clock_finding(asked: Timestamp, told: &str) -> Finding {
    let Ok(server) = DateTimeParser::new().parse_timestamp(told) else {
        return Finding::noted("clock", format!("the server's time cannot be read: {told}"));
    };
    let ahead = asked.as_second() - server.as_second();
    match ahead {
        ahead if ahead.abs() <= SKEW_SECONDS_MAX => Finding::passed("clock", "as the server's"),
        ahead => {
            let way = if ahead > 0 { "ahead of" } else { "behind" };
            let detail = format!("this machine is {} s {way} the server", ahead.abs());
            Finding::failed("clock", detail, "set both by NTP: timedatectl set-ntp true")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_are_too_old_fail() {
        assert!(!version_finding("1", "33", "v1.33.0").is_failure());
        assert!(!version_finding("1", "36+", "v1.36.1-gke.1").is_failure());
        assert!(!version_finding("2", "0", "v2.0.0").is_failure());
        assert!(version_finding("1", "32", "v1.32.9").is_failure());
        assert!(version_finding("", "", "what").is_failure());
    }

    #[test]
    fn a_clock_may_differ_by_seconds() {
        let asked = "2026-01-01T00:00:09Z".parse().unwrap();
        let at = |told: &str| clock_finding(asked, told);
        assert_eq!(at("Thu, 01 Jan 2026 00:00:07 GMT"), Finding::passed("clock", "as the server's"));
        assert!(format!("{:?}", at("Thu, 01 Jan 2026 00:00:00 GMT")).contains("9 s ahead of the server"));
        assert!(format!("{:?}", at("Thu, 01 Jan 2026 00:01:00 GMT")).contains("51 s behind the server"));
        assert!(!at("today").is_failure());
    }
}
