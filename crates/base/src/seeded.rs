//! Bugs that are put in on purpose, one at a time, to see that the simulation and the tests find them. Which there are is
//! `crates/sim/src/bugs.rs`'s to list. Without the feature `seeded-bugs`, which no product is built with, there are none, and
//! the places that ask are compiled to nothing.

#[cfg(feature = "seeded-bugs")]
mod chosen {
    use std::sync::OnceLock;

    /// The variable that names the bug.
    const VARIABLE: &str = "TURNKEEP_SEEDED_BUG";

    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();

    /// Whether this bug is in this process.
    pub fn is(bug: &str) -> bool {
        CHOSEN.get_or_init(|| std::env::var(VARIABLE).ok()).as_deref() == Some(bug)
    }
}

#[cfg(feature = "seeded-bugs")]
pub use chosen::is;

/// Whether this bug is in this process: it is not.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
pub const fn is(_bug: &str) -> bool {
    false
}
