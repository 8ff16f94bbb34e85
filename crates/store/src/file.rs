//! The database's files: made readable by their owner alone before SQLite sees them, and held by one gateway at a time.

use crate::error::OpenError;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const MODE: u32 = 0o600;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Makes the database file, empty and 0600 whatever the umask, or checks the one that is there: SQLite's or empty.
/// The files SQLite lays beside it (`-wal`, `-shm`) get the database's own mode from it; those that are there with
/// a wider one are narrowed.
pub(crate) fn prepare(path: &Path) -> Result<(), OpenError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::File { path, source }
    };
    let mut file = private(path).map_err(fail(path))?;
    let mut head = Vec::with_capacity(MAGIC.len());
    file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut head).map_err(fail(path))?;
    if !head.is_empty() && head != MAGIC {
        return Err(OpenError::NotADatabase(path.to_owned()));
    }
    narrow(&file).map_err(fail(path))?;
    for suffix in ["-wal", "-shm"] {
        let beside = beside(path, suffix);
        match File::open(&beside) {
            Ok(file) => narrow(&file).map_err(fail(&beside))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(OpenError::File { path: beside, source }),
        }
    }
    Ok(())
}

/// Takes the database for this gateway until the file is dropped or the process dies. Tools do not take it: they may
/// write beside a running gateway, but never close what it has open.
pub(crate) fn take(path: &Path) -> Result<File, OpenError> {
    let lock = beside(path, "-lock");
    let file = private(&lock).map_err(|source| OpenError::File { path: lock.clone(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(OpenError::File { path: lock, source }),
    }
}

/// Reads the beginning of a file that is to be a database.
pub(crate) fn is_sqlite(path: &Path) -> std::io::Result<bool> {
    let mut head = Vec::with_capacity(MAGIC.len());
    File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(head == MAGIC)
}

/// Which file a path meant when it was opened.
#[derive(Debug)]
pub(crate) struct Identity {
    path: PathBuf,
    device: u64,
    number: u64,
}

impl Identity {
    /// Of the file that is there now.
    pub(crate) fn of(path: &Path) -> std::io::Result<Identity> {
        let metadata = std::fs::metadata(path)?;
        Ok(Identity { path: path.to_owned(), device: metadata.dev(), number: metadata.ino() })
    }

    /// It is still the one at that path.
    pub(crate) fn is_at_its_path(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == (self.device, self.number))
    }
}

fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(MODE).open(path)
}

fn narrow(file: &File) -> std::io::Result<()> {
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & !MODE == 0 { Ok(()) } else { file.set_permissions(Permissions::from_mode(MODE)) }
}

/// Makes a file, 0600 whatever the umask. An error if there is one.
pub(crate) fn create_private(path: &Path) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)?;
    narrow(&file)
}

/// Bytes of a file; 0 if it is not there.
pub(crate) fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// Brings the names of this file's folder to the disk.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Removes a database that is of no more use, with what SQLite laid beside it, as far as that can be done.
pub(crate) fn remove(path: &Path) {
    for path in [path.to_owned(), beside(path, "-wal"), beside(path, "-shm"), beside(path, "-journal")] {
        let _ = std::fs::remove_file(path);
    }
}

/// The file of the same name with this at its end.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
