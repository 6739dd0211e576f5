//! What the user may have written when the operator looks, as far as that makes a difference.

use super::digest::DigestSet;
use crate::kinds::{ActiveRun, Hashes};
use crate::lifecycle::tests::walk::key::subject;
use crate::lifecycle::tests::world::{User, World};

/// What a decision can tell of what the user has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    /// Not even whether it is suspended can be told.
    Broken,
    /// What else there is makes no difference but for whether a crash loop is over.
    Suspended { has_crashed: bool, is_reloaded: bool },
    Active {
        is_scheduled: bool,
        is_stream_broken: bool,
        is_backfill_broken: bool,
        has_backfill_template: bool,
        /// Against what the run was made from that may go on.
        change: Change,
        /// Against what has crashed: a run that is made from it will differ from that as much.
        change_of_crashed: Change,
        /// A value of the reload annotation that no backfill was made for.
        is_reloaded: bool,
    },
}

/// How one configuration differs from another, as far as decisions do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Change {
    None,
    /// Only the template or the Secrets.
    Surroundings,
    /// The spec or the restart annotation, whatever else.
    Core,
}

/// What a run is made from, as the user wrote it, for either purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Configuration {
    spec: u8,
    restart: u8,
    template: u8,
    secrets: u8,
}

impl Configuration {
    pub(super) fn of(hashes: &Hashes) -> Self {
        let number = |text: &str| if text.is_empty() { 0 } else { text.parse().unwrap() };
        Self {
            spec: number(&hashes.spec),
            restart: number(hashes.restart.as_deref().unwrap_or_default()),
            template: number(&hashes.template[1..]),
            secrets: number(&hashes.secrets),
        }
    }

    fn of_user(user: &User) -> Self {
        Self { spec: user.spec, restart: user.restart, template: user.template, secrets: user.secrets }
    }

    pub(super) fn change(self, other: Self) -> Change {
        if (self.spec, self.restart) != (other.spec, other.restart) {
            Change::Core
        } else if self == other {
            Change::None
        } else {
            Change::Surroundings
        }
    }
}

/// In which of several ways that make no difference it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Another spec, another template, a reload annotation as it was.
    Plain,
    /// A restart, other Secrets, no reload annotation any more.
    Other,
    /// All at once, and the reload annotation of the present run.
    Both,
}

fn number(value: Option<&str>) -> u8 {
    value.map_or(0, |value| value.parse().unwrap())
}

/// A number from 1 that is none of these.
fn unused(used: &[Option<u8>]) -> u8 {
    (1..=u8::MAX).find(|number| !used.contains(&Some(*number))).unwrap()
}

fn reload_of(run: Option<&ActiveRun>) -> Option<u8> {
    match &run?.purpose {
        crate::kinds::Purpose::Backfill { reload, .. } => reload.as_deref().map(|value| number(Some(value))),
        _ => None,
    }
}

/// What a decision can tell of what the user of this world has written.
pub(super) fn asked(world: &World) -> Asked {
    let (user, status) = (&world.user, &world.status);
    if user.is_broken {
        return Asked::Broken;
    }
    let now = Configuration::of_user(user);
    let crashed = status.crashed.as_ref().map(Configuration::of);
    let is_reloaded = user.reload > 0 && user.reload != number(status.reloaded.as_deref());
    if user.is_suspended {
        let is_of_backfill = status.crashed.as_ref().is_some_and(|crashed| crashed.template.starts_with('b'));
        let is_broken = if is_of_backfill { user.is_backfill_broken } else { user.is_stream_broken };
        let has_crashed = crashed == Some(now) && !is_broken;
        return Asked::Suspended { has_crashed, is_reloaded: is_reloaded && crashed.is_some() };
    }
    let subject = subject(world).map(|run| Configuration::of(&run.made_from));
    let change = |then: Option<Configuration>| then.map_or(Change::None, |then| now.change(then));
    Asked::Active {
        is_scheduled: user.is_scheduled,
        is_stream_broken: user.is_stream_broken,
        is_backfill_broken: user.is_backfill_broken,
        has_backfill_template: user.has_backfill_template || status.initialised,
        change: change(subject),
        change_of_crashed: change(crashed),
        is_reloaded,
    }
    .seen()
}

impl Asked {
    /// Without what cannot be seen for what is broken.
    fn seen(mut self) -> Self {
        if let Self::Active {
            is_scheduled,
            is_stream_broken: true,
            is_backfill_broken,
            change,
            change_of_crashed,
            ..
        } = &mut self
        {
            *is_scheduled = false;
            if *is_backfill_broken {
                (*change, *change_of_crashed) = (Change::None, Change::None);
            }
        }
        self
    }
}

/// All that the user of this world may have written, each once as far as a decision can tell.
pub(super) fn all(world: &World, way: Way) -> Vec<(Asked, User)> {
    let mut all = vec![(Asked::Broken, User { is_broken: true, ..World::default().user })];
    let mut known: DigestSet<Asked> = DigestSet::default();
    let mut world = world.clone();
    // A stream that has been needs no backfill to begin with, whether or not there is a template for it.
    let templates: &[bool] = if world.status.initialised { &[true] } else { &[true, false] };
    for (configuration, reload) in configurations(&world, way) {
        let Configuration { spec, restart, template, secrets } = configuration;
        let none = World::default().user;
        // What is not seen is different in another way.
        let is_scheduled = way == Way::Other;
        world.user =
            User { is_suspended: true, is_scheduled, spec, restart, template, secrets, reload, ..none };
        let suspended = asked(&world);
        if all.iter().all(|(known, _)| *known != suspended) {
            all.push((suspended, world.user.clone()));
        }
        world.user.is_suspended = false;
        let Asked::Active { change, change_of_crashed, is_reloaded, .. } = asked(&world) else { continue };
        for (bits, has_backfill_template) in
            (0..8_u8).flat_map(|bits| templates.iter().map(move |has| (bits, *has)))
        {
            let [is_scheduled, is_stream_broken, is_backfill_broken] = [1, 2, 4].map(|bit| bits & bit != 0);
            let written = Asked::Active {
                is_scheduled,
                is_stream_broken,
                is_backfill_broken,
                has_backfill_template,
                change,
                change_of_crashed,
                is_reloaded,
            };
            let is_scheduled = is_scheduled || (is_stream_broken && way == Way::Other);
            let base = world.user.clone();
            let user =
                User { is_scheduled, is_stream_broken, is_backfill_broken, has_backfill_template, ..base };
            if known.insert(written.seen()) {
                all.push((written.seen(), user));
            }
        }
    }
    all
}

fn configurations(world: &World, way: Way) -> Vec<(Configuration, u8)> {
    let subject = subject(world).map(|run| Configuration::of(&run.made_from));
    let crashed = world.status.crashed.as_ref().map(Configuration::of);
    let known = [subject, crashed];
    let fresh = |of: fn(Configuration) -> u8| unused(&known.map(|known| known.map(of)));
    let other_surroundings = |mut base: Configuration| {
        if way != Way::Other {
            base.template = fresh(|known| known.template);
        }
        if way != Way::Plain {
            base.secrets = fresh(|known| known.secrets);
        }
        base
    };
    let base = subject.or(crashed).unwrap_or(Configuration { spec: 0, restart: 0, template: 0, secrets: 0 });
    let mut other = if way == Way::Both { other_surroundings(base) } else { base };
    if way != Way::Other {
        other.spec = fresh(|known| known.spec);
    }
    if way != Way::Plain {
        other.restart = fresh(|known| known.restart);
    }
    let of_crashed = crashed.into_iter().flat_map(|crashed| [crashed, other_surroundings(crashed)]);
    let all = [base, other_surroundings(base), other].into_iter().chain(of_crashed);
    all.flat_map(|one| reloads(world, way).map(|reload| (one, reload))).collect()
}

fn reloads(world: &World, way: Way) -> [u8; 2] {
    let status = &world.status;
    let seen = Some(number(status.reloaded.as_deref())).filter(|_| way != Way::Other);
    let of_run = reload_of(world.jobs.first().and_then(|job| job.run.as_ref()));
    let fresh = unused(&[seen, of_run, Some(number(status.reloaded.as_deref()))]);
    let unseen = of_run.filter(|run| way == Way::Both && Some(*run) != seen).unwrap_or(fresh);
    [seen.unwrap_or(0), unseen]
}
