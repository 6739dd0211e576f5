//! Where and how webhooks are served.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::register::Reach;
use crate::Key;
use crate::clock::{Clock, SystemClock};

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// Made here, shared in a Secret.
    Secret(Key),
    /// Made here, known to this process only.
    Memory,
    /// Made by somebody else, in this directory.
    Files(PathBuf),
}

/// Where webhooks are served, where their certificate comes from, and whether they register themselves.
#[derive(Debug, Clone)]
pub struct Serving {
    pub(super) listen: SocketAddr,
    /// Without one, the URL of the address that is listened on.
    pub(super) reach: Option<Reach>,
    pub(super) source: Source,
    pub(super) register: bool,
    pub(super) registrar: Option<watch::Receiver<bool>>,
    pub(super) lifetime: Duration,
    pub(super) settle: Duration,
    pub(super) look_every: Duration,
    pub(super) linger: Duration,
    pub(super) grace: Duration,
    pub(super) clock: Arc<dyn Clock>,
}

impl Serving {
    /// In a cluster, behind a Service whose port 443 leads to 9443 of this process. The certificate is kept in the Secret
    /// `<service>-certificate` beside the Service.
    pub fn behind_service(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let (namespace, name) = (namespace.into(), name.into());
        let secret = Key::namespaced(&namespace, &format!("{name}-certificate"));
        let listen = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 9443));
        Self::new(listen, Some(Reach::Service { namespace, name, port: 443 }), Source::Secret(secret))
            .linger(Duration::from_secs(5))
    }

    /// On this machine only, for an API server that runs on it too: at a free port, with a certificate that nobody keeps.
    pub fn on_loopback() -> Self {
        Self::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None, Source::Memory)
    }

    /// Behind a URL, `https://hooks.example.com:8443` say, that leads here in whatever way. The certificate is known to this
    /// process only, unless it is [kept](Self::certificate_secret) or [given](Self::certificate_files).
    pub fn at_url(url: impl Into<String>, listen: SocketAddr) -> Self {
        let url = url.into().trim_end_matches('/').to_owned();
        Self::new(listen, Some(Reach::Url(url)), Source::Memory)
    }

    fn new(listen: SocketAddr, reach: Option<Reach>, source: Source) -> Self {
        Self {
            listen,
            reach,
            source,
            register: true,
            registrar: None,
            lifetime: Duration::from_hours(90 * 24),
            settle: Duration::from_mins(2),
            look_every: Duration::from_mins(1),
            linger: Duration::ZERO,
            grace: Duration::from_secs(20),
            clock: Arc::new(SystemClock),
        }
    }

    /// The address to listen on.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// The Service's port, instead of 443.
    #[must_use]
    pub fn service_port(mut self, number: u16) -> Self {
        if let Some(Reach::Service { port, .. }) = &mut self.reach {
            *port = number;
        }
        self
    }

    /// Keeps the certificate in another Secret.
    #[must_use]
    pub fn certificate_secret(mut self, secret: Key) -> Self {
        self.source = Source::Secret(secret);
        self
    }

    /// Takes the certificate from `tls.crt` and `tls.key` in a directory, and whenever they change takes it again. If there
    /// is `ca.crt` it is registered as what to trust; otherwise `caBundle` is left to whoever else sets it.
    #[must_use]
    pub fn certificate_files(mut self, directory: impl Into<PathBuf>) -> Self {
        self.source = Source::Files(directory.into());
        self
    }

    /// Registers nothing: somebody else does, and takes what to trust from `ca.crt` in the Secret.
    #[must_use]
    pub fn without_registration(mut self) -> Self {
        self.register = false;
        self
    }

    /// Registers only while this is true, as for a replica that leads. The others look whether it is done, and serve.
    #[must_use]
    pub fn registering_while(mut self, leads: watch::Receiver<bool>) -> Self {
        self.registrar = Some(leads);
        self
    }

    /// How long certificates made here live, and how long API servers may take to see what is registered. A new one is made
    /// after two thirds of the life; 90 days and two minutes unless told.
    #[must_use]
    pub fn certificate_life(mut self, lifetime: Duration, settle: Duration) -> Self {
        self.lifetime = lifetime;
        self.settle = settle;
        self
    }

    /// How often the certificate and what is registered are looked at; every minute unless told. It is at least twice in the
    /// time that API servers may take to see what is registered.
    #[must_use]
    pub fn look_every(mut self, interval: Duration) -> Self {
        self.look_every = interval;
        self
    }

    /// How long new connections are still taken when the server is to end: the cluster takes a while to lead callers
    /// elsewhere. Five seconds behind a Service, otherwise none, unless told.
    #[must_use]
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// How long reviews that have begun may take after that; 20 seconds unless told.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Another clock for the dates of certificates.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}
