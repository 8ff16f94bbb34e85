//! The score of the bugs that are put in on purpose: each into processes of this program, to see what finds it.

use anyhow::{Context as _, Result, anyhow, bail};
use parking_lot::Mutex;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use turnkeep_sim::bugs::{BUGS, Bug, FoundBy};

/// How long a run may go on that was begun in time.
const PATIENCE: &str = "60";
/// The variable that names the bug.
const CHOSEN: &str = "TURNKEEP_SEEDED_BUG";

/// Puts each bug in and tells which are found, by what.
///
/// # Errors
/// One of them is not found, or something is found without one.
pub fn bugs(only: &[String], seconds: u64, jobs: usize, out: Option<&Path>) -> Result<()> {
    let program = std::env::current_exe()?;
    // Without a bug nothing is to be found, or nothing that is found says anything.
    const NONE: Bug = Bug { name: "none", rule: "nothing is wrong", found_by: FoundBy::Simulation { from: 0 } };
    if let Some(found) = by_exploration(&program, NONE.name)?.or(by_simulation(&program, NONE.name, 0, seconds)?) {
        bail!("without a bug something is found, too: {found}");
    }
    let chosen: Vec<&Bug> =
        BUGS.iter().filter(|bug| only.is_empty() || only.iter().any(|one| one == bug.name)).collect();
    let (next, found) = (Mutex::new(chosen.iter().enumerate()), Mutex::new(vec![None; chosen.len()]));
    let (next, found, program) = (&next, &found, &program);
    let work = move || -> Result<()> {
        loop {
            let Some((at, bug)) = next.lock().next() else { return Ok(()) };
            let by = match bug.found_by {
                FoundBy::Simulation { from } => match by_exploration(program, bug.name)? {
                    Some(found) => Some(found),
                    None => by_simulation(program, bug.name, from, seconds)?,
                },
                FoundBy::Test { package, test } => by_test(bug.name, package, test)?,
            };
            super::say(format_args!("{}: {}", bug.name, by.as_deref().unwrap_or("not found")));
            found.lock()[at] = by;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread has panicked"))?)
    })?;
    let found = std::mem::take(&mut *found.lock());
    let caught = found.iter().flatten().count();
    if let Some(file) = out {
        let text = score(&chosen, &found, caught);
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let (missed, word) = (chosen.len() - caught, if caught == chosen.len() { "ok" } else { "FAILED" });
    super::say(format_args!("caught {caught} of {}", chosen.len()));
    super::say(format_args!("test result: {word}. {caught} passed; {missed} failed;"));
    if missed > 0 {
        let missed = chosen.iter().zip(&found).filter(|(_, found)| found.is_none());
        bail!("not found: {}", missed.map(|(bug, _)| bug.name).collect::<Vec<_>>().join(", "));
    }
    Ok(())
}

fn score(chosen: &[&Bug], found: &[Option<String>], caught: usize) -> String {
    let mut text = format!(
        "caught {caught} of {}\n\n\
         <!-- Written by `make bugs`; do not edit. -->\n\n\
         What the bugs are, and what is to find each, stands in `crates/sim/src/bugs.rs`. A number is that of the invariant \
         (docs/simulation.md).\n\n| bug | what it does | found by |\n|---|---|---|\n",
        chosen.len()
    );
    for (bug, found) in chosen.iter().zip(found) {
        // A string takes all that is written to it.
        let _ = writeln!(text, "| `{}` | {} | {} |", bug.name, bug.rule, found.as_deref().unwrap_or("nothing"));
    }
    text
}

/// What a process of this program says on its way to a failure.
fn said(program: &Path, bug: &str, arguments: &[&str]) -> Result<(bool, String)> {
    let output = Command::new(program).args(arguments).env(CHOSEN, bug).output()?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn by_exploration(program: &Path, bug: &str) -> Result<Option<String>> {
    let (_, said) = said(program, bug, &["explore", "--depth", "7", "--states", "60000"])?;
    let found = said.lines().find_map(|line| line.strip_prefix("invariant ")?.split_once(':'));
    Ok(found.map(|(number, _)| format!("invariant {number}, exploration")))
}

fn by_simulation(program: &Path, bug: &str, from: u64, seconds: u64) -> Result<Option<String>> {
    let (from, seconds) = (from.to_string(), seconds.to_string());
    let arguments = ["corpus", "--first", "--unmarked", "--jobs", "1", "--patience", PATIENCE, "--from", from.as_str()];
    let arguments: Vec<&str> = arguments.into_iter().chain(["--seconds", seconds.as_str()]).collect();
    let (held, said) = said(program, bug, &arguments)?;
    let named = said.lines().find_map(|line| {
        let (seed, broken) = line.split_once(": invariant ")?;
        let (number, _) = broken.split_once(':')?;
        Some(format!("invariant {number}, seed {seed}"))
    });
    Ok(match (held, named) {
        (true, _) => None,
        (false, Some(named)) => Some(named),
        (false, None) => Some(said.lines().last().unwrap_or("a crash").to_owned()),
    })
}

/// By a test of the workspace that passes without the bug. What is built is what the gate has built.
fn by_test(bug: &str, package: &str, test: &str) -> Result<Option<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let nextest = Command::new(&cargo).args(["nextest", "--version"]).output()?.status.success();
    let filter = format!("package(={package}) & test(={test})");
    let run = if nextest { ["nextest", "run", "--cargo-profile"] } else { ["test", "--all-targets", "--profile"] };
    let which = if nextest { ["-E", filter.as_str()] } else { ["--", test] };
    let passes = |bug: &str| -> Result<bool> {
        let mut command = Command::new(&cargo);
        command.args(run).args([
            "ci",
            "--workspace",
            "--locked",
            "--offline",
            "--features",
            "turnkeep-sim/seeded-bugs",
        ]);
        Ok(command.args(which).env(CHOSEN, bug).output()?.status.success())
    };
    if !passes("none")? {
        bail!("`{test}` of {package} does not pass without the bug, or is not there");
    }
    Ok((!passes(bug)?).then(|| format!("`{test}` of {package}")))
}
