//! What the headers of a reply say of the provider's limits: the wait in its general forms, and the windows that are used
//! up. Pure: the time comes from the reply itself, or from the caller.

use turnkeep_base::Declared;

/// What the headers declare. `get` gives a header's value as text, by its name in lower case; `wall_ms` is the time in
/// milliseconds since 1970, used only where the reply has no usable `Date`.
pub fn from_headers(get: &dyn Fn(&str) -> Option<&str>, wall_ms: u64) -> Declared {
    let _ = (get, wall_ms);
    Declared::default()
}

/// When the reply was made, in milliseconds since 1970: its own `Date`, else `wall_ms`.
pub fn made_at(get: &dyn Fn(&str) -> Option<&str>, wall_ms: u64) -> u64 {
    let _ = get;
    wall_ms
}
