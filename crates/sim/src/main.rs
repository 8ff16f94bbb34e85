//! `turnkeep-sim`: runs seeds, the corpus and written plans, makes failing plans smaller, and proves that a seed does the
//! same twice.

#[cfg(feature = "seeded-bugs")]
mod score;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Parser, Subcommand};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use turnkeep_sim::explore::{Accounts, Conversations, Explored, Machine, explore};
use turnkeep_sim::marks::Mark;
use turnkeep_sim::plan::{Plan, draw};
use turnkeep_sim::run::{Report, run};
use turnkeep_sim::shrink::shrink;

/// Where plans that have failed are kept; they always run.
const REGRESSIONS: &str = "crates/sim/regressions";

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "turnkeep-sim", about = "Deterministic simulation of the whole gateway")]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Run one seed, or one written plan.
    Run {
        /// The seed.
        #[arg(long, conflicts_with = "plan")]
        seed: Option<u64>,
        /// A plan's file.
        #[arg(long)]
        plan: Option<PathBuf>,
        /// Write the trace here.
        #[arg(long)]
        trace: Option<PathBuf>,
        /// Print the gateway's log of this level.
        #[arg(long)]
        log: Option<String>,
    },
    /// Run many seeds, and see that everything that must occur does.
    Corpus {
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// How many.
        #[arg(long, default_value_t = 500)]
        seeds: u64,
        /// Or for so many seconds.
        #[arg(long)]
        seconds: Option<u64>,
        /// Threads at once; 0: one for each core.
        #[arg(long, default_value_t = 0)]
        jobs: usize,
        /// It is no failure if something never occurs.
        #[arg(long)]
        unmarked: bool,
        /// Stop at the first failure, and write nothing down.
        #[arg(long)]
        first: bool,
        /// End the process with a failure if a run has not ended after so many seconds more.
        #[arg(long)]
        patience: Option<u64>,
    },
    /// Put each bug in, and see that it is found (needs the feature `seeded-bugs`).
    #[cfg(feature = "seeded-bugs")]
    Bugs {
        /// Only these.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// Seconds of simulation for each.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Bugs at once; 0: one for each core.
        #[arg(long, default_value_t = 0)]
        jobs: usize,
        /// Write the score here.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Run every plan that has failed before.
    Regressions,
    /// Walk to every state of the pure machines within so many events.
    Explore {
        /// Events from the first state, at most.
        #[arg(long, default_value_t = 8)]
        depth: usize,
        /// States of each machine, at most.
        #[arg(long, default_value_t = 200_000)]
        states: usize,
    },
    /// Make a plan that fails smaller.
    Shrink {
        /// The plan's file.
        file: PathBuf,
        /// Runs at most.
        #[arg(long, default_value_t = 400)]
        runs: usize,
    },
    /// Run a seed in two processes, and compare their traces byte by byte.
    Meta {
        /// The seeds.
        #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3])]
        seeds: Vec<u64>,
    },
}

fn main() -> ExitCode {
    match go(Arguments::parse().what) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nowhere is left to say that it cannot be said.
            let _ = writeln!(std::io::stderr(), "{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn say(line: std::fmt::Arguments<'_>) {
    // A reader that has gone wants no more.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn go(what: What) -> Result<()> {
    match what {
        What::Run { seed, plan, trace, log } => {
            if let Some(level) = log {
                let filter = tracing_subscriber::EnvFilter::try_new(level)?;
                tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
            }
            let plan = match plan {
                Some(file) => read(&file)?,
                None => draw(seed.context("a seed or a plan is needed")?),
            };
            let report = run(&plan)?;
            if let Some(file) = trace {
                std::fs::write(&file, &report.trace).with_context(|| format!("cannot write {}", file.display()))?;
            }
            say(format_args!(
                "{} turns, {} lines, {}; {} marks: {:?}",
                report.turns,
                report.digest.0,
                report.digest.1,
                report.marks.len(),
                report.marks
            ));
            judge(&plan, &report)
        }
        What::Corpus { from, seeds, seconds, jobs, unmarked, first, patience } => {
            if let Some(patience) = patience {
                watch_over(Duration::from_secs(seconds.unwrap_or_default() + patience));
            }
            corpus(from, seeds, seconds, jobs, unmarked, first)
        }
        #[cfg(feature = "seeded-bugs")]
        What::Bugs { only, seconds, jobs, out } => score::bugs(&only, seconds, cores(jobs), out.as_deref()),
        What::Regressions => regressions(),
        What::Explore { depth, states } => {
            walk::<Accounts>("two accounts", depth, states)?;
            walk::<Conversations>("two conversations", depth, states)?;
            say(format_args!("test result: ok. 2 passed; 0 failed;"));
            Ok(())
        }
        What::Shrink { file, runs } => {
            let fails = |plan: &Plan| match run(plan) {
                Ok(report) => report.broken,
                Err(error) => vec![format!("set-up: {error:#}")],
            };
            let tell = |plan: &Plan| {
                let turns: usize = plan.talks.iter().map(|talk| talk.turns.len()).sum();
                say(format_args!("{turns} turns, {} faults, {} events", plan.faults.len(), plan.events.len()));
            };
            let plan = shrink(read(&file)?, runs, fails, tell);
            let smaller = file.with_extension("small.json");
            write(&smaller, &plan)?;
            say(format_args!("{}: {:#?}", smaller.display(), fails(&plan)));
            Ok(())
        }
        What::Meta { seeds } => meta(&seeds),
    }
}

fn read(file: &Path) -> Result<Plan> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no plan", file.display()))
}

fn write(file: &Path, plan: &Plan) -> Result<()> {
    let text = serde_json::to_string_pretty(plan)?;
    std::fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
}

/// Fails if something did not hold: the plan is written down, and what replays it is told.
fn judge(plan: &Plan, report: &Report) -> Result<()> {
    if report.broken.is_empty() {
        return Ok(());
    }
    let file = Path::new(REGRESSIONS).join(format!("seed-{}.json", plan.seed));
    let mut broken = report.broken.join("\n  ");
    if let Err(error) = write(&file, plan) {
        broken = format!("{broken}\n  and its plan is not written down: {error:#}");
    }
    bail!(
        "seed {}: {} thing(s) did not hold\n  {broken}\nreplay: cargo run -p turnkeep-sim -- run --plan {}",
        plan.seed,
        report.broken.len(),
        file.display()
    )
}

/// So many at once; 0: one for each core.
fn cores(jobs: usize) -> usize {
    if jobs == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { jobs }
}

/// Ends this process when it has taken so long: a run that does not end is a failure, too.
fn watch_over(most: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(most);
        // Nowhere is left to say that it cannot be said.
        let _ = writeln!(std::io::stderr(), "a run does not end");
        std::process::exit(3);
    });
}

fn corpus(from: u64, seeds: u64, seconds: Option<u64>, jobs: usize, unmarked: bool, first: bool) -> Result<()> {
    let begun = Instant::now();
    let jobs = cores(jobs);
    let until = seconds.map(|seconds| begun + Duration::from_secs(seconds));
    let worker = |number: usize| -> Vec<(u64, Result<Report>)> {
        let mut done = Vec::new();
        let mut seed = from + number as u64;
        let goes_on = |seed: u64| match until {
            Some(until) => Instant::now() < until,
            None => seed < from + seeds,
        };
        while goes_on(seed) {
            let plan = draw(seed);
            let report = run(&plan).and_then(|mut report| {
                if first {
                    if let Some(broken) = report.broken.first() {
                        bail!("{broken}");
                    }
                } else {
                    judge(&plan, &report)?;
                }
                // A corpus keeps no traces.
                report.trace = String::new();
                Ok(report)
            });
            let failed = report.is_err();
            done.push((seed, report));
            if first && failed {
                break;
            }
            seed += jobs as u64;
        }
        done
    };
    let worker = &worker;
    let done: Vec<(u64, Result<Report>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|number| scope.spawn(move || worker(number))).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|_| vec![(from, Err(anyhow!("a run has panicked")))]))
            .collect()
    });
    let mut marks = BTreeSet::new();
    let (mut turns, mut failed) = (0, Vec::new());
    for (seed, report) in &done {
        match report {
            Ok(report) => {
                marks.extend(report.marks.iter().copied());
                turns += report.turns;
            }
            Err(error) => failed.push(format!("{seed}: {error:#}")),
        }
    }
    let (took, seeds) = (begun.elapsed().as_secs_f64(), done.len());
    say(format_args!(
        "{seeds} seeds, {turns} turns in {took:.1} s with {jobs} at once: {:.0} turns a second and core",
        turns as f64 / took / jobs as f64
    ));
    let never: Vec<Mark> = Mark::ALL.into_iter().filter(|mark| !marks.contains(mark)).collect();
    say(format_args!("{} of {} marks have occurred; never: {never:?}", marks.len(), Mark::ALL.len()));
    // As test runners close their logs: each seed is a test.
    let (ok, word) = (seeds - failed.len(), if failed.is_empty() { "ok" } else { "FAILED" });
    say(format_args!("test result: {word}. {ok} passed; {} failed;", failed.len()));
    if !failed.is_empty() {
        let shown = failed.len().min(5);
        bail!("{} of {seeds} seeds failed, the first {shown}:\n{}", failed.len(), failed[..shown].join("\n"));
    }
    if !never.is_empty() && !unmarked {
        bail!("what must occur somewhere did not: {never:?}");
    }
    Ok(())
}

fn walk<M: Machine>(what: &str, depth: usize, states: usize) -> Result<()> {
    let begun = Instant::now();
    let Explored { states, depth, closed } = explore::<M>(depth, states).map_err(|what| anyhow!("{what}"))?;
    let end = if closed { "to their closure" } else { "and more beyond" };
    let took = begun.elapsed().as_secs_f64();
    say(format_args!("{what}: {states} states within {depth} events {end}, in {took:.1} s"));
    Ok(())
}

fn regressions() -> Result<()> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(REGRESSIONS)
        .with_context(|| format!("cannot read {REGRESSIONS}"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    for file in &files {
        let plan = read(file)?;
        let report = run(&plan)?;
        if !report.broken.is_empty() {
            bail!("{}: {}", file.display(), report.broken.join("\n  "));
        }
    }
    say(format_args!("test result: ok. {} passed; 0 failed;", files.len()));
    Ok(())
}

fn meta(seeds: &[u64]) -> Result<()> {
    let program = std::env::current_exe()?;
    for seed in seeds {
        let folder = std::env::temp_dir().join(format!("turnkeep-sim-{}-{seed}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let one = |name: &str| -> Result<String> {
            let trace = folder.join(name);
            let seed = seed.to_string();
            let mut command = Command::new(&program);
            let output = command.args(["run", "--seed", &seed, "--trace"]).arg(&trace).output()?;
            if !trace.exists() {
                bail!("seed {seed}: {}", String::from_utf8_lossy(&output.stderr));
            }
            Ok(std::fs::read_to_string(&trace)?)
        };
        let (first, second) = (one("first")?, one("second")?);
        std::fs::remove_dir_all(&folder)?;
        if first != second {
            let at = first.lines().zip(second.lines()).position(|(one, other)| one != other).unwrap_or_default();
            let line = |text: &str| text.lines().nth(at).unwrap_or("the end").to_owned();
            bail!("seed {seed} does not do the same twice; line {}:\n  {}\n  {}", at + 1, line(&first), line(&second));
        }
        say(format_args!("seed {seed}: two processes, {} lines, the same to the byte", first.lines().count()));
    }
    say(format_args!("test result: ok. {} passed; 0 failed;", seeds.len()));
    Ok(())
}
