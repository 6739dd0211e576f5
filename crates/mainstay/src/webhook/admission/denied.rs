//! A refusal, as the person who sent the object reads it.

use std::error::Error;
use std::fmt;

/// Why a request is refused: a message, an HTTP status, and the fields that are to blame.
///
/// The API server puts `admission webhook "…" denied the request: ` in front of the message.
///
/// ```
/// # use mainstay::webhook::Denied;
/// let denied = Denied::invalid("spec.replicas", "must be at least 1").and("spec.image", "must have a tag");
/// assert_eq!(denied.to_string(), "spec.replicas: must be at least 1, spec.image: must have a tag");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    code: u16,
    message: String,
    causes: Vec<Cause>,
}

/// One field that is to blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) field: String,
    pub(super) message: String,
}

impl Denied {
    /// Refused as a matter of policy: 403 Forbidden.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: 403, message: message.into(), causes: Vec::new() }
    }

    /// Refused because of a field, named as in `spec.containers[0].image`: 422 Invalid.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: 422, message: String::new(), causes: Vec::new() }.and(field, message)
    }

    /// One more field that is to blame.
    #[must_use]
    pub fn and(mut self, field: impl Into<String>, message: impl Into<String>) -> Self {
        self.causes.push(Cause { field: field.into(), message: message.into() });
        self
    }

    /// Refused if there is any problem: for handlers that collect all of them before they answer.
    pub fn if_any<F: Into<String>, M: Into<String>>(
        problems: impl IntoIterator<Item = (F, M)>,
    ) -> Result<(), Self> {
        let start = Self { code: 422, message: String::new(), causes: Vec::new() };
        let denied = problems.into_iter().fold(start, |denied, (field, message)| denied.and(field, message));
        if denied.causes.is_empty() { Ok(()) } else { Err(denied) }
    }

    /// The handler could not decide, because something that it needed failed: 500 `InternalError`. The error is shown to
    /// the client with all its sources.
    pub fn because(error: &dyn Error) -> Self {
        Self { code: 500, message: chain(error), causes: Vec::new() }
    }

    /// Another HTTP status; what is not an error's status becomes 403.
    #[must_use]
    pub fn code(mut self, code: u16) -> Self {
        self.code = if (400..600).contains(&code) { code } else { 403 };
        self
    }

    pub(super) fn status_code(&self) -> u16 {
        self.code
    }

    pub(super) fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// The word that API clients look at.
    pub(super) fn reason(&self) -> &'static str {
        match self.code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Gone",
            413 => "RequestEntityTooLarge",
            422 => "Invalid",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "",
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let mut separator = if self.message.is_empty() { "" } else { ": " };
        for Cause { field, message } in &self.causes {
            write!(f, "{separator}{field}: {message}")?;
            separator = ", ";
        }
        Ok(())
    }
}

impl Error for Denied {}

impl From<&str> for Denied {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl From<String> for Denied {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// An error with its sources, in one line.
pub(in crate::webhook) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_collected_into_one_refusal() {
        assert_eq!(Denied::if_any(Vec::<(String, String)>::new()), Ok(()));
        let denied = Denied::if_any([("spec.a", "is odd"), ("spec.b", "is even")]).unwrap_err();
        assert_eq!(denied.to_string(), "spec.a: is odd, spec.b: is even");
        assert_eq!((denied.status_code(), denied.reason()), (422, "Invalid"));
    }

    #[test]
    fn a_refusal_has_no_status_of_success() {
        assert_eq!(Denied::new("no").code(200).status_code(), 403);
        assert_eq!(Denied::new("no").code(409).reason(), "Conflict");
    }

    #[test]
    fn a_failure_tells_its_sources() {
        #[derive(Debug, thiserror::Error)]
        #[error("asking the registry")]
        struct Asking(#[source] std::fmt::Error);
        let denied = Denied::because(&Asking(std::fmt::Error));
        assert!(denied.to_string().starts_with("asking the registry: an error occurred"), "{denied}");
        assert_eq!(denied.status_code(), 500);
    }
}
