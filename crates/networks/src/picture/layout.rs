//! Where everything is in the image: peers on a circle, with gaps between groups.

use std::f64::consts::TAU;

use super::Drawing;

/// How wide a letter is, about.
const LETTER: f64 = 7.3;
/// How far apart peers are on the circle.
const APART: f64 = 17.0;
/// With more peers than these, names point outwards, because they would overlap otherwise.
const MOST_LEVEL: usize = 16;

/// A place in the image.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Whether names are level, and do not point outwards.
    pub(super) level: bool,
    radius: f64,
    /// How far names reach beyond the circle.
    reach: f64,
    center: Point,
    /// The turn of each peer.
    turns: Vec<f64>,
    /// Half of the way between two peers.
    half: f64,
}

/// A count, which is far from what a float cannot hold.
pub(super) fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

impl Layout {
    pub(super) fn of(drawing: &Drawing, top: f64, bottom: f64, least_width: f64) -> Self {
        let groups = drawing.groups();
        let gaps = if groups.len() > 1 { groups.len() } else { 0 };
        let slots = float((drawing.peers.len() + gaps).max(1));
        let mut turns = Vec::new();
        for (place, (_, first, count)) in groups.iter().enumerate() {
            let gap = if gaps > 0 { place } else { 0 };
            let slot = |peer: usize| float(peer + gap) / slots * TAU - TAU / 4.0;
            turns.extend((*first..first + count).map(slot));
        }
        let longest = |text: &str| float(text.chars().count()) * LETTER;
        let reach = drawing.peers.iter().map(|peer| longest(&peer.name)).fold(0.0, f64::max) + 16.0;
        let outside = groups.iter().map(|(group, ..)| longest(group)).fold(0.0, f64::max) + 24.0;
        let radius = (slots * APART / TAU).max(110.0);
        let level = drawing.peers.len() <= MOST_LEVEL;
        let around = radius + reach + if gaps > 0 { outside } else { 8.0 };
        // Level names need no more than a line above and below.
        let above = if level && gaps == 0 { radius + 36.0 } else { around };
        let width = (2.0 * around).max(least_width);
        let center = Point { x: width / 2.0, y: top + above };
        let height = top + 2.0 * above + bottom;
        Self { width, height, level, radius, reach, center, turns, half: TAU / slots / 2.0 }
    }

    fn at(&self, turn: f64, radius: f64) -> Point {
        Point { x: self.center.x + radius * turn.cos(), y: self.center.y + radius * turn.sin() }
    }

    pub(super) fn turn(&self, place: usize) -> f64 {
        self.turns.get(place).copied().unwrap_or_default()
    }

    pub(super) fn peer(&self, place: usize) -> Point {
        self.at(self.turn(place), self.radius)
    }

    /// What a line between two peers is bent towards. Where there are many, those between neighbours would lie on the circle if they were straight, and
    /// on one another.
    pub(super) fn bend(&self, one: usize, other: usize) -> Point {
        let (from, to) = (self.peer(one), self.peer(other));
        let apart = (self.turn(one) - self.turn(other)).abs();
        let inwards = if self.level { 0.0 } else { (0.1 + 0.6 * apart.min(TAU - apart)).min(0.5) };
        let towards = |end: f64, other: f64, center: f64| {
            f64::midpoint(end, other) * (1.0 - inwards) + center * inwards
        };
        Point { x: towards(from.x, to.x, self.center.x), y: towards(from.y, to.y, self.center.y) }
    }

    /// Where a peer's name begins.
    pub(super) fn name(&self, place: usize) -> Point {
        self.at(self.turn(place), self.radius + 12.0)
    }

    /// The arc of a group, and where its name is: from, to, radius, whether it is more than half of the circle, name, and the name's turn.
    pub(super) fn group(&self, first: usize, count: usize) -> (Point, Point, f64, bool, Point, f64) {
        let (from, to) = (self.turn(first) - self.half, self.turn(first + count - 1) + self.half);
        let (radius, middle) = (self.radius + self.reach + 4.0, f64::midpoint(from, to));
        let name = self.at(middle, radius + 10.0);
        (self.at(from, radius), self.at(to, radius), radius, to - from > TAU / 2.0, name, middle)
    }
}
