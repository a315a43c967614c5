//! A panic in a user's function fails the task with message, operator and backtrace, not the process.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use flott_core::{Error, Result};
use flott_operators::operator::current_operator;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs `work`; a panic in it becomes an error of the user's code. One that is an [`Error`] is that error: so keyed state
/// ends whoever asks for what the disk does not give back.
pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    HOOK.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_GUARDED.get() {
                return default(info);
            }
            let place = info.location().map_or(String::new(), |location| format!(" at {location}"));
            LAST.set(Some((place, Backtrace::force_capture().to_string())));
        }));
    });
    IS_GUARDED.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(false);
    outcome.unwrap_or_else(|payload| {
        let operator = current_operator().map_or_else(|| "a source".to_owned(), |name| format!("operator '{name}'"));
        let payload = match payload.downcast::<Error>() {
            Ok(error) => return Err(error.context(operator)),
            Err(payload) => payload,
        };
        let (place, backtrace) = LAST.take().unwrap_or_default();
        let mut error = Error::user_code(format!("{operator} panicked{place}: {}", message(&*payload)));
        error.backtrace = Some(backtrace);
        Err(error)
    })
}

fn message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value that is not text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_place() {
        let error = guard::<()>(|| panic!("broken {}", 7)).unwrap_err();
        assert!(error.message.contains("panics.rs") && error.message.ends_with("broken 7"), "{error}");
        assert!(error.backtrace.is_some());
        assert_eq!(guard(|| Ok(3)).unwrap(), 3);
    }

    #[test]
    fn an_error_that_unwinds_stays_what_it_is() {
        let unwind = || -> Result<()> { std::panic::resume_unwind(Box::new(Error::system("the disk is gone"))) };
        let error = guard(unwind).unwrap_err();
        assert_eq!(error.kind, flott_core::ErrorKind::System);
        assert!(error.message.ends_with("the disk is gone") && error.backtrace.is_none(), "{error}");
    }
}
