use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;

const LIFE: i64 = 900;
const SETTLE: i64 = 20;

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// A certificate made at a time; its authority tells which.
fn made_at(seconds: i64) -> Issued {
    Issued {
        authority: format!("authority of {seconds}\n"),
        certificate: String::new(),
        key: String::new(),
        names: vec!["a".into(), "b".into()],
        made_at: at(seconds),
        listed_since: at(seconds),
        expires_at: at(seconds + LIFE),
    }
}

fn wanted() -> Wanted {
    let seconds = |seconds: i64| Duration::from_secs(seconds.try_into().unwrap());
    Wanted { names: vec!["a".into()], lifetime: seconds(LIFE), settle: seconds(SETTLE) }
}

fn trusted(since: &[(i64, i64)]) -> Trusted {
    since.iter().map(|(made, since)| (made_at(*made).authority, at(*since))).collect()
}

fn steps(listed: &[Issued], trusted: &Trusted, now: i64) -> Vec<Step> {
    plan_certificates(listed, false, &wanted(), trusted, at(now)).steps
}

#[test]
fn the_first_certificate_is_made_and_served_at_once() {
    assert_eq!(steps(&[], &Trusted::new(), 0), [Step::Issue(Why::None)]);
    assert_eq!(steps(&[made_at(0)], &Trusted::new(), 0), [Step::Serve(0)]);
}

#[test]
fn a_new_one_is_made_after_two_thirds_of_its_life() {
    let listed = [made_at(0)];
    let trusted = trusted(&[(0, 0)]);
    assert_eq!(steps(&listed, &trusted, 599), [Step::Serve(0)]);
    assert_eq!(steps(&listed, &trusted, 600), [Step::Issue(Why::Due), Step::Serve(0)]);
    let plan = plan_certificates(&listed, false, &wanted(), &trusted, at(100));
    assert_eq!(plan.look_again_at, at(600));
}

#[test]
fn a_new_one_is_served_when_it_has_been_trusted_for_a_while() {
    let listed = [made_at(0), made_at(600)];
    assert_eq!(steps(&listed, &trusted(&[(0, 0)]), 800), [Step::Serve(0)]);
    let trusted = trusted(&[(0, 0), (600, 610)]);
    assert_eq!(steps(&listed, &trusted, 629), [Step::Serve(0)]);
    assert_eq!(plan_certificates(&listed, false, &wanted(), &trusted, at(611)).look_again_at, at(630));
    assert_eq!(steps(&listed, &trusted, 630), [Step::Serve(1)]);
}

#[test]
fn a_replica_that_just_started_serves_what_has_been_registered_longest() {
    assert_eq!(steps(&[made_at(0), made_at(600)], &Trusted::new(), 700), [Step::Serve(0)]);
}

#[test]
fn one_that_is_about_to_expire_is_served_only_if_there_is_no_other() {
    let listed = [made_at(0), made_at(600)];
    assert_eq!(steps(&listed, &Trusted::new(), LIFE - SETTLE), [Step::Serve(1)]);
    assert_eq!(steps(&[made_at(0)], &trusted(&[(0, 0)]), LIFE - 1), [Step::Issue(Why::Due), Step::Serve(0)]);
}

#[test]
fn expired_ones_are_forgotten() {
    let listed = [made_at(0), made_at(600)];
    assert_eq!(steps(&listed, &Trusted::new(), LIFE), [Step::Forget(0), Step::Serve(1)]);
    assert_eq!(
        steps(&listed, &Trusted::new(), 600 + LIFE),
        [Step::Forget(1), Step::Forget(0), Step::Issue(Why::None)]
    );
}

#[test]
fn replicas_that_want_other_names_get_along() {
    let other = Issued { names: vec!["c".into()], ..made_at(100) };
    // Theirs is newer, ours still fits us: nothing to make.
    assert_eq!(steps(&[made_at(0), other.clone()], &Trusted::new(), 200), [Step::Serve(0)]);
    assert_eq!(steps(&[other], &Trusted::new(), 200), [Step::Issue(Why::Names)]);
}

#[test]
fn a_deleted_list_rotates_and_keeps_what_is_remembered() {
    let plan = plan_certificates(&[made_at(0)], true, &wanted(), &trusted(&[(0, 0)]), at(100));
    assert_eq!(plan.steps, [Step::Issue(Why::Deleted), Step::Serve(0)]);
}

#[test]
fn after_a_deletion_everything_settles_anew() {
    let relisted = Issued { listed_since: at(700), ..made_at(600) };
    let trusted = trusted(&[(0, 0), (600, 610)]);
    let listed = [made_at(0), relisted];
    assert_eq!(steps(&listed, &trusted, 719), [Step::Serve(0)]);
    assert_eq!(steps(&listed, &trusted, 720), [Step::Serve(1)]);
}

/// One replica of the world below.
#[derive(Default)]
struct Replica {
    trusted: Trusted,
    serving: Option<Issued>,
    remembered: Vec<Issued>,
}

/// A world of replicas that share a list and a registration.
#[derive(Default)]
struct World {
    listed: Option<Vec<Issued>>,
    /// What was registered, with the time from which on each was.
    registered: Vec<(i64, String)>,
    replicas: Vec<Replica>,
}

impl World {
    /// One look of one replica, as the loop that does the I/O takes it.
    fn look(&mut self, replica: usize, now: i64) {
        let replica = &mut self.replicas[replica];
        loop {
            let deleted = self.listed.is_none();
            let listed = self.listed.clone().unwrap_or_else(|| replica.remembered.clone());
            let plan = plan_certificates(&listed, deleted, &wanted(), &replica.trusted, at(now));
            if !plan.changes_list() {
                let serving = listed[plan.serve().unwrap()].clone();
                replica.serving = Some(serving);
                replica.remembered.clone_from(&listed);
                let bundle = bundle(&listed);
                if self.registered.last().is_none_or(|(_, last)| *last != bundle) {
                    self.registered.push((now, bundle));
                }
                for issued in &listed {
                    replica.trusted.entry(issued.authority.clone()).or_insert(at(now));
                }
                return;
            }
            let issue = |_| Ok::<_, std::convert::Infallible>(made_at(now));
            let Ok(next) = change_list(&listed, &plan, at(now), issue);
            self.listed = Some(next);
        }
    }

    /// What an API server that is `delay` behind trusts.
    fn trusted_by_server(&self, now: i64, delay: i64) -> &str {
        let seen = self.registered.iter().rev().find(|(since, _)| *since <= now - delay);
        &seen.or(self.registered.first()).unwrap().1
    }
}

/// Whatever a replica serves is trusted, at every moment. Replicas look when they like, but twice in the time that API
/// servers may lag. With each event, some time passes and one replica looks, before which the list may be deleted (0) or
/// the replica restarted (1).
fn check_world(events: Vec<(usize, i64, u8)>, delay: i64) -> Result<(), TestCaseError> {
    let mut world = World { replicas: (0..3).map(|_| Replica::default()).collect(), ..World::default() };
    let mut now = 0;
    let mut looked = [0; 3];
    (0..3).for_each(|replica| world.look(replica, now));
    for (replica, seconds, happening) in events {
        now += seconds;
        for (other, looked) in looked.iter_mut().enumerate() {
            if now - *looked > SETTLE / 2 - 4 {
                world.look(other, now);
                *looked = now;
            }
        }
        match happening {
            0 => world.listed = None,
            1 => world.replicas[replica] = Replica::default(),
            _ => {}
        }
        world.look(replica, now);
        looked[replica] = now;
        for replica in &world.replicas {
            let serving = replica.serving.as_ref().unwrap();
            prop_assert!(serving.expires_at > at(now), "{:?} has expired at {}", serving, now);
            let trusted = world.trusted_by_server(now, delay);
            prop_assert!(trusted.contains(&serving.authority), "{:?} is not in {}", serving, trusted);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_is_served_is_trusted_through_rotations(
        events in prop::collection::vec((0..3_usize, 1..4_i64, 0..100_u8), 100..800),
        delay in 0..SETTLE,
    ) {
        check_world(events, delay)?;
    }

    #[test]
    fn what_is_served_is_trusted_though_the_list_is_deleted_again_and_again(
        events in prop::collection::vec((0..3_usize, 1..4_i64, 0..6_u8), 10..80),
        delay in 0..SETTLE,
    ) {
        check_world(events, delay)?;
    }
}
