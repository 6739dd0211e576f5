//! What an evaluation holds and has spent.

use super::{EvaluateError, Limits};
use crate::value::Value;
use std::sync::atomic::{AtomicBool, Ordering};

/// The value of a step, or why it has none. Errors are values: `false && error` is false.
pub(crate) type Outcome = Result<Value, EvaluateError>;

/// How many bytes all values that one evaluation makes may have.
const BYTES_MAX: u64 = 64 << 20;

/// How many elementary steps one evaluation may take that have no cost, like comparing parts of values.
const WORK_MAX: u64 = 200_000_000;

/// After this many charges, evaluation looks whether it is cancelled.
const POLL_INTERVAL: u32 = 100;

pub(crate) struct Machine<'a> {
    slots: Vec<Outcome>,
    pub cost: u64,
    cost_max: u64,
    cancelled: Option<&'a AtomicBool>,
    until_poll: u32,
    bytes: u64,
    work: u64,
}

impl<'a> Machine<'a> {
    pub(super) fn new(slots: usize, limits: Limits<'a>) -> Self {
        Machine {
            slots: vec![Ok(Value::Null); slots],
            cost: 0,
            cost_max: limits.cost_max,
            cancelled: limits.cancelled,
            until_poll: POLL_INTERVAL,
            bytes: 0,
            work: 0,
        }
    }

    pub(super) fn set_all(&mut self, values: &[Value]) {
        for (slot, value) in self.slots.iter_mut().zip(values) {
            *slot = Ok(value.clone());
        }
    }

    pub(super) fn set(&mut self, slot: usize, value: Outcome) {
        // Programs are planned with as many slots as they use.
        if let Some(place) = self.slots.get_mut(slot) {
            *place = value;
        }
    }

    pub(super) fn get(&self, slot: usize) -> Outcome {
        self.slots.get(slot).cloned().unwrap_or(Ok(Value::Null))
    }

    /// Takes a value out of its slot, so that it can be changed in place.
    pub(super) fn take(&mut self, slot: usize) -> Outcome {
        self.slots.get_mut(slot).map_or(Ok(Value::Null), |place| std::mem::replace(place, Ok(Value::Null)))
    }

    /// Adds to the cost of the evaluation.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvaluateError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.cost_max {
            return Err(EvaluateError::CostExceeded);
        }
        self.poll()
    }

    fn poll(&mut self) -> Result<(), EvaluateError> {
        self.until_poll -= 1;
        if self.until_poll == 0 {
            self.until_poll = POLL_INTERVAL;
            if self.cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return Err(EvaluateError::Cancelled);
            }
        }
        Ok(())
    }

    /// Asks for memory before it is used.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), EvaluateError> {
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if self.bytes > BYTES_MAX { Err(EvaluateError::CostExceeded) } else { self.poll() }
    }

    /// Asks for memory for the items of a list.
    pub(crate) fn reserve_items(&mut self, count: usize) -> Result<(), EvaluateError> {
        self.reserve(count.saturating_mul(size_of::<Value>()))
    }

    /// Counts work that has no cost.
    pub(crate) fn work(&mut self, steps: u64) -> Result<(), EvaluateError> {
        self.work = self.work.saturating_add(steps);
        if self.work > WORK_MAX { Err(EvaluateError::CostExceeded) } else { self.poll() }
    }

    /// Whether two values are equal, counted as work.
    pub(crate) fn equal(&mut self, first: &Value, second: &Value) -> Result<bool, EvaluateError> {
        let mut steps = 0;
        let equal = first.equals(second, &mut steps);
        self.work(steps)?;
        Ok(equal)
    }
}
