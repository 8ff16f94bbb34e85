//! The section of the report for [`crate::codec`]: the goals first, then every figure.

use crate::codec::{HEADING, Line};
use crate::metric::number;
use anyhow::Result;
use std::fmt::Write as _;

/// The goals: translating to passing through; decoding, milliseconds.
const STREAM: f64 = 3.0;
const DECODE_MS: f64 = 1.0;
/// Up to which ratio of the longest to the shortest the cost of a chunk is called flat.
const FLAT: f64 = 1.5;

/// The lines of one table that have so many names and figures.
pub fn of<'l, const N: usize, const F: usize>(
    lines: &'l [Line],
    kind: &'l str,
) -> impl Iterator<Item = ([&'l str; N], [f64; F])> + 'l {
    lines.iter().filter(move |line| line.kind == kind).filter_map(|line| {
        let names: Vec<&str> = line.names.iter().map(String::as_str).collect();
        let figures: Vec<f64> = line.figures.iter().map(|figure| *figure as f64).collect();
        Some((names.try_into().ok()?, figures.try_into().ok()?))
    })
}

/// In a word.
pub fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

/// The worst of a table, with its case.
fn worst(cases: impl Iterator<Item = (String, f64)>) -> Option<(String, f64)> {
    cases.max_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// The section, with its conditions.
pub fn section(conditions: &[String], lines: &Result<Vec<Line>>) -> String {
    // Writing to a String cannot fail; the results are dropped throughout.
    let mut out = format!("{HEADING}\n\n");
    for line in conditions {
        let _ = writeln!(out, "- {line}");
    }
    let lines = match lines {
        Ok(lines) => lines,
        Err(error) => {
            not_measured(&mut out, error);
            return out;
        }
    };
    goals(&mut out, lines);
    streams(&mut out, lines);
    requests(&mut out, lines);
    chunks(&mut out, lines);
    out
}

/// Why there are no figures.
pub fn not_measured(out: &mut String, error: &anyhow::Error) {
    let what = format!("{error:#}");
    let what: String = what.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    let _ = writeln!(out, "\nNot measured: {what}");
}

fn goals(out: &mut String, lines: &[Line]) {
    let pair = |[turn, client, upstream]: [&str; 3]| format!("{turn}, {client} client of {upstream}");
    let stream = worst(of(lines, "stream").map(|(names, [.., ratio, _]): (_, [f64; 5])| (pair(names), ratio / 1e3)));
    let decode =
        worst(of(lines, "request").map(|([dialect], [_, read, _, turn, ..]): ([&str; 1], [f64; 8])| {
            (dialect.to_owned(), (read + turn) / 1e6)
        }));
    let two = |[client, upstream]: [&str; 2]| format!("{client} client of {upstream}");
    let length = worst(of(lines, "chunks").map(|(names, [.., flat]): (_, [f64; 5])| (two(names), flat / 1e3)));
    let argument = worst(of(lines, "argument").map(|(names, [.., flat]): (_, [f64; 3])| (two(names), flat / 1e3)));
    out.push_str("\n| what, worst case | measured | goal | verdict |\n|---|---|---|---|\n");
    for (what, worst, goal, unit) in [
        ("CPU of a streamed turn translated, to that passed through", stream, STREAM, "×"),
        ("reading and decoding an agent request of 320 KiB", decode, DECODE_MS, " ms"),
        ("CPU per chunk of 10 000 chunks, to that of 10", length, FLAT, "×"),
        ("CPU per fragment of an argument of 1 MiB, to that of 16 KiB", argument, FLAT, "×"),
    ] {
        let _ = match worst {
            Some((case, value)) => writeln!(
                out,
                "| {what} | {}{unit} ({case}) | ≤ {}{unit} | {} |",
                number(value),
                number(goal),
                verdict(value <= goal)
            ),
            None => writeln!(out, "| {what} | – | ≤ {}{unit} | not measured |", number(goal)),
        };
    }
}

fn streams(out: &mut String, lines: &[Line]) {
    out.push_str(
        "
CPU time of the measuring thread; each figure is the least of its runs. The cases of a row take turns, and ratios are medians
over the turns, so that both sides are from one state of the machine.

**Streams.** A whole answer, an event a chunk, through the gateway's codec: translated for the client, and passed through to a
client of the upstream's own dialect, which reads every event too. *text* is 60 pieces of text; *calls* a short text and four
tool calls at once with 14 fragments each (Gemini: whole, an event each). The validator of what we write is in both the figure
and the ratio; the last two columns tell its share, and the ratio without it. A Responses client gets its request's fields
back, here of a request with three tools.

| turn | client | upstream | translated µs | passed through µs | ratio | verdict | validator | ratio without it |
|---|---|---|---|---|---|---|---|---|
",
    );
    for ([turn, client, upstream], [translated, passed, _, ratio, bare]) in of::<3, 5>(lines, "stream") {
        let _ = writeln!(
            out,
            "| {turn} | {client} | {upstream} | {} | {} | {}× | {} | {:.0} % | {}× |",
            number(translated / 1e3),
            number(passed / 1e3),
            number(ratio / 1e3),
            verdict(ratio / 1e3 <= STREAM),
            ((ratio - bare) / ratio * 100.0).max(0.0),
            number(bare / 1e3)
        );
    }
    out.push_str(
        "
What makes the worst pairs: a Messages event is short and costs its reader next to nothing; and Gemini has a whole call in one
event, where a Responses client is told of it in four and again in the response at the end. The answer of four calls is 28
events for the 9 that came, and has the request's fields three times. Against that, the fields are put together once for an
answer, the second event's response is compared with the first one's and not read again, and an item's pieces are written from
a form; what is left is what the protocol asks for, and a third of it is the validator, without which the pair is about at 3×.
",
    );
}

fn requests(out: &mut String, lines: &[Line]) {
    out.push_str(
        "
**Requests.** An agent's request of 320 KiB: a system prompt, 40 tools with their schemas, 60 messages with 29 calls and their
results. *Read* is what every request costs, passed through or not; *edited* is the body with another model's name in it, as
passing through sends it; *decoded* is the turn, and the rest is that turn written for each upstream. µs.

| client | read | edited | decoded | read and decoded | verdict | for Chat | for Responses | for Messages | for Gemini |
|---|---|---|---|---|---|---|---|---|---|
",
    );
    for ([dialect], [_, read, edited, turn, written @ ..]) in of::<1, 8>(lines, "request") {
        let _ = write!(
            out,
            "| {dialect} | {} | {} | {} | {} | {} |",
            number(read / 1e3),
            number(edited / 1e3),
            number(turn / 1e3),
            number((read + turn) / 1e3),
            verdict((read + turn) / 1e6 <= DECODE_MS)
        );
        for (target, written) in ["chat", "responses", "messages", "gemini"].into_iter().zip(written) {
            let shown = if target == dialect { "–".to_owned() } else { number(written / 1e3) };
            let _ = write!(out, " {shown} |");
        }
        out.push('\n');
    }
}

fn chunks(out: &mut String, lines: &[Line]) {
    let _ = write!(
        out,
        "
**Length.** What each chunk of a text takes beyond an answer of two, and each 16-byte fragment of one call's argument; ns.
Chunks that say the same share a buffer, so that this does not measure the machine's memory. *Flat* is the longest to the
shortest, at most {FLAT}×. A Gemini upstream sends the argument in one event, counted here by the same 16 bytes.

| client | upstream | of 10 | 100 | 1 000 | 10 000 | flat | verdict | argument of 16 KiB | 1 MiB | flat | verdict |
|---|---|---|---|---|---|---|---|---|---|---|---|
"
    );
    for (names, [ten, hundred, thousand, most, flat]) in of::<2, 5>(lines, "chunks") {
        let [client, upstream] = names;
        let _ = write!(out, "| {client} | {upstream} |");
        for value in [ten, hundred, thousand, most] {
            let _ = write!(out, " {} |", number(value / 1e3));
        }
        let _ = write!(out, " {}× | {} |", number(flat / 1e3), verdict(flat / 1e3 <= FLAT));
        let argument = of::<2, 3>(lines, "argument").find(|(same, _)| *same == names);
        let _ = match argument {
            Some((_, [small, large, flat])) => writeln!(
                out,
                " {} | {} | {}× | {} |",
                number(small / 1e3),
                number(large / 1e3),
                number(flat / 1e3),
                verdict(flat / 1e3 <= FLAT)
            ),
            None => writeln!(out, " – | – | – | not measured |"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, names: &[&str], figures: &[u64]) -> Line {
        Line {
            kind: kind.to_owned(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
            figures: figures.to_vec(),
        }
    }

    #[test]
    fn the_verdicts_are_those_of_the_worst_cases() {
        let lines = Ok(vec![
            line("stream", &["text", "chat", "messages"], &[30_000, 15_000, 27_000, 2_000, 1_800]),
            line("stream", &["calls", "responses", "gemini"], &[31_000, 10_000, 20_000, 3_100, 2_000]),
            line("request", &["chat"], &[327_680, 400_000, 7_000, 601_000, 7_000, 1, 2, 3]),
            line("chunks", &["chat", "messages"], &[1_000, 1_000, 1_000, 1_500, 1_500]),
            line("argument", &["chat", "messages"], &[1_000, 1_600, 1_600]),
        ]);
        let text = section(&["Date: today".to_owned()], &lines);
        for said in [
            "passed through | 3.10× (calls, responses client of gemini) | ≤ 3.00× | missed |",
            "| text | chat | messages | 30.0 | 15.0 | 2.00× | met | 10 % | 1.80× |",
            "320 KiB | 1.00 ms (chat) | ≤ 1.00 ms | missed |",
            "to that of 10 | 1.50× (chat client of messages) | ≤ 1.50× | met |",
            "to that of 16 KiB | 1.60× (chat client of messages) | ≤ 1.50× | missed |",
        ] {
            assert!(text.contains(said), "{said} in {text}");
        }
        let text = section(&[], &Err(anyhow::anyhow!("it\nbroke")));
        assert!(text.contains("Not measured: it broke"), "{text}");
    }
}
