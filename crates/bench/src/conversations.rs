//! The fifth part of the benchmark: what it costs to know a conversation again and to hold it, in process and without a
//! gateway around it; and what going on with one saves, through a whole gateway. The measurements are examples of the
//! dialect, policy and gateway crates; their lines are read.

use crate::codec::{Line, Options, measured};
use crate::codec_report::{not_measured, of, verdict};
use crate::failures::load_average;
use crate::process::{first_line, settle_self};
use crate::section::with_section;
use anyhow::{Context, Result};
use std::fmt::Write as _;

/// The section's heading in the report.
pub const HEADING: &str = "## Conversations";

/// The goals, microseconds: all keys of a history; taking and closing a lease.
const KEYS: f64 = 400.0;
const LEASE: f64 = 5.0;
/// By how much the bytes to an upstream fall when its conversation is gone on with, per cent.
const FALL: f64 = 95.0;

/// Measures and writes the section.
pub async fn run(options: &Options, cores: usize) -> Result<()> {
    let load = load_average();
    let pin = cores > options.core;
    let mut notes = settle_self(pin.then_some(options.core)).await;
    if !pin {
        notes.push("no such core: the measurement was not kept to one".to_owned());
    }
    let each = if options.quick { 10 } else { 400 };
    eprintln!("conversations");
    let keys = measured(&options.examples.join("keys_speed"), each).await;
    let leases = measured(&options.examples.join("lease_speed"), each).await;
    let bytes = measured(&options.examples.join("conversation_bytes"), each).await;
    let commit = first_line("git", &["rev-parse", "--short", "HEAD"]).await.unwrap_or_else(|| "unknown".to_owned());
    let shown = |load: Option<f64>| load.map_or("unknown".to_owned(), |load| format!("{load:.1}"));
    let mut conditions = vec![
        format!("Date: {} (UTC)", time::OffsetDateTime::now_utc().date()),
        format!("Commit {commit}; {cores} cores, one thread; release profile; keys with the gateway's allocator"),
        format!("Load average before the run {}, after it {}", shown(load), shown(load_average())),
    ];
    if options.quick {
        conditions.push("A quick run: its figures say little".to_owned());
    }
    if load.is_some_and(|load| load > 0.5) {
        conditions.push("Not as it should be: the machine was busy before the run".to_owned());
    }
    conditions.extend(notes.into_iter().map(|note| format!("Not as it should be: {note}")));
    let lines = keys.and_then(|mut lines| {
        lines.extend(leases?);
        lines.extend(bytes?);
        Ok(lines)
    });
    let old = std::fs::read_to_string(&options.out).unwrap_or_default();
    std::fs::write(&options.out, with_section(&old, HEADING, &section(&conditions, &lines)))
        .with_context(|| options.out.display().to_string())?;
    eprintln!("wrote the section into {}", options.out.display());
    Ok(())
}

/// The section, with its conditions.
fn section(conditions: &[String], lines: &Result<Vec<Line>>) -> String {
    // Writing to a String cannot fail; the results are dropped throughout.
    let mut out = format!("{HEADING}\n\n");
    for line in conditions {
        let _ = writeln!(out, "- {line}");
    }
    let lines = match lines {
        Ok(lines) => lines,
        Err(error) => {
            not_measured(&mut out, error);
            return out;
        }
    };
    let keys = || of(lines, "keys").map(|(names, figures): ([&str; 2], [f64; 5])| (names, figures));
    let leases = || of(lines, "lease").map(|(names, figures): ([&str; 2], [f64; 4])| (names, figures));
    let bytes = || of(lines, "bytes").map(|(names, figures): ([&str; 1], [f64; 4])| (names, figures));
    let _ = writeln!(out, "\n| what, worst case | measured | goal | verdict |\n|---|---|---|---|");
    let mut goal = |what: &str, worst: Option<(String, f64)>, goal: f64, digits: usize| {
        let _ = match worst {
            Some((case, us)) => {
                writeln!(out, "| {what} | {us:.digits$} us ({case}) | < {goal} us | {} |", verdict(us < goal))
            }
            None => writeln!(out, "| {what} | not measured | < {goal} us | – |"),
        };
    };
    let worst = |cases: Vec<(String, f64)>| cases.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
    let cases = keys().map(|([what, dialect], [ns, ..])| (format!("{what}, {dialect}"), ns / 1e3));
    goal("all keys of a history of 320 KiB and 120 messages", worst(cases.collect()), KEYS, 0);
    let cases = leases().map(|([handling, end], [ns, ..])| (format!("{handling}, {end}"), ns / 1e3));
    goal("taking and closing a lease with 10 000 records", worst(cases.collect()), LEASE, 2);
    let falls = bytes().map(|([protocol], [.., replayed, sent])| (protocol.to_owned(), fall(replayed, sent)));
    let what = "fall of the bytes to a Cascade server over 60 turns of 200 KiB";
    let _ = match falls.min_by(|(_, one), (_, other)| one.total_cmp(other)) {
        Some((case, fall)) => {
            writeln!(out, "| {what} | {fall:.1} % ({case}) | > {FALL} % | {} |", verdict(fall > FALL))
        }
        None => writeln!(out, "| {what} | not measured | > {FALL} % | – |"),
    };
    let _ = writeln!(
        out,
        "\n**Keys.** The history's texts alone are 320 KiB; a system prompt of 16 KiB and 40 tools come on top. *agent*: calls and\n\
         their results; *talk*: everybody says as much. CPU time of the measuring thread, the least of its runs. *Reading* is the\n\
         turn read from the body, which every look at a history needs; *adding* is the key with an answer of 2 KiB and one call.\n\
         µs.\n\n\
         | history | dialect | all keys | verdict | reading | adding |\n|---|---|---|---|---|---|"
    );
    for ([what, dialect], [ns, reading, adding, ..]) in keys() {
        let met = verdict(ns / 1e3 < KEYS);
        let _ = writeln!(
            out,
            "| {what} | {dialect} | {:.0} | {met} | {:.0} | {:.1} |",
            ns / 1e3,
            reading / 1e3,
            adding / 1e3
        );
    }
    let _ = writeln!(
        out,
        "\n**Leases.** A table of 10 000 records of 100 callers behind a lock; batches of 250 turns that go on with a quarter of\n\
         them. CPU time of the measuring thread, µs. *advanced* puts the conversation under the key of the new history,\n\
         *restored* back. *Begun*: turns of 100 000 that found none, as it had made room, and began one.\n\n\
         | handle | end | median | p99 of the batches | verdict | kept | begun |\n|---|---|---|---|---|---|---|"
    );
    for ([handling, end], [median, p99, kept, begun]) in leases() {
        let met = verdict(median / 1e3 < LEASE);
        let _ =
            writeln!(out, "| {handling} | {end} | {:.2} | {:.2} | {met} | {kept} | {begun} |", median / 1e3, p99 / 1e3);
    }
    let _ = writeln!(
        out,
        "\n**Bytes.** The client sends its whole history with each turn, a 60th of it new, through a whole gateway to a Cascade\n\
         server in the same process: once with `reuse = \"off\"`, each turn a conversation of its own with all that was said,\n\
         and once with `\"prefer\"`, one conversation. Every byte to the server is counted on the way: heads, framing and all\n\
         calls of a turn. Counting bytes, it does not depend on the machine or its load.\n\n\
         | protocol | turns | history | whole history in each turn | gone on with | fall | verdict |\n|---|---|---|---|---|---|---|"
    );
    for ([protocol], [turns, history, replayed, sent]) in bytes() {
        let fall = fall(replayed, sent);
        let _ = writeln!(
            out,
            "| {protocol} | {turns} | {:.0} KiB | {:.0} KiB | {:.0} KiB | {fall:.1} % | {} |",
            history / 1024.0,
            replayed / 1024.0,
            sent / 1024.0,
            verdict(fall > FALL)
        );
    }
    out
}

/// By how much it is less, per cent.
fn fall(before: f64, after: f64) -> f64 {
    (1.0 - after / before) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<const N: usize>(kind: &str, names: [&str; N], figures: &[u64]) -> Line {
        Line { kind: kind.to_owned(), names: names.map(str::to_owned).to_vec(), figures: figures.to_vec() }
    }

    #[test]
    fn the_worst_case_decides_about_a_goal_and_every_case_is_in_its_table() {
        let lines = Ok(vec![
            line("keys", ["agent", "chat"], &[250_000, 100_000, 3_000, 1, 120]),
            line("keys", ["talk", "gemini"], &[420_000, 100_000, 3_000, 1, 120]),
            line("lease", ["mutable", "advanced"], &[1_500, 2_000, 10_000, 0]),
            line("bytes", ["connect"], &[60, 204_800, 1_000_000, 49_000]),
            line("bytes", ["grpc"], &[60, 204_800, 1_000_000, 50_000]),
        ]);
        let text = section(&["Date: today".to_owned()], &lines);
        assert!(text.starts_with("## Conversations\n\n- Date: today\n"), "{text}");
        for row in [
            "120 messages | 420 us (talk, gemini) | < 400 us | missed |",
            "10 000 records | 1.50 us (mutable, advanced) | < 5 us | met |",
            "| agent | chat | 250 | met | 100 | 3.0 |",
            "| mutable | advanced | 1.50 | 2.00 | met | 10000 | 0 |",
            "200 KiB | 95.0 % (grpc) | > 95 % | missed |",
            "| connect | 60 | 200 KiB | 977 KiB | 48 KiB | 95.1 % | met |",
        ] {
            assert!(text.contains(row), "{row}: {text}");
        }
        let failed = section(&[], &Err(anyhow::anyhow!("no such\nfile")));
        assert!(failed.contains("Not measured: no such file"), "{failed}");
    }
}
