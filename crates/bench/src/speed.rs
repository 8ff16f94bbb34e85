//! The engine's own measurements, which are examples of its crate: run on both cores, and their lines read.

use anyhow::{Context, Result, bail};
use std::path::Path;
use tokio::process::Command;

/// One case of an example, nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The case.
    pub name: String,
    /// Its median.
    pub median: u64,
    /// Its 99th percentile.
    pub p99: u64,
}

/// Runs `example` `rounds` times on `cores` and gives, for each of its cases, the median over the rounds.
pub async fn run(example: &Path, cores: Option<&str>, rounds: usize) -> Result<Vec<Line>> {
    let mut all: Vec<Vec<Line>> = Vec::new();
    for _ in 0..rounds.max(1) {
        let mut command = match cores {
            Some(cores) => {
                let mut command = Command::new("taskset");
                command.args(["-c", cores]).arg(example);
                command
            }
            None => Command::new(example),
        };
        let output = command.kill_on_drop(true).output().await.with_context(|| example.display().to_string())?;
        if !output.status.success() {
            bail!("{}: {}", example.display(), String::from_utf8_lossy(&output.stderr).trim());
        }
        let lines: Result<Vec<Line>> = String::from_utf8_lossy(&output.stdout).lines().map(parse).collect();
        all.push(lines?);
    }
    let first = all.first().cloned().unwrap_or_default();
    let middle = |of: &dyn Fn(&Line) -> u64, at: usize| {
        let mut values: Vec<u64> = all.iter().filter_map(|lines| lines.get(at)).map(of).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    let over_rounds = |(at, line): (usize, Line)| Line {
        name: line.name,
        median: middle(&|line| line.median, at),
        p99: middle(&|line| line.p99, at),
    };
    Ok(first.into_iter().enumerate().map(over_rounds).collect())
}

/// `NAME: N ns median, N ns p99`.
fn parse(line: &str) -> Result<Line> {
    let read = || {
        let (name, figures) = line.rsplit_once(": ")?;
        let (median, p99) = figures.split_once(" ns median, ")?;
        let p99 = p99.strip_suffix(" ns p99")?.parse().ok()?;
        Some(Line { name: name.to_owned(), median: median.parse().ok()?, p99 })
    };
    read().with_context(|| format!("not a measurement: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_case_and_its_two_figures_and_anything_else_is_refused() {
        let line = parse("a: b, c: 12 ns median, 345 ns p99").unwrap();
        assert_eq!(line, Line { name: "a: b, c".to_owned(), median: 12, p99: 345 });
        assert!(parse("a: 12 ns").is_err());
    }
}
