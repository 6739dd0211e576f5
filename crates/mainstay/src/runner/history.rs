//! The last plans of each parent, as text: small, and what people read anyway.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::Serialize;

use crate::plan::Plan;

/// A sync that wrote something, or could not: what it planned, why it ran, and what came of it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PastSync {
    /// When it ran.
    pub at: Timestamp,
    /// Why it ran.
    pub triggers: Vec<String>,
    /// What it planned.
    pub plan: Plan,
    /// What came of each step, in the order of the plan.
    pub outcomes: Vec<String>,
    /// Why there is no plan, or why it was not carried out wholly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The last few, in compact form.
#[derive(Debug, Default)]
pub(crate) struct History(VecDeque<Box<str>>);

impl History {
    /// Remembers a sync. One that is like the last in all but its time replaces it: a parent that fails the same way all
    /// night does not push out what went before.
    pub(crate) fn remember(&mut self, sync: &PastSync, kept: usize) {
        let Ok(text) = serde_json::to_string(sync) else { return };
        if kept == 0 {
            return;
        }
        if self.0.back().is_some_and(|last| same_but_time(last, &text)) {
            self.0.pop_back();
        }
        while self.0.len() >= kept {
            self.0.pop_front();
        }
        self.0.push_back(text.into_boxed_str());
    }

    /// The kept ones as JSON, the oldest first.
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        self.0.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
    }
}

/// The time is the first field: `{"at":"…",` and then the rest.
fn same_but_time(one: &str, other: &str) -> bool {
    let rest = |text: &str| text.find(',').unwrap_or(text.len());
    one[rest(one)..] == other[rest(other)..]
}
