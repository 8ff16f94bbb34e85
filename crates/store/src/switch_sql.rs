//! The operator's switches in SQL.

use crate::account_sql::id;
use crate::error::RecordError;
use crate::ledger_sql::{signed, unsigned};
use crate::record::Switch;
use rusqlite::{Connection, params};
use turnkeep_base::AccountId;

/// Writes a switch over the account's one before.
pub(crate) fn put(conn: &Connection, account: &AccountId, enabled: bool, at_ms: u64) -> Result<(), RecordError> {
    let sql = "INSERT INTO switches (upstream, account, enabled, at_ms) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT DO UPDATE SET enabled = excluded.enabled, at_ms = max(excluded.at_ms, at_ms + 1), taken = 0";
    conn.prepare_cached(sql)?.execute(params![&*account.upstream, &*account.account, enabled, signed(at_ms)])?;
    Ok(())
}

pub(crate) fn open(conn: &Connection) -> Result<Vec<Switch>, RecordError> {
    let sql = "SELECT upstream, account, enabled, at_ms FROM switches WHERE taken = 0 ORDER BY upstream, account";
    let mut statement = conn.prepare_cached(sql)?;
    let switches = statement.query_map([], |row| {
        Ok(Switch { account: id(row)?, enabled: row.get("enabled")?, at_ms: unsigned(row.get("at_ms")?) })
    })?;
    Ok(switches.collect::<Result<_, _>>()?)
}

/// Marks that very switch as taken.
pub(crate) fn take(conn: &Connection, account: &AccountId, at_ms: u64) -> Result<(), RecordError> {
    let sql = "UPDATE switches SET taken = 1 WHERE upstream = ?1 AND account = ?2 AND at_ms = ?3";
    conn.prepare_cached(sql)?.execute(params![&*account.upstream, &*account.account, signed(at_ms)])?;
    Ok(())
}
