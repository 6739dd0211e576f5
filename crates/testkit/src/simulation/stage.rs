//! What all parts of a world share, and the one way by which programs reach anything: [`Stage::pass`].

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mainstay_apiserver::ApiServer;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

use super::ask::{Ask, Class};
use super::fault::{Mishap, Point};
use super::life::Life;
use super::lock;
use super::record::Record;
use super::sequence::Sequence;
use super::state::MAIN;
use super::trace::{Answer, What};

/// Longer than any lease that is not absurd.
const LEASE: Duration = Duration::from_secs(30);
/// How long the old instance lives on beside the new one after that.
const OVERLAP: Duration = Duration::from_secs(10);
/// When a client whose answer never comes is told that the connection broke.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long webhooks are down.
const WEBHOOKS_DOWN: Duration = Duration::from_secs(30);
const RETRY_AFTER_SECONDS: u64 = 5;

/// Why a request came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Refused { code: u16, retry_after_seconds: Option<u64> },
    Broken,
}

/// What a life asks of the world.
#[derive(Debug)]
pub(super) enum Wish {
    /// A second instance, which takes the place of the first.
    Second,
}

/// See the [module](self).
pub(super) struct Stage {
    pub(super) record: Record,
    pub(super) sequence: Sequence,
    pub(super) servers: Mutex<BTreeMap<String, ApiServer>>,
    lives: Mutex<BTreeMap<String, Arc<Life>>>,
    pub(super) wishes: mpsc::UnboundedSender<Wish>,
    /// Rung when what was hidden can be seen again.
    released: Notify,
    /// Whether history is forgotten then.
    forgets: AtomicBool,
    webhooks_down_until: Mutex<Option<Instant>>,
    /// The lag of the next incarnation of the operator under test.
    next_lag: Mutex<Option<u64>>,
}

impl Stage {
    pub(super) fn new(record: Record, sequence: Sequence, wishes: mpsc::UnboundedSender<Wish>) -> Self {
        Self {
            record,
            sequence,
            servers: Mutex::default(),
            lives: Mutex::default(),
            wishes,
            released: Notify::new(),
            forgets: AtomicBool::new(false),
            webhooks_down_until: Mutex::default(),
            next_lag: Mutex::default(),
        }
    }

    pub(super) fn enter(&self, life: &Arc<Life>) {
        lock(&self.lives).insert(life.actor.to_string(), Arc::clone(life));
    }

    pub(super) fn life(&self, actor: &str) -> Option<Arc<Life>> {
        lock(&self.lives).get(actor).cloned()
    }

    /// The incarnations of the operator under test that are alive.
    pub(super) fn subjects(&self) -> Vec<Arc<Life>> {
        let lives = lock(&self.lives);
        lives.values().filter(|life| life.is_subject && !life.is_dead()).cloned().collect()
    }

    pub(super) fn take_lag(&self) -> Option<u64> {
        lock(&self.next_lag).take()
    }

    pub(super) fn webhooks_are_down(&self) -> bool {
        lock(&self.webhooks_down_until).is_some_and(|until| until > Instant::now())
    }

    /// Carries out `work` when it is this life's turn, unless something goes wrong. `code` tells the status of what came of it.
    pub(super) async fn pass<T>(
        &self,
        life: &Arc<Life>,
        ask: &Ask,
        text: String,
        work: impl Future<Output = T>,
        code: impl FnOnce(&T) -> u16,
    ) -> Result<T, Trouble> {
        self.sequence.turn(life, text.clone()).await;
        let point = match ask.class {
            Class::Write if life.is_subject => Some(self.record.next(Point::Write)),
            Class::Read if life.is_subject => Some(self.record.next(Point::Read)),
            _ => None,
        };
        let mut outcome = None;
        for (mishap, point) in self.record.mishaps(point) {
            self.record.note(&life.actor, What::Mishap { mishap, point });
            match mishap {
                Mishap::Jump(seconds) => life.clock.jump(seconds),
                Mishap::WebhookDown => {
                    *lock(&self.webhooks_down_until) = Some(Instant::now() + WEBHOOKS_DOWN);
                }
                Mishap::TwoLeaders => self.overtake(life, &text).await,
                other => outcome = Some(other),
            }
        }
        let entry = self.record.asked(&life.actor, ask, point);
        match outcome {
            Some(Mishap::CrashBefore) => self.die(life).await,
            Some(Mishap::Refuse(code)) => return self.refuse(entry, code, None),
            Some(Mishap::TooManyRequests) => return self.refuse(entry, 429, Some(RETRY_AFTER_SECONDS)),
            Some(Mishap::Reset) => return Err(Trouble::Broken),
            _ => {}
        }
        let made = self.serve(life, work).await;
        let told = match code(&made) {
            0 => Answer::None,
            code => Answer::Status(code),
        };
        self.record.answered(entry, told);
        match outcome {
            Some(Mishap::CrashAfter) => self.die(life).await,
            Some(Mishap::LoseAnswer) => {
                self.record.answered(entry, Answer::None);
                sleep(ANSWER_TIMEOUT).await;
                return Err(Trouble::Broken);
            }
            Some(Mishap::Travel(changes)) => {
                *lock(&self.next_lag) = Some(self.record.revision_before(changes));
                self.record.go_blind();
                self.die(life).await;
            }
            _ => {}
        }
        Ok(made)
    }

    /// Polls `work` so that all changes it makes are known to be this life's.
    async fn serve<T>(&self, life: &Arc<Life>, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        std::future::poll_fn(|context| {
            self.record.serving(Some(life));
            let polled = work.as_mut().poll(context);
            self.record.serving(None);
            polled
        })
        .await
    }

    fn refuse<T>(&self, entry: usize, code: u16, retry_after_seconds: Option<u64>) -> Result<T, Trouble> {
        self.record.answered(entry, Answer::Status(code));
        Err(Trouble::Refused { code, retry_after_seconds })
    }

    /// Kills a program. Its future is dropped soon after; until then it waits here.
    async fn die(&self, life: &Arc<Life>) {
        self.record.note(&life.actor, What::Crashed);
        life.die();
        std::future::pending::<()>().await;
    }

    /// A second instance starts while the first is stalled; a while later the first is gone.
    async fn overtake(&self, life: &Arc<Life>, text: &str) {
        let until = Instant::now() + LEASE;
        life.stall_until(until);
        life.replace();
        // The user goes on meanwhile: what was decided before the stall is carried out in another world.
        self.record.go_blind();
        // Nobody listens only when the world has ended.
        let _ = self.wishes.send(Wish::Second);
        let old = Arc::clone(life);
        tokio::spawn(async move {
            sleep_until(until + OVERLAP).await;
            old.die();
        });
        self.sequence.turn(life, text.to_owned()).await;
    }

    /// Waits until what is hidden can be seen.
    pub(super) async fn wait_for_sight(&self) {
        while self.record.is_blind() {
            self.released.notified().await;
        }
    }

    /// Nothing of a resource is seen until the end of blindness, and then only what is left.
    pub(super) fn hide(&self, life: &Life, resource: &str) {
        life.hide(resource);
        self.forgets.store(true, Ordering::Relaxed);
    }

    /// Everything can be seen again.
    pub(super) fn release(&self) {
        self.record.see();
        // The server may catch up before the program has started on it.
        lock(&self.next_lag).take();
        for life in lock(&self.lives).values() {
            life.see_again();
        }
        if self.forgets.swap(false, Ordering::Relaxed) {
            self.forget_history();
        }
        self.released.notify_waiters();
    }

    pub(super) fn forget_history(&self) {
        for server in lock(&self.servers).values() {
            server.compact();
        }
    }

    /// The point of the next event that the operator under test is told.
    pub(super) fn next_event(&self, life: &Life) -> Option<Point> {
        life.is_subject.then(|| self.record.next(Point::Event))
    }

    /// A life's view of a cluster's revision, if it lags behind. Only the main cluster does.
    pub(super) fn lag_in(life: &Life, cluster: &str) -> Option<u64> {
        life.lag().filter(|_| cluster == MAIN)
    }
}
