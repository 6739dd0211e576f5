//! Keeps the certificate fresh and the webhooks registered, for as long as they are served.
//!
//! Each look goes the same way: read the list of certificates, do what the plan says until it says nothing more, serve what
//! it says, register what there is to trust, and note since when it has been registered. A look that fails changes nothing:
//! what was served before is served on, and the next look comes soon.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::Webhooks;
use super::admission::chain;
use super::certificate::files::{Files, FilesError, observe_files};
use super::certificate::plan::{CertificatePlan, Trusted, Wanted, bundle, change_list, plan_certificates};
use super::certificate::secret::{SecretError, SharedList, Stored, Written};
use super::certificate::served::{PairError, ServedCertificate, certified};
use super::certificate::{IssueError, Issued, issue};
use super::register::apply::execute_registration;
use super::register::{Reach, plan_registrations, trusts};
use super::serving::{Serving, Source};

/// After a look that left something undone.
const RETRY: Duration = Duration::from_secs(5);

/// Between two looks, whatever one is told.
const SHORTEST: Duration = Duration::from_millis(100);

/// How often in a row others may be quicker before a look gives up.
const ATTEMPTS_MAX: u32 = 10;

/// What is not done yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    /// Nobody has looked yet.
    Start,
    /// The certificate is not what it should be.
    Certificate {
        /// What failed.
        problem: String,
    },
    /// An object is not registered as it should be.
    Registration {
        /// What failed, naming the object.
        problem: String,
    },
}

impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("the webhooks are starting"),
            Self::Certificate { problem } => write!(f, "the webhooks' certificate: {problem}"),
            Self::Registration { problem } => write!(f, "registering the webhooks: {problem}"),
        }
    }
}

/// How the webhooks are doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookState {
    /// Whether there is a certificate to answer with.
    pub serving: bool,
    /// When the certificate expires, if it was made here.
    pub expires_at: Option<Timestamp>,
    /// What is not done yet; nothing if all is well.
    pub pending: Vec<Pending>,
}

impl WebhookState {
    /// Whether reviews are answered and everything is registered.
    pub fn is_ready(&self) -> bool {
        self.serving && self.pending.is_empty()
    }
}

/// What can go wrong with the certificate.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Issue(#[from] IssueError),
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error("using the certificate in the list")]
    Pair(#[source] PairError),
    #[error("others write the list of certificates all the time")]
    Busy,
}

/// What is there to trust after a look.
struct Certificates {
    bundle: Option<String>,
    look_again_at: Timestamp,
}

pub(super) struct Keeper {
    client: kube::Client,
    webhooks: Arc<Webhooks>,
    serving: Serving,
    reach: Reach,
    wanted: Wanted,
    served: Arc<ServedCertificate>,
    /// The list in the Secret, if there is one.
    shared: Option<SharedList>,
    /// The list as it was last seen.
    listed: Vec<Issued>,
    trusted: Trusted,
    /// The certificate that is served, PEM.
    presented: Option<String>,
    /// The files as they were last seen.
    files: Option<Files>,
    state: watch::Sender<WebhookState>,
}

impl Keeper {
    pub(super) fn new(
        client: kube::Client,
        webhooks: Arc<Webhooks>,
        serving: Serving,
        reach: Reach,
        served: Arc<ServedCertificate>,
    ) -> Self {
        let shared = match &serving.source {
            Source::Secret(key) => Some(SharedList::new(client.clone(), key.clone(), &webhooks.name)),
            Source::Memory | Source::Files(_) => None,
        };
        let wanted = Wanted { names: reach.names(), lifetime: serving.lifetime, settle: serving.settle };
        let state = WebhookState { serving: false, expires_at: None, pending: vec![Pending::Start] };
        Self {
            client,
            webhooks,
            serving,
            reach,
            wanted,
            served,
            shared,
            listed: Vec::new(),
            trusted: Trusted::new(),
            presented: None,
            files: None,
            state: watch::Sender::new(state),
        }
    }

    pub(super) fn state(&self) -> watch::Receiver<WebhookState> {
        self.state.subscribe()
    }

    /// Looks for ever.
    pub(super) async fn run(mut self) {
        let mut registrar = self.serving.registrar.clone();
        loop {
            // Seen before the look: an election during it is followed by another look, and none by nothing.
            if let Some(leads) = &mut registrar {
                leads.mark_unchanged();
            }
            let pause = self.look().await;
            let elected = async {
                let changed = match &mut registrar {
                    Some(leads) => leads.changed().await.is_ok(),
                    None => false,
                };
                // Without an election there is nothing to wait for.
                if !changed {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                () = tokio::time::sleep(pause) => {}
                () = elected => {}
            }
        }
    }

    /// One look. Gives the time until the next.
    async fn look(&mut self) -> Duration {
        let now = self.serving.clock.now();
        let mut pending = Vec::new();
        let certificates = match self.keep_certificate(now).await {
            Ok(certificates) => certificates,
            Err(error) => {
                pending.push(Pending::Certificate { problem: chain(&error) });
                self.serve_remembered(now)
            }
        };
        if self.serving.register && self.presented.is_some() {
            let problems = self.register(certificates.bundle.as_deref(), now).await;
            pending.extend(problems.into_iter().map(|problem| Pending::Registration { problem }));
        }
        let undone = !pending.is_empty();
        self.tell(pending);
        let soon = certificates.look_again_at.duration_since(self.serving.clock.now());
        // What is in the past is due now.
        let soon = Duration::try_from(soon).unwrap_or(Duration::ZERO).max(SHORTEST);
        let often = self.serving.look_every.min(self.wanted.settle / 2).max(SHORTEST);
        soon.min(if undone { often.min(RETRY) } else { often })
    }

    /// Says how things are, in the log only when that is new.
    fn tell(&self, pending: Vec<Pending>) {
        let presented = self.presented.as_ref();
        let listed = self.listed.iter().find(|issued| Some(&issued.certificate) == presented);
        let state = WebhookState {
            serving: presented.is_some(),
            expires_at: listed.map(|issued| issued.expires_at),
            pending,
        };
        self.state.send_if_modified(|before| {
            if *before == state {
                return false;
            }
            for pending in state.pending.iter().filter(|pending| !before.pending.contains(pending)) {
                tracing::warn!("{pending}");
            }
            *before = state;
            true
        });
    }

    async fn keep_certificate(&mut self, now: Timestamp) -> Result<Certificates, KeepError> {
        if let Source::Files(directory) = &self.serving.source {
            let files = observe_files(directory)?;
            if self.files.as_ref() != Some(&files) {
                let pair = certified(&files.certificates, &files.key)
                    .map_err(|error| FilesError::Pair(directory.clone(), error))?;
                self.served.exchange(pair);
                tracing::info!(directory = %directory.display(), "serving the certificate from files");
                self.presented = Some(files.certificates.clone());
                self.files = Some(files);
            }
            return Ok(self.certificates_of_files());
        }
        let plan = self.settle_list(now).await?;
        self.serve_listed(&plan)?;
        Ok(Certificates { bundle: Some(bundle(&self.listed)), look_again_at: plan.look_again_at })
    }

    fn certificates_of_files(&self) -> Certificates {
        let bundle = self.files.as_ref().and_then(|files| files.authority.clone());
        Certificates { bundle, look_again_at: Timestamp::MAX }
    }

    /// Changes the list as planned until there is nothing to change.
    async fn settle_list(&mut self, now: Timestamp) -> Result<CertificatePlan, KeepError> {
        for _ in 0..ATTEMPTS_MAX {
            let stored = match &self.shared {
                Some(shared) => shared.observe().await?,
                None => Stored::in_memory(self.listed.clone()),
            };
            let deleted = stored.is_missing();
            let listed = if deleted { &self.listed } else { &stored.listed };
            let plan = plan_certificates(listed, deleted, &self.wanted, &self.trusted, now);
            if !plan.changes_list() {
                self.listed = stored.listed;
                self.trusted
                    .retain(|authority, _| self.listed.iter().any(|issued| issued.authority == *authority));
                return Ok(plan);
            }
            let next = change_list(listed, &plan, now, |why| {
                tracing::info!(?why, names = ?self.wanted.names, "making a certificate");
                issue(&self.wanted.names, now, self.wanted.lifetime)
            })?;
            match &self.shared {
                Some(shared) => {
                    if shared.write(&stored, &next).await? == Written::TooLate {
                        tracing::debug!("another replica wrote the list of certificates first");
                    }
                }
                None => self.listed = next,
            }
        }
        Err(KeepError::Busy)
    }

    /// Serves what the plan says, if that is another one than before.
    fn serve_listed(&mut self, plan: &CertificatePlan) -> Result<(), KeepError> {
        let Some(issued) = plan.serve().and_then(|at| self.listed.get(at)) else { return Ok(()) };
        if self.presented.as_ref() != Some(&issued.certificate) {
            let pair = certified(&issued.certificate, issued.key_pem()).map_err(KeepError::Pair)?;
            self.served.exchange(pair);
            tracing::info!(expires_at = %issued.expires_at, "serving another certificate");
            self.presented = Some(issued.certificate.clone());
        }
        Ok(())
    }

    /// When the list cannot be had, the best of what is remembered of it.
    fn serve_remembered(&mut self, now: Timestamp) -> Certificates {
        if matches!(self.serving.source, Source::Files(_)) {
            return self.certificates_of_files();
        }
        let plan = plan_certificates(&self.listed, false, &self.wanted, &self.trusted, now);
        // A pair that cannot be served is the problem that was just reported.
        let _ = self.serve_listed(&plan);
        let bundle = (!self.listed.is_empty()).then(|| bundle(&self.listed));
        Certificates { bundle, look_again_at: Timestamp::MAX }
    }

    /// Registers everything, and notes which authorities are trusted everywhere. Gives what failed.
    async fn register(&mut self, bundle: Option<&str>, now: Timestamp) -> Vec<String> {
        let may_write = self.serving.registrar.as_ref().is_none_or(|leads| *leads.borrow());
        let mut problems = Vec::new();
        let mut registered = Vec::new();
        for registration in plan_registrations(&self.webhooks, &self.reach, bundle) {
            let done =
                execute_registration(&self.client, &self.webhooks.name, &registration, may_write).await;
            match done {
                Ok(live) if registration.wanted.is_some() => registered.push(live),
                Ok(_) => {}
                Err(error) => {
                    registered.push(None);
                    problems.push(chain(&error));
                }
            }
        }
        for issued in &self.listed {
            let trusted = registered
                .iter()
                .all(|live| live.as_ref().is_some_and(|live| trusts(live, &issued.authority)));
            if trusted {
                self.trusted.entry(issued.authority.clone()).or_insert(now);
            }
        }
        problems
    }
}
