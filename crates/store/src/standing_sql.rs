//! Standing, cooldowns and the audit log in SQL.

use crate::account_sql::id;
use crate::error::RecordError;
use crate::ledger_sql::{signed, unsigned};
use crate::record::{AuditEntry, CooldownRecord, CooldownScope, StandingRecord, StandingStatus};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeMap;
use turnkeep_engine::ports::StoreError;

/// Replaces the standing of these accounts, cooldowns included.
pub(crate) fn save(conn: &Connection, rows: &[StandingRecord]) -> Result<(), RecordError> {
    let mut standing = conn.prepare_cached(
        "INSERT OR REPLACE INTO standing (upstream, account, status, episode, since_ms, retry_at_ms, reason, \
         budget_json, updated_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let mut clear = conn.prepare_cached("DELETE FROM cooldowns WHERE upstream = ?1 AND account = ?2")?;
    // Two waits of one scope and model: the later end stays, whatever the order.
    let mut cooldown = conn.prepare_cached(
        "INSERT INTO cooldowns (upstream, account, scope, model, fault, until_ms, length_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET fault = excluded.fault, \
         until_ms = excluded.until_ms, length_ms = excluded.length_ms WHERE excluded.until_ms > until_ms",
    )?;
    for row in rows {
        let (upstream, account) = (&*row.account.upstream, &*row.account.account);
        standing.execute(params![
            upstream,
            account,
            row.status.name(),
            row.episode,
            row.since_ms.map(signed),
            row.retry_at_ms.map(signed),
            row.reason,
            row.budget_json,
            signed(row.updated_ms),
        ])?;
        clear.execute([upstream, account])?;
        for wait in &row.cooldowns {
            cooldown.execute(params![
                upstream,
                account,
                wait.scope.name(),
                wait.model.as_deref().unwrap_or_default(),
                wait.fault,
                signed(wait.until_ms),
                signed(wait.length_ms),
            ])?;
        }
    }
    Ok(())
}

pub(crate) fn load(conn: &Connection) -> Result<Vec<StandingRecord>, RecordError> {
    let mut by_account = BTreeMap::new();
    // One snapshot for both tables.
    let tx = conn.unchecked_transaction()?;
    let mut statement = tx.prepare_cached("SELECT * FROM standing")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let record = standing(row)?;
        by_account.insert(record.account.clone(), record);
    }
    let mut statement = tx.prepare_cached("SELECT * FROM cooldowns ORDER BY upstream, account, scope, model")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(record) = by_account.get_mut(&id(row)?) {
            record.cooldowns.push(cooldown(row)?);
        }
    }
    Ok(by_account.into_values().collect())
}

fn standing(row: &Row<'_>) -> Result<StandingRecord, RecordError> {
    let status: String = row.get("status")?;
    Ok(StandingRecord {
        account: id(row)?,
        status: StandingStatus::from_name(&status).ok_or_else(|| damaged("status", &status))?,
        episode: row.get("episode")?,
        since_ms: row.get::<_, Option<i64>>("since_ms")?.map(unsigned),
        retry_at_ms: row.get::<_, Option<i64>>("retry_at_ms")?.map(unsigned),
        reason: row.get("reason")?,
        budget_json: row.get("budget_json")?,
        updated_ms: unsigned(row.get("updated_ms")?),
        cooldowns: Vec::new(),
    })
}

fn cooldown(row: &Row<'_>) -> Result<CooldownRecord, RecordError> {
    let scope: String = row.get("scope")?;
    let model: String = row.get("model")?;
    Ok(CooldownRecord {
        scope: CooldownScope::from_name(&scope).ok_or_else(|| damaged("scope", &scope))?,
        model: (!model.is_empty()).then_some(model),
        fault: row.get("fault")?,
        until_ms: unsigned(row.get("until_ms")?),
        length_ms: unsigned(row.get("length_ms")?),
    })
}

fn damaged(what: &str, word: &str) -> StoreError {
    StoreError(format!("a record has an unknown {what} {word:?}"))
}

pub(crate) fn audit(conn: &Connection, entry: &AuditEntry) -> Result<(), RecordError> {
    conn.prepare_cached("INSERT INTO audit (at_ms, actor, action, subject, detail) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![signed(entry.at_ms), entry.actor, entry.action, entry.subject, entry.detail])?;
    Ok(())
}

pub(crate) fn audit_entries(conn: &Connection, limit: usize) -> Result<Vec<AuditEntry>, RecordError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement =
        conn.prepare_cached("SELECT at_ms, actor, action, subject, detail FROM audit ORDER BY id DESC LIMIT ?1")?;
    let rows = statement.query_map([limit], |row| {
        Ok(AuditEntry {
            at_ms: unsigned(row.get(0)?),
            actor: row.get(1)?,
            action: row.get(2)?,
            subject: row.get(3)?,
            detail: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
