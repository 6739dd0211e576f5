use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn now() -> Instant {
    Instant::now()
}

fn link(number: u64, dialled: bool) -> Link<u64> {
    let remote = SocketAddr::from(([127, 0, 0, 2], 4001));
    Link { number, dialled, attempt: number, session: 1, remote, handle: number }
}

#[test]
fn a_second_connection_is_kept_by_both_ends_or_by_none() {
    for mine in [true, false] {
        let mut lesser = Table::new("a".into());
        lesser.admit("b", link(1, mine), now()).unwrap();
        // Dialled by the lesser one: better than what the other dialled.
        assert_eq!(lesser.admit("b", link(2, !mine), now()).is_ok(), !mine);
        let mut greater = Table::new("b".into());
        greater.admit("a", link(1, mine), now()).unwrap();
        assert_eq!(greater.admit("a", link(2, !mine), now()).is_ok(), mine);
    }
}

#[test]
fn one_of_a_former_run_gives_way() {
    let mut table = Table::new("b".into());
    table.admit("a", link(1, false), now()).unwrap();
    assert_eq!(table.admit("a", link(2, true), now()), Err(NotTaken::Duplicate));
    assert_eq!(table.admit("a", Link { session: 2, ..link(3, true) }, now()), Ok(()));
    // That the old one has ended is learned later, and is not about the new one.
    table.remove("a", 1);
    assert!(table.contains("a"));
    table.remove("a", 3);
    assert!(!table.contains("a"));
}

#[test]
fn filters_end_connections_and_take_none() {
    let mut table = Table::new("a".into());
    table.admit("b", link(1, false), now()).unwrap();
    let filter: Filter = "/ip4/127.0.0.2/ipcidr/32".parse().unwrap();
    table.filter(&[filter], None, now());
    assert!(!table.contains("b"));
    assert_eq!(table.admit("b", link(2, false), now()), Err(NotTaken::Filtered));
    assert!(table.unfilter(&filter) && !table.unfilter(&filter));
    assert_eq!(table.admit("b", link(3, false), now()), Ok(()));
    table.close();
    assert_eq!(
        (table.contains("b"), table.admit("b", link(4, false), now())),
        (false, Err(NotTaken::Closed))
    );
}

#[test]
fn a_filter_ends_at_its_time_unless_it_is_renewed() {
    let (start, second) = (now(), Duration::from_secs(1));
    let at = |seconds: u32| start + second * seconds;
    let host = Filter::host(IpAddr::from([127, 0, 0, 2]));
    let range: Filter = "/ip4/127.0.0.0/ipcidr/8".parse().unwrap();
    let mut table = Table::new("a".into());
    table.admit("b", link(1, false), start).unwrap();
    table.filter(&[host, range], Some(at(10)), start);
    assert_eq!(table.admit("b", link(2, false), at(9)), Err(NotTaken::Filtered));
    table.filter(&[host], Some(at(20)), at(9));
    assert_eq!(table.filters(at(15)), [host]);
    assert_eq!(table.admit("b", link(3, false), at(19)), Err(NotTaken::Filtered));
    assert_eq!((table.filters(at(20)), table.admit("b", link(4, false), at(20))), (vec![], Ok(())));
    // Whoever asked for one without an end still has it.
    table.filter(&[host], None, at(21));
    table.filter(&[host], Some(at(22)), at(21));
    assert_eq!(table.filters(at(99)), [host]);
}

#[test]
fn filters_match_what_begins_alike() {
    let matches = |filter: &str, ip: &str| {
        let read: Filter = filter.parse().unwrap();
        assert_eq!(read.to_string(), filter);
        read.matches(ip.parse().unwrap())
    };
    assert!(matches("/ip4/10.0.0.1/ipcidr/32", "10.0.0.1"));
    assert!(matches("/ip4/10.0.0.1/ipcidr/32", "::ffff:10.0.0.1"));
    assert!(!matches("/ip4/10.0.0.1/ipcidr/32", "10.0.0.2"));
    assert!(matches("/ip4/10.0.0.0/ipcidr/8", "10.9.0.2"));
    assert!(matches("/ip4/10.0.0.0/ipcidr/0", "1.2.3.4"));
    assert!(matches("/ip6/fd00::1/ipcidr/128", "fd00::1"));
    assert!(!matches("/ip6/fd00::1/ipcidr/128", "fd00::2"));
    assert!(!matches("/ip6/::/ipcidr/0", "10.0.0.1"));
    for wrong in ["", "/ip4/10.0.0.1", "/ip4/10.0.0.1/ipcidr/33", "/ip6/10.0.0.1/ipcidr/8", "10.0.0.0/8"] {
        assert!(wrong.parse::<Filter>().is_err(), "{wrong}");
    }
}

/// Two peers and connections between them. Of each, the one who did not dial takes it first; both learn later that the other end has let go.
struct Pair {
    tables: [Table<u64>; 2],
    news: [VecDeque<News>; 2],
}

#[derive(Clone, Copy)]
enum News {
    Dialled(u64),
    Welcome(u64),
    Ended(u64),
}

impl Pair {
    const NAMES: [&str; 2] = ["a", "b"];

    fn held(&self, end: usize) -> Option<u64> {
        self.tables[end].links().next().map(|(_, link)| link.number)
    }

    /// One end takes a connection, or lets go of it or of the one that it had; the other end hears of that.
    fn take(&mut self, end: usize, number: u64, dialled: bool) -> bool {
        let (peer, before) = (Self::NAMES[1 - end], self.held(end));
        let taken = self.tables[end].admit(peer, link(number, dialled), now()).is_ok();
        let gone = if taken { before } else { Some(number) };
        self.news[1 - end].extend(gone.map(News::Ended));
        taken
    }

    fn hear(&mut self, end: usize) {
        match self.news[end].pop_front() {
            Some(News::Dialled(number)) if self.take(end, number, false) => {
                self.news[1 - end].push_back(News::Welcome(number));
            }
            Some(News::Welcome(number)) => drop(self.take(end, number, true)),
            Some(News::Ended(number)) => self.tables[end].remove(Self::NAMES[1 - end], number),
            Some(News::Dialled(_)) | None => {}
        }
    }
}

proptest! {
    /// However dials of both and what comes of them cross, both ends have the same connection in the end.
    #[test]
    fn crossing_dials_end_in_one_connection(steps in proptest::collection::vec((0_usize..2, 0_u8..4), 1..60)) {
        let mut pair = Pair {
            tables: Pair::NAMES.map(|name| Table::new(name.into())),
            news: [VecDeque::new(), VecDeque::new()],
        };
        let mut dials = 0;
        for (end, step) in steps {
            // A peer dials only whom it is not connected to.
            if step == 0 && pair.held(end).is_none() {
                dials += 1;
                pair.news[1 - end].push_back(News::Dialled(dials));
            } else {
                pair.hear(end);
            }
        }
        while pair.news.iter().any(|news| !news.is_empty()) {
            pair.hear(0);
            pair.hear(1);
        }
        prop_assert_eq!(pair.held(0), pair.held(1));
        prop_assert_eq!(pair.held(0).is_some(), dials > 0);
    }
}
