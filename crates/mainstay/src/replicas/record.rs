//! Leases as objects: their names, their labels, and what is written into them.
//!
//! The fields are used as client-go uses them, so `kubectl get lease` tells the truth and a program that elects by
//! client-go keeps out while we hold. Whatever else stands in a lease is left as it is.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{Timestamp, Unit};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::shard::{Identity, Shard};

/// Label: the operator a lease belongs to.
pub(super) const OPERATOR: &str = "mainstay.dev/operator";
/// Label: what a lease stands for, `shard` or `member`.
pub(super) const ROLE: &str = "mainstay.dev/role";
/// Label: how many shards the holder divides the parents into.
pub(super) const SHARDS: &str = "mainstay.dev/shards";

/// What a lease stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Its holder may write for the parents of a shard.
    Shard,
    /// Its holder is alive and takes shards.
    Member,
}

impl Role {
    fn label(self) -> &'static str {
        match self {
            Role::Shard => "shard",
            Role::Member => "member",
        }
    }
}

/// How an operator's leases are named.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) operator: String,
    /// The number of shards.
    pub(super) count: u32,
}

impl Names {
    pub(super) fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        (0..self.count).map(Shard::new)
    }

    /// `<operator>` if there is one shard, `<operator>-<i>` otherwise.
    pub(super) fn shard(&self, shard: Shard) -> String {
        if self.count == 1 { self.operator.clone() } else { format!("{}-{shard}", self.operator) }
    }

    /// `<operator>-member-<digest of the identity>`.
    pub(super) fn member(&self, identity: &Identity) -> String {
        format!("{}-member-{}", self.operator, identity.digest())
    }

    /// Selects every lease of the operator.
    pub(super) fn selector(&self) -> String {
        format!("{OPERATOR}={}", self.operator)
    }
}

pub(super) fn label<'a>(lease: &'a Lease, name: &str) -> Option<&'a str> {
    lease.metadata.labels.as_ref()?.get(name).map(String::as_str)
}

pub(super) fn role(lease: &Lease) -> Role {
    if label(lease, ROLE) == Some(Role::Member.label()) { Role::Member } else { Role::Shard }
}

/// Into how many shards the holder divides the parents: one, if it has not said so.
pub(super) fn layout(lease: &Lease) -> u32 {
    label(lease, SHARDS).and_then(|count| count.parse().ok()).unwrap_or(1)
}

pub(super) fn holder(lease: &Lease) -> Option<Identity> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    (!holder.is_empty()).then(|| Identity::new(holder))
}

pub(super) fn duration(lease: &Lease) -> Option<Duration> {
    let seconds = lease.spec.as_ref()?.lease_duration_seconds?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// The lease as it stands once `me` holds it, newly or still. `seen` is what stands there now.
pub(super) fn hold(
    seen: Option<&Lease>,
    name: &str,
    role: Role,
    names: &Names,
    me: &Identity,
    lasts: Duration,
    now: Timestamp,
) -> Lease {
    let mut lease = seen.cloned().unwrap_or_default();
    lease.metadata.name = Some(name.to_owned());
    let labels = lease.metadata.labels.get_or_insert_with(BTreeMap::new);
    labels.insert(OPERATOR.to_owned(), names.operator.clone());
    labels.insert(ROLE.to_owned(), role.label().to_owned());
    labels.insert(SHARDS.to_owned(), names.count.to_string());
    let renewed = stamp(&lease, now);
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    if spec.holder_identity.as_deref() != Some(me.as_str()) {
        spec.holder_identity = Some(me.as_str().to_owned());
        spec.acquire_time = Some(renewed.clone());
        // A lease that is made has not changed hands yet.
        spec.lease_transitions = Some(match seen {
            Some(_) => spec.lease_transitions.unwrap_or(0).saturating_add(1),
            None => 0,
        });
    }
    spec.renew_time = Some(renewed);
    spec.lease_duration_seconds = i32::try_from(lasts.as_secs()).ok();
    lease
}

/// The lease as it stands once nobody holds it.
pub(super) fn release(seen: &Lease, now: Timestamp) -> Lease {
    let mut lease = seen.clone();
    let renewed = stamp(&lease, now);
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    spec.holder_identity = Some(String::new());
    spec.renew_time = Some(renewed);
    lease
}

/// The time to write. It differs from the one that stands there even if the clock has not moved: an update that changes
/// nothing gets no new version, and nobody would see that the lease was renewed.
fn stamp(lease: &Lease, now: Timestamp) -> MicroTime {
    let now = now.round(Unit::Microsecond).unwrap_or(now);
    let before = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
    if before.is_some_and(|before| before.0 == now) {
        return MicroTime(now.checked_add(Duration::from_micros(1)).unwrap_or(Timestamp::MIN));
    }
    MicroTime(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: u32) -> Names {
        Names { operator: "echo".into(), count }
    }

    fn hold_at(seen: Option<&Lease>, me: &str, now: &str) -> Lease {
        let names = names(8);
        let name = names.shard(Shard::new(3));
        let lasts = Duration::from_secs(15);
        hold(seen, &name, Role::Shard, &names, &Identity::new(me), lasts, now.parse().unwrap())
    }

    fn line(lease: &Lease) -> String {
        let spec = lease.spec.as_ref().unwrap();
        let time = |time: &Option<MicroTime>| time.as_ref().map_or("-".into(), |time| time.0.to_string());
        format!(
            "{:?} transitions={} acquired={} renewed={}",
            spec.holder_identity.as_deref().unwrap(),
            spec.lease_transitions.unwrap(),
            time(&spec.acquire_time),
            time(&spec.renew_time)
        )
    }

    #[test]
    fn names_are_those_of_the_operator() {
        let me = Identity::new("pod-0_1");
        assert_eq!(names(1).shard(Shard::new(0)), "echo");
        assert_eq!(names(8).shard(Shard::new(7)), "echo-7");
        assert!(names(8).member(&me).starts_with("echo-member-"));
        assert_eq!(names(8).selector(), "mainstay.dev/operator=echo");
    }

    #[test]
    fn transitions_count_changes_of_hands_and_acquire_time_stays_while_renewed() {
        let first = hold_at(None, "a", "2001-01-01T00:00:00Z");
        let renewed = hold_at(Some(&first), "a", "2001-01-01T00:00:05Z");
        let released = release(&renewed, "2001-01-01T00:00:06Z".parse().unwrap());
        let taken = hold_at(Some(&released), "b", "2001-01-01T00:00:07Z");
        let story = [&first, &renewed, &released, &taken].map(line).join("\n");
        expect_test::expect![[r#"
            "a" transitions=0 acquired=2001-01-01T00:00:00Z renewed=2001-01-01T00:00:00Z
            "a" transitions=0 acquired=2001-01-01T00:00:00Z renewed=2001-01-01T00:00:05Z
            "" transitions=0 acquired=2001-01-01T00:00:00Z renewed=2001-01-01T00:00:06Z
            "b" transitions=1 acquired=2001-01-01T00:00:07Z renewed=2001-01-01T00:00:07Z"#]]
        .assert_eq(&story);
        assert_eq!(holder(&released), None);
        assert_eq!((layout(&taken), role(&taken)), (8, Role::Shard));
        assert_eq!(duration(&taken), Some(Duration::from_secs(15)));
    }

    #[test]
    fn renewal_changes_the_lease_even_if_the_clock_stands_still() {
        let first = hold_at(None, "a", "2001-01-01T00:00:00Z");
        let second = hold_at(Some(&first), "a", "2001-01-01T00:00:00.000000001Z");
        assert_ne!(first, second);
        assert_ne!(second, hold_at(Some(&second), "a", "2001-01-01T00:00:00Z"));
    }

    #[test]
    fn what_others_wrote_into_a_lease_stays() {
        let mut seen = hold_at(None, "a", "2001-01-01T00:00:00Z");
        seen.metadata.annotations = Some([("note".to_owned(), "kept".to_owned())].into());
        seen.metadata.resource_version = Some("7".into());
        let taken = hold_at(Some(&seen), "b", "2001-01-01T00:01:00Z");
        assert_eq!(taken.metadata.annotations, seen.metadata.annotations);
        assert_eq!(taken.metadata.resource_version.as_deref(), Some("7"));
    }

    #[test]
    fn lease_that_says_nothing_divides_nothing() {
        assert_eq!(layout(&Lease::default()), 1);
        assert_eq!((holder(&Lease::default()), duration(&Lease::default())), (None, None));
    }
}
