//! What the tests run as a child: an agent of the Agent Client Protocol that does what its prompts say, and a process that
//! listens where it is told to. Written from the protocol's text, without a line of what it tests.
//!
//! `agent [--version N] [--auth METHOD] [--loads] [--load-error CODE] [--late N] [--closes] [--models A,B] [--images] [--slow MS] [--banner]`: an agent.
//! `listen`, `foreign`, `silent`: a process that listens, one in whose place another group listens, one that does nothing.
//!
//! Each line of a prompt's last text is a step: see [`steps`]. What it hears is appended to the file in `FAKE_LOG`.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's own peer: what is wrong in it is to be seen at once")]

mod agent;
mod listen;
mod steps;

use std::io::Write;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Ok(path) = std::env::var("FAKE_ENVIRONMENT") {
        let all: Vec<String> = std::env::vars().map(|(name, value)| format!("{name}={value}\n")).collect();
        std::fs::write(path, all.concat()).expect("a file to write to");
    }
    match arguments.first().map(String::as_str) {
        Some("agent") => agent::run(arguments.get(1..).unwrap_or_default()),
        Some("listen") => listen::listen(),
        Some("foreign") => listen::foreign(),
        Some("silent") => listen::until_stdin_ends(),
        Some("fail") => {
            let secret = std::env::var("TURNKEEP_SECRET").unwrap_or_default();
            let _said = writeln!(std::io::stderr(), "there is no configuration for {secret}");
            std::process::exit(7);
        }
        Some("stubborn") => listen::stubborn(),
        other => panic!("what to be? {other:?}"),
    }
}
