//! Raw errors of sockets, TLS, HTTP and resolvers become faults here and nowhere else in this crate.
//!
//! The rows are in `error_tables`; what is in none of them is `unclassified`, which charges nobody, and keeps its text.

use crate::error_tables::{BY_NUMBER, BY_TEXT, CONNECTED, CONNECTING, OURS, RESOLVER_OURS, Reach};
use crate::line::LineState;
use std::error::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use turnkeep_base::limit::EVIDENCE_BYTES;
use turnkeep_base::{Clock, ClockKind, Evidence, Fault, FaultKind, Phase};

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

/// What a socket was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Connected,
}

fn lookup(stage: Stage, kind: io::ErrorKind) -> Option<FaultKind> {
    let find = |table: &[(io::ErrorKind, FaultKind)]| table.iter().find(|(known, _)| *known == kind).map(|row| row.1);
    match stage {
        Stage::Connecting => find(CONNECTING).or_else(|| find(CONNECTED)),
        Stage::Connected => find(CONNECTED),
    }
}

fn io_kind(error: &io::Error, stage: Stage) -> Option<FaultKind> {
    if let Some(number) = error.raw_os_error() {
        if OURS.contains(&number) {
            return Some(FaultKind::GatewayExhausted);
        }
        if let Some((_, connecting, connected)) = BY_NUMBER.iter().find(|(known, _, _)| *known == number) {
            return Some(if stage == Stage::Connecting { *connecting } else { *connected });
        }
    }
    // Errors travel inside of an io::Error by way of the streams that TLS and HTTP are built on.
    let inner = error.get_ref().and_then(|inner| typed(inner, stage));
    inner.or_else(|| lookup(stage, error.kind()))
}

/// The kind that an error's type tells, from the innermost cause that tells one.
fn typed(error: &(dyn Error + 'static), stage: Stage) -> Option<FaultKind> {
    if let Some(kind) = error.source().and_then(|cause| typed(cause, stage)) {
        return Some(kind);
    }
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(tls(error));
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return io_kind(error, stage);
    }
    let error = error.downcast_ref::<hyper::Error>()?;
    if error.is_parse() {
        return Some(FaultKind::HttpProtocolError);
    }
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() || error.is_shutdown() {
        return Some(FaultKind::ConnectionReset);
    }
    // The library's own clock: pings that nobody answered.
    if error.is_timeout() {
        return Some(FaultKind::ConnectionReset);
    }
    // A call that the library says must not be made, or its task that is gone.
    error.is_user().then_some(FaultKind::GatewayBug)
}

/// Whatever TLS has to complain of is TLS; but without a clock or random numbers it is this machine that fails.
fn tls(error: &rustls::Error) -> FaultKind {
    let ours = matches!(error, rustls::Error::FailedToGetCurrentTime | rustls::Error::FailedToGetRandomBytes);
    if ours { FaultKind::GatewayExhausted } else { FaultKind::TlsFailure }
}

fn by_text(error: &(dyn Error + 'static)) -> Option<(FaultKind, Reach)> {
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if let Some((_, kind, reach)) = BY_TEXT.iter().find(|(start, _, _)| text.starts_with(start)) {
            return Some((*kind, *reach));
        }
        next = cause.source();
    }
    None
}

/// The kind of an error on a connection that stood.
pub(crate) fn wire(error: &io::Error) -> FaultKind {
    io_kind(error, Stage::Connected).unwrap_or(FaultKind::Unclassified)
}

/// Resolving a name failed. Nothing was sent.
pub(crate) fn resolving(error: &io::Error, host: &str) -> Fault {
    let text = describe(error);
    let told = error.raw_os_error().is_some_and(|code| OURS.contains(&code)) || text.contains(RESOLVER_OURS);
    let kind = if told || out_of_files() { FaultKind::GatewayExhausted } else { FaultKind::DnsFailure };
    unsent(kind, format!("resolving {host}: {text}"))
}

/// Whether no file can be opened: the resolver, which needs some, then answers as if the name did not exist.
fn out_of_files() -> bool {
    File::open("/dev/null").is_err_and(|error| error.raw_os_error().is_some_and(|code| OURS.contains(&code)))
}

/// Opening a socket failed. Nothing was sent.
pub(crate) fn connecting(error: &io::Error, to: &str) -> Fault {
    let kind = io_kind(error, Stage::Connecting).unwrap_or(FaultKind::Unclassified);
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

/// An exchange failed before its answer's head was read. `returned`: the request came back whole. With the fault comes
/// how far the failure reaches.
pub(crate) fn sending(error: &hyper::Error, returned: bool, line: &LineState) -> (Fault, Reach) {
    let (kind, reach) = http(error, line);
    let reach = if returned { Reach::Unprocessed } else { reach };
    let phase = if reach == Reach::Unprocessed { Phase::Unsent } else { Phase::MaybeSent };
    (Fault::new(kind, phase, evidence(error, line)), reach)
}

/// An answer's body broke off.
pub(crate) fn reading(error: &hyper::Error, line: &LineState) -> Fault {
    let (kind, reach) = http(error, line);
    let ended = line.broke().is_some_and(|(_, text)| text == describe(&io::Error::from(io::ErrorKind::UnexpectedEof)));
    let ended = reach == Reach::Connection && (error.is_incomplete_message() || ended || eof(error));
    let kind = if ended && kind == FaultKind::ConnectionReset { FaultKind::StreamTruncated } else { kind };
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

fn http(error: &hyper::Error, line: &LineState) -> (FaultKind, Reach) {
    let seen = line.broke().map(|(kind, _)| kind);
    if let Some((kind, reach)) = by_text(error) {
        let vague = (kind, reach) == (FaultKind::ConnectionReset, Reach::Connection);
        return (seen.filter(|_| vague).unwrap_or(kind), reach);
    }
    let kind = match typed(error, Stage::Connected) {
        // "Canceled" and the like say only that the connection ended: the wire knows why.
        Some(FaultKind::ConnectionReset) => seen.unwrap_or(FaultKind::ConnectionReset),
        Some(kind) => kind,
        None => seen.unwrap_or(FaultKind::Unclassified),
    };
    (kind, Reach::Connection)
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
    use turnkeep_base::Origin;

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

    /// Every kind that the standard library has, with its name while connecting and on a connection. `None`: no socket
    /// gives it, so it is unclassified.
    #[test]
    fn every_kind_of_the_standard_library_has_its_row_or_is_unclassified() {
        use FaultKind::{
            ConnectRefused, ConnectTimeout, ConnectionReset, GatewayExhausted, HttpProtocolError, Unclassified,
            Unreachable,
        };
        use io::ErrorKind as K;
        let rows = [
            (K::ConnectionRefused, ConnectRefused, ConnectionReset),
            (K::ConnectionReset, ConnectionReset, ConnectionReset),
            (K::HostUnreachable, Unreachable, ConnectionReset),
            (K::NetworkUnreachable, Unreachable, ConnectionReset),
            (K::ConnectionAborted, ConnectionReset, ConnectionReset),
            (K::NotConnected, ConnectionReset, ConnectionReset),
            (K::AddrInUse, Unreachable, Unclassified),
            (K::AddrNotAvailable, Unreachable, Unclassified),
            (K::NetworkDown, Unreachable, ConnectionReset),
            (K::BrokenPipe, ConnectionReset, ConnectionReset),
            (K::PermissionDenied, Unreachable, ConnectionReset),
            (K::TimedOut, ConnectTimeout, ConnectionReset),
            (K::WriteZero, ConnectionReset, ConnectionReset),
            (K::UnexpectedEof, ConnectionReset, ConnectionReset),
            (K::InvalidInput, HttpProtocolError, HttpProtocolError),
            (K::InvalidData, HttpProtocolError, HttpProtocolError),
            (K::OutOfMemory, GatewayExhausted, GatewayExhausted),
            // Not of sockets.
            (K::NotFound, Unclassified, Unclassified),
            (K::AlreadyExists, Unclassified, Unclassified),
            (K::WouldBlock, Unclassified, Unclassified),
            (K::NotADirectory, Unclassified, Unclassified),
            (K::IsADirectory, Unclassified, Unclassified),
            (K::DirectoryNotEmpty, Unclassified, Unclassified),
            (K::ReadOnlyFilesystem, Unclassified, Unclassified),
            (K::StaleNetworkFileHandle, Unclassified, Unclassified),
            (K::StorageFull, Unclassified, Unclassified),
            (K::NotSeekable, Unclassified, Unclassified),
            (K::QuotaExceeded, Unclassified, Unclassified),
            (K::FileTooLarge, Unclassified, Unclassified),
            (K::ResourceBusy, Unclassified, Unclassified),
            (K::ExecutableFileBusy, Unclassified, Unclassified),
            (K::Deadlock, Unclassified, Unclassified),
            (K::TooManyLinks, Unclassified, Unclassified),
            (K::InvalidFilename, Unclassified, Unclassified),
            (K::ArgumentListTooLong, Unclassified, Unclassified),
            (K::Interrupted, Unclassified, Unclassified),
            (K::Unsupported, Unclassified, Unclassified),
            (K::Other, Unclassified, Unclassified),
        ];
        for (raw, before, on) in rows {
            assert_eq!((connecting(&raw.into(), "a").kind, wire(&raw.into())), (before, on), "{raw:?}");
        }
    }

    #[test]
    fn every_number_of_the_system_leads_to_a_fault_that_charges_no_account() {
        for number in 1..=140 {
            let error = io::Error::from_raw_os_error(number);
            for kind in [connecting(&error, "a").kind, wire(&error), resolving(&error, "a").kind] {
                let origin = turnkeep_base::verdict::row(kind).origin;
                assert!(!matches!(origin, Origin::Account | Origin::Request | Origin::Caller), "{number}: {kind}");
            }
        }
        let named = |number| connecting(&io::Error::from_raw_os_error(number), "a").kind;
        let rows = [
            (97, FaultKind::Unreachable),
            (112, FaultKind::Unreachable),
            (71, FaultKind::TlsFailure),
            (99, FaultKind::Unreachable),
            (111, FaultKind::ConnectRefused),
            (113, FaultKind::Unreachable),
        ];
        for (number, kind) in rows {
            assert_eq!(named(number), kind, "{number}");
        }
    }

    #[test]
    fn every_error_of_tls_is_a_tls_failure_unless_this_machine_failed() {
        use rustls::Error as E;
        let rows = [
            E::InappropriateMessage { expect_types: Vec::new(), got_type: rustls::ContentType::Alert },
            E::InvalidMessage(rustls::InvalidMessage::MessageTooLarge),
            E::NoCertificatesPresented,
            E::UnsupportedNameType,
            E::DecryptError,
            E::EncryptError,
            E::PeerIncompatible(rustls::PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig),
            E::PeerMisbehaved(rustls::PeerMisbehaved::TooManyEmptyFragments),
            E::InvalidCertificate(rustls::CertificateError::UnknownIssuer),
            E::General("x".into()),
            E::HandshakeNotComplete,
            E::PeerSentOversizedRecord,
            E::NoApplicationProtocol,
            E::BadMaxFragmentSize,
        ];
        let alerts = (0..=255).map(|code| E::AlertReceived(rustls::AlertDescription::from(code)));
        for error in rows.into_iter().chain(alerts) {
            let raw = io::Error::new(io::ErrorKind::InvalidData, error.clone());
            assert_eq!(wire(&raw), FaultKind::TlsFailure, "{error}");
        }
        for error in [E::FailedToGetCurrentTime, E::FailedToGetRandomBytes] {
            assert_eq!(wire(&io::Error::other(error)), FaultKind::GatewayExhausted);
        }
    }
}
