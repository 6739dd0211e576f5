//! What the rules of a schema can cost at most.

use crate::field::{FieldError, Path};

/// What one rule may cost for one object, by its estimate.
pub(super) const RULE_COST_MAX: u64 = 10_000_000;

/// What all rules of a schema may cost together.
const SCHEMA_COST_MAX: u64 = 100_000_000;

/// How many expensive rules are named when the total is too high.
const NAMED_MAX: usize = 4;

/// The costs of all rules of a schema.
#[derive(Debug, Default)]
pub(super) struct Total {
    cost: u64,
    /// The most expensive rules, those first that cost most.
    most: Vec<(u64, String)>,
}

impl Total {
    /// Adds the cost of an expression, which stands at `at`.
    pub(super) fn add(&mut self, at: &Path<'_>, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        if cost < SCHEMA_COST_MAX / 100 {
            return;
        }
        self.most.push((cost, at.to_string()));
        self.most.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.most.truncate(NAMED_MAX);
    }

    /// Complains if the total is too high.
    pub(super) fn errors(&self, at: &Path<'_>) -> Vec<FieldError> {
        if self.cost <= SCHEMA_COST_MAX {
            return Vec::new();
        }
        let contributed = |(_, place): &(u64, String)| {
            let detail =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            let mut error = FieldError::forbidden(at, detail);
            error.field.clone_from(place);
            error
        };
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let total = FieldError::forbidden(at, exceeds(name, self.cost, SCHEMA_COST_MAX));
        self.most.iter().map(contributed).chain([total]).collect()
    }
}

/// The sentence for a cost beyond its limit.
#[expect(clippy::cast_precision_loss, reason = "the factor is shown with few digits")]
pub(super) fn exceeds(name: &str, cost: u64, max: u64) -> String {
    let factor = cost as f64 / max as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
