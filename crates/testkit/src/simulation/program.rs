//! What runs in a world: operators written with `mainstay`, or anything else that uses a `kube::Client`.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use kube::Client;
use mainstay::{Operator, OperatorBuilder};

use super::clock::WorldClock;
use super::external::External;
use super::state::MAIN;

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A program that can be started, killed and started again, any number of times in any number of worlds.
#[derive(Clone)]
pub struct Program {
    name: Arc<str>,
    start: Arc<dyn Fn(Seat) -> Running + Send + Sync>,
}

impl Program {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn start(&self, seat: Seat) -> Running {
        (self.start)(seat)
    }

    /// The same under another name: a second one of its kind beside the first.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.name).finish()
    }
}

/// An operator written with `mainstay`, from the function that configures it. Client, clock and seed are the world's.
///
/// # Panics
/// When it starts, if it cannot be built; the world reports that.
pub fn operator(
    name: &str,
    configure: impl Fn(OperatorBuilder) -> OperatorBuilder + Send + Sync + 'static,
) -> Program {
    operator_at(name, move |builder, _| configure(builder))
}

/// As [`operator`], for one that needs more of its [`Seat`]: other clusters, or what is outside of them.
///
/// # Panics
/// As [`operator`].
pub fn operator_at(
    name: &str,
    configure: impl Fn(OperatorBuilder, &Seat) -> OperatorBuilder + Send + Sync + 'static,
) -> Program {
    let operator = name.to_owned();
    program(name, move |seat| {
        let builder = Operator::builder(&operator, seat.client()).clock(seat.clock()).seed(seat.seed());
        let built = configure(builder, &seat).build();
        async move {
            let operator = built.unwrap_or_else(|error| panic!("it cannot be built: {error}"));
            if let Err(error) = operator.run(std::future::pending()).await {
                panic!("it cannot run: {error}");
            }
        }
    })
}

/// Anything that uses a client: an operator written with kube's `Controller`, say. It is killed by dropping the future;
/// tasks that it has spawned no longer reach the cluster from then on. What the closure itself holds outlives crashes and
/// worlds, as no memory does: keep nothing in it.
///
/// To be the same each time it must take time from tokio and [`Seat::clock`], and randomness from [`Seat::seed`].
pub fn program<F>(name: &str, start: impl Fn(Seat) -> F + Send + Sync + 'static) -> Program
where
    F: Future<Output = ()> + Send + 'static,
{
    Program { name: name.into(), start: Arc::new(move |seat| Box::pin(start(seat))) }
}

/// What a program finds in a world when it starts.
#[derive(Clone)]
pub struct Seat {
    pub(super) clients: BTreeMap<String, Client>,
    pub(super) clock: WorldClock,
    pub(super) seed: u64,
    pub(super) external: External,
}

impl Seat {
    /// A client of the main cluster.
    ///
    /// # Panics
    /// Never: every world has one.
    pub fn client(&self) -> Client {
        self.client_of(MAIN)
    }

    /// A client of one of the world's clusters.
    ///
    /// # Panics
    /// If the world has no such cluster.
    pub fn client_of(&self, cluster: &str) -> Client {
        self.clients.get(cluster).unwrap_or_else(|| panic!("the world has no cluster {cluster}")).clone()
    }

    /// The program's clock, which may be wrong.
    pub fn clock(&self) -> WorldClock {
        self.clock.clone()
    }

    /// Where all of its randomness is to come from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What is outside of the clusters.
    pub fn external(&self) -> External {
        self.external.clone()
    }
}
