//! What a run can be found guilty of.

use std::fmt;

/// Why a run is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// Something that the author said must always be true was not.
    Property {
        /// What.
        name: String,
        /// Why not.
        why: String,
    },
    /// There is no end to the changes.
    Unsettled {
        /// The last one.
        last: String,
    },
    /// The end state is another than without faults.
    EndState {
        /// In what: `deployments.apps default/web: spec.replicas: 2 -> 1`.
        differences: Vec<String>,
    },
    /// The end state depends on how the user came to the last spec.
    WayThere {
        /// In what, from the end to which that spec leads at once.
        differences: Vec<String>,
    },
    /// Started once more, the operator wrote again.
    SecondPass {
        /// What.
        writes: Vec<String>,
    },
    /// Something that the user made, or that holds data, was removed, and without faults it is not.
    Lost {
        /// What: `persistentvolumeclaims default/data`.
        what: String,
        /// By whom.
        by: String,
    },
    /// A program panicked or ended.
    Ended {
        /// Which.
        program: String,
        /// How.
        how: String,
    },
    /// A fault never came about: the program does not do the same again, or the numbers are those of another script.
    Unreached {
        /// What.
        faults: String,
    },
    /// The server refused what the user did.
    Refused {
        /// The script's step.
        step: String,
        /// The server's words.
        why: String,
    },
}

impl Violation {
    /// What kind of violation it is, in a word or two.
    pub fn name(&self) -> &'static str {
        match self {
            Violation::Property { .. } => "property",
            Violation::Unsettled { .. } => "no end",
            Violation::EndState { .. } => "end state",
            Violation::WayThere { .. } => "way there",
            Violation::SecondPass { .. } => "second pass",
            Violation::Lost { .. } => "lost",
            Violation::Ended { .. } => "ended",
            Violation::Unreached { .. } => "unreached",
            Violation::Refused { .. } => "refused",
        }
    }

    /// Whether another one has the same cause, as far as can be seen: a shorter run that shows it is as good.
    pub(super) fn is_like(&self, other: &Violation) -> bool {
        match (self, other) {
            (Violation::Property { name, .. }, Violation::Property { name: other, .. }) => name == other,
            (Violation::Refused { step, why }, Violation::Refused { step: other, why: reason }) => {
                (step, why) == (other, reason)
            }
            (Violation::Ended { program, how }, Violation::Ended { program: other, how: end }) => {
                (program, how) == (other, end)
            }
            (Violation::Lost { what, .. }, Violation::Lost { what: other, .. }) => what == other,
            (
                Violation::EndState { differences } | Violation::WayThere { differences },
                Violation::EndState { differences: others } | Violation::WayThere { differences: others },
            ) => {
                self.name() == other.name()
                    && differences.iter().any(|line| others.iter().any(|other| place(line) == place(other)))
            }
            _ => self.name() == other.name(),
        }
    }
}

/// Object and field of a difference, without the values: `deployments.apps default/web: spec.replicas`.
fn place(difference: &str) -> (&str, &str) {
    let (object, rest) = difference.split_once(": ").unwrap_or((difference, ""));
    (object, rest.split_once(": ").map_or(rest, |(field, _)| field))
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |lines: &[String]| format!("\n    {}", lines.join("\n    "));
        match self {
            Violation::Property { name, why } => write!(f, "not always so: {name}: {why}"),
            Violation::Unsettled { last } => {
                write!(f, "there is no end to the changes; the last one: {last}")
            }
            Violation::EndState { differences } => {
                write!(f, "the end state is not the one without faults:{}", list(differences))
            }
            Violation::WayThere { differences } => {
                write!(
                    f,
                    "the end state is not the one to which the last spec leads at once:{}",
                    list(differences)
                )
            }
            Violation::SecondPass { writes } => write!(f, "a further pass writes again:{}", list(writes)),
            Violation::Lost { what, by } => write!(f, "lost: {what}, removed by {by}"),
            Violation::Ended { program, how } => write!(f, "{program} ended: {how}"),
            Violation::Unreached { faults } => write!(f, "this never came about: {faults}"),
            Violation::Refused { step, why } => {
                write!(f, "the server refused the user's step ({step}): {why}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(step: &str, why: &str) -> Violation {
        Violation::Refused { step: step.to_owned(), why: why.to_owned() }
    }

    fn ends(difference: &str) -> Violation {
        Violation::EndState { differences: vec![difference.to_owned()] }
    }

    #[test]
    fn violations_are_alike_if_they_have_the_same_cause() {
        let patched = refused("patch lab", "422: too small");
        assert!(patched.is_like(&patched.clone()));
        assert!(!patched.is_like(&refused("patch lab", "404: not found")));
        assert!(!patched.is_like(&refused("delete lab", "422: too small")));
        let replicas = ends("deployments.apps default/web: spec.replicas: 2 -> 1");
        assert!(replicas.is_like(&ends("deployments.apps default/web: spec.replicas: 2 -> 5")));
        assert!(!replicas.is_like(&ends("deployments.apps default/web: spec.paused: true -> false")));
        assert!(!replicas.is_like(&ends("deployments.apps default/shop: spec.replicas: 2 -> 1")));
        assert!(!ends("pods default/a: missing").is_like(&ends("pods default/a: should not exist")));
        let property = |name: &str, why: &str| Violation::Property { name: name.into(), why: why.into() };
        assert!(property("one job", "two").is_like(&property("one job", "three")));
        assert!(!property("one job", "two").is_like(&property("no job", "two")));
        assert!(!property("one job", "two").is_like(&patched));
        let lost = |what: &str, by: &str| Violation::Lost { what: what.into(), by: by.into() };
        assert!(lost("secrets default/a", "x").is_like(&lost("secrets default/a", "y")));
        assert!(!lost("secrets default/a", "x").is_like(&lost("secrets default/b", "x")));
    }
}
