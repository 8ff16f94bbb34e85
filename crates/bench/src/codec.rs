//! The fourth part of the benchmark: what the codecs cost, in process and without a gateway around them. The dialect
//! crate's own measurement is run and its lines are read; it is its own section of the report.

use crate::codec_report::section;
use crate::failures::load_average;
use crate::process::{first_line, settle_self};
use crate::section::with_section;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The section's heading in the report.
pub const HEADING: &str = "## Codecs";

/// The options of `codec`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The report whose section is written anew; the rest of it stays.
    #[arg(long, default_value = "docs/benchmarks.md")]
    pub out: PathBuf,
    /// The folder of the dialect crate's examples, built for release.
    #[arg(long)]
    pub examples: PathBuf,
    /// A short time for each case: shows that everything works, not how fast.
    #[arg(long)]
    pub quick: bool,
    /// The core to measure on.
    #[arg(long, default_value_t = 0)]
    pub core: usize,
}

/// One line of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Of which of its tables.
    pub kind: String,
    /// What the case is.
    pub names: Vec<String>,
    /// Its figures, in the order of its table.
    pub figures: Vec<u64>,
}

/// Measures and writes the section.
pub async fn run(options: &Options, cores: usize) -> Result<()> {
    let load = load_average();
    let pin = cores > options.core;
    let mut notes = settle_self(pin.then_some(options.core)).await;
    if !pin {
        notes.push("no such core: the measurement was not kept to one".to_owned());
    }
    let each = if options.quick { 10 } else { 400 };
    eprintln!("codecs");
    let lines = measured(&options.examples.join("codec_speed"), each).await;
    let commit = first_line("git", &["rev-parse", "--short", "HEAD"]).await.unwrap_or_else(|| "unknown".to_owned());
    let shown = |load: Option<f64>| load.map_or("unknown".to_owned(), |load| format!("{load:.1}"));
    let mut conditions = vec![
        format!("Date: {} (UTC)", time::OffsetDateTime::now_utc().date()),
        format!("Commit {commit}; {cores} cores, one thread; release profile, the gateway's allocator"),
        format!("Load average before the run {}, after it {}; {each} ms per case", shown(load), shown(load_average())),
    ];
    if options.quick {
        conditions.push("A quick run: its figures say little".to_owned());
    }
    if load.is_some_and(|load| load > 0.5) {
        conditions.push("Not as it should be: the machine was busy before the run".to_owned());
    }
    conditions.extend(notes.into_iter().map(|note| format!("Not as it should be: {note}")));
    let old = std::fs::read_to_string(&options.out).unwrap_or_default();
    std::fs::write(&options.out, with_section(&old, HEADING, &section(&conditions, &lines)))
        .with_context(|| options.out.display().to_string())?;
    eprintln!("wrote the section into {}", options.out.display());
    Ok(())
}

/// The lines of an example that measures for so many milliseconds each.
pub async fn measured(example: &Path, each: u32) -> Result<Vec<Line>> {
    let mut command = tokio::process::Command::new(example);
    let output = command.arg(each.to_string()).kill_on_drop(true).output().await;
    let output = output.with_context(|| example.display().to_string())?;
    if !output.status.success() {
        bail!("{}: {}", example.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8_lossy(&output.stdout).lines().map(parse).collect()
}

/// `KIND NAME… FIGURE…`, between tabs.
fn parse(line: &str) -> Result<Line> {
    let mut parts = line.split('\t').map(str::to_owned);
    let kind = parts.next().unwrap_or_default();
    let (mut names, mut figures) = (Vec::new(), Vec::new());
    for part in parts {
        match part.parse() {
            Ok(figure) => figures.push(figure),
            Err(_) if figures.is_empty() => names.push(part),
            Err(_) => bail!("not a measurement: {line}"),
        }
    }
    if names.is_empty() || figures.is_empty() {
        bail!("not a measurement: {line}");
    }
    Ok(Line { kind, names, figures })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_its_table_its_case_and_its_figures_and_anything_else_is_refused() {
        let line = parse("chunks\tchat\tgemini\t1\t20").unwrap();
        let names = vec!["chat".to_owned(), "gemini".to_owned()];
        assert_eq!(line, Line { kind: "chunks".to_owned(), names, figures: vec![1, 20] });
        for bad in ["", "chunks", "chunks\tchat", "chunks\t1\t2", "chunks\tchat\t1\tx"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
