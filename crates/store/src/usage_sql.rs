//! Sums over the ledger in SQL: usage by groups, what callers have spent, and what they asked for lately.

use crate::ledger_sql::{count, key, signed, unsigned, usage_of};
use crate::record::{MOST, Recent, Spend, UsageBy, UsageRow};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use turnkeep_base::{AttemptId, TurnId};

/// A turn id's time is the turn's; its attempts are opened later, by far less than this.
const TURN_LIFE_MS: u64 = 24 * 60 * 60 * 1000;

/// Milliseconds of a day.
pub(crate) const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// How far back the turns began that matter for limits per minute: the start waits for that sum.
const LIVELY_MS: u64 = 2 * 60 * 60 * 1000;

/// The key begins with the turn's time, so a range of keys spares reading what is older.
fn from(since_ms: u64, turn_life_ms: u64) -> [u8; 17] {
    key(AttemptId { turn: TurnId::new(since_ms.saturating_sub(turn_life_ms), 0), number: 0 })
}

pub(crate) fn usage(conn: &Connection, since_ms: u64, by: &[UsageBy]) -> rusqlite::Result<Vec<UsageRow>> {
    let mut values = vec![Value::from(from(since_ms, TURN_LIFE_MS).to_vec()), Value::from(signed(since_ms))];
    let mut groups = Vec::new();
    for by in by {
        groups.push(match by {
            UsageBy::Caller => "caller".to_owned(),
            UsageBy::Model => "model".to_owned(),
            UsageBy::UpstreamModel => "upstream_model".to_owned(),
            UsageBy::Upstream => "upstream".to_owned(),
            UsageBy::Account => "iif(upstream = '', '', upstream || '/' || account)".to_owned(),
            UsageBy::Outcome => "outcome".to_owned(),
            UsageBy::Label(name) => {
                values.push(Value::from(name.clone()));
                let place = values.len();
                format!(
                    "coalesce((SELECT value FROM json_each(iif(json_valid(labels), labels, '{{}}')) \
                     WHERE key = ?{place}), '')"
                )
            }
        });
    }
    let named: String = groups.iter().enumerate().map(|(at, group)| format!("{group} AS name{at}, ")).collect();
    let places: Vec<String> = (1..=groups.len()).map(|place| place.to_string()).collect();
    let order = match places.is_empty() {
        true => "HAVING count(*) > 0".to_owned(),
        false => format!("GROUP BY {0} ORDER BY {0}", places.join(", ")),
    };
    let sql = format!(
        "SELECT {named}sum(upstream <> '') AS attempts, sum(exact AND upstream <> '') AS exact_attempts, \
         sum(cost IS NULL) AS unpriced_attempts, sum(upstream = '' AND outcome = 'hit') AS hits, \
         sum(upstream = '' AND outcome = 'held') AS held, sum(upstream = '' AND outcome = 'joined') AS joined, \
         sum(min(input, {MOST})) AS input, sum(min(cache_read, {MOST})) AS cache_read, \
         sum(min(cache_write, {MOST})) AS cache_write, sum(min(output, {MOST})) AS output, \
         sum(min(reasoning, {MOST})) AS reasoning, sum(min(coalesce(cost, 0), {MOST})) AS cost, \
         sum(min(coalesce(milli_units, 0), {MOST})) AS milli_units FROM ledger \
         WHERE attempt >= ?1 AND opened_ms >= ?2 AND outcome IS NOT NULL {order}"
    );
    let names = groups.len();
    conn.prepare_cached(&sql)?
        .query_map(params_from_iter(values), |row| {
            Ok(UsageRow {
                keys: (0..names).map(|at| row.get(at)).collect::<Result<_, _>>()?,
                attempts: count(row, "attempts")?,
                exact_attempts: count(row, "exact_attempts")?,
                unpriced_attempts: count(row, "unpriced_attempts")?,
                hits: count(row, "hits")?,
                held: count(row, "held")?,
                joined: count(row, "joined")?,
                usage: usage_of(row)?,
                cost: count(row, "cost")?,
                milli_units: count(row, "milli_units")?,
            })
        })?
        .collect()
}

pub(crate) fn spent(conn: &Connection, since_day: u32) -> rusqlite::Result<Vec<Spend>> {
    conn.prepare_cached("SELECT caller, day, tokens, nano_usd FROM spend WHERE day >= ?1 ORDER BY day, caller")?
        .query_map([since_day], |row| {
            Ok(Spend {
                caller: row.get("caller")?,
                day: row.get("day")?,
                tokens: count(row, "tokens")?,
                nano_usd: count(row, "nano_usd")?,
            })
        })?
        .collect()
}

pub(crate) fn recent(conn: &Connection, since_ms: u64) -> rusqlite::Result<Vec<Recent>> {
    let sql = format!(
        "SELECT caller, count(DISTINCT substr(attempt, 1, 16)) AS requests, \
         sum(CASE WHEN outcome IS NULL THEN min(estimated_input, {MOST}) + min(estimated_output, {MOST}) ELSE min(input, {MOST}) \
         + min(cache_read, {MOST}) + min(cache_write, {MOST}) + min(output, {MOST}) END) AS tokens \
         FROM ledger WHERE attempt >= ?1 AND opened_ms >= ?2 GROUP BY caller ORDER BY caller"
    );
    conn.prepare_cached(&sql)?
        .query_map(params![from(since_ms, LIVELY_MS), signed(since_ms)], |row| {
            Ok(Recent {
                caller: row.get("caller")?,
                requests: count(row, "requests")?,
                tokens: unsigned(row.get("tokens")?),
            })
        })?
        .collect()
}

/// Deletes at most `limit` sums of days before that one; answers how many.
pub(crate) fn prune_spend(conn: &Connection, before_day: u64, limit: usize) -> rusqlite::Result<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    conn.prepare_cached(
        "DELETE FROM spend WHERE (day, caller) IN (SELECT day, caller FROM spend WHERE day < ?1 LIMIT ?2)",
    )?
    .execute(params![signed(before_day), limit])
}
