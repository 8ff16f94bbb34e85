//! The schema, by numbered migrations, and the database's own values that every opening needs.

use crate::error::{OpenError, plain};
use crate::key::{Pepper, random_bytes};
use crate::seal::{MasterKey, SealKey};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::path::Path;
use turnkeep_engine::ports::StoreError;

/// In order; the number is the place, from 1.
const MIGRATIONS: &[&str] = &[
    include_str!("../../../migrations/0001_store.sql"),
    include_str!("../../../migrations/0002_faults.sql"),
    include_str!("../../../migrations/0003_switches.sql"),
    include_str!("../../../migrations/0004_money.sql"),
    include_str!("../../../migrations/0005_stored.sql"),
    include_str!("../../../migrations/0007_conversations.sql"),
];

/// The newest schema of this version.
pub(crate) fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Marks a SQLite file as ours: the letters "TKP1".
const APPLICATION_ID: i64 = 0x544b_5031;

/// Brings the schema up to date, or refuses the file. Each migration is one transaction with its number, so a death in
/// between leaves the schema before it.
pub(crate) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let known = known();
    loop {
        let fail = |error: rusqlite::Error| OpenError::sqlite(path, &error);
        // Reading the number under the write lock: two processes that open a new file migrate it once.
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
        let version: i64 = pragma(&tx, "user_version").map_err(fail)?;
        let application: i64 = pragma(&tx, "application_id").map_err(fail)?;
        let objects: i64 = tx.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(fail)?;
        let fresh = version == 0 && application == 0 && objects == 0;
        if application != APPLICATION_ID && !fresh {
            return Err(OpenError::Foreign(path.to_owned()));
        }
        if version > known {
            return Err(OpenError::Newer { path: path.to_owned(), found: version, known });
        }
        let next = usize::try_from(version).ok().and_then(|done| MIGRATIONS.get(done));
        let Some(sql) = next else { return Ok(()) };
        tx.execute_batch(sql).map_err(fail)?;
        tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(fail)?;
        tx.pragma_update(None, "user_version", version + 1).map_err(fail)?;
        tx.commit().map_err(fail)?;
    }
}

/// Refuses a database that is not ours, or of a later version; changes nothing.
pub(crate) fn recognise(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let fail = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    if pragma(conn, "application_id").map_err(fail)? != APPLICATION_ID {
        return Err(OpenError::Foreign(path.to_owned()));
    }
    let (found, known) = (pragma(conn, "user_version").map_err(fail)?, known());
    match found > known {
        true => Err(OpenError::Newer { path: path.to_owned(), found, known }),
        false => Ok(()),
    }
}

/// What a database keeps about itself.
pub(crate) struct Own {
    pub pepper: Pepper,
    pub seal: Option<SealKey>,
}

/// Reads the database's own values, making them the first time, and checks the master key.
pub(crate) fn own(conn: &mut Connection, path: &Path, master: Option<&MasterKey>) -> Result<Own, OpenError> {
    let fail = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    let words = |error: StoreError| store(path, error);
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    let pepper = own_bytes(&tx, "store.pepper").map_err(words)?;
    let salt = own_bytes(&tx, "store.salt").map_err(words)?;
    tx.commit().map_err(fail)?;
    // A passphrase takes tens of milliseconds: not while a gateway beside us waits for the write lock.
    let seal = master.map(|master| SealKey::derive(master, &salt)).transpose().map_err(words)?;
    if let Some(key) = &seal {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
        match meta(&tx, "store.key_check").map_err(fail)? {
            Some(check) if !key.is_known_by(&check) => return Err(OpenError::WrongMasterKey(path.to_owned())),
            Some(_) => {}
            None => set_meta(&tx, "store.key_check", key.check()).map_err(fail)?,
        }
        tx.commit().map_err(fail)?;
    }
    Ok(Own { pepper: Pepper::from_bytes(pepper), seal })
}

fn own_bytes(conn: &Connection, name: &str) -> Result<[u8; 32], StoreError> {
    if let Some(bytes) = meta(conn, name).map_err(|error| plain(&error))? {
        return bytes.try_into().map_err(|_| StoreError(format!("the value {name} is damaged")));
    }
    let bytes = random_bytes()?;
    set_meta(conn, name, &bytes).map_err(|error| plain(&error))?;
    Ok(bytes)
}

pub(crate) fn meta(conn: &Connection, name: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.prepare_cached("SELECT value FROM meta WHERE name = ?1")?.query_row([name], |row| row.get(0)).optional()
}

pub(crate) fn set_meta(conn: &Connection, name: &str, value: &[u8]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    conn.prepare_cached(sql)?.execute(params![name, value])?;
    Ok(())
}

/// Counts a change to keys or accounts.
pub(crate) fn raise_revision(conn: &Connection) -> rusqlite::Result<()> {
    let next = revision(conn)?.saturating_add(1);
    set_meta(conn, "store.revision", &next.to_be_bytes())
}

pub(crate) fn revision(conn: &Connection) -> rusqlite::Result<u64> {
    let kept = meta(conn, "store.revision")?;
    Ok(kept.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes))
}

fn pragma(conn: &Connection, name: &str) -> rusqlite::Result<i64> {
    conn.pragma_query_value(None, name, |row| row.get(0))
}

pub(crate) fn store(path: &Path, error: StoreError) -> OpenError {
    OpenError::Store { path: path.to_owned(), error }
}
