//! Which of several generated names is which: numbers that depend only on what the objects say, never on the names.
//!
//! Names begin as one class. A class is split by where its names are mentioned: by which objects, at which fields, with
//! which content, in which the names of the other classes already have their numbers. When no class splits any more,
//! the names that are still together are interchangeable (as are two pods that nobody tells apart), so that it does not
//! matter which of them is the first; one is made the first, and what hangs on it follows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::state::Place;
use super::text::Lexicon;
use super::tree::Mention;

type Rendered = (Place, Value);

/// Numbers the generated names, and gives every object with these numbers in it. `render` makes the object of an index
/// as the lexicon has the names at that time.
pub(super) fn tell_apart(
    lexicon: &mut Lexicon<'_>,
    objects: usize,
    render: impl Fn(&Lexicon<'_>, usize, &mut Vec<Mention>) -> Rendered,
) -> Vec<Rendered> {
    let count = lexicon.generated().len();
    let mut classes = vec![0; count];
    lexicon.number(&classes);
    let mut mentions = vec![Vec::new(); objects];
    let mut rendered: Vec<Rendered> =
        mentions.iter_mut().enumerate().map(|(index, mentions)| render(lexicon, index, mentions)).collect();
    let moving: Vec<usize> = (0..objects).filter(|index| !mentions[*index].is_empty()).collect();
    let renew = |lexicon: &Lexicon<'_>, mentions: &mut [Vec<Mention>], rendered: &mut [Rendered]| {
        for index in &moving {
            mentions[*index].clear();
            rendered[*index] = render(lexicon, *index, &mut mentions[*index]);
        }
    };
    // What an object says itself goes first, so that a number stays the same when only somebody's reference changes.
    let own = seen_from(count, &moving, &mentions, &rendered, |mention| mention.path.is_empty());
    classes = split(&classes, &own);
    lexicon.number(&classes);
    renew(lexicon, &mut mentions, &mut rendered);
    loop {
        let before = class_count(&classes);
        classes = split(&classes, &seen_from(count, &moving, &mentions, &rendered, |_| true));
        let after = class_count(&classes);
        if after == count {
            break;
        }
        if after == before {
            classes = break_ties(&classes, moving.iter().map(|index| mentions[*index].as_slice()));
        }
        lexicon.number(&classes);
        renew(lexicon, &mut mentions, &mut rendered);
    }
    let numbers = numbers(lexicon, &classes);
    lexicon.number(&numbers);
    renew(lexicon, &mut mentions, &mut rendered);
    rendered
}

fn class_count(classes: &[usize]) -> usize {
    classes.iter().collect::<BTreeSet<_>>().len()
}

/// For each name, everything that is said of it: the ranks of the objects that do, and at which fields.
fn seen_from<'m>(
    count: usize,
    moving: &[usize],
    mentions: &'m [Vec<Mention>],
    rendered: &[Rendered],
    counts: impl Fn(&Mention) -> bool,
) -> Vec<Vec<(usize, &'m str)>> {
    let texts: Vec<(&Place, String)> =
        moving.iter().map(|index| (&rendered[*index].0, rendered[*index].1.to_string())).collect();
    let order: BTreeSet<&(&Place, String)> = texts.iter().collect();
    let ranks: BTreeMap<_, usize> = order.into_iter().enumerate().map(|(rank, text)| (text, rank)).collect();
    let mut seen = vec![Vec::new(); count];
    for (index, text) in moving.iter().zip(&texts) {
        for mention in mentions[*index].iter().filter(|mention| counts(mention)) {
            seen[mention.node].push((ranks[text], mention.path.as_str()));
        }
    }
    for seen in &mut seen {
        seen.sort_unstable();
    }
    seen
}

/// Classes by what they were, and within one by what is seen of its names.
fn split<C: Ord>(classes: &[usize], seen: &[C]) -> Vec<usize> {
    let all: Vec<(usize, &C)> = classes.iter().copied().zip(seen).collect();
    let order: BTreeSet<&(usize, &C)> = all.iter().collect();
    let ranks: BTreeMap<_, usize> =
        order.into_iter().enumerate().map(|(rank, class)| (class, rank)).collect();
    all.iter().map(|class| ranks[class]).collect()
}

/// Orders names that nothing tells apart. Where each name of a class hangs together with other such names of its own
/// (a job with its pods, another one with its), the whole class can be ordered at once; otherwise only one name is put
/// first. Of names that hang together only one class is ordered: the others must follow it. Should they hang together
/// with different numbers of names, that tells them apart after all.
fn break_ties<'m>(classes: &[usize], mentions: impl Iterator<Item = &'m [Mention]>) -> Vec<usize> {
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (node, class) in classes.iter().enumerate() {
        members.entry(*class).or_default().push(node);
    }
    let is_tied = |node: usize| members[&classes[node]].len() > 1;
    let mut clumps: Vec<usize> = (0..classes.len()).collect();
    for said in mentions {
        let mut tied = said.iter().map(|mention| mention.node).filter(|node| is_tied(*node));
        let Some(first) = tied.next() else { continue };
        for node in tied {
            let (one, other) = (root(&mut clumps, first), root(&mut clumps, node));
            clumps[other] = one;
        }
    }
    let roots: Vec<usize> = (0..classes.len()).map(|node| root(&mut clumps, node)).collect();
    let sizes: Vec<usize> =
        roots.iter().map(|one| roots.iter().filter(|other| *other == one).count()).collect();
    let by_size = split(classes, &sizes);
    if class_count(&by_size) > members.len() {
        return by_size;
    }
    let mut places = vec![0; classes.len()];
    let mut used = BTreeSet::new();
    for tied in members.values().filter(|members| members.len() > 1) {
        let own: BTreeSet<usize> = tied.iter().map(|node| roots[*node]).collect();
        if own.iter().any(|root| used.contains(root)) {
            continue;
        }
        let apart = own.len() == tied.len();
        for (place, node) in tied.iter().enumerate() {
            places[*node] = if apart { place } else { place.min(1) };
        }
        used.extend(own);
    }
    split(classes, &places)
}

fn root(clumps: &mut [usize], node: usize) -> usize {
    let mut at = node;
    while clumps[at] != at {
        clumps[at] = clumps[clumps[at]];
        at = clumps[at];
    }
    at
}

/// 1, 2, … for the names of one prefix.
fn numbers(lexicon: &Lexicon<'_>, classes: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|node| classes[*node]);
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    let mut numbers = vec![0; classes.len()];
    for node in order {
        let number = last.entry(lexicon.generated()[node].prefix).or_default();
        *number += 1;
        numbers[node] = *number;
    }
    numbers
}
