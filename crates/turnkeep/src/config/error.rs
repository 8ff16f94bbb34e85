//! Mistakes and doubts, each with its place in the file.

use std::fmt;
use std::path::Path;

/// One mistake. It prints as `file:line:column: key: what is wrong and what to do`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, or `environment variable NAME` for an override.
    pub file: String,
    /// From 1; 0 when the file as a whole is meant.
    pub line: usize,
    /// In characters, from 1; 0 when the file as a whole is meant.
    pub column: usize,
    /// The key's path, as in `upstreams[0].kind`; empty when no key is meant.
    pub key: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, &self.file, self.line, self.column, &self.key)?;
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

/// All mistakes of one configuration, at least one; one a line when printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    pub(super) fn one(error: ConfigError) -> Self {
        ConfigErrors(vec![error])
    }

    pub(super) fn several(errors: Vec<ConfigError>) -> Option<Self> {
        (!errors.is_empty()).then_some(ConfigErrors(errors))
    }

    pub(super) fn whole_file(file: &Path, message: String) -> Self {
        let file = file.display().to_string();
        ConfigErrors::one(ConfigError { file, line: 0, column: 0, key: String::new(), message })
    }

    /// The mistakes, in file order.
    pub fn errors(&self) -> &[ConfigError] {
        &self.0
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Something allowed that is probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file, or `environment variable NAME`; empty when the configuration as a whole is meant.
    pub file: String,
    /// From 1; 0 when no line is meant.
    pub line: usize,
    /// In characters, from 1; 0 when no line is meant.
    pub column: usize,
    /// The key's path.
    pub key: String,
    /// What may go wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, &self.file, self.line, self.column, &self.key)?;
        f.write_str(&self.message)
    }
}

fn write_place(f: &mut fmt::Formatter<'_>, file: &str, line: usize, column: usize, key: &str) -> fmt::Result {
    if !file.is_empty() {
        write!(f, "{file}:")?;
        if line > 0 {
            write!(f, "{line}:{column}:")?;
        }
        f.write_str(" ")?;
    }
    if !key.is_empty() {
        write!(f, "{key}: ")?;
    }
    Ok(())
}
