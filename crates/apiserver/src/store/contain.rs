//! Panics of `redb` become values. A file that is damaged, or a disk that is full, can lead to one; the error that
//! follows says what is wrong, so the panic itself is not printed.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` and returns its panic, if it panics. Panics of other threads are printed as always.
pub(super) fn contain<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !SILENT.get() {
                usual(info);
            }
        }));
    });
    let before = SILENT.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    SILENT.set(before);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_value_and_silence_ends_with_the_work() {
        let outer = contain(|| {
            assert!(contain(|| panic!("a page that cannot be")).is_err());
            assert!(SILENT.get());
            7
        });
        assert_eq!(outer.ok(), Some(7));
        assert!(!SILENT.get());
    }
}
