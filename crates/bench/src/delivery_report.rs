//! The section of the report for [`crate::delivery`]: the goals first, then every figure.

use crate::answers::Dialect;
use crate::delivery::{Behind, Case, HEADING, SIP, SLOW, STREAMS, Slices};
use crate::metric::number;
use crate::request::Size;
use anyhow::Result;
use std::fmt::Write as _;

/// The goals: CPU with everything on to CPU with it off, KiB per stream, turns a second.
const CPU: f64 = 1.10;
const STREAM_KIB: f64 = 80.0;
const STREAM_AIM: f64 = 45.0;
const TURNS: f64 = 5_000.0;

/// All that was measured.
pub struct Measured {
    /// CPU of each load.
    pub cpu: Vec<(Case, Result<Slices>)>,
    /// KiB per open stream.
    pub memory: Vec<(Dialect, Behind, Result<f64>)>,
    /// The ledger's table: tasks, pairs a second, CPU per pair, waits.
    pub ledger: Result<Vec<Vec<String>>>,
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some((upper + lower) / 2.0)
}

/// Medians of the builds' figures, and of the slices' ratios of the first and the second to the third.
fn figures(slices: &Slices) -> Option<([f64; 3], [f64; 2])> {
    let of = |at: usize| median(slices.iter().map(|slice| slice[at]).collect());
    let to_off = |at: usize| median(slices.iter().map(|slice| slice[at] / slice[2]).collect());
    Some(([of(0)?, of(1)?, of(2)?], [to_off(0)?, to_off(1)?]))
}

/// The section, with its conditions.
pub fn section(conditions: &[String], measured: &Measured) -> String {
    // Writing to a String cannot fail; the results are dropped throughout.
    let mut out = format!("{HEADING}\n\n");
    for line in conditions {
        let _ = writeln!(out, "- {line}");
    }
    let verdict = |met: bool| if met { "met" } else { "missed" };
    out.push_str("\n| what, worst case | measured | goal | verdict |\n|---|---|---|---|\n");
    let cpu: Option<Vec<f64>> =
        measured.cpu.iter().map(|(_, slices)| Some(figures(slices.as_ref().ok()?)?.1[0])).collect();
    let (shown, met) = match cpu.and_then(|ratios| ratios.into_iter().max_by(f64::total_cmp)) {
        Some(worst) => (format!("{}×", number(worst)), verdict(worst <= CPU)),
        None => ("–".to_owned(), "not measured"),
    };
    let _ = writeln!(
        out,
        "| CPU per turn with receipts, closings and ledger, to that without | {shown} | ≤ {CPU:.2}× | {met} |"
    );
    let memory: Option<Vec<f64>> = measured.memory.iter().map(|(_, _, kib)| kib.as_ref().ok().copied()).collect();
    let (shown, met) = match memory.and_then(|all| all.into_iter().max_by(f64::total_cmp)) {
        Some(worst) => {
            (number(worst), if worst <= STREAM_AIM { "met, and the aim" } else { verdict(worst <= STREAM_KIB) })
        }
        None => ("–".to_owned(), "not measured"),
    };
    let _ = writeln!(
        out,
        "| memory per open stream, half of the readers slow | {shown} KiB | ≤ {STREAM_KIB} KiB (aim {STREAM_AIM}) | {met} |"
    );
    let pace = measured.ledger.as_ref().ok().and_then(|lines| {
        let of = |line: &Vec<String>| line.get(1)?.parse::<f64>().ok();
        lines.iter().map(of).collect::<Option<Vec<f64>>>()?.into_iter().min_by(f64::total_cmp)
    });
    let (shown, met) = pace.map_or(("–".to_owned(), "not measured"), |pace| (number(pace), verdict(pace >= TURNS)));
    let _ = writeln!(out, "| turns a second that the ledger takes | {shown} | ≥ {} | {met} |", number(TURNS));

    out.push_str(
        "
**CPU.** Three gateways of one build at the same time on one core, loaded in turn by 16 connections in a closed loop; a slice
of each makes one ratio, and the figures are medians. *On* has everything. *Bare* waits for no receipt and has no ledger,
but records, binds and commits. *Off* does none of that: its caller has a shared key, for which nothing is kept. Counting what
the kernel took stays in all three. Two accounts per upstream, so that bindings are asked for; no response cache.

| turn | on µs | bare µs | off µs | on to off | bare to off | verdict |
|---|---|---|---|---|---|---|
",
    );
    for (case, slices) in &measured.cpu {
        let size = match case.size {
            Size::Small => "small",
            Size::Agent => "agent turn of 60 KB",
        };
        let head = format!("| {}, {size} |", name(case.dialect));
        let _ = match slices {
            Ok(slices) => match figures(slices) {
                Some(([on, bare, off], [ratio, kept])) => writeln!(
                    out,
                    "{head} {} | {} | {} | {}× | {}× | {} |",
                    number(on),
                    number(bare),
                    number(off),
                    number(ratio),
                    number(kept),
                    verdict(ratio <= CPU)
                ),
                None => writeln!(out, "{head} – | – | – | – | – | not measured |"),
            },
            Err(error) => writeln!(out, "{head} – | – | – | – | – | broke off: {} |", one_line(error)),
        };
    }
    let _ = write!(
        out,
        "
**Memory.** {} open streams. Half of them have brought their first event and are silent; the other {} are read at
{} bytes a second through a receive buffer as small as the kernel allows, with more behind them: a whole answer of 100
events, or an upstream that never pauses, which back-pressure holds. Resident memory of the gateway over idle, at its most
in 8 s, what is recorded of the answers included.

| dialect | behind the slow half | KiB per stream | verdict |
|---|---|---|---|
",
        number(STREAMS as f64),
        number(SLOW as f64),
        number(SIP as f64),
    );
    for (dialect, behind, kib) in &measured.memory {
        let behind = match behind {
            Behind::Answer => "a whole answer",
            Behind::Flood => "a flood",
        };
        let head = format!("| {} | {behind} |", name(*dialect));
        let _ = match kib {
            Ok(kib) => writeln!(out, "{head} {} | {} |", number(*kib), verdict(*kib <= STREAM_KIB)),
            Err(error) => writeln!(out, "{head} – | broke off: {} |", one_line(error)),
        };
    }
    out.push_str(
        "
**Ledger.** Entries opened, waited for and closed as fast as so many tasks can, on both cores, SQLite on this machine's disk;
100 000 pairs each. A task waits for its entry before it goes on, so nothing piles up: the pace is what the ledger takes.

",
    );
    match &measured.ledger {
        Ok(lines) => {
            out.push_str(
                "| tasks | pairs a second | CPU per pair | opening p50 | p99 | longest |\n|---|---|---|---|---|---|\n",
            );
            for line in lines {
                let _ = writeln!(out, "| {} |", line.join(" | "));
            }
        }
        Err(error) => {
            let _ = writeln!(out, "Not measured: {}", one_line(error));
        }
    }
    out
}

fn name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "Chat",
        Dialect::Messages => "Messages",
    }
}

fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").chars().map(|c| if c.is_control() || c == '|' { ' ' } else { c }).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_that_of_the_worst_case_and_ratios_are_taken_slice_by_slice() {
        let case = Case { dialect: Dialect::Chat, size: Size::Small };
        let agent = Case { size: Size::Agent, ..case };
        let slices = vec![[110.0, 105.0, 100.0], [240.0, 200.0, 200.0], [300.0, 300.0, 100.0]];
        let line = |pace: &str| ["8", pace, "20µs", "1µs", "2µs", "3µs"].map(str::to_owned).to_vec();
        let measured = Measured {
            cpu: vec![(case, Ok(slices)), (agent, Ok(vec![[100.0, 100.0, 100.0]]))],
            memory: vec![(Dialect::Chat, Behind::Answer, Ok(44.0)), (Dialect::Chat, Behind::Flood, Ok(79.9))],
            ledger: Ok(vec![line("9000"), line("4999")]),
        };
        let text = section(&["Date: today".to_owned()], &measured);
        assert!(text.contains("without | 1.20× | ≤ 1.10× | missed |"), "{text}");
        assert!(text.contains("| Chat, small | 240 | 200 | 100 | 1.20× | 1.05× | missed |"), "{text}");
        assert!(text.contains("slow | 79.9 KiB | ≤ 80 KiB (aim 45) | met |"), "{text}");
        assert!(text.contains("takes | 4 999 | ≥ 5 000 | missed |"), "{text}");
        let broken = Measured {
            memory: vec![(Dialect::Chat, Behind::Flood, Err(anyhow::anyhow!("it | broke\noff")))],
            ..measured
        };
        let text = section(&[], &broken);
        assert!(text.contains("slow | – KiB") && text.contains("broke off: it   broke off |"), "{text}");
    }
}
