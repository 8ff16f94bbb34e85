//! The lab's chat service, which keeps nothing, through the Connect driver: every protocol, codec and coding, and its faults.

use crate::talk::{PROTOCOLS, lab, on};
use std::future::poll_fn;
use std::time::Duration;
use turnkeep_base::{AccountId, Dialect, Fault, FaultKind, Secret};
use turnkeep_dialect::event::{Delta, Event};
use turnkeep_dialect::request::{self, Operation};
use turnkeep_engine::ports::{Ask, Happening, Native, Writing};
use turnkeep_lab::{ContentEncoding, ErrorSpec, Fault as LabFault, Lab, Point, Rule};
use turnkeep_upstream::rpc::{Codec, Protocol, RpcSpec};
use turnkeep_upstream::{ConnectChat, Egress};

const CHAT: &str = "/turnkeep.connect.v1.ChatService/Chat";

async fn answer(lab: &Lab, protocol: Protocol, codec: Codec) -> Result<String, Fault> {
    let mut spec = RpcSpec::new("up", format!("http://{}", lab.addr()));
    (spec.protocol, spec.codec, spec.egress) = (protocol, codec, Egress::Loopback);
    let driver = ConnectChat::new(&spec).unwrap();
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hello there"}]}"#;
    let read = request::read(Dialect::Chat, Operation::Generate, body.into()).unwrap();
    let how = Writing { model: "m", goes_on: false, stream: true };
    let body = driver.write(&read.turn().unwrap(), how).unwrap().body;
    let ask = Ask {
        body,
        model: "m".into(),
        account: AccountId { upstream: "up".into(), account: "a".into() },
        secret: Secret::new("a-key".into()),
        caller: "somebody".into(),
        resume: None,
        reread: false,
        time_left: Duration::from_secs(60),
        trace: Default::default(),
    };
    let mut answer = driver.send(ask).await.map_err(|failed| failed.fault)?;
    let mut text = String::new();
    let mut ended = false;
    while let Some(happening) = poll_fn(|cx| answer.poll_next(cx)).await {
        match happening? {
            Happening::Event(Event::Delta { delta: Delta::Text(more), .. }) => text.push_str(&more),
            Happening::Event(event) => ended |= event == Event::End,
            Happening::Alive | Happening::Units(_) => {}
        }
    }
    assert!(ended, "an answer that ends without a fault is complete");
    Ok(text)
}

#[tokio::test]
async fn the_lab_answers_by_every_protocol_codec_and_coding() {
    let codings = [None, Some(ContentEncoding::Gzip), Some(ContentEncoding::Zstd)];
    for protocol in PROTOCOLS {
        for codec in [Codec::Proto, Codec::Json] {
            for content_encoding in codings {
                for chunk_bytes in [None, Some(1)] {
                    let rule = Rule { content_encoding, chunk_bytes, ..on(CHAT) };
                    let lab = lab([rule]).await;
                    let text = answer(&lab, protocol, codec).await.unwrap();
                    let case = format!("{protocol:?} {codec:?} {content_encoding:?} {chunk_bytes:?}");
                    assert_eq!(text, "You said: \"hello there\". This is the lab model m answering.", "{case}");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_labs_faults_are_what_they_are_called() {
    let at = |fault, at| Rule { fault: Some(fault), fault_at: Some(at), ..on(CHAT) };
    let error = |code: &str| Some(ErrorSpec { code: Some(code.into()), ..ErrorSpec::default() });
    let cases = [
        (Rule { error: error("resource_exhausted"), ..on(CHAT) }, FaultKind::RateLimited),
        (Rule { error: error("unauthenticated"), ..on(CHAT) }, FaultKind::CredentialRejected),
        (
            Rule { error: error("unavailable"), ..at(LabFault::ErrorInStream, Point::AfterWords(1)) },
            FaultKind::UpstreamUnavailable,
        ),
        (at(LabFault::NoTerminal, Point::BeforeTerminal), FaultKind::StreamTruncated),
        (at(LabFault::BadJson, Point::AfterWords(1)), FaultKind::MalformedResponse),
        (at(LabFault::BadSse, Point::AfterWords(1)), FaultKind::MalformedResponse),
        (at(LabFault::Html, Point::BeforeHeaders), FaultKind::UpstreamUnavailable),
    ];
    for protocol in PROTOCOLS {
        for (rule, kind) in &cases {
            let lab = lab([rule.clone()]).await;
            let fault = answer(&lab, protocol, Codec::Proto).await.unwrap_err();
            assert_eq!(fault.kind, *kind, "{protocol:?} {:?} {:?}: {fault}", rule.fault, rule.error);
        }
    }
}
