//! `turnkeep restore`: puts a backup in the place of the store, which no gateway may hold.

use super::Failure;
use super::backup::progress;
use super::open_store::path;
use crate::cli::RestoreArgs;
use crate::config::Config;
use std::io::Write;
use time::OffsetDateTime;
use time::macros::format_description;

/// Restores; the old store stays beside the new one, under a name with the time.
///
/// # Errors
/// Usage: the configuration. Operation: a gateway runs, the file is no sound backup of ours, or the disk. The store is then
/// as it was.
pub fn run(args: &RestoreArgs, out: &mut impl Write) -> Result<(), Failure> {
    let config = Config::load(&args.file.config)?;
    let stamp = format_description!("[year]-[month]-[day]T[hour][minute][second]Z");
    let stamp = OffsetDateTime::now_utc().format(stamp).map_err(Failure::operation)?;
    let database = path(&config)?;
    let done = turnkeep_store::restore(database, &args.from, &stamp, progress()).map_err(Failure::operation)?;
    writeln!(out, "{}: {} bytes, from {}", database.display(), done.bytes, args.from.display())?;
    if let Some(kept) = done.kept {
        writeln!(out, "the old one is kept as {}", kept.display())?;
    }
    Ok(())
}
