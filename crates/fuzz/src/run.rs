//! Runs of a target: over seeds, over mutants, and again over one input. What fails is made smaller, written down among
//! the target's seeds and told with the command that replays it.

use crate::chance::Chance;
use crate::mutate::mutant;
use crate::seeds::{self, SMALL, Seed};
use crate::table::Target;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Tries to make a failing input smaller.
const SMALLER: usize = 600;

/// An input for which something does not hold.
#[derive(Debug)]
pub struct Failure {
    /// The target.
    pub target: &'static str,
    /// Where the input is now.
    pub file: PathBuf,
    /// What the target said.
    pub said: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Failure { target, file, said } = self;
        write!(
            f,
            "{target}: {said}\nthe input is {}; replay it with\n  cargo run --profile ci -p turnkeep-fuzz -- replay {target} {}",
            file.display(),
            file.display()
        )
    }
}

/// What was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Seeds, those of the fixtures included.
    pub seeds: usize,
    /// Mutants.
    pub mutants: usize,
}

/// One input: `Err` with what the target said.
///
/// # Errors
/// Something does not hold.
pub fn once(target: &Target, data: &[u8]) -> Result<(), String> {
    panic::catch_unwind(AssertUnwindSafe(|| (target.run)(data))).map_err(|thrown| {
        let text = thrown.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| thrown.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
    })
}

/// Every seed, then as many mutants as the table says. The same inputs on every machine.
///
/// # Errors
/// The seeds cannot be read.
pub fn check(target: &'static Target) -> io::Result<Result<Ran, Failure>> {
    let mut limit = target.mutants;
    over(target, "check", move || {
        let more = limit > 0;
        limit = limit.saturating_sub(1);
        more
    })
}

/// Every seed, then mutants of this number's making for so long.
///
/// # Errors
/// The seeds cannot be read.
pub fn for_so_long(target: &'static Target, number: u64, length: Duration) -> io::Result<Result<Ran, Failure>> {
    let until = Instant::now() + length;
    over(target, &format!("run {number}"), move || Instant::now() < until)
}

fn over(target: &'static Target, purpose: &str, mut more: impl FnMut() -> bool) -> io::Result<Result<Ran, Failure>> {
    let mut all = seeds::own(target.name)?;
    let own = all.len();
    all.extend(seeds::fixtures(target.fixtures)?);
    let mut ran = Ran { seeds: all.len(), mutants: 0 };
    for (at, Seed { path, data }) in all.iter().enumerate() {
        if let Err(said) = once(target, data) {
            // A seed of our own is written down already.
            let file = if at < own { path.clone() } else { written(target, data)? };
            return Ok(Err(Failure { target: target.name, file, said }));
        }
    }
    let small: Vec<&[u8]> = all.iter().map(|seed| &seed.data[..]).filter(|data| data.len() <= SMALL).collect();
    let mut number = 0;
    while more() {
        let data = mutant(&small, &mut Chance::of(&format!("{purpose} {}", target.name), number));
        number += 1;
        if let Err(said) = once(target, &data) {
            let (data, said) = smaller(target, data, said);
            return Ok(Err(Failure { target: target.name, file: written(target, &data)?, said }));
        }
        ran.mutants += 1;
    }
    Ok(Ok(ran))
}

/// The input without what it needs not to fail, by halves and down to bytes.
fn smaller(target: &Target, mut data: Vec<u8>, mut said: String) -> (Vec<u8>, String) {
    let before = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let (mut tries, mut length) = (0, data.len() / 2);
    while length > 0 && tries < SMALLER {
        let mut from = 0;
        while from < data.len() && tries < SMALLER {
            let mut less = data.clone();
            less.drain(from..(from + length).min(data.len()));
            tries += 1;
            match once(target, &less) {
                Err(again) => (data, said) = (less, again),
                Ok(()) => from += length,
            }
        }
        length /= 2;
    }
    panic::set_hook(before);
    (data, said)
}

fn written(target: &Target, data: &[u8]) -> io::Result<PathBuf> {
    let name = blake3::hash(data).to_hex();
    let file = seeds::folder(target.name).join(format!("found-{}", name.get(..12).unwrap_or_default()));
    std::fs::write(&file, data)?;
    Ok(file)
}
