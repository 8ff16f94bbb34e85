//! Puts a backup in the place of a database that no gateway holds. Nothing is touched before the backup is known to be
//! whole and ours; the old database stays beside the new one under a name with the date.

use crate::backup::{self, BackupError, Progress};
use crate::error::OpenError;
use crate::sqlite::connect;
use crate::{file, migrate};
use rusqlite::OpenFlags;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What restoring has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The bytes of the database that is there now.
    pub bytes: u64,
    /// Where the old database is, if there was one.
    pub kept: Option<PathBuf>,
}

/// Why nothing was restored. The database is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup is none of ours, or a gateway has the database.
    #[error(transparent)]
    Refused(#[from] OpenError),
    /// The backup could not be copied.
    #[error(transparent)]
    Copy(#[from] BackupError),
}

/// Copies the backup `from` to where the database is, or is to be. `stamp` tells the old one's name: `NAME.STAMP.old`.
/// Blocks. The log beside a sound old database is first moved into it, so that it is one file; a damaged one's log goes
/// with it under the same name.
///
/// # Errors
/// Another gateway holds the database; the backup is not there, not a Turnkeep database, of a later version, or damaged;
/// the disk.
pub fn restore(database: &Path, from: &Path, stamp: &str, progress: Progress) -> Result<Restored, RestoreError> {
    let system = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::File { path, source }
    };
    if !file::is_sqlite(from).map_err(system(from))? {
        return Err(OpenError::NotADatabase(from.to_owned()).into());
    }
    let _lock = file::take(database)?;
    let copy = file::beside(database, ".restoring");
    let result = (|| {
        let bytes = backup::copy_to(from, &copy, progress)?;
        {
            let fail = |error: rusqlite::Error| OpenError::sqlite(from, &error);
            let conn = connect(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
            migrate::recognise(&conn, from)?;
        }
        let kept = put_aside(database, stamp)?;
        fs::rename(&copy, database).map_err(system(database))?;
        file::sync_folder(database).map_err(system(database))?;
        Ok(Restored { bytes, kept })
    })();
    if result.is_err() {
        file::remove(&copy);
    }
    result
}

/// Gives the old database a second name, and takes away what lies beside it: its log would be applied to the new one.
fn put_aside(database: &Path, stamp: &str) -> Result<Option<PathBuf>, OpenError> {
    if !database.exists() {
        return Ok(None);
    }
    let name = |number: u32| match number {
        0 => file::beside(database, &format!(".{stamp}.old")),
        _ => file::beside(database, &format!(".{stamp}-{number}.old")),
    };
    let kept = (0..1_000).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0));
    let system = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::File { path, source }
    };
    let emptied = connect(database, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|conn| {
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)).map(|busy| busy == 0)
    });
    if !matches!(emptied, Ok(true)) {
        tracing::warn!("the old database's log could not be moved into it; both are kept");
    }
    for suffix in ["-wal", "-shm"] {
        let (old, new) = (file::beside(database, suffix), file::beside(&kept, suffix));
        match fs::rename(&old, &new) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(system(&old)(error)),
        }
    }
    // A second name first, so that there is a database at every instant; not every file system has those.
    fs::hard_link(database, &kept).or_else(|_| fs::rename(database, &kept)).map_err(system(&kept))?;
    Ok(Some(kept))
}
