//! Where the operator keeps what it knows of a stream: in the stream's status, and, where the kind's schema would drop parts of that, in an
//! annotation as well.

use serde_json::Value;

use crate::kinds::StreamStatus;

/// All of the status, for kinds that do not keep it.
pub(crate) const ANNOTATION: &str = "mainstay.dev/stream-record";

/// What was known of a stream after the last decision. What nobody can read is as if it were not there.
pub fn read(stream: &Value) -> StreamStatus {
    let kept = stream["metadata"]["annotations"][ANNOTATION].as_str();
    if let Some(record) = kept.and_then(|kept| serde_json::from_str(kept).ok()) {
        return record;
    }
    serde_json::from_value(stream["status"].clone()).unwrap_or_default()
}

/// The annotation's text: the status without what every kind keeps, or what changes by itself.
pub(crate) fn write(status: &StreamStatus) -> String {
    let kept = StreamStatus { conditions: Vec::new(), observed_generation: None, ..status.clone() };
    // Plain data of text and numbers can always be written.
    serde_json::to_string(&kept).unwrap_or_default()
}
