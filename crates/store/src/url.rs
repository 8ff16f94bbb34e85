//! The `[store] url` of the configuration.

use std::path::PathBuf;
use std::str::FromStr;

/// Where the store lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// `sqlite:PATH`.
    Sqlite(PathBuf),
    /// `memory:`, gone with the process.
    Memory,
}

/// The URL names no store that this version has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadStoreUrl(String);

impl FromStr for StoreUrl {
    type Err = BadStoreUrl;

    fn from_str(text: &str) -> Result<Self, BadStoreUrl> {
        if text == "memory:" {
            return Ok(StoreUrl::Memory);
        }
        if let Some(path) = text.strip_prefix("sqlite:") {
            if path.is_empty() || path.contains(":memory:") {
                return Err(BadStoreUrl(
                    "sqlite: needs the path of a file; for a store in memory write memory:".into(),
                ));
            }
            return Ok(StoreUrl::Sqlite(path.into()));
        }
        let scheme = text.split(':').next().unwrap_or_default();
        Err(BadStoreUrl(match scheme {
            "postgres" | "postgresql" | "redis" | "mysql" => format!("a {scheme} store is not in this version"),
            _ => "expected sqlite:PATH or memory:".into(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_file_or_memory_and_anything_else_is_refused_in_words() {
        assert_eq!("sqlite:a/b.db".parse(), Ok(StoreUrl::Sqlite("a/b.db".into())));
        assert_eq!("memory:".parse(), Ok(StoreUrl::Memory));
        let refused = |text: &str| text.parse::<StoreUrl>().unwrap_err().to_string();
        assert_eq!(refused("postgres://h/db"), "a postgres store is not in this version");
        assert!(refused("turnkeep.db").contains("sqlite:PATH"));
        assert!(refused("sqlite:").contains("path"));
    }
}
