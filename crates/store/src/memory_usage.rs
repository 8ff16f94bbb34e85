//! Sums over the ledger in memory, as `usage_sql` makes them in the file.

use crate::record::{LedgerClose, LedgerEntry, MOST, UsageBy, UsageRow};
use std::collections::BTreeMap;
use turnkeep_base::Usage;

/// Milliseconds of a day.
pub(crate) const DAY_MS: u64 = crate::usage_sql::DAY_MS;

pub(crate) fn usage<'a>(entries: impl Iterator<Item = &'a LedgerEntry>, by: &[UsageBy]) -> Vec<UsageRow> {
    let mut rows = BTreeMap::<Vec<String>, UsageRow>::new();
    for entry in entries {
        if let Some(closed) = &entry.closed {
            let keys: Vec<String> = by.iter().map(|by| group(entry, closed, by)).collect();
            add(rows.entry(keys.clone()).or_insert_with(|| UsageRow { keys, ..UsageRow::default() }), entry, closed);
        }
    }
    rows.into_values().collect()
}

/// Answered without an attempt.
pub(crate) fn is_again(entry: &LedgerEntry) -> bool {
    entry.account.upstream.is_empty()
}

/// Input, cached input and output.
pub(crate) fn tokens(usage: &Usage) -> u64 {
    let kinds = [usage.input, usage.cache_read, usage.cache_write, usage.output];
    kinds.into_iter().map(|kind| kind.min(MOST)).sum()
}

fn group(entry: &LedgerEntry, closed: &LedgerClose, by: &UsageBy) -> String {
    match by {
        UsageBy::Caller => entry.caller.clone(),
        UsageBy::Model => entry.model.clone(),
        UsageBy::UpstreamModel => entry.upstream_model.clone(),
        UsageBy::Upstream => entry.account.upstream.to_string(),
        UsageBy::Account if is_again(entry) => String::new(),
        UsageBy::Account => entry.account.to_string(),
        UsageBy::Outcome => closed.outcome.clone(),
        UsageBy::Label(name) => {
            let labels: Option<BTreeMap<String, String>> = serde_json::from_str(&entry.labels).ok();
            labels.and_then(|mut labels| labels.remove(name)).unwrap_or_default()
        }
    }
}

fn add(row: &mut UsageRow, entry: &LedgerEntry, closed: &LedgerClose) {
    if is_again(entry) {
        for (word, count) in [("hit", &mut row.hits), ("held", &mut row.held), ("joined", &mut row.joined)] {
            *count += u64::from(closed.outcome == word);
        }
        return;
    }
    row.attempts += 1;
    row.exact_attempts += u64::from(closed.exact);
    row.unpriced_attempts += u64::from(closed.cost.is_none());
    row.usage.input += closed.usage.input.min(MOST);
    row.usage.cache_read += closed.usage.cache_read.min(MOST);
    row.usage.cache_write += closed.usage.cache_write.min(MOST);
    row.usage.output += closed.usage.output.min(MOST);
    row.usage.reasoning += closed.usage.reasoning.min(MOST);
    row.cost += closed.cost.unwrap_or(0).min(MOST);
    row.milli_units += closed.milli_units.unwrap_or(0).min(MOST);
}
