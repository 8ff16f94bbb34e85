//! What the codecs cost, in process and on one thread: `cargo run --release --example codec_speed -p turnkeep-dialect`.
//!
//! Each figure is the least of many runs in CPU time of the thread, so that what else the machine does falls out. A line is
//! a case and its figures, all between tabs, nanoseconds unless said otherwise; `turnkeep-bench codec` reads them.

#![allow(clippy::print_stdout)] // its output is what it is for

mod requests;
mod streams;

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};
use streams::{PIECE, Says};
use turnkeep_base::Dialect;
use turnkeep_dialect::event::Event;
use turnkeep_dialect::reply::{Asked, Facts, Piece, ReplyOptions, StreamCodec, note, push_piece};
use turnkeep_dialect::request::{self, ClientRequest, InPath, Operation, StreamForm};
use turnkeep_dialect::{chat, gemini, messages, responses};
use turnkeep_wire::sse;

// As the gateway has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The median over the rounds, in thousandths.
fn median<const N: usize>(rounds: &[[u64; N]], of: impl Fn(&[u64; N]) -> Option<f64>) -> u64 {
    let mut values: Vec<f64> = rounds.iter().filter_map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).map_or(0, |middle| (middle * 1e3).round() as u64)
}

/// At least so many runs of each case.
const RUNS: u32 = 25;
/// Before the number of a Responses event.
const NUMBER: &[u8] = b"\"sequence_number\":";
/// Nanoseconds of work between two readings of the clock.
const ROW: u64 = 50_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn failed(what: impl std::fmt::Debug) -> Box<dyn std::error::Error> {
    format!("{what:?}").into()
}

/// CPU time of this thread, nanoseconds.
fn cpu() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap_or_default()
}

/// How long one case is measured.
struct Time {
    each: Duration,
    /// Only this pair, `CLIENT:UPSTREAM`.
    pair: Option<String>,
}

impl Time {
    /// The least CPU time of each piece of work, nanoseconds.
    fn least<const N: usize>(&self, work: [&mut dyn FnMut() -> Outcome<()>; N]) -> Outcome<[u64; N]> {
        self.turns(work).map(|(least, _)| least)
    }

    /// The same, and of all of them each round. They take turns, so that a round's are from one state of the machine. What
    /// is short is done several times in a row and divided, as reading the clock takes time too.
    fn turns<const N: usize>(
        &self,
        mut work: [&mut dyn FnMut() -> Outcome<()>; N],
    ) -> Outcome<([u64; N], Vec<[u64; N]>)> {
        let (mut least, mut rows, mut all) = ([u64::MAX; N], [1u64; N], Vec::new());
        let started = Instant::now();
        let mut runs = 0;
        while runs < RUNS || started.elapsed() < self.each {
            let mut round = [0; N];
            for (((work, least), row), round) in work.iter_mut().zip(&mut least).zip(&mut rows).zip(&mut round) {
                let begun = cpu();
                for _ in 0..*row {
                    work()?;
                }
                let took = (cpu() - begun) / *row;
                *round = took;
                *least = took.min(*least);
                *row = (ROW / took.max(1)).clamp(1, 1_000);
            }
            all.push(round);
            runs += 1;
        }
        Ok((least, all))
    }
}

fn options(client: Dialect, upstream: Dialect) -> ReplyOptions {
    let body = match client {
        Dialect::Responses => streams::body().to_string().into(),
        Dialect::Chat | Dialect::Messages | Dialect::Gemini => Bytes::new(),
    };
    ReplyOptions {
        client,
        upstream,
        model: "m".into(),
        usage_wanted: true,
        choices: 1,
        id: "01jdrw6kt2v5n8q3x7z9y4m1cb".into(),
        created: 1_796_073_800,
        max_event: 16 << 20,
        asked: Asked { body, ..Asked::default() },
    }
}

/// The whole answer through its codec, a chunk at a time, as the gateway feeds it; each chunk's pieces are let go.
fn through(options: &ReplyOptions, chunks: &[Bytes], out: &mut Vec<Piece>) -> Outcome<()> {
    let mut codec = StreamCodec::new(options);
    for chunk in chunks {
        codec.feed(chunk.clone(), out).map_err(failed)?;
        black_box(&out);
        out.clear();
    }
    codec.finish(out).map_err(failed)?;
    black_box(&out);
    out.clear();
    Ok(())
}

enum Decoder {
    Chat(chat::reply_decode::StreamDecoder),
    Responses(responses::reply_decode::StreamDecoder),
    Messages(messages::reply_decode::StreamDecoder),
    Gemini(gemini::reply_decode::StreamDecoder),
}

impl Decoder {
    fn new(options: &ReplyOptions) -> Self {
        match options.upstream {
            Dialect::Chat => Decoder::Chat(chat::reply_decode::StreamDecoder::new(options)),
            Dialect::Responses => Decoder::Responses(responses::reply_decode::StreamDecoder::new(options)),
            Dialect::Messages => Decoder::Messages(messages::reply_decode::StreamDecoder::new(options)),
            Dialect::Gemini => Decoder::Gemini(gemini::reply_decode::StreamDecoder::new(options)),
        }
    }

    fn frame(&mut self, frame: &sse::Frame, events: &mut Vec<Event>) -> Outcome<()> {
        let progress = match self {
            Decoder::Chat(decoder) => decoder.frame(frame, events),
            Decoder::Responses(decoder) => decoder.frame(frame, events),
            Decoder::Messages(decoder) => decoder.frame(frame, events),
            Decoder::Gemini(decoder) => decoder.frame(frame, events),
        };
        progress.map(drop).map_err(failed)
    }

    fn settle(&mut self, events: &mut Vec<Event>) {
        match self {
            Decoder::Chat(decoder) => decoder.settle(events),
            Decoder::Gemini(decoder) => decoder.settle(events),
            Decoder::Responses(_) | Decoder::Messages(_) => {}
        }
    }
}

enum Encoder {
    Chat(chat::reply_encode::StreamEncoder),
    Responses(responses::reply_encode::StreamEncoder),
    Messages(messages::reply_encode::StreamEncoder),
    Gemini(gemini::reply_encode::StreamEncoder),
}

impl Encoder {
    fn new(options: &ReplyOptions) -> Self {
        match options.client {
            Dialect::Chat => Encoder::Chat(chat::reply_encode::StreamEncoder::new(options)),
            Dialect::Responses => Encoder::Responses(responses::reply_encode::StreamEncoder::new(options)),
            Dialect::Messages => Encoder::Messages(messages::reply_encode::StreamEncoder::new(options)),
            Dialect::Gemini => Encoder::Gemini(gemini::reply_encode::StreamEncoder::new(options)),
        }
    }

    fn events(&mut self, events: &mut Vec<Event>, facts: &mut Facts, out: &mut Vec<Piece>) {
        for event in events.drain(..) {
            note(&event, facts);
            let mut bytes = Vec::new();
            let class = match self {
                Encoder::Chat(encoder) => encoder.event(&event, &mut bytes),
                Encoder::Responses(encoder) => encoder.event(&event, &mut bytes),
                Encoder::Messages(encoder) => encoder.event(&event, &mut bytes),
                Encoder::Gemini(encoder) => encoder.event(&event, &mut bytes),
            };
            push_piece(out, class, bytes.into());
        }
    }
}

/// The same without the validator: what is left of [`through`] is its share.
fn unwatched(options: &ReplyOptions, chunks: &[Bytes], out: &mut Vec<Piece>) -> Outcome<()> {
    let mut reader = sse::Reader::new(options.max_event);
    let (mut decoder, mut encoder) = (Decoder::new(options), Encoder::new(options));
    let (mut events, mut facts) = (Vec::new(), Facts::default());
    for chunk in chunks {
        reader.push(chunk.clone());
        while let Some(frame) = reader.next_frame()? {
            decoder.frame(&frame, &mut events)?;
            encoder.events(&mut events, &mut facts, out);
        }
        black_box(&out);
        out.clear();
    }
    decoder.settle(&mut events);
    encoder.events(&mut events, &mut facts, out);
    black_box((&out, &facts));
    out.clear();
    Ok(())
}

/// The dialects with themselves, then every pair of two.
fn pairs(time: &Time) -> impl Iterator<Item = (Dialect, Dialect)> {
    let with = |client| Dialect::ALL.into_iter().map(move |upstream| (client, upstream));
    let all = Dialect::ALL.into_iter().flat_map(with);
    let (same, across): (Vec<_>, Vec<_>) = all.partition(|(client, upstream)| client == upstream);
    let wanted = |(client, upstream): &(Dialect, Dialect)| {
        time.pair.as_ref().is_none_or(|pair| *pair == format!("{client}:{upstream}"))
    };
    same.into_iter().chain(across).filter(wanted)
}

/// `stream TURN CLIENT UPSTREAM`: translated, passed through, translated and not watched; and the first over the second and
/// the third over the second, medians of the rounds' ratios in thousandths.
fn turns(time: &Time) -> Outcome<()> {
    for (name, says) in [("text", Says::Text(60)), ("calls", Says::Calls { calls: 4, pieces: 14 })] {
        for (client, upstream) in pairs(time).filter(|(client, upstream)| client != upstream) {
            let chunks = streams::stream(upstream, says);
            let (across, within) = (options(client, upstream), options(upstream, upstream));
            let [mut one, mut two, mut three] = [const { Vec::new() }; 3];
            let (least, rounds) = time.turns([
                &mut || through(&across, &chunks, &mut one),
                &mut || through(&within, &chunks, &mut two),
                &mut || unwatched(&across, &chunks, &mut three),
            ])?;
            let [translated, passed, bare] = least;
            let ratio = median(&rounds, |[one, two, _]| Some(*one as f64 / *two as f64));
            let alone = median(&rounds, |[_, two, three]| Some(*three as f64 / *two as f64));
            println!("stream\t{name}\t{client}\t{upstream}\t{translated}\t{passed}\t{bare}\t{ratio}\t{alone}");
        }
    }
    Ok(())
}

/// One buffer for all chunks that say the same, but for their number, so that a long answer does not measure how fast the
/// machine's memory is: in the gateway a chunk has just been read from a socket.
fn shared(chunks: Vec<Bytes>) -> Vec<Bytes> {
    let mut known: HashMap<Vec<u8>, Bytes> = HashMap::new();
    let unnumbered = |chunk: &Bytes| match memchr::memmem::find(chunk, NUMBER) {
        Some(at) => {
            let (before, after) = chunk.split_at(at + NUMBER.len());
            let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
            [before, after.get(digits..).unwrap_or_default()].concat()
        }
        None => chunk.to_vec(),
    };
    chunks.into_iter().map(|chunk| known.entry(unnumbered(&chunk)).or_insert(chunk).clone()).collect()
}

/// What each of so many chunks takes beyond an answer of `few`, picoseconds; and the last over the first, in thousandths.
fn each<const N: usize>(
    time: &Time,
    (client, upstream): (Dialect, Dialect),
    (few, says): (usize, Says),
    answers: [(usize, Says); N],
) -> Outcome<String> {
    let options = options(client, upstream);
    let base = shared(streams::stream(upstream, says));
    let (mut out, mut more, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for (count, says) in answers {
        let chunks = shared(streams::stream(upstream, says));
        let [base, all] =
            time.least([&mut || through(&options, &base, &mut out), &mut || through(&options, &chunks, &mut more)])?;
        costs.push(all.saturating_sub(base) * 1_000 / count.saturating_sub(few).max(1) as u64);
    }
    let flat = match costs.as_slice() {
        [first, .., last] => last * 1_000 / (*first).max(1),
        [_] | [] => 1_000,
    };
    costs.push(flat);
    Ok(costs.into_iter().map(|cost| format!("\t{cost}")).collect())
}

/// `chunks CLIENT UPSTREAM`: of each chunk of a text of 10, 100, 1 000 and 10 000, and the last over the first.
fn lengths(time: &Time) -> Outcome<()> {
    for (client, upstream) in pairs(time) {
        let answers = [10usize, 100, 1_000, 10_000].map(|count| (count, Says::Text(count)));
        let line = each(time, (client, upstream), (2, Says::Text(2)), answers)?;
        println!("chunks\t{client}\t{upstream}{line}");
    }
    Ok(())
}

/// `argument CLIENT UPSTREAM`: of each fragment of one call's argument of 16 KiB and of 1 MiB, and the last over the first.
fn arguments(time: &Time) -> Outcome<()> {
    for (client, upstream) in pairs(time) {
        let answers =
            [16usize << 10, 1 << 20].map(|bytes| (bytes / PIECE, Says::Calls { calls: 1, pieces: bytes / PIECE }));
        let line = each(time, (client, upstream), (0, Says::Text(4)), answers)?;
        println!("argument\t{client}\t{upstream}{line}");
    }
    Ok(())
}

fn read(dialect: Dialect, body: &Bytes) -> Outcome<ClientRequest> {
    let read = match dialect {
        Dialect::Gemini => {
            let path = InPath { model: "m".into(), stream: true, form: StreamForm::Events };
            request::read_in_path(Operation::Generate, path, body.clone())
        }
        Dialect::Chat | Dialect::Responses | Dialect::Messages => {
            request::read(dialect, Operation::Generate, body.clone())
        }
    };
    read.map_err(failed)
}

/// `request DIALECT BYTES`: read, as every request is; passed through after it; its turn; written for Chat, Responses,
/// Messages and Gemini, where its own is passing it through again.
fn agents(time: &Time) -> Outcome<()> {
    for dialect in Dialect::ALL {
        let body: Bytes = requests::body(dialect).into();
        let request = read(dialect, &body)?;
        let turn = request.turn().map_err(failed)?;
        let [reading, passing, decoding] = time.least([
            &mut || read(dialect, &body).map(|read| drop(black_box(read))),
            &mut || {
                black_box(request.pass_through("upstream-model"));
                Ok(())
            },
            &mut || request.turn().map(|turn| drop(black_box(turn))).map_err(failed),
        ])?;
        let mut line = format!("request\t{dialect}\t{}\t{reading}\t{passing}\t{decoding}", body.len());
        for target in Dialect::ALL {
            let mut write = || {
                if target == dialect {
                    black_box(request.pass_through("upstream-model"));
                    return Ok(());
                }
                request::encode(target, &turn, "upstream-model").map(|out| drop(black_box(out))).map_err(failed)
            };
            let [took] = time.least([&mut write])?;
            line += &format!("\t{took}");
        }
        println!("{line}");
    }
    Ok(())
}

fn main() -> Outcome<()> {
    // Milliseconds for each case; and a part, and a pair, alone, for whoever looks into it.
    let mut given = std::env::args().skip(1);
    let each = given.next().and_then(|text| text.parse().ok()).unwrap_or(200);
    let part = given.next();
    let time = Time { each: Duration::from_millis(each), pair: given.next() };
    let wants = |name: &str| part.as_deref().is_none_or(|part| part == name);
    if wants("stream") {
        turns(&time)?;
    }
    if wants("request") {
        agents(&time)?;
    }
    if wants("chunks") {
        lengths(&time)?;
    }
    if wants("argument") {
        arguments(&time)?;
    }
    Ok(())
}
