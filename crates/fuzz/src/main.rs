//! The fuzz targets by hand, on stable: `list`, `run TARGET --seconds N`, `replay TARGET FILE`, `docs`.

#![allow(clippy::print_stdout, reason = "a command line tells what it did")]

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use turnkeep_fuzz::{TARGETS, Target, docs, run, table};

/// Fuzz targets for every decoder.
#[derive(Debug, Parser)]
#[command(name = "turnkeep-fuzz")]
struct Line {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The names of the targets.
    List,
    /// Seeds, then mutants, of one target or of `all`, for so long each.
    Run {
        /// Its name, or `all`.
        target: String,
        /// For how long, each.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Which mutants: another number makes others. Without it, the time of day.
        #[arg(long)]
        number: Option<u64>,
    },
    /// One input, or all of a folder.
    Replay {
        /// The target's name.
        target: String,
        /// The input.
        file: PathBuf,
    },
    /// The tables of docs/fuzzing.md.
    Docs,
}

fn main() -> anyhow::Result<()> {
    match Line::parse().what {
        What::List => TARGETS.iter().for_each(|target| println!("{}", target.name)),
        What::Run { target, seconds, number } => {
            let number = number.unwrap_or_else(|| {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                since.map(|since| since.as_secs()).unwrap_or_default()
            });
            let all = target == "all";
            let these: Vec<&'static Target> = if all { TARGETS.iter().collect() } else { vec![named(&target)?] };
            let mut failed = 0;
            for target in these {
                match run::for_so_long(target, number, Duration::from_secs(seconds))? {
                    Ok(ran) => {
                        println!("{}: {} seeds and {} mutants of number {number}", target.name, ran.seeds, ran.mutants)
                    }
                    Err(failure) => {
                        failed += 1;
                        println!("{failure}");
                    }
                }
            }
            if failed > 0 {
                bail!("{failed} failed");
            }
        }
        What::Replay { target, file } => {
            let target = named(&target)?;
            let data = std::fs::read(&file).with_context(|| file.display().to_string())?;
            match run::once(target, &data) {
                Ok(()) => println!("{}: it holds", target.name),
                Err(said) => bail!("{}: {said}", target.name),
            }
        }
        What::Docs => println!("{}\n{}", docs::targets(), docs::differences()),
    }
    Ok(())
}

fn named(name: &str) -> anyhow::Result<&'static Target> {
    table::named(name).with_context(|| format!("no target {name:?}; `list` lists them"))
}
