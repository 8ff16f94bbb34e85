//! A consistent copy of a database that may be in use, made by SQLite's own backup from one snapshot: whoever writes
//! meanwhile neither waits nor is seen in it. The copy is checked before it gets its name.

use crate::error::plain;
use crate::file;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Is told how many bytes are copied, and how many there are.
pub type Progress = Box<dyn FnMut(u64, u64) + Send>;

/// Pages of one step: 8 MiB of those that are usual.
const STEP: i32 = 2048;

/// How long to wait for whoever holds the file.
const BUSY: Duration = Duration::from_secs(5);

/// Why there is no copy. Nothing was left behind.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is a file of that name.
    #[error("{0} is there already; name another file, or give --force to replace it")]
    Exists(PathBuf),
    /// There is nothing to copy.
    #[error("{0} is not there: there is no database to copy")]
    Missing(PathBuf),
    /// A file cannot be used.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// SQLite's words on a file.
    #[error("{path}: {why}")]
    Database {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Whether `to` is the database, by whatever name, or a file that lies beside it.
fn is_of(from: &Path, to: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(target) = fs::metadata(to) else { return false };
    ["", "-wal", "-shm", "-lock"].into_iter().any(|suffix| {
        fs::metadata(file::beside(from, suffix))
            .is_ok_and(|ours| (ours.dev(), ours.ino()) == (target.dev(), target.ino()))
    })
}

/// Copies the database to `to`, which may be there only if it is to be replaced. Answers the bytes of the copy. Blocks.
///
/// # Errors
/// See [`BackupError`]; the copy is there whole or not at all.
pub fn copy(from: &Path, to: &Path, replace: bool, progress: Progress) -> Result<u64, BackupError> {
    if !from.exists() {
        return Err(BackupError::Missing(from.to_owned()));
    }
    if !replace && to.exists() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    if is_of(from, to) {
        let why = "it is the database itself, or one of its files; name another file for the copy".to_owned();
        return Err(BackupError::Database { path: to.to_owned(), why });
    }
    let part = file::beside(to, ".part");
    let copied = copy_to(from, &part, progress).and_then(|bytes| {
        let named = match replace {
            true => fs::rename(&part, to),
            // Unlike a renaming, it does not replace a file that came meanwhile.
            false => fs::hard_link(&part, to).and_then(|()| fs::remove_file(&part)).or_else(|error| {
                if error.kind() == std::io::ErrorKind::AlreadyExists { Err(error) } else { fs::rename(&part, to) }
            }),
        };
        named
            .and_then(|()| file::sync_folder(to))
            .map_err(|source| BackupError::File { path: to.to_owned(), source })?;
        Ok(bytes)
    });
    if copied.is_err() {
        file::remove(&part);
    }
    copied
}

/// Copies the database to a file that is made anew, checks it and brings it to the disk.
pub(crate) fn copy_to(from: &Path, part: &Path, mut progress: Progress) -> Result<u64, BackupError> {
    let of = |path: &Path| {
        let path = path.to_owned();
        move |error: rusqlite::Error| BackupError::Database { path, why: plain(&error).0 }
    };
    let system = |source| BackupError::File { path: part.to_owned(), source };
    file::remove(part);
    file::create_private(part).map_err(system)?;
    // Not for reading alone: whoever closes a database last takes away what lies beside it.
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(of(from))?;
    source.busy_timeout(BUSY).map_err(of(from))?;
    // One snapshot for the whole copy; otherwise every write beside it would begin the copy anew.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").map_err(of(from))?;
    let page: u32 = source.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(of(from))?;
    let mut copy = Connection::open_with_flags(part, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(of(part))?;
    {
        let backup = Backup::new(&source, &mut copy).map_err(of(part))?;
        loop {
            let step = backup.step(STEP).map_err(of(part))?;
            let at = backup.progress();
            let bytes = |pages| u64::try_from(pages).unwrap_or(0) * u64::from(page);
            progress(bytes(at.pagecount - at.remaining), bytes(at.pagecount));
            match step {
                StepResult::Done => break,
                StepResult::More => {}
                // Nobody else knows of the copy, and the source is read in one snapshot.
                StepResult::Busy | StepResult::Locked | _ => {
                    return Err(BackupError::Database { path: from.to_owned(), why: "it is locked".into() });
                }
            }
        }
    }
    // One file by itself, wherever it is taken.
    copy.pragma_update(None, "journal_mode", "DELETE").map_err(of(part))?;
    if let Some(why) = damage(&copy).map_err(of(part))? {
        return Err(BackupError::Database { path: part.to_owned(), why: format!("the copy is damaged: {why}") });
    }
    copy.close().map_err(|(_, error)| of(part)(error))?;
    let file = File::open(part).map_err(system)?;
    file.sync_all().map_err(system)?;
    Ok(file.metadata().map_err(system)?.len())
}

/// What SQLite finds wrong in the whole file, in its words.
pub(crate) fn damage(conn: &Connection) -> rusqlite::Result<Option<String>> {
    let verdict: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok(Some(verdict).filter(|verdict| verdict != "ok"))
}
