//! `turnkeep replay`: an incident trace through this build's own decisions, on simulated time, beside the recorded ones.

use super::{Failure, table};
use crate::cli::ReplayArgs;
use serde_json::json;
use std::io::{Read, Write};
use std::path::Path;
use turnkeep_engine::incident::{self, Line, MAX_BYTES, Replayed, Trace};

/// Replays the file, prints both columns, and says whether they are the same.
///
/// # Errors
/// Operation: a decision of this build's is another one. Usage: the file cannot be read, is no trace of this form, or breaks
/// off before its turn did.
pub fn run(args: &ReplayArgs, input: &mut impl Read, out: &mut impl Write) -> Result<(), Failure> {
    let shown = args.file.display();
    let bytes = read(&args.file, input)?;
    let trace = incident::read(&bytes).map_err(|why| Failure::Usage(format!("{shown} {why}")))?;
    let replayed = incident::replay(&trace);
    if args.json {
        as_json(&trace, &replayed, out)?;
    } else {
        as_text(&trace, &replayed, out)?;
    }
    if let Some((number, line)) = replayed.divergence() {
        return Err(Failure::Operation(format!(
            "diverges at step {number} of {}, {} after the turn began: on \"{}\" the trace has \"{}\", this build gives \"{}\"",
            replayed.steps,
            offset(line.us),
            line.event,
            line.recorded,
            line.replayed.as_deref().unwrap_or_default(),
        )));
    }
    if let Some(cut) = replayed.cut {
        return Err(Failure::Usage(format!(
            "{shown} breaks off {} after the turn began: {}; as far as it goes every decision is the same",
            offset(cut.us),
            cut.by.words()
        )));
    }
    Ok(())
}

fn read(file: &Path, input: &mut impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    // A byte more than may be read, so that a longer file is seen to be one.
    let most = MAX_BYTES as u64 + 1;
    let read = if file == Path::new("-") {
        input.take(most).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|opened| opened.take(most).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::Usage(format!("{} cannot be read: {error}", file.display())))?;
    Ok(bytes)
}

fn offset(us: u64) -> String {
    format!("{}.{:03} ms", us / 1_000, us % 1_000)
}

/// Text of a file's for a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '?' } else { char }).take(300).collect()
}

fn as_text(trace: &Trace, replayed: &Replayed, out: &mut impl Write) -> Result<(), Failure> {
    let head = &trace.head;
    let [turn, model, caller, dialect, build] =
        [&head.turn, &head.model, &head.caller, &head.dialect, &head.build].map(|text| plain(text));
    let mode = if head.facts.streamed { "streamed" } else { "plain" };
    writeln!(out, "{turn}: model {model}, caller {caller}, in {dialect}, {mode}")?;
    let config = head.config.as_deref().map_or_else(|| "unknown".to_owned(), plain);
    writeln!(out, "recorded by {build} under the config {config}; replayed by {}\n", env!("CARGO_PKG_VERSION"))?;
    let rows: Vec<Vec<String>> = replayed.lines.iter().map(row).collect();
    table::write(out, &["offset", "event", "recorded", "replayed"], &rows)?;
    if replayed.divergence().is_some() || replayed.cut.is_some() {
        return Ok(());
    }
    writeln!(out, "\nidentical: all {} decisions are the same", replayed.steps - replayed.passed_over)?;
    if replayed.passed_over > 0 {
        writeln!(out, "{} more cannot be made again from what a trace has", replayed.passed_over)?;
    }
    if replayed.running {
        writeln!(out, "the turn ran still when its trace was taken out")?;
    }
    Ok(())
}

fn row(line: &Line) -> Vec<String> {
    let replayed = match &line.replayed {
        None => "(not replayed)".to_owned(),
        Some(_) if line.same => "same".to_owned(),
        Some(other) => other.clone(),
    };
    vec![offset(line.us), line.event.clone(), line.recorded.clone(), replayed]
}

fn as_json(trace: &Trace, replayed: &Replayed, out: &mut impl Write) -> Result<(), Failure> {
    let lines = replayed.lines.iter().map(|line| {
        json!({
            "us": line.us, "event": line.event, "recorded": line.recorded, "replayed": line.replayed, "same": line.same,
        })
    });
    let value = json!({
        "turn": trace.head.turn,
        "recorded_by": trace.head.build,
        "replayed_by": env!("CARGO_PKG_VERSION"),
        "config": trace.head.config,
        "running": replayed.running,
        "cut": replayed.cut,
        "not_replayed": replayed.passed_over,
        "steps": lines.collect::<Vec<_>>(),
        "divergence": replayed.divergence().map(|(number, _)| number),
    });
    writeln!(out, "{value}")?;
    Ok(())
}
