//! The ledger in SQL. One insert and one update an attempt; the rest is for reading.

use crate::record::{LedgerClose, LedgerEntry, UsageBy, UsageRow};
use rusqlite::{Connection, Row, params};
use std::sync::Arc;
use turnkeep_base::{AccountId, AttemptId, TurnId, Usage};
use turnkeep_engine::ports::{AttemptClosed, AttemptOpened};

/// A turn id's time is the turn's; its attempts are opened later, by far less than this.
const TURN_LIFE_MS: u64 = 24 * 60 * 60 * 1000;

const COLUMNS: &str = "attempt, caller, upstream, account, model, upstream_model, dialect, opened_ms, \
                       estimated_input, outcome, exact, input, cache_read, cache_write, output, reasoning, closed_ms";

/// The word for attempts that ended with their process or their client.
pub(crate) const INTERRUPTED: &str = "interrupted";

pub(crate) fn open(conn: &Connection, entry: &AttemptOpened) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO ledger (attempt, caller, upstream, account, model, upstream_model, dialect, opened_ms, \
         estimated_input) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        key(entry.attempt),
        &*entry.caller,
        &*entry.account.upstream,
        &*entry.account.account,
        &*entry.model,
        &*entry.upstream_model,
        entry.dialect.name(),
        signed(entry.opened_ms),
        signed(entry.estimated_input),
    ])?;
    Ok(())
}

/// Changes nothing if the entry is closed, or not there.
pub(crate) fn close(conn: &Connection, entry: &AttemptClosed) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE ledger SET outcome = ?2, exact = ?3, input = ?4, cache_read = ?5, cache_write = ?6, output = ?7, \
         reasoning = ?8, closed_ms = ?9 WHERE attempt = ?1 AND outcome IS NULL",
    )?
    .execute(params![
        key(entry.attempt),
        entry.outcome.name(),
        entry.exact,
        signed(entry.usage.input),
        signed(entry.usage.cache_read),
        signed(entry.usage.cache_write),
        signed(entry.usage.output),
        signed(entry.usage.reasoning),
        signed(entry.closed_ms),
    ])?;
    Ok(())
}

pub(crate) fn withdraw(conn: &Connection, attempt: AttemptId) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM ledger WHERE attempt = ?1 AND outcome IS NULL")?.execute([key(attempt)])?;
    Ok(())
}

/// Closes what earlier runs left open; their estimate is what they are taken to have cost.
pub(crate) fn recover(conn: &Connection, now_ms: u64) -> rusqlite::Result<usize> {
    conn.execute(
        "UPDATE ledger SET outcome = ?1, exact = 0, input = estimated_input, cache_read = 0, cache_write = 0, \
         output = 0, reasoning = 0, closed_ms = ?2 WHERE outcome IS NULL",
        params![INTERRUPTED, signed(now_ms)],
    )
}

pub(crate) fn open_count(conn: &Connection) -> rusqlite::Result<u64> {
    let count: i64 =
        conn.prepare_cached("SELECT count(*) FROM ledger WHERE outcome IS NULL")?.query_row([], |row| row.get(0))?;
    Ok(unsigned(count))
}

pub(crate) fn newest(conn: &Connection, limit: usize) -> rusqlite::Result<Vec<LedgerEntry>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM ledger ORDER BY attempt DESC LIMIT ?1"))?
        .query_map([limit], entry)?
        .collect()
}

/// The turn's attempts, in their order.
pub(crate) fn of_turn(conn: &Connection, turn: TurnId) -> rusqlite::Result<Vec<LedgerEntry>> {
    let bound = |number| key(AttemptId { turn, number });
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM ledger WHERE attempt BETWEEN ?1 AND ?2 ORDER BY attempt"))?
        .query_map(params![bound(u8::MIN), bound(u8::MAX)], entry)?
        .collect()
}

/// Deletes at most `limit` closed entries of turns before that one; answers how many.
pub(crate) fn prune(conn: &Connection, before: AttemptId, limit: usize) -> rusqlite::Result<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    conn.prepare_cached(
        "DELETE FROM ledger WHERE attempt IN (SELECT attempt FROM ledger WHERE attempt < ?1 AND outcome IS NOT NULL \
         ORDER BY attempt LIMIT ?2)",
    )?
    .execute(params![key(before), limit])
}

fn entry(row: &Row<'_>) -> rusqlite::Result<LedgerEntry> {
    let outcome: Option<String> = row.get("outcome")?;
    let closed = match outcome {
        None => None,
        Some(outcome) => Some(LedgerClose {
            outcome,
            usage: usage_of(row)?,
            exact: row.get("exact")?,
            closed_ms: count(row, "closed_ms")?,
        }),
    };
    Ok(LedgerEntry {
        attempt: attempt(row.get("attempt")?),
        caller: row.get("caller")?,
        account: AccountId { upstream: text(row, "upstream")?, account: text(row, "account")? },
        model: row.get("model")?,
        upstream_model: row.get("upstream_model")?,
        dialect: row.get("dialect")?,
        opened_ms: count(row, "opened_ms")?,
        estimated_input: count(row, "estimated_input")?,
        closed,
    })
}

pub(crate) fn usage(conn: &Connection, since_ms: u64, by: UsageBy) -> rusqlite::Result<Vec<UsageRow>> {
    let group = match by {
        UsageBy::Caller => "caller",
        UsageBy::Model => "model",
        UsageBy::UpstreamModel => "upstream_model",
        UsageBy::Upstream => "upstream",
        UsageBy::Account => "upstream || '/' || account",
        UsageBy::Outcome => "outcome",
    };
    // The key begins with the turn's time, so the range of keys spares reading what is older.
    let from = AttemptId { turn: TurnId::new(since_ms.saturating_sub(TURN_LIFE_MS), 0), number: 0 };
    conn.prepare_cached(&format!(
        "SELECT {group} AS name, count(*) AS attempts, sum(exact) AS exact_attempts, sum(input) AS input, \
         sum(cache_read) AS cache_read, sum(cache_write) AS cache_write, sum(output) AS output, \
         sum(reasoning) AS reasoning FROM ledger \
         WHERE attempt >= ?1 AND opened_ms >= ?2 AND outcome IS NOT NULL GROUP BY 1 ORDER BY 1"
    ))?
    .query_map(params![key(from), signed(since_ms)], |row| {
        Ok(UsageRow {
            key: row.get("name")?,
            attempts: count(row, "attempts")?,
            exact_attempts: count(row, "exact_attempts")?,
            usage: usage_of(row)?,
        })
    })?
    .collect()
}

fn usage_of(row: &Row<'_>) -> rusqlite::Result<Usage> {
    Ok(Usage {
        input: count(row, "input")?,
        cache_read: count(row, "cache_read")?,
        cache_write: count(row, "cache_write")?,
        output: count(row, "output")?,
        reasoning: count(row, "reasoning")?,
    })
}

/// The turn's bits, big-endian, so that keys sort as ids do; then the number.
pub(crate) fn key(attempt: AttemptId) -> [u8; 17] {
    let mut key = [attempt.number; 17];
    key[..16].copy_from_slice(&attempt.turn.bits().to_be_bytes());
    key
}

pub(crate) fn attempt(key: [u8; 17]) -> AttemptId {
    let bits = key[..16].iter().fold(0, |bits, &byte| bits << 8 | u128::from(byte));
    AttemptId { turn: TurnId::from_bits(bits), number: key[16] }
}

fn text(row: &Row<'_>, column: &str) -> rusqlite::Result<Arc<str>> {
    Ok(row.get::<_, String>(column)?.into())
}

fn count(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    row.get(column).map(unsigned)
}

/// SQLite's integers have a sign; a count beyond them is kept as the largest.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
