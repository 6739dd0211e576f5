//! Ranges of sizes and of costs.

/// The least and the most that something can be: a count of characters, bytes or elements, or a cost.
/// Arithmetic saturates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Range {
    /// Nothing is known.
    pub const UNKNOWN: Range = Range { min: 0, max: u64::MAX };

    /// Exactly this much.
    pub const fn fixed(value: u64) -> Range {
        Range { min: value, max: value }
    }

    /// At most this much.
    pub const fn up_to(max: u64) -> Range {
        Range { min: 0, max }
    }

    pub(super) fn plus(self, other: Range) -> Range {
        Range { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Range) -> Range {
        Range { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// The product with a factor, rounded up.
    pub(super) fn scaled(self, factor: f64) -> Range {
        Range { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    /// What covers both.
    pub(super) fn union(self, other: Range) -> Range {
        Range { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

// A cast from floating point saturates, which is what is wanted.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn scale(value: u64, factor: f64) -> u64 {
    (value as f64 * factor).ceil() as u64
}
