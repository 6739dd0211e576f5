use std::collections::BTreeSet;

use super::super::clock::WorldClock;
use super::super::trace::Actor;
use super::*;

/// Those who wait, and the order in which they get their turns.
struct Queue {
    sequence: Arc<Sequence>,
    served: Arc<Mutex<Vec<String>>>,
}

impl Queue {
    fn new(seed: u64) -> Self {
        Self { sequence: Arc::new(Sequence::new(seed)), served: Arc::default() }
    }

    /// Begins to give turns.
    fn open(&self) {
        let sequence = Arc::clone(&self.sequence);
        tokio::spawn(async move { sequence.run().await });
    }

    fn wait(&self, life: &Arc<Life>, text: &str) -> tokio::task::JoinHandle<()> {
        let (sequence, served) = (Arc::clone(&self.sequence), Arc::clone(&self.served));
        let (life, text) = (Arc::clone(life), text.to_owned());
        tokio::spawn(async move {
            sequence.turn(&life, text.clone()).await;
            lock(&served).push(text);
        })
    }

    fn served(&self) -> String {
        lock(&self.served).concat()
    }
}

fn life() -> Arc<Life> {
    let actor = Actor { name: "operator".into(), incarnation: 1 };
    Arc::new(Life::new(actor, true, WorldClock::new(), None))
}

/// Until everybody has had a turn who ever will. The clock is paused, so this waits for nobody.
async fn rest() {
    sleep(Duration::from_secs(1)).await;
}

/// The order in which a seed serves these who come at once.
async fn order(seed: u64, all: &[&str]) -> String {
    let (queue, life) = (Queue::new(seed), life());
    for text in all {
        queue.wait(&life, text);
    }
    queue.open();
    rest().await;
    queue.served()
}

#[tokio::test(start_paused = true)]
async fn who_come_at_once_are_served_by_their_text() {
    assert_eq!(order(0, &["c", "a", "b"]).await, "abc");
    assert_eq!(order(0, &["b", "c", "a"]).await, "abc");
}

#[tokio::test(start_paused = true)]
async fn who_comes_first_is_served_first_whatever_the_text() {
    let (queue, life) = (Queue::new(0), life());
    queue.wait(&life, "z");
    queue.wait(&life, "y");
    queue.wait(&life, "x");
    sleep(Duration::from_millis(1)).await;
    queue.wait(&life, "b");
    queue.wait(&life, "a");
    queue.open();
    rest().await;
    assert_eq!(queue.served(), "xyzab");
}

#[tokio::test(start_paused = true)]
async fn each_turn_takes_its_time_and_all_come_to_rest_between_two() {
    let (queue, life) = (Queue::new(0), life());
    queue.open();
    for text in ["a", "b", "c"] {
        queue.wait(&life, text);
    }
    let mut seen = Vec::new();
    for _ in 0..4 {
        sleep(LATENCY).await;
        tokio::task::yield_now().await;
        seen.push(queue.served());
    }
    assert_eq!(seen, ["a", "ab", "abc", "abc"]);
}

#[tokio::test(start_paused = true)]
async fn another_seed_serves_the_same_ones_in_another_order() {
    let all = ["a", "b", "c", "d"];
    let mut orders = BTreeSet::new();
    for seed in 1..=40 {
        let first = order(seed, &all).await;
        // Which of them tokio polls first is no matter.
        assert_eq!(first, order(seed, &["d", "b", "a", "c"]).await, "seed {seed}");
        let mut sorted: Vec<char> = first.chars().collect();
        sorted.sort_unstable();
        assert_eq!(sorted, ['a', 'b', 'c', 'd']);
        orders.insert(first);
    }
    assert!(orders.len() > 10, "{orders:?}");
    assert!(orders.iter().any(|order| order.starts_with('d')), "late ones may overtake");
}

#[tokio::test(start_paused = true)]
async fn the_dead_and_those_who_gave_up_are_passed_over() {
    let (queue, living, dying) = (Queue::new(0), life(), life());
    queue.wait(&living, "c");
    let dead = queue.wait(&dying, "a");
    queue.wait(&living, "b").abort();
    queue.wait(&living, "d");
    tokio::task::yield_now().await;
    dying.die();
    queue.open();
    // They cost no turn either.
    sleep(2 * LATENCY).await;
    tokio::task::yield_now().await;
    assert_eq!(queue.served(), "cd");
    rest().await;
    assert_eq!(queue.served(), "cd");
    assert!(!dead.is_finished(), "nothing ever comes of it");
    // Who comes later is still served.
    queue.wait(&living, "e");
    rest().await;
    assert_eq!(queue.served(), "cde");
}

#[tokio::test(start_paused = true)]
async fn who_is_stalled_is_served_afterwards_and_holds_up_nobody() {
    let (queue, stalled, other) = (Queue::new(0), life(), life());
    queue.open();
    stalled.stall_until(Instant::now() + Duration::from_secs(30));
    queue.wait(&stalled, "a");
    queue.wait(&other, "b");
    rest().await;
    assert_eq!(queue.served(), "b");
    sleep(Duration::from_secs(30)).await;
    assert_eq!(queue.served(), "ba");
}

#[tokio::test(start_paused = true)]
async fn who_is_stalled_while_waiting_waits_on() {
    let (queue, stalled) = (Queue::new(0), life());
    queue.wait(&stalled, "a");
    tokio::task::yield_now().await;
    stalled.stall_until(Instant::now() + Duration::from_secs(30));
    queue.open();
    rest().await;
    assert_eq!(queue.served(), "");
    sleep(Duration::from_secs(30)).await;
    assert_eq!(queue.served(), "a");
}
