//! What the headers of a reply say of the provider's limits: the wait in its general forms, and the windows that are used
//! up. Pure: the time comes from the reply itself, or from the caller. A hostile value is none; no wait gets longer than
//! it was said.

mod family;
pub(crate) mod moment;
pub(crate) mod span;

pub use span::{millis, worth};

use std::time::Duration;
use turnkeep_base::Declared;

/// What the headers declare. `get` gives a header's value as text, by its name in lower case; `wall_ms` is the time in
/// milliseconds since 1970, used only where the reply has no usable `Date` (0 is unknown).
///
/// Windows are those whose remaining count is exactly 0 or whose status is `rejected`, at most
/// [`turnkeep_base::limit::WINDOWS`].
pub fn from_headers<'h>(get: &dyn Fn(&str) -> Option<&'h str>, wall_ms: u64) -> Declared {
    let made_ms = made_at(get, wall_ms);
    let wait = retry_after(get, made_ms);
    let windows = family::used_up(get, made_ms, wait);
    let names_model = windows.iter().any(|window| window.scope == turnkeep_base::LimitScope::Model);
    Declared { wait, windows, names_model }
}

/// When the reply was made, in milliseconds since 1970: its own `Date`, else `wall_ms`.
pub fn made_at<'h>(get: &dyn Fn(&str) -> Option<&'h str>, wall_ms: u64) -> u64 {
    get("date").and_then(moment::http_date).unwrap_or(wall_ms)
}

/// `retry-after-ms`, else `retry-after` in seconds or as a date.
fn retry_after<'h>(get: &dyn Fn(&str) -> Option<&'h str>, made_ms: u64) -> Option<Duration> {
    let exact = get("retry-after-ms").and_then(span::millis).and_then(span::worth);
    exact.or_else(|| {
        let said = get("retry-after")?;
        let seconds = span::seconds(said).and_then(span::worth);
        seconds.or_else(|| moment::http_date(said).and_then(|at| moment::until(at, made_ms)))
    })
}
