//! Raw errors of sockets, TLS, HTTP and resolvers become faults here and nowhere else in this crate.
//!
//! What is in no table is `unclassified`, which charges nobody. The rows go by type and by `io::ErrorKind`; only HTTP/2
//! errors are told apart by their text, because the HTTP library hands them on without a type of its own.

use crate::line::LineState;
use std::error::Error;
use std::fmt::Write as _;
use std::io;
use turnkeep_base::limit::EVIDENCE_BYTES;
use turnkeep_base::{Clock, ClockKind, Evidence, Fault, FaultKind, Phase};

/// Errors of a socket that is connecting.
const CONNECTING: &[(io::ErrorKind, FaultKind)] = &[
    (io::ErrorKind::ConnectionRefused, FaultKind::ConnectRefused),
    (io::ErrorKind::TimedOut, FaultKind::ConnectTimeout),
    (io::ErrorKind::HostUnreachable, FaultKind::Unreachable),
    (io::ErrorKind::NetworkUnreachable, FaultKind::Unreachable),
    (io::ErrorKind::NetworkDown, FaultKind::Unreachable),
    (io::ErrorKind::AddrNotAvailable, FaultKind::Unreachable),
    // A firewall's local refusal.
    (io::ErrorKind::PermissionDenied, FaultKind::Unreachable),
];

/// Errors of a connection that stood.
const CONNECTED: &[(io::ErrorKind, FaultKind)] = &[
    (io::ErrorKind::ConnectionReset, FaultKind::ConnectionReset),
    (io::ErrorKind::ConnectionAborted, FaultKind::ConnectionReset),
    (io::ErrorKind::BrokenPipe, FaultKind::ConnectionReset),
    (io::ErrorKind::NotConnected, FaultKind::ConnectionReset),
    (io::ErrorKind::WriteZero, FaultKind::ConnectionReset),
    (io::ErrorKind::UnexpectedEof, FaultKind::ConnectionReset),
    // The kernel gave up: keepalive or retransmission ran out on a peer that vanished.
    (io::ErrorKind::TimedOut, FaultKind::ConnectionReset),
    (io::ErrorKind::HostUnreachable, FaultKind::ConnectionReset),
    (io::ErrorKind::NetworkUnreachable, FaultKind::ConnectionReset),
    (io::ErrorKind::NetworkDown, FaultKind::ConnectionReset),
    // The HTTP library's kinds for a bad chunk, trailer or frame.
    (io::ErrorKind::InvalidInput, FaultKind::HttpProtocolError),
    (io::ErrorKind::InvalidData, FaultKind::HttpProtocolError),
    (io::ErrorKind::OutOfMemory, FaultKind::GatewayExhausted),
];

/// ENOMEM, ENFILE, EMFILE, ENOBUFS: the same numbers on Linux; ENOBUFS differs elsewhere and is then unclassified.
const OURS: &[i32] = &[12, 23, 24, 105];

/// HTTP/2 errors by how their text begins; the first that fits. `true`: certainly not processed.
const HTTP2: &[(&str, FaultKind, bool)] = &[
    ("stream error received: refused stream before", FaultKind::ConnectionReset, true),
    // A stream is told of a GOAWAY only if it is above the last one that the peer will process.
    ("connection error received: not a result", FaultKind::ConnectionReset, true),
    ("connection error received: detected excessive load", FaultKind::ConnectionReset, true),
    ("connection error received: ", FaultKind::HttpProtocolError, true),
    ("stream error received: not a result", FaultKind::ConnectionReset, false),
    ("stream error received: unexpected internal", FaultKind::ConnectionReset, false),
    ("stream error received: stream no longer needed", FaultKind::ConnectionReset, false),
    ("stream error received: detected excessive load", FaultKind::ConnectionReset, false),
    ("stream error received: ", FaultKind::HttpProtocolError, false),
    ("stream error detected: ", FaultKind::HttpProtocolError, false),
    ("connection error detected: ", FaultKind::HttpProtocolError, false),
    ("protocol error: ", FaultKind::HttpProtocolError, false),
];

/// The error and its causes in one line, at most [`EVIDENCE_BYTES`] and a little.
pub(crate) fn describe(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if text.len() < EVIDENCE_BYTES && !text.contains(&cause_text) {
            let _ = write!(text, ": {cause_text}");
        }
        next = cause.source();
    }
    text
}

fn lookup(table: &[(io::ErrorKind, FaultKind)], kind: io::ErrorKind) -> Option<FaultKind> {
    table.iter().find(|(known, _)| *known == kind).map(|(_, fault)| *fault)
}

fn io_kind(error: &io::Error, table: &[(io::ErrorKind, FaultKind)]) -> Option<FaultKind> {
    if error.raw_os_error().is_some_and(|code| OURS.contains(&code)) {
        return Some(FaultKind::GatewayExhausted);
    }
    // Errors travel inside of an io::Error by way of the streams that TLS and HTTP are built on.
    let inner = error.get_ref().and_then(|inner| typed(inner, table));
    inner.or_else(|| lookup(table, error.kind()))
}

/// The kind that an error's type tells, from the innermost cause that tells one.
fn typed(error: &(dyn Error + 'static), table: &[(io::ErrorKind, FaultKind)]) -> Option<FaultKind> {
    if let Some(kind) = error.source().and_then(|cause| typed(cause, table)) {
        return Some(kind);
    }
    if error.is::<rustls::Error>() {
        return Some(FaultKind::TlsFailure);
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return io_kind(error, table);
    }
    let error = error.downcast_ref::<hyper::Error>()?;
    if error.is_parse() {
        return Some(FaultKind::HttpProtocolError);
    }
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() || error.is_shutdown() {
        return Some(FaultKind::ConnectionReset);
    }
    None
}

fn http2(error: &(dyn Error + 'static)) -> Option<(FaultKind, bool)> {
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if let Some((_, kind, unprocessed)) = HTTP2.iter().find(|(start, _, _)| text.starts_with(start)) {
            return Some((*kind, *unprocessed));
        }
        next = cause.source();
    }
    None
}

/// The kind of an error on a connection that stood.
pub(crate) fn wire(error: &io::Error) -> FaultKind {
    io_kind(error, CONNECTED).unwrap_or(FaultKind::Unclassified)
}

/// Resolving a name failed. Nothing was sent.
pub(crate) fn resolving(error: &io::Error, host: &str) -> Fault {
    let ours = error.raw_os_error().is_some_and(|code| OURS.contains(&code));
    let kind = if ours { FaultKind::GatewayExhausted } else { FaultKind::DnsFailure };
    unsent(kind, format!("resolving {host}: {}", describe(error)))
}

/// Opening a socket failed. Nothing was sent.
pub(crate) fn connecting(error: &io::Error, to: &str) -> Fault {
    let kind = io_kind(error, CONNECTING).or_else(|| io_kind(error, CONNECTED)).unwrap_or(FaultKind::Unclassified);
    unsent(kind, format!("connecting to {to}: {}", describe(error)))
}

/// A handshake (of TLS, of a proxy) failed. Nothing of the request was sent.
pub(crate) fn shaking_hands(error: &io::Error, what: &str) -> Fault {
    unsent(wire(error), format!("{what}: {}", describe(error)))
}

/// An HTTP connection could not be set up. Nothing of the request was sent.
pub(crate) fn opening(error: &hyper::Error, line: &LineState) -> Fault {
    let (kind, _) = http(error, line);
    unsent(kind, describe(error))
}

/// An exchange failed before its answer's head was read. `unsent`: the request came back whole.
pub(crate) fn sending(error: &hyper::Error, returned: bool, line: &LineState) -> Fault {
    let (kind, unprocessed) = http(error, line);
    let phase = if returned || unprocessed { Phase::Unsent } else { Phase::MaybeSent };
    Fault::new(kind, phase, evidence(error, line))
}

/// An answer's body broke off.
pub(crate) fn reading(error: &hyper::Error, line: &LineState) -> Fault {
    let (kind, _) = http(error, line);
    let ended = line.broke().is_some_and(|(_, text)| text == describe(&io::Error::from(io::ErrorKind::UnexpectedEof)));
    let kind = match (kind, error.is_incomplete_message() || ended || eof(error)) {
        (FaultKind::ConnectionReset, true) => FaultKind::StreamTruncated,
        (kind, _) => kind,
    };
    Fault::new(kind, Phase::Answered, evidence(error, line))
}

fn eof(error: &hyper::Error) -> bool {
    let mut next = error.source();
    while let Some(cause) = next {
        if cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
            return true;
        }
        next = cause.source();
    }
    false
}

fn http(error: &hyper::Error, line: &LineState) -> (FaultKind, bool) {
    if let Some(known) = http2(error) {
        return known;
    }
    let seen = line.broke().map(|(kind, _)| kind);
    match typed(error, CONNECTED) {
        // "Canceled" and the like say only that the connection ended: the wire knows why.
        Some(FaultKind::ConnectionReset) => (seen.unwrap_or(FaultKind::ConnectionReset), false),
        Some(kind) => (kind, false),
        None => (seen.unwrap_or(FaultKind::Unclassified), false),
    }
}

fn evidence(error: &hyper::Error, line: &LineState) -> Evidence {
    let mut text = describe(error);
    if let Some((_, broke)) = line.broke()
        && !text.contains(broke)
    {
        let _ = write!(text, " ({broke})");
    }
    Evidence::text(text)
}

/// A fault before anything was sent.
pub(crate) fn unsent(kind: FaultKind, detail: impl Into<String>) -> Fault {
    Fault::new(kind, Phase::Unsent, Evidence::text(detail))
}

/// The connect clock fired.
pub(crate) fn connect_clock(to: &str, stage: &str) -> Fault {
    let mut fault = Fault::clock(
        FaultKind::ConnectTimeout,
        Phase::Unsent,
        Clock { kind: ClockKind::Connect, set_by_caller: false },
    );
    fault.evidence = Evidence::text(format!("the connect clock fired: {stage} {to}"));
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_out_of_files_or_memory_is_the_gateways_own_fault_in_every_stage() {
        for code in OURS {
            let error = io::Error::from_raw_os_error(*code);
            assert_eq!(connecting(&error, "a").kind, FaultKind::GatewayExhausted);
            assert_eq!(resolving(&error, "a").kind, FaultKind::GatewayExhausted);
            assert_eq!(wire(&error), FaultKind::GatewayExhausted);
        }
    }

    #[test]
    fn a_tls_error_is_found_inside_of_a_sockets_error() {
        let error = io::Error::new(io::ErrorKind::InvalidData, rustls::Error::HandshakeNotComplete);
        assert_eq!(wire(&error), FaultKind::TlsFailure);
        let error = io::Error::other(error);
        assert_eq!(shaking_hands(&error, "tls").kind, FaultKind::TlsFailure);
    }

    #[test]
    fn an_error_that_nobody_thought_of_is_unclassified_and_keeps_its_text() {
        let fault = connecting(&io::Error::other("a fish ate the cable"), "a:1");
        assert_eq!((fault.kind, fault.phase), (FaultKind::Unclassified, Phase::Unsent));
        assert!(fault.evidence.detail.contains("a fish ate the cable"));
    }

    #[test]
    fn the_sockets_own_errors_have_their_rows() {
        let rows = [
            (io::ErrorKind::ConnectionRefused, FaultKind::ConnectRefused),
            (io::ErrorKind::NetworkUnreachable, FaultKind::Unreachable),
            (io::ErrorKind::ConnectionReset, FaultKind::ConnectionReset),
            (io::ErrorKind::TimedOut, FaultKind::ConnectTimeout),
        ];
        for (raw, kind) in rows {
            assert_eq!(connecting(&raw.into(), "a").kind, kind);
        }
        assert_eq!(wire(&io::ErrorKind::TimedOut.into()), FaultKind::ConnectionReset);
    }
}
