//! `turnkeep usage`: what the ledger adds up to.

use super::open_store::open_existing;
use super::{Failure, table};
use crate::cli::UsageArgs;
use crate::config::Config;
use serde_json::{Value, json};
use std::io::Write;
use turnkeep_engine::ports::WallClock;
use turnkeep_store::{Store, SystemClock, UsageBy, UsageRow};

/// The columns after the groups, for tables and CSV alike.
const COLUMNS: [&str; 13] = [
    "attempts",
    "exact",
    "estimated",
    "unpriced",
    "input",
    "cache_read",
    "cache_write",
    "output",
    "reasoning",
    "cost_usd",
    "hit",
    "held",
    "joined",
];

/// The column behind them where any attempt cost units of its provider's own.
const UNITS: &str = "acus";

/// Prints the sums over the closed entries of the store of the configuration.
///
/// # Errors
/// Usage: the configuration. Operation: the store, or the output cannot be written.
pub async fn run(args: &UsageArgs, out: &mut impl Write) -> Result<(), Failure> {
    let config = Config::load(&args.file.config)?;
    let store = open_existing(&config)?;
    let rows = store.usage(args.since.unix_ms(SystemClock.unix_ms()), args.by.clone()).await;
    store.shutdown().await.map_err(Failure::operation)?;
    print(args, &rows.map_err(Failure::operation)?, out)
}

fn print(args: &UsageArgs, rows: &[UsageRow], out: &mut impl Write) -> Result<(), Failure> {
    let names: Vec<String> = args.by.iter().map(name).collect();
    let with_units = rows.iter().any(|row| row.milli_units > 0);
    if args.json {
        let rows = rows.iter().map(|row| to_json(&names, row, with_units)).collect();
        writeln!(out, "{}", Value::Array(rows))?;
        return Ok(());
    }
    let heading = names.iter().map(String::as_str).chain(COLUMNS).chain(with_units.then_some(UNITS));
    let heading: Vec<&str> = heading.collect();
    let lines = rows.iter().map(|row| {
        let cells = row.keys.iter().cloned().chain(cells(row));
        cells.chain(with_units.then(|| acus(row.milli_units))).collect::<Vec<String>>()
    });
    if args.csv {
        for line in std::iter::once(heading.iter().map(|cell| (*cell).to_owned()).collect()).chain(lines) {
            let line: Vec<String> = line.iter().map(|cell| quoted(cell)).collect();
            writeln!(out, "{}", line.join(","))?;
        }
        return Ok(());
    }
    let shown = |cell: String| if cell.is_empty() { "-".to_owned() } else { cell };
    let lines: Vec<Vec<String>> = lines.map(|line| line.into_iter().map(shown).collect()).collect();
    table::write(out, &heading, &lines)?;
    Ok(())
}

fn cells(row: &UsageRow) -> [String; 13] {
    let estimated = row.attempts.saturating_sub(row.exact_attempts);
    let (counts, usage) = ([row.attempts, row.exact_attempts, estimated, row.unpriced_attempts], &row.usage);
    let [attempts, exact, estimated, unpriced] = counts.map(|count| count.to_string());
    let tokens = [usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning];
    let [input, cache_read, cache_write, output, reasoning] = tokens.map(|count| count.to_string());
    let [hit, held, joined] = [row.hits, row.held, row.joined].map(|count| count.to_string());
    let cost = usd(row.cost);
    [attempts, exact, estimated, unpriced, input, cache_read, cache_write, output, reasoning, cost, hit, held, joined]
}

/// Billionths as dollars, whole to the last digit, at least in cents.
fn usd(nano: u64) -> String {
    let text = format!("{}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000);
    let cents = text.len() - 7;
    let end = text.trim_end_matches('0').len().max(cents);
    text[..end].to_owned()
}

/// Thousandths of Devin's units of compute, whole to the last digit.
fn acus(milli: u64) -> String {
    let text = format!("{}.{:03}", milli / 1_000, milli % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn to_json(names: &[String], row: &UsageRow, with_units: bool) -> Value {
    let groups: serde_json::Map<String, Value> =
        names.iter().zip(&row.keys).map(|(name, key)| (name.clone(), Value::from(key.clone()))).collect();
    let mut value = json!({
        "attempts": row.attempts,
        "exact": row.exact_attempts,
        "estimated": row.attempts.saturating_sub(row.exact_attempts),
        "unpriced": row.unpriced_attempts,
        "input": row.usage.input,
        "cache_read": row.usage.cache_read,
        "cache_write": row.usage.cache_write,
        "output": row.usage.output,
        "reasoning": row.usage.reasoning,
        "cost_usd": usd(row.cost),
        "hit": row.hits,
        "held": row.held,
        "joined": row.joined,
    });
    if let Value::Object(members) = &mut value {
        if with_units {
            members.insert(UNITS.into(), Value::String(acus(row.milli_units)));
        }
        members.insert("by".into(), Value::Object(groups));
    }
    value
}

fn name(by: &UsageBy) -> String {
    match by {
        UsageBy::Caller => "caller".into(),
        UsageBy::Model => "model".into(),
        UsageBy::UpstreamModel => "upstream-model".into(),
        UsageBy::Upstream => "upstream".into(),
        UsageBy::Account => "account".into(),
        UsageBy::Outcome => "outcome".into(),
        UsageBy::Label(name) => format!("label:{name}"),
    }
}

/// A cell of CSV. One that a spreadsheet would take for a formula gets an apostrophe before it.
fn quoted(cell: &str) -> String {
    let cell = match cell.chars().next() {
        Some('=' | '+' | '-' | '@' | '\t' | '\r') => format!("'{cell}"),
        Some(_) | None => cell.to_owned(),
    };
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn args(words: &[&str]) -> UsageArgs {
        let words = ["turnkeep", "usage"].iter().chain(words);
        let Command::Usage(args) = Cli::parse_from(words).command else { panic!("not usage") };
        args
    }

    fn row(keys: &[&str]) -> UsageRow {
        let usage = turnkeep_base::Usage { input: 7, output: 5, ..Default::default() };
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        UsageRow {
            keys,
            attempts: 3,
            exact_attempts: 2,
            unpriced_attempts: 1,
            hits: 4,
            cost: 1_234_500_000,
            usage,
            ..UsageRow::default()
        }
    }

    fn printed(words: &[&str], rows: &[UsageRow]) -> String {
        let mut out = Vec::new();
        print(&args(words), rows, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn groups_within_groups_are_printed_with_what_is_exact_estimated_unpriced_and_answered_again() {
        let text = printed(&["--by", "caller,label:team"], &[row(&["laptop", ""])]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][..6], ["caller", "label:team", "attempts", "exact", "estimated", "unpriced"]);
        assert_eq!(lines[1], ["laptop", "-", "3", "2", "1", "1", "7", "0", "0", "5", "0", "1.2345", "4", "0", "0"]);
    }

    #[test]
    fn json_and_csv_say_the_same() {
        let value: Value = serde_json::from_str(&printed(&["--json"], &[row(&["laptop"])])).unwrap();
        assert_eq!((&value[0]["by"]["caller"], &value[0]["cost_usd"]), (&json!("laptop"), &json!("1.2345")));
        let text = printed(&["--csv"], &[row(&["a \"b\", c"]), row(&["=1+1"])]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("caller,attempts,exact,estimated,"), "{}", lines[0]);
        assert!(lines[1].starts_with("\"a \"\"b\"\", c\",3,2,1,1,7,"), "{}", lines[1]);
        assert!(lines[2].starts_with("'=1+1,3"), "{}", lines[2]);
    }

    #[test]
    fn units_of_a_provider_are_a_column_only_where_there_are_any() {
        let costly = UsageRow { milli_units: 12_340, ..row(&["devin"]) };
        let rows = [costly, row(&["laptop"])];
        let text = printed(&[], &rows);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.iter().filter_map(|line| line.last().copied()).collect::<Vec<_>>(), ["acus", "12.34", "0"]);
        let value: Value = serde_json::from_str(&printed(&["--json"], &rows)).unwrap();
        assert_eq!((&value[0]["acus"], &value[1]["acus"]), (&json!("12.34"), &json!("0")));
        let text = printed(&["--csv"], &rows);
        assert!(text.lines().next().unwrap().ends_with(",joined,acus"), "{text}");
        assert!(text.lines().nth(1).unwrap().ends_with(",0,0,12.34"), "{text}");

        let none = [row(&["laptop"])];
        assert!(!printed(&[], &none).contains("acus") && !printed(&["--csv"], &none).contains("acus"));
        let value: Value = serde_json::from_str(&printed(&["--json"], &none)).unwrap();
        assert_eq!(value[0].get("acus"), None);
    }

    #[test]
    fn thousandths_of_units_are_whole_to_the_last_digit() {
        for (milli, text) in [(0, "0"), (1, "0.001"), (250, "0.25"), (20_000, "20"), (100_500, "100.5")] {
            assert_eq!(acus(milli), text);
        }
    }

    #[test]
    fn money_is_whole_to_the_last_digit_and_has_cents() {
        for (nano, text) in [(0, "0.00"), (1, "0.000000001"), (20_000_000_000, "20.00"), (1_500_000_000, "1.50")] {
            assert_eq!(usd(nano), text);
        }
    }
}
