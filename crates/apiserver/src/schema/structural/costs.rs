//! What the rules of a schema can cost, and the limits on it.

use crate::field::{FieldError, Path};

/// The highest estimated cost of one rule.
const RULE_COST_MAX: u64 = 10_000_000;
/// The highest estimated cost of all rules of a schema together.
const SCHEMA_COST_MAX: u64 = 100_000_000;
/// How many of the most expensive rules an error names.
const REPORTED_MAX: usize = 4;

/// The costs of the rules of one schema.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    /// Whether each rule was accepted before, so that only the sum counts.
    accepted: bool,
    total: u64,
    /// The rules that cost most, the most expensive first, and what is reported of them.
    expensive: Vec<(u64, FieldError)>,
}

impl Costs {
    /// No costs yet. `accepted` says whether the schema was accepted before.
    pub(super) fn new(accepted: bool) -> Self {
        Costs { accepted, ..Costs::default() }
    }

    /// Adds the cost of an expression. `what` names it in an error about its own limit.
    pub(super) fn add(&mut self, what: &str, cost: u64, at: &Path<'_>) -> Option<FieldError> {
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_COST_MAX / 100 {
            let detail =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.expensive.push((cost, FieldError::forbidden(at, detail)));
            self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(REPORTED_MAX);
        }
        let exceeds = cost > RULE_COST_MAX && !self.accepted;
        exceeds.then(|| FieldError::forbidden(at, exceeded(what, cost, RULE_COST_MAX)))
    }

    /// Reports a sum beyond its limit. `at` is the schema.
    pub(super) fn finish(self, at: &Path<'_>) -> Vec<FieldError> {
        if self.total <= SCHEMA_COST_MAX {
            return Vec::new();
        }
        let mut errors: Vec<FieldError> = self.expensive.into_iter().map(|(_, error)| error).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(at, exceeded(what, self.total, SCHEMA_COST_MAX)));
        errors
    }
}

#[expect(clippy::cast_precision_loss, reason = "the factor is shown with few digits")]
fn exceeded(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let shown = match factor {
        _ if factor > 100.0 => "more than 100x".to_owned(),
        _ if factor < 1.5 => format!("{factor:.6}x"),
        _ => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Path<'static> {
        Path::of("rule")
    }

    #[test]
    fn the_factor_has_more_digits_where_it_is_small() {
        let factor = |cost| {
            let text = exceeded("x", cost, RULE_COST_MAX);
            text.split("factor of ").nth(1).unwrap().split(' ').next().unwrap().to_owned()
        };
        assert_eq!(factor(10_000_001), "1.000000x");
        assert_eq!(factor(14_999_999), "1.500000x");
        assert_eq!(factor(15_000_000), "1.5x");
        assert_eq!(factor(1_000_000_000), "100.0x");
        assert_eq!(factor(u64::MAX), "more");
    }

    #[test]
    fn a_rule_has_its_own_limit_unless_it_was_accepted_before() {
        let mut costs = Costs::default();
        assert!(costs.add("rule", RULE_COST_MAX, &at()).is_none());
        assert!(costs.add("rule", RULE_COST_MAX + 1, &at()).is_some());
        assert!(Costs::new(true).add("rule", u64::MAX, &at()).is_none());
    }

    #[test]
    fn the_sum_saturates_and_names_the_four_most_expensive() {
        let mut costs = Costs::default();
        for cost in [1, 999_999, 1_000_000, 2_000_000, u64::MAX, u64::MAX, 3_000_000] {
            costs.add("rule", cost, &at());
        }
        assert_eq!(
            costs.expensive.iter().map(|(cost, _)| *cost).collect::<Vec<_>>(),
            [u64::MAX, u64::MAX, 3_000_000, 2_000_000]
        );
        assert_eq!(costs.finish(&at()).len(), 5);
        let mut costs = Costs::default();
        costs.add("rule", SCHEMA_COST_MAX, &at());
        assert!(costs.finish(&at()).is_empty());
    }
}
