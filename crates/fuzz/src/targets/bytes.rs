//! Framers and codings: bytes whose meaning may not hang on how they were cut.

use crate::chance::Chance;
use crate::cuts;
use bytes::Bytes;
use turnkeep_upstream::fuzzed;
use turnkeep_wire::{envelope as wire, sse as events};

/// Bytes of an event, and of an envelope's payload, that the readers take here: little, so that it is met.
const LIMIT: usize = 300;

/// Server-sent events.
pub fn sse(data: &[u8]) {
    let ways = cuts::ways(data);
    let whole = frames(&ways[0]);
    for way in &ways[1..] {
        let (mut cut, mut one) = (frames(way), whole.clone());
        // A line feed behind a carriage return that ends a frame may come late; it belongs to the frame all the same.
        same_frames(&mut one, &mut cut);
    }
    let (read, error) = &whole;
    let raw: Vec<u8> = read.iter().flat_map(|frame| frame.raw.to_vec()).collect();
    assert!(data.starts_with(&raw), "the raw frames are not the stream");
    match error {
        None => assert_eq!(raw.len(), data.len(), "bytes of the stream are in no frame"),
        Some(events::TooLong { limit, offset }) => {
            assert_eq!((*limit, usize::try_from(*offset)), (LIMIT, Ok(raw.len())), "the place of the long event");
            assert!(data.len() - raw.len() > LIMIT, "an event within the limit was refused");
        }
    }
    for frame in read {
        assert!(frame.raw.len() <= LIMIT);
        let fields = frame.data.as_ref().map_or(0, Bytes::len) + frame.event.as_ref().map_or(0, Bytes::len);
        assert!(fields <= frame.raw.len(), "more in the fields than in the frame");
        assert_eq!(
            (oracle(&frame.raw, raw_is_first(read, frame)), &frame.event),
            (frame.data.as_deref().map(<[u8]>::to_vec), &frame.event)
        );
    }
    written_again(read);
}

type Frames = (Vec<events::Frame>, Option<events::TooLong>);

fn frames(pieces: &[&[u8]]) -> Frames {
    let mut reader = events::Reader::new(LIMIT);
    let mut read = Vec::new();
    for piece in pieces {
        reader.push(Bytes::copy_from_slice(piece));
        loop {
            match reader.next_frame() {
                Ok(Some(frame)) => read.push(frame),
                Ok(None) => break,
                Err(long) => return (read, Some(long)),
            }
        }
        assert!(reader.pending() <= LIMIT, "more is held than the limit");
    }
    loop {
        match reader.finish() {
            Ok(Some(frame)) => read.push(frame),
            Ok(None) => return (read, None),
            Err(long) => return (read, Some(long)),
        }
    }
}

fn same_frames(one: &mut Frames, other: &mut Frames) {
    assert_eq!(one.1, other.1, "another end in other pieces");
    assert_eq!(one.0, other.0, "other frames in other pieces");
}

fn raw_is_first(read: &[events::Frame], frame: &events::Frame) -> bool {
    read.first().is_some_and(|first| std::ptr::eq(first, frame))
}

/// The data of a frame by the specification's own words: lines, then fields, line by line.
fn oracle(raw: &[u8], first: bool) -> Option<Vec<u8>> {
    let raw = if first { raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw) } else { raw };
    let (mut lines, mut line, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(&byte) = raw.get(at) {
        at += 1;
        match byte {
            b'\n' => lines.push(std::mem::take(&mut line)),
            b'\r' => {
                at += usize::from(raw.get(at) == Some(&b'\n'));
                lines.push(std::mem::take(&mut line));
            }
            other => line.push(other),
        }
    }
    lines.push(line);
    let datas: Vec<Vec<u8>> = lines
        .iter()
        .filter_map(|line| match line.iter().position(|byte| *byte == b':') {
            Some(colon) if &line[..colon] == b"data" => {
                let value = &line[colon + 1..];
                Some(value.strip_prefix(b" ").unwrap_or(value).to_vec())
            }
            None if line == b"data" => Some(Vec::new()),
            Some(_) | None => None,
        })
        .collect();
    (!datas.is_empty()).then(|| datas.join(&b'\n'))
}

/// An event whose data has no line break reads back as it is written.
fn written_again(read: &[events::Frame]) {
    for frame in read {
        let Some(data) = frame.data.as_ref().filter(|data| !data.contains(&b'\n')) else { continue };
        let name = frame.event.as_ref().and_then(|event| std::str::from_utf8(event).ok());
        let mut out = Vec::new();
        events::write(&mut out, name, data);
        let mut reader = events::Reader::new(usize::MAX);
        reader.push(out.into());
        let again = reader.next_frame();
        let again = again.ok().flatten().map(|again| (again.event, again.data));
        assert_eq!(again, Some((name.map(|name| Bytes::copy_from_slice(name.as_bytes())), frame.data.clone())));
    }
}

/// Envelopes of both protocols.
pub fn envelope(data: &[u8]) {
    for known in [wire::Known::Connect, wire::Known::Grpc] {
        let ways = cuts::ways(data);
        let whole = envelopes(known, &ways[0]);
        for way in &ways[1..] {
            assert_eq!(envelopes(known, way), whole, "other envelopes in other pieces");
        }
        let (read, end) = whole;
        let mut written = Vec::new();
        for wire::Envelope { flags, payload } in &read {
            assert!(payload.len() <= LIMIT, "a payload over the limit");
            let one = wire::write(*flags, payload, LIMIT);
            written.extend_from_slice(&one.unwrap_or_default());
        }
        assert!(data.starts_with(&written), "what was read, written again, is not the stream");
        let rest = &data[written.len()..];
        match end {
            Ok(()) => assert!(rest.is_empty(), "bytes after a clean end"),
            Err(wire::Broken::Cut { missing, offset }) => {
                assert!(missing > 0 && !rest.is_empty());
                assert_eq!(usize::try_from(offset), Ok(written.len()));
            }
            Err(wire::Broken::TooLong { length, limit, offset }) => {
                assert!(usize::try_from(length).is_ok_and(|length| length > limit) && limit == LIMIT);
                assert_eq!(usize::try_from(offset), Ok(written.len()));
            }
            Err(wire::Broken::Flags { flags, offset }) => {
                assert_eq!(rest.first(), Some(&flags));
                assert_eq!(usize::try_from(offset), Ok(written.len()));
            }
        }
    }
}

fn envelopes(known: wire::Known, pieces: &[&[u8]]) -> (Vec<wire::Envelope>, Result<(), wire::Broken>) {
    let mut reader = wire::Reader::new(known, LIMIT);
    let mut read = Vec::new();
    for piece in pieces {
        reader.push(Bytes::copy_from_slice(piece));
        loop {
            match reader.next_envelope() {
                Ok(Some(envelope)) => read.push(envelope),
                Ok(None) => break,
                Err(broken) => return (read, Err(broken)),
            }
        }
        assert!(reader.pending() < wire::HEAD + LIMIT, "more is held than the limit");
    }
    let end = reader.finish();
    (read, end)
}

/// Compressed bodies: as they come, and compressed here by other code.
pub fn inflate(data: &[u8]) {
    for coding in fuzzed::CODINGS {
        let ways = cuts::ways(data);
        let whole = fuzzed::inflate(coding, &ways[0]);
        for way in &ways[1..] {
            same(coding, &whole, &fuzzed::inflate(coding, way));
        }
    }
    let mut chance = Chance::over("inflate", data);
    for coding in fuzzed::CODINGS {
        let packed = packed(coding, data);
        assert_eq!(
            fuzzed::inflate(coding, &cuts::drawn(&packed)).as_deref(),
            Ok(data),
            "{coding}: not what was packed"
        );
        let at = chance.below(packed.len());
        if at > 0 {
            assert!(fuzzed::inflate(coding, &[&packed[..at]]).is_err(), "{coding}: cut at {at}, it ends well");
        }
    }
}

/// Compressed by the codings' own libraries; nothing where that fails.
fn packed(coding: &str, data: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let level = flate2::Compression::fast();
    match coding {
        "gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(data).and_then(|()| encoder.finish()).unwrap_or_default()
        }
        "deflate" => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(data).and_then(|()| encoder.finish()).unwrap_or_default()
        }
        "br" => {
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4 << 10, 1, 16);
            encoder.write_all(data).map(|()| encoder.into_inner()).unwrap_or_default()
        }
        _ => zstd::encode_all(data, 1).unwrap_or_default(),
    }
}

fn same(coding: &str, one: &Result<Vec<u8>, String>, other: &Result<Vec<u8>, String>) {
    match (one, other) {
        (Ok(one), Ok(other)) => assert_eq!(one, other, "{coding}: other bytes in other pieces"),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(why)) | (Err(why), Ok(_)) => assert!(why.is_empty(), "{coding}: whole or not by the pieces: {why}"),
    }
}
