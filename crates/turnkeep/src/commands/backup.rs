//! `turnkeep backup`: a consistent copy of the store, while the gateway may run.

use super::Failure;
use super::open_store::path;
use crate::cli::BackupArgs;
use crate::config::Config;
use std::io::Write;
use turnkeep_store::Progress;

/// A copy of fewer bytes is made before anybody asks how far it is.
const LARGE: u64 = 64 << 20;

/// Copies the store of the configuration; the copy is whole and checked, or not there.
///
/// # Errors
/// Usage: the configuration. Operation: there is no store, a file of the copy's name is there, or the disk.
pub fn run(args: &BackupArgs, out: &mut impl Write) -> Result<(), Failure> {
    let config = Config::load(&args.file.config)?;
    let bytes = turnkeep_store::backup(path(&config)?, &args.to, args.force, progress()).map_err(Failure::operation)?;
    writeln!(out, "{}: {bytes} bytes, checked", args.to.display())?;
    Ok(())
}

/// Tells on standard error how far a large copy is, every tenth of it.
pub(super) fn progress() -> Progress {
    let mut told = 0;
    Box::new(move |done, all| {
        let tenths = (done * 10).checked_div(all).unwrap_or(10);
        if all >= LARGE && tenths > told {
            told = tenths;
            // Whoever does not look at it misses nothing.
            let _ = writeln!(std::io::stderr(), "copied {} of {} MiB", done >> 20, all >> 20);
        }
    })
}
