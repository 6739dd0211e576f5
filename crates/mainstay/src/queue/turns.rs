//! Whose turn it is: between priorities, and between lanes of one priority.
//!
//! A more urgent priority goes first, but a priority that has keys waiting is passed over at most [`PATIENCE`] times
//! in a row (once more if two are at their limit at once), however many urgent keys arrive. Promoting keys by their
//! age instead would let a long backlog of resyncs grow old and then delay a user's change; a fixed share can't.
//! Within a priority the lanes take turns.

use std::collections::VecDeque;

use super::Priority;

/// How often a priority with waiting keys is passed over before it has a turn.
pub(super) const PATIENCE: u32 = 7;

/// Who is to be served next. Knows lanes by number only.
#[derive(Debug, Default)]
pub(super) struct Turns {
    lines: [Line; Priority::COUNT],
}

#[derive(Debug, Default)]
struct Line {
    /// The lanes with keys of this priority, in the order of their turns. A lane that has none any more, or may not
    /// be served, leaves when it comes to the front.
    lanes: VecDeque<u64>,
    passed_over: u32,
}

impl Turns {
    /// A lane has keys of this priority. It must not be in that line already.
    pub(super) fn join(&mut self, priority: Priority, lane: u64) {
        self.lines[priority.index()].lanes.push_back(lane);
    }

    /// Decides who is served, and takes the lane out of the line: it joins again at the end if it has more.
    ///
    /// `stays` tells of a lane at the front whether it can be served; if not, it has left the line.
    pub(super) fn next(&mut self, mut stays: impl FnMut(Priority, u64) -> bool) -> Option<(Priority, u64)> {
        for priority in Priority::ALL {
            let line = &mut self.lines[priority.index()];
            while line.lanes.front().is_some_and(|lane| !stays(priority, *lane)) {
                line.lanes.pop_front();
            }
            if line.lanes.is_empty() {
                line.passed_over = 0;
            }
        }
        let waiting = |priority: &Priority| !self.lines[priority.index()].lanes.is_empty();
        let passed_over = |priority: &Priority| self.lines[priority.index()].passed_over;
        let chosen = Priority::ALL
            .into_iter()
            .rev()
            .filter(waiting)
            .filter(|priority| passed_over(priority) >= PATIENCE)
            .max_by_key(passed_over)
            .or_else(|| Priority::ALL.into_iter().find(waiting))?;
        for priority in Priority::ALL.into_iter().filter(|priority| *priority != chosen) {
            let line = &mut self.lines[priority.index()];
            if !line.lanes.is_empty() {
                line.passed_over += 1;
            }
        }
        let line = &mut self.lines[chosen.index()];
        line.passed_over = 0;
        line.lanes.pop_front().map(|lane| (chosen, lane))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Lanes that always have more: every priority, and every lane of it, is served within a bounded time.
        #[test]
        fn nobody_starves(lanes in proptest::collection::vec(0..3_usize, 1..6)) {
            let mut turns = Turns::default();
            let members: Vec<_> = (0..).zip(&lanes).map(|(lane, at)| (Priority::ALL[*at], lane)).collect();
            for (priority, lane) in &members {
                turns.join(*priority, *lane);
            }
            let served: Vec<_> = (0..600)
                .map(|_| {
                    let (priority, lane) = turns.next(|_, _| true).unwrap();
                    turns.join(priority, lane);
                    (priority, lane)
                })
                .collect();
            for (priority, lane) in &members {
                let same = members.iter().filter(|(other, _)| other == priority).count();
                let longest = (PATIENCE as usize + 2) * same;
                for window in served.windows(longest) {
                    prop_assert!(window.contains(&(*priority, *lane)), "{priority:?} {lane} in {window:?}");
                }
            }
        }
    }

    #[test]
    fn urgent_keys_have_three_quarters_of_the_turns_in_the_worst_case() {
        let mut turns = Turns::default();
        for priority in Priority::ALL {
            turns.join(priority, 0);
        }
        let urgent = (0..800)
            .filter(|_| {
                let (priority, lane) = turns.next(|_, _| true).unwrap();
                turns.join(priority, lane);
                priority == Priority::Now
            })
            .count();
        assert!((600..=601).contains(&urgent), "{urgent}");
    }
}
