//! The tables of `docs/fuzzing.md`.

use crate::differential::DIFFERENCES;
use crate::table::TARGETS;
use std::fmt::Write as _;

/// The targets, a line each.
pub fn targets() -> String {
    let mut out = String::from("| target | decodes | what holds for any bytes |\n|---|---|---|\n");
    for target in TARGETS {
        // Writing to a string does not fail.
        let _ = writeln!(out, "| `{}` | {} | {} |", target.name, target.of, target.holds);
    }
    out
}

/// The differences that are meant, a line each.
pub fn differences() -> String {
    let mut out = String::from("| dialect | what differs | why |\n|---|---|---|\n");
    for difference in DIFFERENCES {
        let dialects: Vec<String> = difference.dialects.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "| {} | {} | {} |", dialects.join(", "), difference.what, difference.why);
    }
    out
}
