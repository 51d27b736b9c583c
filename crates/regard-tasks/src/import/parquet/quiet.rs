//! Panics of a decoder, which are errors of the file: they print nothing.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether panics of this thread print nothing.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function; its panic is an error, without the message on standard error that the panic hook
/// of the process would print. Other threads keep theirs.
pub(super) fn quietly<T>(run: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    let was = QUIET.replace(true);
    let done = catch_unwind(AssertUnwindSafe(run));
    QUIET.set(was);
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set in the process that this test starts to see what is printed.
    const CHILD: &str = "REGARD_TEST_QUIET_PANIC";

    #[test]
    fn parquet_panics_print_nothing() {
        if std::env::var_os(CHILD).is_some() {
            assert!(quietly(|| panic!("a decoder's")).is_err());
            assert_eq!(quietly(|| 3).ok(), Some(3));
            // Others are told.
            let _ = catch_unwind(|| panic!("another one"));
            return;
        }
        let program = std::env::current_exe().unwrap();
        let name = "parquet_panics_print_nothing";
        let mut child = Command::new(program);
        let ran = child.args([name, "--nocapture"]).env(CHILD, "1").output().unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{told}");
        assert!(told.contains("another one") && !told.contains("a decoder's"), "{told}");
    }
}
