//! The second part of the benchmark: what admission costs, what judging a failed attempt costs, and what a storm of 429s
//! costs. It is its own section of the report, with its own conditions, and can be measured without the peers.

use crate::gateway::{self, Setting};
use crate::metric::number;
use crate::process::{first_line, settle_self};
use crate::section::with_section;
use crate::speed::{self, Line};
use crate::storm::{self, Case, Figures};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// The section's heading in the report.
pub const HEADING: &str = "## Admission, judgement and a storm of 429s";
/// The goals, nanoseconds and a ratio.
const ADMISSION_NS: u64 = 2_000;
const JUDGEMENT_NS: u64 = 20_000;
const STORM: f64 = 1.0;

/// The options of `failures`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The report whose section is written anew; the rest of it stays.
    #[arg(long, default_value = "docs/benchmarks.md")]
    pub out: PathBuf,
    /// Turnkeep's binary, built for release.
    #[arg(long)]
    pub gateway: PathBuf,
    /// The folder of the engine's examples, built for release.
    #[arg(long)]
    pub examples: PathBuf,
    /// One short round: shows that everything works, not how fast.
    #[arg(long)]
    pub quick: bool,
    /// Rounds; the figures are medians over them.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Seconds of each single load.
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
    /// The gateway's core.
    #[arg(long, default_value_t = 0)]
    pub peer_core: usize,
    /// The core of the stub and the load generator.
    #[arg(long, default_value_t = 1)]
    pub load_core: usize,
}

struct Measured {
    admission: Result<Vec<Line>>,
    judgement: Result<Vec<Line>>,
    storms: Vec<(Case, Result<Figures>)>,
}

/// Measures, on a machine of `cores` cores, and writes the section.
pub async fn run(options: &Options, cores: usize) -> Result<()> {
    let load = load_average();
    let rounds = if options.quick { 1 } else { options.rounds.clamp(1, 20) };
    let seconds = if options.quick { 1.0 } else { options.seconds.clamp(0.5, 60.0) };
    let pin = cores > options.peer_core.max(options.load_core);
    let both = format!("{},{}", options.peer_core, options.load_core);
    let both = pin.then_some(both.as_str());
    let mut notes = settle_self(pin.then_some(options.load_core)).await;
    if !pin {
        notes.push("too few cores: gateway and load generator were not kept apart".to_owned());
    }
    let binary = options.gateway.canonicalize().context("--gateway")?;
    eprintln!("admission");
    let admission = speed::run(&options.examples.join("admission_speed"), both, rounds).await;
    eprintln!("judgement");
    let judgement = speed::run(&options.examples.join("failure_speed"), both, rounds).await;

    let scratch = tempfile::tempdir()?;
    let (stub, stub_at) = gateway::stub(scratch.path(), pin.then_some(options.load_core)).await?;
    let setting = Setting {
        gateway: binary.clone(),
        stub: stub_at,
        core: pin.then_some(options.peer_core),
        scratch: scratch.path().to_owned(),
        window: Duration::try_from_secs_f64(seconds)?,
    };
    let mut rounds_of: Vec<(Case, Result<Vec<Figures>>)> = Case::all().map(|case| (case, Ok(Vec::new()))).collect();
    for round in 1..=rounds {
        eprintln!("storms, round {round} of {rounds}");
        for (case, figures) in &mut rounds_of {
            let one = storm::round(&setting, *case).await;
            if let Ok(all) = figures {
                match one {
                    Ok(one) => all.push(one),
                    Err(error) => *figures = Err(error),
                }
            }
        }
    }
    stub.stop().await?;
    let storms = rounds_of.into_iter().map(|(case, figures)| (case, figures.and_then(|all| middle(&all)))).collect();

    let version = first_line(&binary.to_string_lossy(), &["--version"]).await.unwrap_or_else(|| "unknown".to_owned());
    let commit = first_line("git", &["rev-parse", "--short", "HEAD"]).await.unwrap_or_else(|| "unknown".to_owned());
    let mut conditions = vec![
        format!("Date: {} (UTC)", time::OffsetDateTime::now_utc().date()),
        format!("Turnkeep: {version}, commit {commit}"),
        format!(
            "{cores} cores; load average before the run {}; {rounds} round(s), {seconds} s per single load; medians over the rounds",
            load.map_or("unknown".to_owned(), |load| format!("{load:.1}"))
        ),
    ];
    if options.quick {
        conditions.push("A quick run: its figures say little".to_owned());
    }
    if load.is_some_and(|load| load > 0.5) {
        conditions.push("Not as it should be: the machine was busy before the run".to_owned());
    }
    conditions.extend(notes.into_iter().map(|note| format!("Not as it should be: {note}")));
    let section = section(&conditions, &Measured { admission, judgement, storms });
    let old = std::fs::read_to_string(&options.out).unwrap_or_default();
    std::fs::write(&options.out, with_section(&old, HEADING, &section))
        .with_context(|| options.out.display().to_string())?;
    eprintln!("wrote the section into {}", options.out.display());
    Ok(())
}

/// The system's load average over the last minute.
pub fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

fn middle(all: &[Figures]) -> Result<Figures> {
    let of = |figure: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = all.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().context("not measured")
    };
    let success_us = of(|f| f.success_us)?;
    let mut alike: Vec<f64> = all.iter().filter_map(|f| f.alike_us).collect();
    alike.sort_by(f64::total_cmp);
    // Half of the rounds or more were so slow.
    let alike_us = alike.get(alike.len() / 2).copied().filter(|_| alike.len() * 2 >= all.len());
    // Of the rounds' ratios, not the ratio of two rounds.
    let storm_us = of(Figures::ratio)? * alike_us.unwrap_or(success_us);
    Ok(Figures { success_us, alike_us, storm_us, attempts: of(|f| f.attempts)?, rate: of(|f| f.rate)? })
}

fn section(conditions: &[String], measured: &Measured) -> String {
    // Writing to a String cannot fail; the results are dropped throughout.
    let mut out = format!("{HEADING}\n\n");
    for line in conditions {
        let _ = writeln!(out, "- {line}");
    }
    let verdict = |met: bool| if met { "met" } else { "missed" };
    let worst = |lines: &Result<Vec<Line>>| lines.as_ref().ok()?.iter().map(|line| line.median).max();
    let worst_storm = measured.storms.iter().filter_map(|(_, figures)| figures.as_ref().ok()).map(Figures::ratio);
    let worst_storm = worst_storm.max_by(f64::total_cmp);
    out.push_str("\n| what, worst case | measured | goal | verdict |\n|---|---|---|---|\n");
    for (what, value, goal) in [
        ("taking a slot and giving it back, median", worst(&measured.admission), ADMISSION_NS),
        ("classifying and judging a failed attempt, median", worst(&measured.judgement), JUDGEMENT_NS),
    ] {
        let (shown, verdict) = value.map_or(("–".to_owned(), "not measured"), |ns| (micro(ns), verdict(ns < goal)));
        let _ = writeln!(out, "| {what} | {shown} µs | < {} µs | {verdict} |", goal / 1000);
    }
    let (shown, verdict_of_storm) =
        worst_storm.map_or(("–".to_owned(), "not measured"), |r| (number(r), verdict(r <= STORM)));
    let _ = writeln!(
        out,
        "| CPU per turn in a storm of 429s, to a successful turn's | {shown}× | ≤ 1× | {verdict_of_storm} |"
    );

    out.push_str(
        "
**Admission.** 1 000 accounts of one upstream, 64 tasks on two worker threads over two cores: each takes a slot, lets the
others run, gives it back. A sample is the time of both, waits for the lock included.

",
    );
    lines(&mut out, &measured.admission);
    out.push_str(
        "
**A failed attempt.** Headers and body read, the error classified, the account judged and filed anew, the slot given back;
1 000 accounts. The proof's way to the store is not in it (it is in the storm's CPU).

",
    );
    lines(&mut out, &measured.judgement);
    let _ = write!(
        out,
        "
**The storm.** Small Chat turns, {} connections in a closed loop, the gateway with everything on, on a core of its own. Every
attempt is answered with a 429; the turn ends in a refusal. CPU is that of the gateway's process, beside successful turns on
the same process just before. Where the storm leaves the core mostly idle, since its turns wait, the ratio is to successful
turns at the storm's own rate (in brackets). A turn that finds all accounts cooling makes no attempt, so a storm costs little
whether it declares its wait or nothing. Where the window is *open again in 1 ms* no memory helps: each turn asks, one account
after another, as often as a turn may.

| accounts | the 429 says | turns/s | attempts per turn | CPU µs per turn | µs per successful turn | ratio | ratio per attempt | verdict |
|---|---|---|---|---|---|---|---|---|
",
        storm::CONNECTIONS,
    );
    for (case, figures) in &measured.storms {
        let head = format!("| {} | {} |", case.accounts, case.refusal.label());
        let _ = match figures {
            Ok(f) => {
                let verdict = verdict(f.ratio() <= STORM);
                let (rate, attempts) = (number(f.rate), number(f.attempts));
                let alike = f.alike_us.map(|us| format!(" ({})", number(us))).unwrap_or_default();
                let success = format!("{}{alike}", number(f.success_us));
                let (storm, ratio) = (number(f.storm_us), number(f.ratio()));
                let each = (f.attempts > 0.5).then(|| format!("{}×", number(f.ratio() / f.attempts)));
                let each = each.unwrap_or_else(|| "–".to_owned());
                writeln!(out, "{head} {rate} | {attempts} | {storm} | {success} | {ratio}× | {each} | {verdict} |")
            }
            Err(error) => {
                writeln!(out, "{head} – | – | – | – | – | – | broke off: {} |", one_line(&format!("{error:#}")))
            }
        };
    }
    out
}

fn lines(out: &mut String, lines: &Result<Vec<Line>>) {
    match lines {
        Ok(lines) => {
            out.push_str("| case | median µs | p99 µs |\n|---|---|---|\n");
            for line in lines {
                let _ = writeln!(out, "| {} | {} | {} |", line.name, micro(line.median), micro(line.p99));
            }
        }
        Err(error) => {
            let _ = writeln!(out, "Not measured: {}", one_line(&format!("{error:#}")));
        }
    }
}

fn micro(ns: u64) -> String {
    number(ns as f64 / 1000.0)
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '|' { ' ' } else { c }).take(200).collect()
}

#[cfg(test)]
#[path = "failures_tests.rs"]
mod tests;
