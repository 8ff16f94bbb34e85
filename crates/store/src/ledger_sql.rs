//! The ledger in SQL. One insert and one update an attempt; the rest is for reading.

use crate::record::{LedgerClose, LedgerEntry};
use rusqlite::{Connection, Row, params};
use std::sync::Arc;
use turnkeep_base::{AccountId, AttemptId, TurnId, Usage};
use turnkeep_engine::ports::{AnsweredAgain, AttemptClosed, AttemptOpened, AttemptOutcome};

const COLUMNS: &str = "attempt, caller, upstream, account, model, upstream_model, dialect, opened_ms, \
                       estimated_input, outcome, exact, input, cache_read, cache_write, output, reasoning, closed_ms, \
                       labels, estimated_output, estimated_cost, cost, milli_units";

/// The word for attempts that ended with their process or their client.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// What became of the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// It is written, now or before.
    Written,
    /// There is no entry that it could be written to, and it does not say enough to make one.
    NoEntry,
}

pub(crate) fn open(conn: &Connection, entry: &AttemptOpened) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO ledger (attempt, caller, upstream, account, model, upstream_model, dialect, opened_ms, \
         estimated_input, labels, estimated_cost, estimated_output) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
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
        &*entry.labels,
        entry.estimated_cost.map(signed),
        signed(entry.estimated_output),
    ])?;
    Ok(())
}

/// Changes nothing if the entry is closed. One that is not there is written whole where it is known how it was opened.
pub(crate) fn close(
    conn: &Connection,
    entry: &AttemptClosed,
    opened: Option<&AttemptOpened>,
) -> rusqlite::Result<Closed> {
    let changed = conn
        .prepare_cached(
            "UPDATE ledger SET outcome = ?2, exact = ?3, input = ?4, cache_read = ?5, cache_write = ?6, output = ?7, \
             reasoning = ?8, closed_ms = ?9, cost = ?10, milli_units = ?11 WHERE attempt = ?1 AND outcome IS NULL",
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
            entry.cost.map(signed),
            entry.milli_units.map(signed),
        ])?;
    if changed > 0 || was_never_sent(entry) {
        return Ok(Closed::Written);
    }
    if conn.prepare_cached("SELECT 1 FROM ledger WHERE attempt = ?1")?.exists([key(entry.attempt)])? {
        return Ok(Closed::Written);
    }
    let Some(opened) = opened else { return Ok(Closed::NoEntry) };
    open(conn, opened)?;
    close(conn, entry, None)
}

/// The end of an attempt that had no beginning: nothing was sent, and there is nothing to write down.
pub(crate) fn was_never_sent(entry: &AttemptClosed) -> bool {
    entry.outcome == AttemptOutcome::Interrupted && entry.exact && entry.usage == Usage::default()
}

/// The entry of a turn that no upstream was asked for. It has no account, and the number that no attempt has.
pub(crate) fn again(conn: &Connection, entry: &AnsweredAgain) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT OR IGNORE INTO ledger (attempt, caller, upstream, account, model, upstream_model, dialect, opened_ms, \
         estimated_input, labels, estimated_cost, outcome, exact, input, cache_read, cache_write, output, reasoning, \
         closed_ms, cost) VALUES (?1, ?2, '', '', ?3, '', ?4, ?5, 0, ?6, 0, ?7, 1, 0, 0, 0, 0, 0, ?5, 0)",
    )?
    .execute(params![
        key(AttemptId { turn: entry.turn, number: 0 }),
        &*entry.caller,
        &*entry.model,
        entry.dialect.name(),
        signed(entry.at_ms),
        &*entry.labels,
        entry.how.name(),
    ])?;
    Ok(())
}

/// Writes an entry at the end of the ledger, where new ones go, and takes it back.
pub(crate) fn probe(conn: &Connection) -> rusqlite::Result<()> {
    let last = [0xff_u8; 17];
    conn.prepare_cached(
        "INSERT INTO ledger (attempt, caller, upstream, account, model, upstream_model, dialect, opened_ms, \
         estimated_input) VALUES (?1, '', '', '', '', '', '', 0, 0)",
    )?
    .execute([last])?;
    conn.prepare_cached("DELETE FROM ledger WHERE attempt = ?1")?.execute([last])?;
    Ok(())
}

pub(crate) fn withdraw(conn: &Connection, attempt: AttemptId) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM ledger WHERE attempt = ?1 AND outcome IS NULL")?.execute([key(attempt)])?;
    Ok(())
}

/// Closes what earlier runs left open; their estimate is what they are taken to have used, and to have cost.
pub(crate) fn recover(conn: &Connection, now_ms: u64) -> rusqlite::Result<usize> {
    conn.execute(
        "UPDATE ledger SET outcome = ?1, exact = 0, input = estimated_input, cache_read = 0, cache_write = 0, \
         output = estimated_output, reasoning = 0, closed_ms = ?2, cost = estimated_cost WHERE outcome IS NULL",
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
            cost: row.get::<_, Option<i64>>("cost")?.map(unsigned),
            milli_units: row.get::<_, Option<i64>>("milli_units")?.map(unsigned),
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
        estimated_output: count(row, "estimated_output")?,
        labels: row.get("labels")?,
        estimated_cost: row.get::<_, Option<i64>>("estimated_cost")?.map(unsigned),
        closed,
    })
}

pub(crate) fn usage_of(row: &Row<'_>) -> rusqlite::Result<Usage> {
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

pub(crate) fn text(row: &Row<'_>, column: &str) -> rusqlite::Result<Arc<str>> {
    Ok(row.get::<_, String>(column)?.into())
}

pub(crate) fn count(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    row.get(column).map(unsigned)
}

/// SQLite's integers have a sign; a count beyond them is kept as the largest.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
