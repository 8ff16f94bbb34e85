//! The head of an answer judged: whether it is the protocol's own, and what it is if it is not.

use super::coding::Coding;
use super::ending::{by_status, grpc_status, malformed};
use super::head::{Form, content_type};
use super::stream::{RpcStream, Tail};
use super::{Codec, Protocol, RpcFault, RpcReply};
use crate::answer::{Body, read};
use bytes::BytesMut;
use http::header::{self, HeaderMap};
use http::{HeaderName, StatusCode};
use std::future::poll_fn;
use turnkeep_base::limit::{MAX_ERROR_BODY, MAX_EVENT};
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};
use turnkeep_engine::ports::AnswerBody as _;

/// What names a trailer of a unary Connect answer, which stands among the headers.
const TRAILER: &str = "trailer-";

/// The answer of a unary Connect call.
pub(super) async fn unary(
    status: StatusCode,
    headers: HeaderMap,
    mut body: Body,
    codec: Codec,
    continued: bool,
) -> Result<RpcReply, RpcFault> {
    if status != StatusCode::OK {
        return Err(refused(status, &headers, body, continued).await);
    }
    expect_type(&headers, &[content_type(Protocol::Connect, codec, Form::Unary)])?;
    let mut message = BytesMut::new();
    while let Some(chunk) = poll_fn(|cx| body.poll_chunk(cx)).await {
        let chunk = chunk?;
        if message.len() + chunk.len() > MAX_EVENT {
            return Err(malformed(format!("a message of more than {MAX_EVENT} bytes")).into());
        }
        message.extend_from_slice(&chunk);
    }
    let mut trailers = HeaderMap::new();
    for (name, value) in &headers {
        if let Some(Ok(name)) = name.as_str().strip_prefix(TRAILER).map(HeaderName::try_from) {
            trailers.append(name, value.clone());
        }
    }
    Ok(RpcReply { message: message.freeze(), trailers })
}

/// The answer of a call whose answer is a stream.
pub(super) async fn stream(
    status: StatusCode,
    headers: HeaderMap,
    body: Body,
    protocol: Protocol,
    codec: Codec,
    continued: bool,
) -> Result<RpcStream, RpcFault> {
    if status != StatusCode::OK {
        return Err(refused(status, &headers, body, continued).await);
    }
    let (coding, tail) = match protocol {
        Protocol::Connect => {
            expect_type(&headers, &[content_type(protocol, codec, Form::Stream)])?;
            (Coding::named(&headers, "connect-content-encoding")?, Tail::Connect)
        }
        Protocol::Grpc => {
            expect_type(&headers, grpc_types(codec))?;
            // An answer without messages may have its trailers for headers.
            match grpc_status(&headers, false, continued) {
                Some(Err(fault)) => return Err(fault),
                Some(Ok(())) => (Coding::Identity, Tail::GrpcToldByHead),
                None => (Coding::named(&headers, "grpc-encoding")?, Tail::Grpc),
            }
        }
    };
    Ok(RpcStream::new(headers, body, coding, tail, continued))
}

/// The one message of a unary gRPC call, and its end.
pub(super) async fn only_message(mut stream: RpcStream) -> Result<RpcReply, RpcFault> {
    let Some(message) = stream.next().await.transpose()? else {
        return Err(malformed("a unary call was answered without a message").into());
    };
    if stream.next().await.transpose()?.is_some() {
        return Err(malformed("a unary call was answered by a second message").into());
    }
    Ok(RpcReply { message, trailers: stream.trailers().clone() })
}

/// The binary form has a short name too.
fn grpc_types(codec: Codec) -> &'static [&'static str] {
    match codec {
        Codec::Proto => &["application/grpc", "application/grpc+proto"],
        Codec::Json => &["application/grpc+json"],
    }
}

/// The answer has one of these types, parameters aside.
fn expect_type(headers: &HeaderMap, expected: &[&str]) -> Result<(), Fault> {
    let found = headers.get(header::CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let essence = found.as_deref().map(|text| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    if essence.is_some_and(|essence| expected.contains(&essence.as_str())) {
        return Ok(());
    }
    let found: String = found.as_deref().unwrap_or("none").chars().take(120).collect();
    let expected = expected.join(" or ");
    let text =
        format!("the answer's content type is {found}, and must be {expected}: is this a server of the protocol?");
    Err(Fault::new(FaultKind::MalformedResponse, Phase::Answered, Evidence::text(text).with_status(200)))
}

/// An answer with another status than 200, read within bounds and for a short time.
async fn refused(status: StatusCode, headers: &HeaderMap, mut body: Body, continued: bool) -> RpcFault {
    let (document, whole) = read(&mut body, MAX_ERROR_BODY).await;
    by_status(status.as_u16(), headers, &document, whole, continued)
}
