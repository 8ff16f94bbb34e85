//! `turnkeep keys rekey`: puts another master key in the place of the configured one.

use super::Failure;
use super::open_store::{master_key, path};
use crate::cli::RekeyArgs;
use crate::config::{Config, SecretRef};
use std::io::Write;
use turnkeep_store::{MasterKey, SystemClock};

/// Seals the accounts' secrets and the kept answers under the new key.
///
/// # Errors
/// Usage: the configuration has no master key, or one of the two cannot be read. Operation: a gateway runs, the configured
/// key is not the store's, or the disk. Everything is then still sealed under the old key.
pub fn run(args: &RekeyArgs, out: &mut impl Write) -> Result<(), Failure> {
    let config = Config::load(&args.file.config)?;
    let old = master_key(&config.store).map_err(|why| Failure::Usage(format!("store.master_key: {why}")))?;
    let old = old.ok_or_else(|| {
        Failure::Usage("store.master_key is not set: there is no key to rotate; to begin with one, set it".into())
    })?;
    let reference = match (&args.new.new_env, &args.new.new_file) {
        (Some(name), _) => SecretRef::Env(name.clone()),
        (None, Some(path)) => SecretRef::File(path.clone()),
        (None, None) => return Err(Failure::Usage("name the new master key: --new-env or --new-file".into())),
    };
    let text = reference.resolve().map_err(|why| Failure::Usage(format!("the new master key: {why}")))?;
    let new = MasterKey::parse(&text).map_err(|error| Failure::Usage(format!("the new master key: {error}")))?;
    let done = turnkeep_store::rekey(path(&config)?, &old, &new, "command line", &SystemClock);
    let done = done.map_err(Failure::operation)?;
    writeln!(out, "sealed anew: {} secrets of accounts, {} kept answers", done.secrets, done.answers)?;
    writeln!(out, "now set [store] master_key to the key in the {reference}")?;
    Ok(())
}
