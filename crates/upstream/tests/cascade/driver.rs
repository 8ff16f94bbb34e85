//! The driver by itself: what it tells its server, which handles it lets stand, and what it does for a started process.

use crate::talk::{PROTOCOLS, SEND, START, WATCH, lab, on, spec};
use http::HeaderMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::{AccountId, Dialect, Fault, FaultKind, Secret};
use turnkeep_dialect::event::{Delta, Event};
use turnkeep_dialect::request::{self, Operation};
use turnkeep_engine::ports::{Ask, Happening, Native, NativeAnswer, SendFault, Writing};
use turnkeep_lab::{Fault as LabFault, RefusalSpec, Rule};
use turnkeep_policy::conversations::Conversation;
use turnkeep_upstream::Cascade;

fn account() -> AccountId {
    AccountId { upstream: "up".into(), account: "a".into() }
}

fn write(driver: &Cascade, body: &str, goes_on: bool) -> bytes::Bytes {
    let read = request::read(Dialect::Chat, Operation::Generate, body.to_owned().into()).unwrap();
    let turn = read.turn().unwrap();
    driver.write(&turn, Writing { model: "m", goes_on, stream: true }).unwrap().body
}

pub fn ask(driver: &Cascade, text: &str, resume: Option<Conversation>) -> Ask {
    let tools = r#"[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]"#;
    let body = format!(r#"{{"model":"m","tools":{tools},"messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let body = write(driver, &body, resume.is_some());
    Ask {
        body,
        model: "m".into(),
        account: account(),
        secret: Secret::new("the-key".into()),
        caller: "somebody".into(),
        resume,
        reread: false,
        time_left: Duration::from_secs(77),
        trace: HeaderMap::new(),
    }
}

/// Reads an answer to its end: the text, and the conversation as it stands then.
async fn whole(mut answer: Box<dyn NativeAnswer>) -> Result<(String, Option<Conversation>), Fault> {
    let mut text = String::new();
    while let Some(happening) = poll_fn(|cx| answer.poll_next(cx)).await {
        if let Happening::Event(Event::Delta { delta: Delta::Text(more), .. }) = happening? {
            text.push_str(&more);
        }
    }
    Ok((text, answer.conversation()))
}

pub async fn said(driver: &Cascade, text: &str, resume: Option<Conversation>) -> (String, Conversation) {
    let (text, conversation) = whole(driver.send(ask(driver, text, resume)).await.unwrap()).await.unwrap();
    (text, conversation.unwrap())
}

pub fn fault(outcome: Result<Box<dyn NativeAnswer>, SendFault>) -> SendFault {
    match outcome {
        Ok(_) => panic!("the send was to be refused"),
        Err(failed) => failed,
    }
}

#[tokio::test]
async fn tools_go_with_the_first_turn_alone_and_the_credential_and_the_deadline_with_every_call() {
    for protocol in PROTOCOLS {
        let lab = lab([]).await;
        let driver = Cascade::new(spec(&lab, protocol)).unwrap();
        let (_, conversation) = said(&driver, "one", None).await;
        said(&driver, "two", Some(conversation)).await;
        let kept = lab.transcripts().remove(0);
        assert_eq!(kept.turns.iter().map(|turn| turn.tools).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(kept.model, "m");
        for request in lab.requests() {
            assert_eq!(request.header("authorization"), Some("Bearer the-key"), "{}", request.target);
            let deadline = request.header("connect-timeout-ms").or(request.header("grpc-timeout"));
            let watch = request.target == WATCH;
            assert_eq!(
                deadline.is_none(),
                watch,
                "{}: an answer that is streamed is not cut by its deadline",
                request.target
            );
        }
    }
}

#[tokio::test]
async fn a_conversation_stands_as_long_as_the_process_that_keeps_it_is_the_one_that_is_known() {
    let lab = lab([]).await;
    let driver = Cascade::new(spec(&lab, Default::default())).unwrap();
    let (_, conversation) = said(&driver, "one", None).await;
    assert!(driver.stands(&conversation));
    let another = Cascade::new(spec(&lab, Default::default())).unwrap();
    assert!(another.stands(&conversation), "it has not asked yet");
    said(&another, "more", Some(conversation.clone())).await;
    let (_, conversation) = said(&driver, "one", None).await;
    assert!(conversation.position.is_some_and(|position| position > 3));
    lab.restart_cascade();
    let failed = fault(driver.send(ask(&driver, "two", Some(conversation.clone()))).await);
    assert_eq!((failed.fault.kind, failed.refused.is_none()), (FaultKind::ConversationGone, true));
    said(&driver, "two", None).await;
    assert!(!driver.stands(&conversation), "another process is known now");
}

#[tokio::test]
async fn a_conversation_that_nobody_goes_on_with_is_closed_at_the_server() {
    let lab = lab([]).await;
    let driver = Cascade::new(spec(&lab, Default::default())).unwrap();
    let (_, conversation) = said(&driver, "one", None).await;
    driver.forget(&account(), conversation);
    lab.wait_cascade(|counts| counts.closed == 1).await;
}

#[tokio::test]
async fn a_conversation_that_was_begun_for_a_turn_that_is_refused_is_closed() {
    let refuse = Some(RefusalSpec { retry_after_ms: 1500, ..RefusalSpec::new("rate") });
    let lab = lab([Rule { refuse, ..on(SEND) }]).await;
    let driver = Cascade::new(spec(&lab, Default::default())).unwrap();
    let failed = fault(driver.send(ask(&driver, "one", None)).await);
    assert_eq!(failed.fault.kind, FaultKind::RateLimited);
    assert_eq!(failed.fault.declared.wait, Some(Duration::from_millis(1500)));
    assert!(failed.refused.is_some());
    lab.wait_cascade(|counts| counts.closed == 1).await;
}

#[tokio::test]
async fn dropping_the_send_or_the_answer_cancels_at_the_server() {
    for path in [SEND, WATCH] {
        let lab = lab([Rule { gate: Some("there".into()), ..on(path) }]).await;
        let driver = Arc::new(Cascade::new(spec(&lab, Default::default())).unwrap());
        let task = {
            let driver = driver.clone();
            tokio::spawn(async move {
                let answer = driver.send(ask(&driver, "one", None)).await.unwrap();
                whole(answer).await
            })
        };
        lab.wait_at_gate("there", 1).await;
        task.abort();
        lab.wait_cascade(|counts| counts.closed == 1).await;
        assert!(lab.transcripts()[0].turns[0].cancelled, "{path}");
    }
}

#[tokio::test]
async fn a_server_without_a_name_for_its_process_or_that_is_none_is_named_as_such() {
    let raw = |raw: &str| Rule { raw: Some(raw.into()), ..on("/turnkeep.cascade.v1.CascadeService/Health") };
    let rows = [
        (raw("{}"), FaultKind::MalformedResponse),
        (raw("<html>"), FaultKind::MalformedResponse),
        (raw(""), FaultKind::MalformedResponse),
        (Rule { fault: Some(LabFault::Html), ..raw("") }, FaultKind::UpstreamUnavailable),
    ];
    for (rule, kind) in rows {
        let lab = lab([rule]).await;
        let driver = Cascade::new(spec(&lab, Default::default())).unwrap();
        let failed = fault(driver.send(ask(&driver, "one", None)).await);
        assert_eq!(failed.fault.kind, kind, "{}", failed.fault);
        assert!(failed.refused.is_some(), "nothing of the turn has left");
        assert_eq!(lab.cascade().starts, 0);
    }
}

#[tokio::test]
async fn a_start_whose_reply_is_lost_is_no_refusal_of_a_turn_that_never_left() {
    let lab = lab([Rule { fault: Some(LabFault::CloseBeforeReply), ..on(START) }]).await;
    let driver = Cascade::new(spec(&lab, Default::default())).unwrap();
    let failed = fault(driver.send(ask(&driver, "one", None)).await);
    assert_eq!(failed.fault.kind, FaultKind::ConnectionReset);
    assert!(failed.refused.is_some(), "only an empty conversation can have been begun");
}
