//! Compressed answers: decoded as they come, and refused when they are not what they say.

use crate::peer;
use std::io::Write;
use tokio::io::AsyncWriteExt;
use turnkeep_base::{FaultKind, Phase};

/// Compresses two events with a flush after each, as a server of a stream does; the lengths after each flush.
fn compress(coding: &str, events: &[&str]) -> (Vec<u8>, Vec<usize>) {
    let mut lengths = Vec::new();
    macro_rules! through {
        ($encoder:expr, $len:expr, $finish:expr) => {{
            let mut encoder = $encoder;
            for event in events {
                encoder.write_all(event.as_bytes()).unwrap();
                encoder.flush().unwrap();
                lengths.push($len(&encoder));
            }
            $finish(encoder)
        }};
    }
    let level = flate2::Compression::default();
    let whole: Vec<u8> = match coding {
        "gzip" => through!(
            flate2::write::GzEncoder::new(Vec::new(), level),
            |e: &flate2::write::GzEncoder<Vec<u8>>| e.get_ref().len(),
            |e: flate2::write::GzEncoder<Vec<u8>>| e.finish().unwrap()
        ),
        "deflate" => through!(
            flate2::write::ZlibEncoder::new(Vec::new(), level),
            |e: &flate2::write::ZlibEncoder<Vec<u8>>| e.get_ref().len(),
            |e: flate2::write::ZlibEncoder<Vec<u8>>| e.finish().unwrap()
        ),
        "raw" => through!(
            flate2::write::DeflateEncoder::new(Vec::new(), level),
            |e: &flate2::write::DeflateEncoder<Vec<u8>>| e.get_ref().len(),
            |e: flate2::write::DeflateEncoder<Vec<u8>>| e.finish().unwrap()
        ),
        "br" => through!(
            brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22),
            |e: &brotli::CompressorWriter<Vec<u8>>| e.get_ref().len(),
            |e: brotli::CompressorWriter<Vec<u8>>| e.into_inner()
        ),
        "zstd" => through!(
            zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap(),
            |e: &zstd::stream::write::Encoder<'_, Vec<u8>>| e.get_ref().len(),
            |e: zstd::stream::write::Encoder<'_, Vec<u8>>| e.finish().unwrap()
        ),
        other => panic!("{other}"),
    };
    (whole, lengths)
}

fn name(coding: &str) -> &str {
    if coding == "raw" { "deflate" } else { coding }
}

fn head(coding: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-encoding: {}\r\ntransfer-encoding: chunked\r\n\r\n", name(coding)).into_bytes()
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

const EVENTS: [&str; 2] = ["data: {\"first\":\"event\"}\n\n", "data: {\"second\":\"event, another text\"}\n\n"];
const CODINGS: [&str; 5] = ["gzip", "deflate", "raw", "br", "zstd"];

#[tokio::test]
async fn an_event_is_handed_up_as_soon_as_its_last_byte_is_here() {
    for coding in CODINGS {
        let (whole, lengths) = compress(coding, &EVENTS);
        let (listener, authority) = peer::listen().await;
        let endpoint = peer::plain(&authority);
        let call = peer::sending(&endpoint);
        let (mut stream, _) = listener.accept().await.unwrap();
        peer::serve(&mut stream, &head(coding)).await;
        let mut answer = call.await.unwrap().unwrap();
        assert!(!answer.headers.contains_key("content-encoding"));
        let mut sent = 0;
        for (event, length) in EVENTS.into_iter().zip(lengths) {
            // Byte by byte, each in a chunk and a packet of its own.
            for byte in &whole[sent..length] {
                stream.write_all(&chunk(&[*byte])).await.unwrap();
            }
            sent = length;
            let mut got = Vec::new();
            while got.len() < event.len() {
                got.extend_from_slice(&peer::next(&mut answer).await.unwrap().unwrap());
            }
            assert_eq!(String::from_utf8(got).unwrap(), event, "{coding}");
        }
        stream.write_all(&chunk(&whole[sent..])).await.unwrap();
        stream.write_all(b"0\r\n\r\n").await.unwrap();
        assert!(peer::rest(&mut answer).await.unwrap().is_empty(), "{coding}");
        assert_eq!(endpoint.idle_connections(), 1);
    }
}

async fn answered(coding: &str, bytes: &[u8]) -> Result<Vec<u8>, turnkeep_base::Fault> {
    let (listener, authority) = peer::listen().await;
    let answer =
        [head(coding), if bytes.is_empty() { Vec::new() } else { chunk(bytes) }, b"0\r\n\r\n".to_vec()].concat();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        peer::request(&mut stream).await;
        let _ = stream.write_all(&answer).await;
        peer::closed(&mut stream).await;
    });
    let endpoint = peer::plain(&authority);
    let got = peer::whole(&endpoint).await;
    drop(endpoint);
    server.await.unwrap();
    got
}

#[tokio::test]
async fn a_compressed_stream_without_its_end_is_truncated() {
    for coding in CODINGS {
        let (whole, _) = compress(coding, &EVENTS);
        assert_eq!(answered(coding, &whole).await.unwrap(), EVENTS.concat().as_bytes(), "{coding}");
        let fault = answered(coding, &whole[..whole.len() - 1]).await.unwrap_err();
        assert_eq!((fault.kind, fault.phase), (FaultKind::StreamTruncated, Phase::Answered), "{coding}: {fault}");
        assert!(answered(coding, &[]).await.unwrap().is_empty(), "an empty body needs no ending");
    }
}

#[tokio::test]
async fn bytes_that_are_not_what_they_say_are_malformed() {
    for coding in CODINGS {
        let fault = answered(coding, b"\xff\xff\xffthis is plain text").await.unwrap_err();
        assert_eq!((fault.kind, fault.phase), (FaultKind::MalformedResponse, Phase::Answered), "{coding}: {fault}");
    }
    let fault = answered("compress", b"x").await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::MalformedResponse);
    assert!(fault.evidence.detail.contains("compress"), "{fault}");
}
