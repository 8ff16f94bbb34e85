//! Rotates the master key: everything sealed is sealed anew in one transaction, so that at any instant either the old key
//! opens all of it or the new one does. What was sealed under the old key is overwritten in the file, not only freed.

use crate::account::{self, OpenedSecret, SecretInput, SecretKind};
use crate::error::{OpenError, RecordError};
use crate::key::random_bytes;
use crate::seal::{MasterKey, SealKey};
use crate::sqlite::connect;
use crate::{account_sql, conversation_sql, file, kept_sql, migrate, standing_sql, stored_sql};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::path::Path;
use turnkeep_engine::ports::WallClock;

/// What was sealed anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rekeyed {
    /// Accounts' secrets. References are not sealed and not counted.
    pub secrets: u64,
    /// Kept answers, stored responses and conversations, and upstreams' conversations.
    pub answers: u64,
}

/// Why the master key is still the old one. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RekeyError {
    /// A gateway has the database, the old key is not its key, or it does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Something sealed does not open, or could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Puts the new master key in the place of the old one, and notes that in the audit log as done by `actor`. Blocks.
///
/// # Errors
/// See [`RekeyError`].
pub fn rekey(
    path: &Path,
    old: &MasterKey,
    new: &MasterKey,
    actor: &str,
    clock: &dyn WallClock,
) -> Result<Rekeyed, RekeyError> {
    let fail = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    if !path.exists() {
        let source = std::io::ErrorKind::NotFound.into();
        return Err(OpenError::File { path: path.to_owned(), source }.into());
    }
    file::prepare(path)?;
    let _lock = file::take(path)?;
    let mut conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
    migrate::migrate(&mut conn, path)?;
    conn.pragma_update(None, "secure_delete", true).map_err(fail)?;
    let own = migrate::own(&mut conn, path, Some(old))?;
    let old = own.seal.ok_or(RecordError::NoMasterKey)?;
    let salt = random_bytes().map_err(RecordError::from)?;
    let new = SealKey::derive(new, &salt).map_err(RecordError::from)?;
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    let secrets = secrets(&tx, &old, &new)?;
    let answers = kept_sql::reseal(&tx, &old, &new).map_err(RecordError::from)?;
    let answers = answers + stored_sql::reseal(&tx, &old, &new).map_err(RecordError::from)?;
    let answers = answers + conversation_sql::reseal(&tx, &old, &new).map_err(RecordError::from)?;
    let written = migrate::set_meta(&tx, "store.salt", &salt)
        .and_then(|()| migrate::set_meta(&tx, "store.key_check", new.check()))
        .and_then(|()| migrate::raise_revision(&tx));
    written.map_err(fail)?;
    let entry = crate::record::AuditEntry {
        at_ms: clock.unix_ms(),
        actor: actor.to_owned(),
        action: "rekey".into(),
        subject: "master key".into(),
        detail: format!("{secrets} secrets, {answers} answers"),
    };
    standing_sql::audit(&tx, &entry)?;
    tx.commit().map_err(fail)?;
    // The log still holds what was sealed under the old key.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(fail)?;
    conn.close().map_err(|(_, error)| fail(error))?;
    Ok(Rekeyed { secrets, answers })
}

fn secrets(conn: &Connection, old: &SealKey, new: &SealKey) -> Result<u64, RecordError> {
    let mut sealed = 0;
    for record in account_sql::list(conn)? {
        match record.secret {
            SecretKind::Sealed => {}
            SecretKind::Reference(_) => continue,
        }
        let (record, secret) = account_sql::expect(conn, &record.id)?;
        let OpenedSecret::Literal(text) = account::open(Some(old), &record.id, secret)? else {
            return Err(RecordError::Damaged(record.id.to_string()));
        };
        let secret = account::keep(Some(new), &record.id, SecretInput::Literal(text))?;
        account_sql::put(conn, &record, &secret)?;
        sealed += 1;
    }
    Ok(sealed)
}
