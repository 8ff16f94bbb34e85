//! Whatever bytes come in place of an answer: no panic, and never the account's fault.

use crate::peer;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt;
use turnkeep_base::{Fault, Origin, verdict};

/// Answers one call with these bytes and closes.
async fn faulted(bytes: Vec<u8>) -> Option<Fault> {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = tokio::spawn(async move { peer::whole(&endpoint).await });
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::request(&mut stream).await;
    // The client may have given up in the middle.
    let _ = stream.write_all(&bytes).await;
    let _ = stream.shutdown().await;
    let ended = call.await.unwrap();
    peer::closed(&mut stream).await;
    ended.err()
}

fn innocent(bytes: Vec<u8>) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let Some(fault) = runtime.block_on(faulted(bytes)) {
        prop_assert_ne!(verdict::row(fault.kind).origin, Origin::Account, "{}", fault);
        prop_assert!(!fault.is_shell() && fault.declared.windows.is_empty());
        prop_assert!(fault.evidence.detail.len() <= turnkeep_base::limit::EVIDENCE_BYTES);
    }
    Ok(())
}

/// Lines that mean something, so that more than the first line is tried.
fn header() -> impl Strategy<Value = Vec<u8>> {
    let coding = prop_oneof![Just("gzip"), Just("br"), Just("zstd"), Just("deflate"), Just("gzip, br"), Just("x")];
    prop_oneof![
        coding.prop_map(|name| format!("content-encoding: {name}\r\n").into_bytes()),
        any::<u64>().prop_map(|length| format!("content-length: {length}\r\n").into_bytes()),
        (0..40u8).prop_map(|length| format!("content-length: {length}\r\n").into_bytes()),
        Just(b"transfer-encoding: chunked\r\n".to_vec()),
        Just(b"connection: close\r\n".to_vec()),
        Just(b"www-authenticate: Bearer error=\"invalid_token\"\r\n".to_vec()),
        vec(any::<u8>(), 0..40).prop_map(|mut line| {
            line.extend(b"\r\n");
            line
        }),
    ]
}

fn chunk() -> impl Strategy<Value = Vec<u8>> {
    let sized = vec(any::<u8>(), 0..60)
        .prop_map(|bytes| [format!("{:x}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat());
    prop_oneof![3 => sized, 1 => vec(any::<u8>(), 0..60), 1 => Just(b"0\r\n\r\n".to_vec())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_never_the_accounts_fault(bytes in vec(any::<u8>(), 0..600)) {
        innocent(bytes)?;
    }

    #[test]
    fn nor_is_an_answer_that_is_almost_http(
        status in 0..1000u16,
        headers in vec(header(), 0..6),
        chunks in vec(chunk(), 0..6),
        cut in 0..800usize,
    ) {
        let mut bytes = [format!("HTTP/1.1 {status} x\r\n").as_bytes(), &headers.concat(), b"\r\n", &chunks.concat()].concat();
        bytes.truncate(cut.max(12));
        innocent(bytes)?;
    }
}
