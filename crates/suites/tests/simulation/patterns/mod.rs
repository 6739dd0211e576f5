//! The patterns by which operators fail: one small operator with each, what the simulation says of it, and the few lines
//! that mend it.
//!
//! | pattern | file | how it is caught |
//! |---|---|---|
//! | Sieve: intermediate state | `intermediate_state` | crash points: end state |
//! | Sieve: stale state, time travel | `stale_state` | time travel: a claim is lost |
//! | Sieve: unobserved state | `unobserved_state` | watches: end state |
//! | Sieve: indirect, own writes unseen | `own_writes_unseen` | watches: property |
//! | Acto: a change of the spec is ignored | `change_ignored` | spec changes: way there |
//! | Acto: a rollback does not restore | `leftover` | spec changes: way there |
//! | Acto: a crash on a legal value | `panic_on_zero` | spec changes: ended |
//! | Acto: the end depends on the way there | `only_added` | spec changes: way there |
//! | timeout after the commit | `lost_answer` | requests: property |
//! | conflict swallowed | `swallowed_conflict` | requests: end state |
//! | an error taken for absence | `error_as_absence` | requests: a claim is lost |
//! | two leaders | `two_leaders` | two leaders: property |
//! | clock set wrong | `clock_jump` | clock jumps: a claim is lost |
//! | webhook down | `webhook_refusal` | webhooks down: end state |
//! | hot loop | `hot_loop` | without faults: no end |
//! | outside: finalizer removed too early | `orphan_outside` | crash points: end state |
//! | outside: made before it is recorded | `leak_outside` | crash points: end state |

mod by_hand;
mod change_ignored;
mod clock_jump;
mod error_as_absence;
mod hot_loop;
mod intermediate_state;
mod leak_outside;
mod leftover;
mod lost_answer;
mod only_added;
mod orphan_outside;
mod own_writes_unseen;
mod paints;
mod panic_on_zero;
mod stale_state;
mod swallowed_conflict;
mod two_leaders;
mod unobserved_state;
mod webhook_refusal;
