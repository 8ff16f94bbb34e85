//! What was found wrong while a configuration is read; collected, so that one run tells all of it.

use super::error::{ConfigError, ConfigErrors, Warning};
use std::cell::RefCell;
use std::path::Path;

/// What was found wrong so far.
#[derive(Default)]
pub(super) struct Problems {
    errors: RefCell<Vec<ConfigError>>,
    pub(super) warnings: RefCell<Vec<Warning>>,
}

impl Problems {
    pub(super) fn add(&self, error: ConfigError) {
        self.errors.borrow_mut().push(error);
    }

    pub(super) fn warn(&self, key: &str, message: String) {
        let (file, key) = (String::new(), key.to_owned());
        self.warnings.borrow_mut().push(Warning { file, line: 0, column: 0, key, message });
    }

    pub(super) fn take_warnings(&self) -> Vec<Warning> {
        self.warnings.take()
    }

    /// The value if nothing was wrong, else everything that was.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, ConfigErrors> {
        let mut errors = self.errors.into_inner();
        errors.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
        match (ConfigErrors::several(errors), value) {
            (None, Some(value)) => Ok(value),
            (Some(errors), _) => Err(errors),
            // Unreachable as written: a value is missing only after an error was noted.
            (None, None) => Err(ConfigErrors::whole_file(Path::new("config"), "could not be read".into())),
        }
    }
}
