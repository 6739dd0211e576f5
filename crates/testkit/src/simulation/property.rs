//! What the author says must be true of every state that a world is ever in.

use std::fmt;
use std::sync::Arc;

use super::panics::text_of;
use super::state::State;

type Judgement = Arc<dyn Fn(&State) -> Result<(), String> + Send + Sync>;

/// Something that must be true of every state that a world is ever in.
#[derive(Clone)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) holds: Judgement,
}

impl Property {
    /// Whether it holds, and why not. An assertion that fails in it is an answer too.
    pub(super) fn judge(&self, state: &State) -> Result<(), String> {
        let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.holds)(state)));
        judged.unwrap_or_else(|panic| Err(text_of(&*panic).to_owned()))
    }
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Property").field(&self.name).finish()
    }
}
