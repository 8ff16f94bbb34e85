//! Reads a secret's file so that nothing can hold the reader for ever: a pipe, a terminal or a device is not opened, and
//! a mount that hangs keeps a thread that nobody waits for.

use rustix::fs::OFlags;
use std::fs::{Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// The longest secret file that is read, in bytes.
const MOST: u64 = 64 * 1024;

/// Reads the file on a thread of its own and waits for it for `limit`; a thread that is given up ends with the process.
///
/// # Errors
/// As [`read`], and where it took longer.
pub(super) fn read_within(path: &Path, limit: Duration) -> Result<String, String> {
    let (tell, told) = sync_channel(1);
    let owned = path.to_owned();
    let reader = move || {
        // Nobody listens where the time was over.
        let _ = tell.send(read(&owned));
    };
    let spawned = std::thread::Builder::new().name("secret-file".into()).spawn(reader);
    spawned.map_err(|error| format!("file {} cannot be read: {error}", path.display()))?;
    told.recv_timeout(limit).unwrap_or_else(|_| Err(super::SecretRef::File(path.to_owned()).not_read_within(limit)))
}

/// Reads the file. Only a mount that hangs can block it.
///
/// # Errors
/// In words, without its content: it cannot be read, is no regular file, is too long or not text.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let told = |error: std::io::Error| format!("file {} cannot be read: {error}", path.display());
    // Before it is opened, as opening alone may do something to a device.
    check(path, &std::fs::metadata(path).map_err(told)?)?;
    // It may have become another since: opening does not wait for a pipe's other end, and what was opened is looked at.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(told)?;
    check(path, &file.metadata().map_err(told)?)?;
    let mut bytes = Vec::new();
    file.by_ref().take(MOST + 1).read_to_end(&mut bytes).map_err(told)?;
    // It may have grown, and some files do not say their length.
    if bytes.len() as u64 > MOST {
        return Err(format!("file {} is longer than {MOST} bytes; a secret has at most that", path.display()));
    }
    String::from_utf8(bytes).map_err(|_| format!("file {} is not UTF-8 text", path.display()))
}

fn check(path: &Path, metadata: &Metadata) -> Result<(), String> {
    if !metadata.is_file() {
        return Err(format!("file {} cannot be read: it is not a regular file", path.display()));
    }
    let length = metadata.len();
    if length > MOST {
        return Err(format!("file {} is {length} bytes long; a secret has at most {MOST}", path.display()));
    }
    Ok(())
}
