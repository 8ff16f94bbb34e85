//! Accounts in SQL.

use crate::account::{AccountRecord, StoredSecret};
use crate::error::RecordError;
use crate::key_sql::{from_json, json};
use crate::ledger_sql::{signed, unsigned};
use crate::migrate::raise_revision;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::sync::Arc;
use turnkeep_base::AccountId;
use turnkeep_engine::ports::StoreError;

const COLUMNS: &str = "upstream, account, secret_ref, secret_sealed, models, max_in_flight, enabled, created_ms, generation, \
                       limit_group, requests_per_minute, tokens_per_minute";

pub(crate) fn insert(conn: &Connection, record: &AccountRecord, secret: &StoredSecret) -> Result<(), RecordError> {
    if get(conn, &record.id)?.is_some() {
        return Err(RecordError::Exists(format!("an account {}", record.id)));
    }
    put(conn, record, secret)
}

/// Writes the record over the one of its name.
pub(crate) fn put(conn: &Connection, record: &AccountRecord, secret: &StoredSecret) -> Result<(), RecordError> {
    let (reference, sealed) = match secret {
        StoredSecret::Reference(reference) => (Some(reference.to_string()), None),
        StoredSecret::Sealed(sealed) => (None, Some(sealed)),
    };
    let sql = format!("INSERT OR REPLACE INTO accounts ({COLUMNS}) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)");
    conn.prepare_cached(&sql)?.execute(params![
        &*record.id.upstream,
        &*record.id.account,
        reference,
        sealed,
        json(&record.models)?,
        record.max_in_flight,
        record.enabled,
        signed(record.created_ms),
        signed(record.generation),
        record.limit_group,
        record.requests_per_minute,
        record.tokens_per_minute,
    ])?;
    raise_revision(conn)?;
    Ok(())
}

/// Takes the record out, and answers what it was.
pub(crate) fn remove(conn: &Connection, id: &AccountId) -> Result<AccountRecord, RecordError> {
    let (record, _) = expect(conn, id)?;
    conn.prepare_cached("DELETE FROM accounts WHERE upstream = ?1 AND account = ?2")?
        .execute([&*id.upstream, &*id.account])?;
    raise_revision(conn)?;
    Ok(record)
}

pub(crate) fn get(conn: &Connection, id: &AccountId) -> Result<Option<(AccountRecord, StoredSecret)>, RecordError> {
    let sql = format!("SELECT {COLUMNS} FROM accounts WHERE upstream = ?1 AND account = ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    statement.query_row([&*id.upstream, &*id.account], |row| Ok(record(row))).optional()?.transpose()
}

pub(crate) fn expect(conn: &Connection, id: &AccountId) -> Result<(AccountRecord, StoredSecret), RecordError> {
    get(conn, id)?.ok_or_else(|| RecordError::Unknown(format!("account {id}")))
}

pub(crate) fn list(conn: &Connection) -> Result<Vec<AccountRecord>, RecordError> {
    let sql = format!("SELECT {COLUMNS} FROM accounts ORDER BY upstream, account");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    let mut accounts = Vec::new();
    while let Some(row) = rows.next()? {
        accounts.push(record(row)?.0);
    }
    Ok(accounts)
}

fn record(row: &Row<'_>) -> Result<(AccountRecord, StoredSecret), RecordError> {
    let reference: Option<String> = row.get("secret_ref")?;
    let sealed: Option<Vec<u8>> = row.get("secret_sealed")?;
    let secret = match (reference, sealed) {
        (Some(reference), None) => StoredSecret::Reference(reference.parse()?),
        (None, Some(sealed)) => StoredSecret::Sealed(sealed),
        (Some(_), Some(_)) | (None, None) => return Err(StoreError("an account's record is damaged".into()).into()),
    };
    let record = AccountRecord {
        id: id(row)?,
        secret: secret.kind(),
        models: from_json(row, "models")?,
        max_in_flight: row.get("max_in_flight")?,
        enabled: row.get("enabled")?,
        created_ms: unsigned(row.get("created_ms")?),
        generation: unsigned(row.get("generation")?),
        limit_group: row.get("limit_group")?,
        requests_per_minute: row.get("requests_per_minute")?,
        tokens_per_minute: row.get("tokens_per_minute")?,
    };
    Ok((record, secret))
}

pub(crate) fn id(row: &Row<'_>) -> rusqlite::Result<AccountId> {
    let text = |column| Ok::<Arc<str>, rusqlite::Error>(row.get::<_, String>(column)?.into());
    Ok(AccountId { upstream: text("upstream")?, account: text("account")? })
}
