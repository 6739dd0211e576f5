//! Asking many at once.

use futures::{StreamExt as _, stream};

/// Asks each of them, at most `limit` at once, and gives the answers in the order of those who were asked.
///
/// Whoever does not answer takes one place of `limit` until its own deadline, and delays nobody else meanwhile.
pub async fn each<Peer, Answer, Asking>(
    peers: impl IntoIterator<Item = Peer>,
    limit: usize,
    ask: impl Fn(Peer) -> Asking,
) -> Vec<Answer>
where
    Asking: Future<Output = Answer>,
{
    let asked = peers.into_iter().enumerate().map(|(place, peer)| {
        let answer = ask(peer);
        async move { (place, answer.await) }
    });
    // Collected, because an iterator over what is borrowed cannot be kept while a future that may move between threads waits.
    let asked: Vec<_> = asked.collect();
    // Not in order: there an answer would keep its place until all before it are there.
    let mut answers: Vec<(usize, Answer)> =
        stream::iter(asked).buffer_unordered(limit.max(1)).collect().await;
    answers.sort_unstable_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
