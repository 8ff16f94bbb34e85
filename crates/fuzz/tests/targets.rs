//! Every target over its seeds, the fixtures, and as many mutants of them as the table says: the same on every machine.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a helper of a test may fail the test")]

use turnkeep_fuzz::{run, table};

/// Runs one; a failure is written down and tells how to replay it.
fn hold(name: &str) {
    let target = table::named(name).expect("it is in the table");
    match run::check(target).expect("its seeds can be read") {
        Ok(ran) => {
            assert!(ran.seeds >= 3, "{name} has {} seeds", ran.seeds);
            println!("{name}: {} seeds, {} mutants", ran.seeds, ran.mutants);
        }
        Err(failure) => panic!("{failure}"),
    }
}

macro_rules! tests {
    ($($name:ident, $of:literal, $holds:literal, $mutants:literal, $fixtures:expr;)*) => {
        mod seeds_and_their_mutants_hold_for {
            $(#[test]
            fn $name() {
                super::hold(stringify!($name));
            })*
        }
    };
}
turnkeep_fuzz::every_target!(tests);
