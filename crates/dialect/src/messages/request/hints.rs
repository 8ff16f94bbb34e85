//! Fields of a Messages request that have no canonical place: named once each, so that a translated route can tell the
//! client what it did not carry. A field that says nothing (`null`, `[]`, `{}`) is not named.

use crate::dropped::MAX_NAMES;
use crate::json::{Invalid, Reader};
use crate::messages::nothing::says_nothing;

/// The names, in the order they were met.
#[derive(Debug, Default)]
pub(super) struct Hints(Vec<String>);

impl Hints {
    /// Names a hint, once; only so many.
    pub(super) fn name(&mut self, name: impl AsRef<str> + Into<String>) {
        if self.0.len() <= MAX_NAMES && !self.0.iter().any(|known| known == name.as_ref()) {
            self.0.push(name.into());
        }
    }

    /// Skips a field and names it if it says something.
    pub(super) fn skip(&mut self, r: &mut Reader<'_>, place: &str, key: &str) -> Result<(), Invalid> {
        if !says_nothing(r.raw()?) {
            self.name(format!("{place}{key}"));
        }
        Ok(())
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.0
    }
}
