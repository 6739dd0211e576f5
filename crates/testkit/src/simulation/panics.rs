//! Panics of programs in a world: noted for the report instead of printed, also those that a framework catches.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    static NOTED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// The words of a panic.
pub(super) fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}

/// Runs `work`, during which panics on this thread are noted. If `work` itself panics, so does this.
pub(super) fn note_panics<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let text = info.payload_as_str().unwrap_or("a panic without words").to_owned();
            let noted = NOTED.with_borrow_mut(|noted| noted.as_mut().map(|noted| noted.push(text)).is_some());
            if !noted {
                usual(info);
            }
        }));
    });
    NOTED.set(Some(Vec::new()));
    let done = panic::catch_unwind(panic::AssertUnwindSafe(work));
    let noted = NOTED.take().unwrap_or_default();
    let Ok(done) = done else {
        panic!("the simulation itself panicked: {}", noted.last().map_or("", String::as_str));
    };
    (done, noted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_that_is_caught_is_noted() {
        let (value, noted) = note_panics(|| {
            let _ = panic::catch_unwind(|| panic!("no {}", "way"));
            7
        });
        assert_eq!((value, noted), (7, vec!["no way".to_owned()]));
    }
}
