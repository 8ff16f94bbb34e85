//! What can go wrong, in words for the operator: one enum for opening a database, one for the records in it. The plain
//! [`StoreError`] of the engine's ports stands for "the store cannot do it now".

use std::path::{Path, PathBuf};
use turnkeep_engine::ports::StoreError;

/// Why a database was not opened. Nothing was changed, unless a migration had succeeded before.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file exists and is something else.
    #[error("{0} is not a SQLite database; it was left untouched")]
    NotADatabase(PathBuf),
    /// A SQLite database of another program.
    #[error("{0} is a SQLite database of another program; it was left untouched")]
    Foreign(PathBuf),
    /// Written by a later version.
    #[error(
        "{path} has schema {found}, and this version knows schemas up to {known}: use the version that wrote it, or a backup made before"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema number.
        found: i64,
        /// The newest we know.
        known: i64,
    },
    /// Another gateway has it.
    #[error("{0} is in use by another running gateway")]
    InUse(PathBuf),
    /// A SQLite database whose pages do not fit together.
    #[error(
        "{path} is damaged ({why}); it was left as it is. Put a backup in its place with `turnkeep restore FILE`: that keeps the damaged file beside it"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        why: String,
    },
    /// The key is not the one that the secrets were sealed with.
    #[error("the master key is not the one that {0} was made with")]
    WrongMasterKey(PathBuf),
    /// The file or its folder cannot be used.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// SQLite refused, or the machine did (threads, randomness).
    #[error("{path}: {error}")]
    Store {
        /// The file.
        path: PathBuf,
        /// Why.
        error: StoreError,
    },
}

/// Why a record was not written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// There is one of that name.
    #[error("there is already {0}")]
    Exists(String),
    /// There is none of that name.
    #[error("there is no {0}")]
    Unknown(String),
    /// The record itself is at fault.
    #[error("{0}")]
    Invalid(String),
    /// The key is revoked or over; it cannot be rotated.
    #[error("the key {0:?} is revoked")]
    Revoked(String),
    /// A literal secret without a master key.
    #[error(
        "no master key is set, so a secret cannot be kept here: give it by reference (an environment variable or a file), or set [store] master_key"
    )]
    NoMasterKey,
    /// A sealed secret did not open: the database was changed by hand, or moved between accounts.
    #[error("the sealed secret of {0} does not open: it was damaged or belongs to another account")]
    Damaged(String),
    /// The store cannot do it now.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<RecordError> for StoreError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Store(error) => error,
            other @ (RecordError::Exists(_)
            | RecordError::Unknown(_)
            | RecordError::Invalid(_)
            | RecordError::Revoked(_)
            | RecordError::NoMasterKey
            | RecordError::Damaged(_)) => StoreError(other.to_string()),
        }
    }
}

impl From<rusqlite::Error> for RecordError {
    fn from(error: rusqlite::Error) -> Self {
        RecordError::Store(plain(&error))
    }
}

impl OpenError {
    /// SQLite refused to open the database, or to read what every opening needs.
    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => {
                OpenError::Damaged { path: path.to_owned(), why: error.to_string() }
            }
            Some(_) | None => OpenError::Store { path: path.to_owned(), error: plain(error) },
        }
    }
}

/// A value is not of its column's kind: text that is no text, a key of another length. Nothing here writes such a row.
pub(crate) fn is_of_a_row(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as E;
    matches!(
        error,
        E::FromSqlConversionFailure(..) | E::IntegralValueOutOfRange(..) | E::Utf8Error(..) | E::InvalidColumnType(..)
    )
}

/// What was read of a row that the gateway can do without; `None` for one whose values are not of their kind, so that one
/// damaged row does not stop a start.
pub(crate) fn of_row<T>(read: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if is_of_a_row(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// SQLite's error in plain words, with what to do where that is known. The common causes first, SQLite's own text for
/// the rest. Which file it was is not among them: clients may be shown these words.
pub(crate) fn plain(error: &rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode as Code;
    let words = match error.sqlite_error_code() {
        Some(Code::DiskFull) => "the disk is full; make room, and the store writes again by itself",
        Some(Code::ReadOnly) => {
            "the database is read-only; make its file, folder and file system writable, and the store writes again by itself"
        }
        Some(Code::SystemIoFailure) => "the disk failed to read or write; look into the system's log",
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => {
            "another process holds the database locked; the store writes again by itself when that is done"
        }
        Some(Code::DatabaseCorrupt) => {
            "the database file is damaged; stop the gateway and put a backup in its place with `turnkeep restore FILE`"
        }
        Some(Code::NotADatabase) => "the file is not a SQLite database",
        Some(Code::CannotOpen) => "the file cannot be opened",
        Some(Code::PermissionDenied) => "permission denied",
        Some(Code::OutOfMemory) => "out of memory",
        None if is_of_a_row(error) => {
            "a row of the database holds what no version has written; stop the gateway and put a backup in its place with \
             `turnkeep restore FILE`"
        }
        Some(_) | None => return StoreError(error.to_string()),
    };
    StoreError(format!("{words} ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn failed(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn each_common_trouble_is_told_with_what_to_do() {
        for (code, what, to_do) in [
            (ffi::SQLITE_FULL, "disk is full", "make room"),
            (ffi::SQLITE_READONLY, "read-only", "writable"),
            (ffi::SQLITE_IOERR, "disk failed", "system's log"),
            (ffi::SQLITE_BUSY, "locked", "by itself"),
            (ffi::SQLITE_CORRUPT, "damaged", "turnkeep restore"),
        ] {
            let told = plain(&failed(code)).to_string();
            assert!(told.contains(what) && told.contains(to_do), "{told}");
        }
    }

    #[test]
    fn damage_found_at_the_start_names_the_file_and_how_to_restore() {
        let told = OpenError::sqlite(Path::new("/data/t.db"), &failed(ffi::SQLITE_CORRUPT)).to_string();
        assert!(told.contains("/data/t.db") && told.contains("turnkeep restore"), "{told}");
    }
}
