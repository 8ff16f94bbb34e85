//! The numbers: each has a key, and the documentation tells its default and its bounds.

use super::{only_error, parse, parse_with};
use crate::config::tuning::{KEYS, Slot};
use crate::config::{Keep, Stream, show_duration};
use std::time::Duration;
use turnkeep_policy::Tuning;

/// The row of the documentation's table: default, bounds.
fn documented(key: &str) -> (String, String) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = page.split("## `[tuning]`\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let row = table.lines().find(|line| line.starts_with(&format!("| `{key}` |")));
    let row = row.unwrap_or_else(|| panic!("{key} is not documented"));
    let mut cells = row.split(" | ").map(|cell| cell.trim_matches('`').to_owned()).skip(1);
    (cells.next().unwrap(), cells.next().unwrap())
}

fn bounds(slot: &Slot) -> String {
    match slot {
        Slot::Time(_, least, most) => format!("{} to {}", show_duration(*least), show_duration(*most)),
        Slot::Count(_, least, most) => format!("{least} to {most}"),
        Slot::Number(_, least, most) => format!("{least} to {most}"),
    }
}

#[test]
fn every_number_of_the_policy_has_a_key() {
    let debug = format!("{:#?}", Tuning::default());
    let fields = debug.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": ")).map(|(name, _)| name);
    let fields: Vec<&str> = fields.collect();
    let keys: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys[..fields.len()], fields);
    assert_eq!(keys[fields.len()..], ["stream_open_after", "heartbeat"]);
}

#[test]
fn the_documented_defaults_and_bounds_are_those_of_the_program() {
    for (key, slot) in KEYS {
        let (default, told) = documented(key);
        let config = parse(&format!("[tuning]\n{key} = {default}\n"));
        assert_eq!((config.tuning, config.stream), (Tuning::default(), Stream::default()), "{key} = {default}");
        assert_eq!(told, bounds(slot), "{key}");
    }
}

/// What a key's value is when it is not its default.
fn other(key: &str, slot: &Slot) -> String {
    match slot {
        // The longest of a pair is not below its first, and a first not above its longest.
        Slot::Time(_, least, _) if !key.starts_with("longest") => format!("\"{}\"", show_duration(*least)),
        Slot::Time(_, _, most) => format!("\"{}\"", show_duration(*most)),
        Slot::Count(_, least, _) if key != "dispatches" => least.to_string(),
        Slot::Count(..) => "5".into(),
        Slot::Number(_, _, most) => format!("{most:.1}"),
    }
}

#[test]
fn each_key_changes_one_number_and_no_two_the_same() {
    let mut seen = Vec::new();
    for (key, slot) in KEYS {
        let config = parse(&format!("[tuning]\n{key} = {}\n", other(key, slot)));
        let both = (config.tuning, config.stream);
        assert_ne!(both, (Tuning::default(), Stream::default()), "{key}");
        assert!(!seen.contains(&both), "{key}");
        let shown = format!("{both:#?}");
        let default = format!("{:#?}", (Tuning::default(), Stream::default()));
        let changed: Vec<_> = shown.lines().zip(default.lines()).filter(|(a, b)| a != b).map(|(a, _)| a).collect();
        let field = key.strip_prefix("stream_").unwrap_or(key);
        assert!(matches!(changed.as_slice(), [one] if one.trim().starts_with(&format!("{field}:"))), "{changed:?}");
        seen.push(both);
    }
}

#[test]
fn a_number_out_of_its_bounds_is_told_with_them() {
    let tells = |line: &str, part: &str| {
        let (place, message) = only_error(&format!("[tuning]\n{line}\n"));
        assert!(place.starts_with("2:") && message.contains(part), "{line}: {place} {message}");
    };
    tells("budget = 0", "from 1 to 100");
    tells("retry_share = 1.5", "from 0 to 1");
    tells("retry_share = nan", "from 0 to 1");
    tells("retry_share = \"20%\"", "not a string");
    tells("episode = 15", "with its unit");
    tells("bugdet = 3", "did you mean \"budget\"?");
    tells("dispatches = 11", "from 1 to 10");
}

#[test]
fn the_longest_of_something_is_not_shorter_than_its_first() {
    let tells = |lines: &str, key: &str, part: &str| {
        let (place, message) = only_error(&format!("[tuning]\n{lines}\n"));
        assert!(place.ends_with(key) && message.contains(part), "{lines}: {place} {message}");
    };
    tells(
        "longest_episode = \"1m\"",
        "tuning.longest_episode",
        "longest_episode (1m) must not be shorter than episode",
    );
    tells("backoff = \"6s\"", "tuning.backoff", "longest_backoff (5s)");
    tells("attempts = 4\ndispatches = 3", "tuning.dispatches", "fewer than attempts (4)");
    parse("[tuning]\nbackoff = \"6s\"\nlongest_backoff = \"6s\"\n");
}

#[test]
fn a_number_may_come_from_the_environment() {
    let variables =
        [("TURNKEEP_TUNING__RETRY_SHARE", "0.5"), ("TURNKEEP_TUNING__BUDGET", "4"), ("TURNKEEP_TUNING__EPISODE", "1m")];
    let tuning = parse_with("", &variables).unwrap().tuning;
    assert_eq!((tuning.retry_share, tuning.budget, tuning.episode), (0.5, 4, Duration::from_secs(60)));
}

#[test]
fn what_the_store_keeps_has_its_defaults_and_bounds() {
    assert_eq!(parse("").store.keep, Keep::default());
    let keep = parse("[store]\nkeep = { turns = \"1d\" }\n").store.keep;
    assert_eq!(keep, Keep { turns: Duration::from_secs(86_400), ..Keep::default() });
    let keep = parse("[store]\nkeep = { responses = \"60d\" }\n").store.keep;
    assert_eq!(keep, Keep { responses: Duration::from_secs(60 * 86_400), ..Keep::default() });
    let (place, message) = only_error("[store]\nkeep = { ledger = \"1m\" }\n");
    assert_eq!(place, "2:19 store.keep.ledger");
    assert!(message.contains("from 1h to 3660d"), "{message}");
}
