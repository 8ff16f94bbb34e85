//! The driver of the published service: what becomes of a turn and of the service's events.

use crate::peer;
use crate::rpc_peer::{answer, end, envelope, spec};
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use turnkeep_base::{AccountId, Fault, FaultKind, Phase, Secret, Usage};
use turnkeep_dialect::event::{Block, Delta, Event, Finish};
use turnkeep_dialect::turn::{
    At, Body, File, FileSource, Image, Message, Output, Part, Reasoning, Role, Thinking, Tool, ToolChoice, ToolKind,
    Turn,
};
use turnkeep_engine::ports::{Ask, Happening, Native, NativeAnswer, SendFault, Writing};
use turnkeep_proto::connect::v1 as wire;
use turnkeep_upstream::rpc::Codec;
use turnkeep_upstream::{ConnectChat, ConnectSpec};

pub const HOW: Writing<'static> = Writing { model: "llama", goes_on: false, stream: true };

pub fn ask(body: bytes::Bytes) -> Ask {
    Ask {
        body,
        model: "llama".into(),
        account: AccountId { upstream: "lab".into(), account: "one".into() },
        secret: Secret::new(peer::SECRET.into()),
        caller: "me".into(),
        resume: None,
        reread: false,
        time_left: Duration::from_secs(60),
        trace: HeaderMap::new(),
    }
}

/// The events of an answer to its end, or to the fault.
pub async fn events(sent: Result<Box<dyn NativeAnswer>, SendFault>) -> (Vec<Event>, Option<Fault>) {
    let mut answer = match sent {
        Ok(answer) => answer,
        Err(error) => return (Vec::new(), Some(error.fault)),
    };
    let mut events = Vec::new();
    loop {
        match std::future::poll_fn(|cx| answer.poll_next(cx)).await {
            Some(Ok(Happening::Event(event))) => events.push(event),
            Some(Ok(other)) => panic!("{other:?}"),
            Some(Err(fault)) => return (events, Some(fault)),
            None => {
                assert!(answer.conversation().is_none());
                return (events, None);
            }
        }
    }
}

fn part(body: Body<'_>) -> Part<'_> {
    Part { body, at: At::Content { message: 3, part: 1 }, cache: None }
}

fn message<'a>(role: Role, bodies: Vec<Body<'a>>) -> Message<'a> {
    Message { role, at: At::Message(3), parts: bodies.into_iter().map(part).collect() }
}

fn function(name: &'static str) -> Tool<'static> {
    let schema = Some(r#"{"type":"object"}"#);
    let kind = ToolKind::Function { name: name.into(), description: Some("Does.".into()), schema, strict: Some(true) };
    Tool { index: 0, kind }
}

/// A turn with everything in it that can be carried.
pub fn everything() -> Turn<'static> {
    let image = Body::Image(Image::Data { media_type: "image/png".into(), data: "iVBO".into() });
    let file =
        |source| Body::File(File { media_type: Some("application/pdf".into()), name: Some("a.pdf".into()), source });
    let results = vec![part(Body::Text("sunny".into())), part(Body::Image(Image::Url("https://a.test/x.png".into())))];
    let mut cached = part(Body::Text("be kind".into()));
    cached.cache = Some(r#"{"type":"ephemeral"}"#);
    let system = Message { role: Role::System, at: At::System, parts: vec![cached] };
    let custom = ToolKind::Custom { name: "patch".into(), description: None, format: None };
    Turn {
        model: "mine".into(),
        stream: true,
        messages: vec![
            system,
            message(
                Role::User,
                vec![
                    Body::Text("look".into()),
                    image,
                    file(FileSource::Data("JVBE".into())),
                    file(FileSource::Url("https://a.test/a.pdf".into())),
                    file(FileSource::Plain("plain".into())),
                ],
            ),
            message(
                Role::Assistant,
                vec![
                    Body::Thinking { text: "hm".into(), signature: Some("turnkeep.connect.sig".into()) },
                    Body::RedactedThinking("turnkeep.connect.red".into()),
                    Body::Text("let me see".into()),
                    Body::ToolCall { id: "c1".into(), name: "weather today".into(), arguments: "".into() },
                    Body::ToolCall { id: "c2".into(), name: "f".into(), arguments: r#"{"a":1}"#.into() },
                ],
            ),
            message(
                Role::User,
                vec![
                    Body::ToolResult { id: "c1".into(), content: results, is_error: false },
                    Body::ToolResult { id: "c2".into(), content: Vec::new(), is_error: true },
                ],
            ),
            message(Role::Assistant, vec![Body::Refusal("no".into())]),
            message(Role::User, vec![Body::Text("why".into())]),
        ],
        tools: vec![function("weather today"), function("f"), Tool { index: 2, kind: custom }],
        tool_choice: Some(ToolChoice::Named("weather today".into())),
        parallel_tools: Some(false),
        max_output: Some(100),
        temperature: Some("0.5"),
        top_p: Some("0.9"),
        top_k: Some("40"),
        seed: Some("-7"),
        presence_penalty: Some("1"),
        frequency_penalty: Some("-1e-1"),
        stop: vec!["END".into()],
        output: Output::Schema { name: Some("n".into()), schema: r#"{"type":"object"}"#, strict: Some(true) },
        reasoning: Reasoning { mode: Some(Thinking::Budget(64)), effort: Some("high".into()) },
        verbosity: Some("low".into()),
        user: Some("u".into()),
        cache_key: Some("k".into()),
        ..Turn::default()
    }
}

pub fn driver(codec: Codec, base_url: String) -> Arc<ConnectChat> {
    Arc::new(ConnectChat::new(&ConnectSpec { codec, ..spec(base_url) }).unwrap())
}

fn offline() -> Arc<ConnectChat> {
    driver(Codec::Json, "http://127.0.0.1:1".into())
}

#[test]
fn a_turn_is_written_whole() {
    let driver = offline();
    let turn = everything();
    let written = driver.write(&turn, HOW).unwrap();
    assert_eq!(written.dropped, Vec::<String>::new());
    let json = String::from_utf8(written.body.to_vec()).unwrap();
    let request: wire::ChatRequest = serde_json::from_str(&json).unwrap();
    assert_eq!((request.model.as_str(), request.stream, request.messages.len()), ("llama", true, 6));
    let renamed = request.tools[0].name.clone();
    assert!(renamed.starts_with("weather_today_tk"), "{renamed}");
    assert_eq!(written.names.name(&renamed), "weather today");
    assert!(written.names.is_custom("patch") && !written.names.is_custom("f"));
    for piece in [
        r#"{"role":"ROLE_SYSTEM","parts":[{"cacheMarkJson":"{\"type\":\"ephemeral\"}","text":"be kind"}]}"#,
        r#"{"image":{"mediaType":"image/png","data":"iVBO"}}"#,
        r#"{"file":{"mediaType":"application/pdf","name":"a.pdf","data":"JVBE"}}"#,
        r#"{"file":{"mediaType":"application/pdf","name":"a.pdf","url":"https://a.test/a.pdf"}}"#,
        r#"{"file":{"mediaType":"application/pdf","name":"a.pdf","text":"plain"}}"#,
        r#"{"thinking":{"text":"hm","signature":"sig"}},{"redactedThinking":"red"},{"text":"let me see"}"#,
        r#"{"toolCall":{"id":"c2","name":"f","argumentsJson":"{\"a\":1}"}}"#,
        r#"{"toolResult":{"id":"c1","content":[{"text":"sunny"},{"image":{"url":"https://a.test/x.png"}}]}}"#,
        r#"{"toolResult":{"id":"c2","isError":true}}"#,
        r#"{"role":"ROLE_ASSISTANT","parts":[{"refusal":"no"}]}"#,
        r#""parallelToolCalls":false,"maxOutputTokens":"100""#,
        r#""sampling":{"temperature":0.5,"topP":0.9,"topK":"40","seed":"-7","presencePenalty":1.0,"frequencyPenalty":-0.1}"#,
        r#""stop":["END"]"#,
        r#""output":{"kind":"KIND_JSON_SCHEMA","jsonSchema":"{\"type\":\"object\"}","name":"n","strict":true}"#,
        r#""reasoning":{"mode":"MODE_BUDGET","budgetTokens":"64","effort":"high"}"#,
        r#""verbosity":"low","user":"u","cacheKey":"k","stream":true"#,
        &format!(r#"{{"toolCall":{{"id":"c1","name":"{renamed}","argumentsJson":"{{}}"}}}}"#),
        &format!(r#""toolChoice":{{"mode":"MODE_REQUIRED","only":["{renamed}"]}}"#),
        &format!(
            r#""tools":[{{"name":"{renamed}","description":"Does.","parametersJsonSchema":"{{\"type\":\"object\"}}","strict":true}}"#
        ),
    ] {
        assert!(json.contains(piece), "{piece} is missing in {json}");
    }
    // And the binary form says the same.
    let binary = super::chat::driver(Codec::Proto, "http://127.0.0.1:1".into()).write(&turn, HOW).unwrap().body;
    assert_eq!(<wire::ChatRequest as prost::Message>::decode(binary).unwrap(), request);
}

#[test]
fn what_cannot_be_carried_is_refused_by_its_place() {
    let user = |body| Turn { messages: vec![message(Role::User, vec![body])], ..Turn::default() };
    let place = "messages[3].content[1]";
    let hosted = Tool { index: 4, kind: ToolKind::Hosted("web_search".into()) };
    let rows = [
        (user(Body::Other("video".into())), place, "video"),
        (user(Body::ToolCall { id: "a".into(), name: "f".into(), arguments: "".into() }), place, "tool call"),
        (user(Body::Thinking { text: "x".into(), signature: None }), place, "thinking"),
        (Turn { tools: vec![hosted], ..Turn::default() }, "tools[4]", "web_search"),
        (Turn { tool_choice: Some(ToolChoice::Any), ..Turn::default() }, "tool_choice", "no tools"),
        (Turn { tool_choice: Some(ToolChoice::Other("mcp".into())), ..Turn::default() }, "tool_choice", "mcp"),
    ];
    for (turn, path, word) in rows {
        let error = offline().write(&turn, HOW).unwrap_err();
        assert_eq!(error.path, path);
        assert!(error.message.contains(word), "{error}");
    }
    let long = "x".repeat(17 << 20);
    let error = offline().write(&user(Body::Text(long.into())), HOW).unwrap_err();
    assert!(error.message.contains("16777216"), "{error}");
}

#[test]
fn hints_that_are_none_and_anothers_state_are_dropped_by_name() {
    let mut turn = Turn { temperature: Some("1e999"), top_k: Some("40.5"), seed: Some("1"), ..Turn::default() };
    let foreign = |signature: &'static str| Body::Thinking { text: "".into(), signature: Some(signature.into()) };
    turn.messages = vec![message(
        Role::Assistant,
        vec![
            foreign("EqAB"),
            foreign("turnkeep.gemini.x"),
            foreign("turnkeep.unsigned"),
            Body::RedactedThinking("turnkeep.responses.x".into()),
            Body::Text("so".into()),
        ],
    )];
    turn.tool_choice = Some(ToolChoice::Auto);
    let written = offline().write(&turn, HOW).unwrap();
    assert_eq!(written.dropped, ["redacted_thinking", "temperature", "thinking", "top_k"]);
    let request: wire::ChatRequest = serde_json::from_slice(&written.body).unwrap();
    assert_eq!((request.messages[0].parts.len(), request.tool_choice), (1, None));
    assert_eq!(request.sampling.and_then(|sampling| sampling.seed), Some(1));
}

/// What the driver makes of an answer of these JSON messages, and an end.
async fn heard(messages: &[&str], ending: &str) -> (Vec<Event>, Option<Fault>) {
    let (listener, authority) = peer::listen().await;
    let driver = driver(Codec::Json, format!("http://{authority}"));
    let body = driver.write(&Turn::default(), HOW).unwrap().body;
    let sending = tokio::spawn(async move { events(driver.send(ask(body)).await).await });
    let (mut server, _) = listener.accept().await.unwrap();
    let (head, _) = peer::request(&mut server).await;
    assert!(head.starts_with("POST /turnkeep.connect.v1.ChatService/Chat "), "{head}");
    let mut bytes: Vec<u8> = messages.iter().flat_map(|json| envelope(0, json.as_bytes())).collect();
    bytes.extend(end(ending));
    server.write_all(&answer(200, "content-type: application/connect+json\r\n", &bytes)).await.unwrap();
    sending.await.unwrap()
}

#[tokio::test]
async fn every_step_of_an_answer_becomes_its_event() {
    let steps = [
        r#"{"start":{"id":"a1","model":"llama-9","usage":{"input":"3"}}}"#,
        r#"{"blockStart":{"thinking":{}}}"#,
        r#"{"delta":{"thinking":"hm"}}"#,
        r#"{"delta":{"signature":"sig"}}"#,
        r#"{"blockStop":{}}"#,
        r#"{"blockStart":{"block":1,"redactedThinking":{"data":"red"}}}"#,
        r#"{"blockStop":{"block":1}}"#,
        r#"{"blockStart":{"block":2,"text":{}}}"#,
        r#"{"somethingNew":{"x":1}}"#,
        r#"{"delta":{"block":2,"text":"hi"}}"#,
        r#"{"blockStart":{"block":3,"toolCall":{"id":"c1","name":"f"}}}"#,
        r#"{"delta":{"block":3,"arguments":"{}"}}"#,
        r#"{"blockStop":{"block":2}}"#,
        r#"{"blockStop":{"block":3}}"#,
        r#"{"finish":{"reason":"REASON_TOOL_CALLS"}}"#,
        r#"{"usage":{"input":"1","cacheRead":"2","cacheWrite":"3","output":"4","reasoning":"1"}}"#,
    ];
    let (events, fault) = heard(&steps, "{}").await;
    assert_eq!(fault, None);
    let start = |block, kind| Event::BlockStart { block, kind };
    let delta = |block, delta| Event::Delta { block, delta };
    let usage = Usage { input: 3, ..Usage::default() };
    let expected = [
        Event::Start { id: Some("a1".into()), model: Some("llama-9".into()), usage: Some(usage) },
        start(0, Block::Thinking),
        delta(0, Delta::Thinking("hm".into())),
        delta(0, Delta::Signature("turnkeep.connect.sig".into())),
        Event::BlockStop { block: 0 },
        start(1, Block::RedactedThinking("turnkeep.connect.red".into())),
        Event::BlockStop { block: 1 },
        start(2, Block::Text),
        delta(2, Delta::Text("hi".into())),
        start(3, Block::ToolCall { id: "c1".into(), name: "f".into() }),
        delta(3, Delta::Arguments("{}".into())),
        Event::BlockStop { block: 2 },
        Event::BlockStop { block: 3 },
        Event::Finish { reason: Finish::ToolCalls, stop_sequence: None },
        Event::Usage(Usage { input: 1, cache_read: 2, cache_write: 3, output: 4, reasoning: 1 }),
        Event::End,
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn the_start_may_be_left_out_and_an_answer_may_be_empty() {
    let finish = r#"{"finish":{"reason":"REASON_STOP_SEQUENCE","stopSequence":"END"}}"#;
    let (events, fault) = heard(&[finish], "{}").await;
    assert_eq!(fault, None);
    let finish = Event::Finish { reason: Finish::StopSequence, stop_sequence: Some("END".into()) };
    assert_eq!(events, [Event::Start { id: None, model: None, usage: None }, finish, Event::End]);
}

#[tokio::test]
async fn an_answer_out_of_order_is_malformed() {
    let text = r#"{"blockStart":{"text":{}}}"#;
    let rows: [&[&str]; 10] = [
        &[],
        &[r#"{"start":{}}"#],
        &[r#"{"start":{}}"#, r#"{"start":{}}"#],
        &[r#"{"blockStart":{"block":1,"text":{}}}"#],
        &[text, r#"{"delta":{"thinking":"x"}}"#],
        &[text, r#"{"finish":{"reason":"REASON_STOP"}}"#],
        &[r#"{"blockStart":{"video":{}}}"#],
        &[r#"{"blockStart":{"toolCall":{"name":"f"}}}"#],
        &[r#"{"finish":{"reason":"REASON_OF_TOMORROW"}}"#],
        &["{"],
    ];
    for steps in rows {
        let (events, fault) = heard(steps, "{}").await;
        let fault = fault.unwrap();
        assert_eq!((fault.kind, fault.phase), (FaultKind::MalformedResponse, Phase::Answered), "{steps:?}: {fault}");
        assert!(!events.contains(&Event::End), "{steps:?}");
    }
}

#[tokio::test]
async fn an_error_at_the_end_is_no_end() {
    let error = r#"{"error":{"code":"unavailable","message":"overloaded"}}"#;
    let (events, fault) = heard(&[r#"{"blockStart":{"text":{}}}"#, r#"{"delta":{"text":"h"}}"#], error).await;
    assert_eq!(events.len(), 3);
    assert_eq!(fault.unwrap().kind, FaultKind::ModelOverloaded);
}

#[tokio::test]
async fn an_error_instead_of_the_first_event_is_a_refusal_of_the_turn() {
    for (code, refused) in [("resource_exhausted", true), ("internal", false)] {
        let (listener, authority) = peer::listen().await;
        let driver = driver(Codec::Json, format!("http://{authority}"));
        let sending =
            tokio::spawn(async move { driver.send(ask(bytes::Bytes::from_static(b"{}"))).await.err().unwrap() });
        let (mut server, _) = listener.accept().await.unwrap();
        peer::request(&mut server).await;
        let bytes = end(&format!(r#"{{"error":{{"code":"{code}"}}}}"#));
        server.write_all(&answer(200, "content-type: application/connect+json\r\n", &bytes)).await.unwrap();
        assert_eq!(sending.await.unwrap().refused.is_some(), refused, "{code}");
    }
}
