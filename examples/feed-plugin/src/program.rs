//! The program of a feed: a line for each record that it copies. It copies nothing, so that it can be run anywhere.
//!
//! | asked for | ends |
//! |---|---|
//! | a feed that runs all the time | when it is told to, with 143: it was not done |
//! | a feed with a schedule, a backfill | after its records, with 0 |
//! | a feed with `failWith` | after its records, with that code |

mod context;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

pub use context::{Backfill, Context, ContextError, Spec};

/// The code that says: called wrongly.
pub const USAGE: u8 = 64;
/// The code of what SIGTERM ended.
const TERMINATED: u8 = 143;

/// Copies, and tells of each record, until it is done or `stop` is. Gives the exit code.
pub async fn run(context: &Context, mut tell: impl FnMut(&str), stop: impl Future<Output = ()>) -> u8 {
    let mut stop = pin!(stop);
    tell(&context.introduction());
    let limit = context.records();
    let interval = Duration::from_secs(context.spec.interval_seconds);
    let mut copied = 0;
    while limit.is_none_or(|limit| copied < limit) {
        tokio::select! {
            biased;
            () = &mut stop => {
                tell(&format!("told to end after {copied} records"));
                return TERMINATED;
            }
            () = tokio::time::sleep(interval) => {}
        }
        copied += 1;
        tell(&format!("copied record {copied}"));
    }
    let code = context.spec.fail_with.unwrap_or_default();
    tell(&format!("ends with {code} after {copied} records"));
    code
}
