//! Does what an answer asks for outside of the cluster. One effect that fails does not keep the others from being tried.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio::time::{Instant, timeout_at};

use super::carry_out::Executed;
use super::course::Course;
use crate::clock::later;
use crate::execute::Failure;
use crate::handler::Effect;

impl Course<'_> {
    pub(super) async fn take_effect(&self, effects: &[Effect], executed: &mut Executed) {
        for effect in effects {
            // Nobody else may be at it: a replica whose lease is over does nothing any more.
            let done = match self.turn.permit(self.runner.api.timeout) {
                Err(lost) => Err(Failure::Fenced { message: lost.to_string() }),
                Ok(_) => self.act_outside(effect).await,
            };
            let what = effect.what();
            executed.outcomes.push(match &done {
                Ok(()) => {
                    tracing::info!("outside of the cluster: {what}");
                    "done".into()
                }
                Err(failure) => {
                    tracing::warn!(%failure, "could not {what}");
                    self.warn("EffectFailed", &format!("could not {what}: {failure}"));
                    format!("failed: {failure}")
                }
            });
            executed.failure = done.err().or(executed.failure.take());
            if matches!(executed.failure, Some(Failure::Fenced { .. })) {
                return;
            }
        }
    }

    async fn act_outside(&self, effect: &Effect) -> Result<(), Failure> {
        let acting = AssertUnwindSafe(effect.act()).catch_unwind();
        // What is permitted is permitted for as long as a request may take.
        let until = self.deadline.min(later(Instant::now(), self.runner.api.timeout));
        match timeout_at(until, acting).await {
            Ok(Ok(Ok(events))) => {
                for event in events {
                    self.emit(event);
                }
                Ok(())
            }
            Ok(Ok(Err(error))) => Err(Failure::outside(error.chain())),
            Ok(Err(_)) => Err(Failure::outside("it panicked".into())),
            Err(_) => Err(Failure::too_late()),
        }
    }
}
