//! The walk itself: every state once, each from the first world that was found in it.

use super::digest::{DigestMap, DigestSet};
use super::key::{Key, key, remainder};
use super::steps::{Outlook, Step, look};
use super::wishes::{Asked, Way};
use crate::lifecycle::tests::world::World;

/// All states, in the order in which they were found.
pub(super) struct Graph {
    pub(super) numbers: DigestMap<Key, usize>,
    pub(super) worlds: Vec<World>,
    from: Vec<(usize, Step)>,
    pub(super) outlooks: Vec<Outlook>,
    /// Worlds that were found in a state later, and that are different.
    pub(super) twins: Vec<(usize, World)>,
    /// What tells all of these worlds apart.
    pub(super) remainders: DigestSet<(Key, u64)>,
    pub(super) steps: usize,
}

/// One of so many worlds whose state is known is kept.
const TWINS_PER: usize = 7;

/// What one thread has found.
#[derive(Default)]
struct Found {
    outlooks: Vec<Outlook>,
    new: Vec<(usize, Step, Key, World)>,
    twins: Vec<(Key, u64, World)>,
    steps: usize,
    wrong: Option<(usize, Step, String)>,
}

impl Graph {
    pub(super) fn walk(start: World) -> Self {
        let mut graph = Self {
            numbers: DigestMap::from_iter([(key(&start), 0)]),
            worlds: vec![start],
            from: vec![(0, Step::Wait(Asked::Broken))],
            outlooks: Vec::new(),
            twins: Vec::new(),
            remainders: DigestSet::default(),
            steps: 0,
        };
        while graph.outlooks.len() < graph.worlds.len() {
            graph.widen();
        }
        graph
    }

    /// Looks at all that was found and not looked at yet.
    fn widen(&mut self) {
        let (begin, end) = (self.outlooks.len(), self.worlds.len());
        for found in in_parallel(begin..end, |range| self.explore(range)) {
            if let Some((index, step, what)) = found.wrong {
                self.fail(index, Some(step), &what);
            }
            self.steps += found.steps;
            self.outlooks.extend(found.outlooks);
            for (from, step, key, world) in found.new {
                let next = self.worlds.len();
                if *self.numbers.entry(key).or_insert(next) == next {
                    self.remainders.insert((key, remainder(&world)));
                    self.worlds.push(world);
                    self.from.push((from, step));
                }
            }
            for (key, remainder, twin) in found.twins {
                if self.remainders.insert((key, remainder)) {
                    self.twins.push((self.numbers[&key], twin));
                }
            }
        }
    }

    fn explore(&self, range: std::ops::Range<usize>) -> Found {
        let mut found = Found::default();
        let (mut known, mut remainders) = (DigestSet::default(), DigestSet::default());
        for index in range {
            let Found { new, twins, steps, .. } = &mut found;
            let outlook = look(&self.worlds[index], Way::Plain, &mut |step, key, world| {
                *steps += 1;
                if !self.numbers.contains_key(&key) && known.insert(key) {
                    new.push((index, step, key, world.clone()));
                } else if *steps % TWINS_PER == 0 {
                    let remainder = remainder(world);
                    if remainders.insert((key, remainder)) {
                        twins.push((key, remainder, world.clone()));
                    }
                }
            });
            match outlook {
                Ok(outlook) => found.outlooks.push(outlook),
                Err((step, what)) => {
                    found.wrong = Some((index, step, what));
                    break;
                }
            }
        }
        found
    }

    fn story(&self, mut index: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        while index != 0 {
            let (from, step) = self.from[index];
            steps.push(step);
            index = from;
        }
        steps.reverse();
        steps
    }

    pub(super) fn fail(&self, index: usize, step: Option<Step>, what: &str) -> ! {
        panic!("{what}\nafter {:#?}\nthen {step:?}\nin {:#?}", self.story(index), self.worlds[index]);
    }
}

/// Parts of a range on as many threads as there are cores, with what they come to in order.
pub(super) fn in_parallel<T: Send>(
    range: std::ops::Range<usize>,
    part: impl Fn(std::ops::Range<usize>) -> T + Sync,
) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let size = range.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let starts: Vec<usize> = range.clone().step_by(size).collect();
        let part = &part;
        let parts: Vec<_> = starts
            .into_iter()
            .map(|start| (start, range.end.min(start + size)))
            .map(|(start, end)| scope.spawn(move || part(start..end)))
            .collect();
        parts
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
