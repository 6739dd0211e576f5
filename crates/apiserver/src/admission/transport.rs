//! Failures of name lookup, connecting and TLS, in the words of Go's network library.

use jiff::Timestamp;
use rustls::pki_types::UnixTime;
use rustls::{CertificateError, Error as TlsError};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// A connection could not be made.
pub(super) fn word_dial(address: SocketAddr, error: &io::Error) -> String {
    format!("dial tcp {address}: connect: {}", word_io(error))
}

/// A host name has no address.
pub(super) fn word_lookup(host: &str) -> String {
    format!("dial tcp: lookup {host}: no such host")
}

/// The TLS handshake failed.
pub(super) fn word_handshake(error: &io::Error, server_name: &str) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
        Some(TlsError::InvalidCertificate(problem)) => {
            format!("tls: failed to verify certificate: x509: {}", word_certificate(problem, server_name))
        }
        Some(TlsError::InvalidMessage(_)) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        Some(TlsError::AlertReceived(alert)) => format!("remote error: tls: {alert:?}"),
        Some(other) => format!("tls: {other}"),
        None => word_io(error),
    }
}

/// The request could not be sent, or its response not be read.
pub(super) fn word_exchange(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return "EOF".to_owned();
    }
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    source.map_or_else(|| error.to_string(), word_io)
}

fn word_io(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::ConnectionAborted => "software caused connection abort".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        io::ErrorKind::BrokenPipe => "broken pipe".to_owned(),
        io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => error.to_string(),
    }
}

fn word_certificate(problem: &CertificateError, server_name: &str) -> String {
    let expired = |relation: &str, now: UnixTime, limit: UnixTime| {
        let (now, limit) = (word_time(now), word_time(limit));
        format!("certificate has expired or is not yet valid: current time {now} is {relation} {limit}")
    };
    match problem {
        // The others are mostly self-signed ones that are marked as authorities.
        CertificateError::UnknownIssuer | CertificateError::BadSignature | CertificateError::Other(_) => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => word_names(presented, server_name),
        CertificateError::ExpiredContext { time, not_after } => expired("after", *time, *not_after),
        CertificateError::NotValidYetContext { time, not_before } => expired("before", *time, *not_before),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".to_owned()
        }
        other => other.to_string(),
    }
}

/// Names come as `DnsName("a")` and `IpAddress(127.0.0.1)`.
fn word_names(presented: &[String], wanted: &str) -> String {
    let inside = |name: &String, kind: &str| {
        let inner = name.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.trim_matches('"').to_owned())
    };
    let of = |kind: &str| presented.iter().filter_map(|name| inside(name, kind)).collect::<Vec<_>>();
    if wanted.parse::<IpAddr>().is_ok() {
        let addresses = of("IpAddress");
        if addresses.is_empty() {
            return format!(
                "cannot validate certificate for {wanted} because it doesn't contain any IP SANs"
            );
        }
        return format!("certificate is valid for {}, not {wanted}", addresses.join(", "));
    }
    let names = of("DnsName");
    if names.is_empty() {
        return format!("certificate is not valid for any names, but wanted to match {wanted}");
    }
    format!("certificate is valid for {}, not {wanted}", names.join(", "))
}

fn word_time(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}
