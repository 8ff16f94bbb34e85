//! A canonical turn as a Messages request: the goldens are what Anthropic's API takes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use proptest::prelude::*;
use serde_json::{Value, json};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::messages::request_encode::{DEFAULT_MAX_TOKENS, encode};
use turnkeep_dialect::request::{ApiVersion, Encoded};
use turnkeep_dialect::turn::{
    At, Body, Image, Message, Output, Part, Reasoning, Role, Thinking, Tool, ToolChoice, ToolKind, Turn,
};

fn message<'a>(role: Role, index: u32, bodies: Vec<Body<'a>>) -> Message<'a> {
    let part = |(part, body)| Part { body, at: At::Content { message: index, part: part as u32 }, cache: None };
    Message { role, at: At::Message(index), parts: bodies.into_iter().enumerate().map(part).collect() }
}

fn text(text: &str) -> Body<'_> {
    Body::Text(text.into())
}

fn call<'a>(id: &'a str, arguments: &'a str) -> Body<'a> {
    Body::ToolCall { id: id.into(), name: "f".into(), arguments: arguments.into() }
}

fn result<'a>(id: &'a str, said: &'a str) -> Body<'a> {
    let content = vec![Part { body: text(said), at: At::Message(9), cache: None }];
    Body::ToolResult { id: id.into(), content, is_error: false }
}

fn conversation(said: Vec<(Role, Vec<Body<'_>>)>) -> Turn<'_> {
    let messages = said.into_iter().enumerate().map(|(index, (role, bodies))| message(role, index as u32, bodies));
    Turn { model: "m".into(), messages: messages.collect(), ..Turn::default() }
}

fn hello() -> Turn<'static> {
    conversation(vec![(Role::User, vec![text("hi")])])
}

fn body(encoded: &Encoded) -> Value {
    serde_json::from_slice(&encoded.body).unwrap()
}

fn sent(turn: &Turn<'_>) -> Value {
    body(&encode(turn, "up").unwrap())
}

fn function<'a>(name: &'a str, schema: Option<&'a str>) -> Tool<'a> {
    Tool { index: 0, kind: ToolKind::Function { name: name.into(), description: None, schema, strict: None } }
}

#[test]
fn the_smallest_turn_gets_the_default_limit_and_the_new_version() {
    let encoded = encode(&hello(), "up").unwrap();
    assert_eq!(
        body(&encoded),
        json!({"model":"up","max_tokens":DEFAULT_MAX_TOKENS,"messages":[{"role":"user","content":"hi"}]})
    );
    assert_eq!((encoded.version, encoded.dropped), (ApiVersion::V2026, vec![]));
}

#[test]
fn leading_system_messages_are_hoisted_and_later_ones_stay_in_place_marked() {
    let turn = conversation(vec![
        (Role::System, vec![text("one")]),
        (Role::System, vec![text(""), text("two")]),
        (Role::User, vec![text("hi")]),
        (Role::System, vec![text("three")]),
        (Role::Assistant, vec![text("yes")]),
    ]);
    let sent = sent(&turn);
    assert_eq!(sent["system"], json!([{"type":"text","text":"one"},{"type":"text","text":"two"}]));
    assert_eq!(
        sent["messages"],
        json!([{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"<system>three</system>"}]},
            {"role":"assistant","content":"yes"}])
    );
    let single = conversation(vec![(Role::System, vec![text("one")]), (Role::User, vec![text("hi")])]);
    assert_eq!(self::sent(&single)["system"], "one");
}

#[test]
fn a_turn_of_system_messages_only_still_has_a_conversation() {
    let turn = conversation(vec![(Role::System, vec![text("a")]), (Role::System, vec![text("b")])]);
    let sent = sent(&turn);
    assert_eq!(sent["system"], "a");
    assert_eq!(sent["messages"], json!([{"role":"user","content":[{"type":"text","text":"<system>b</system>"}]}]));
}

#[test]
fn tool_results_come_first_all_in_one_message_in_the_order_of_the_calls() {
    let turn = conversation(vec![
        (Role::User, vec![text("go")]),
        (Role::Assistant, vec![text("ok"), call("a", "{\"x\":1}"), call("b.1", ""), call("c", "")]),
        (Role::User, vec![text("by the way"), result("b.1", "B")]),
        (Role::User, vec![result("a", "old")]),
        (Role::User, vec![result("a", "new")]),
    ]);
    let messages = sent(&turn)["messages"].clone();
    assert_eq!(messages[1]["content"][1], json!({"type":"tool_use","id":"a","name":"f","input":{"x":1}}));
    assert_eq!(messages[1]["content"][2]["input"], json!({}));
    let id = messages[1]["content"][2]["id"].clone();
    assert_ne!(id, "b.1");
    assert_eq!(
        messages[2]["content"],
        json!([
            {"type":"tool_result","tool_use_id":"a","content":"new"},
            {"type":"tool_result","tool_use_id":id,"content":"B"},
            {"type":"tool_result","tool_use_id":"c","content":"no result was given","is_error":true},
            {"type":"text","text":"by the way"},
        ])
    );
    assert_eq!(messages.as_array().unwrap().len(), 3);
}

#[test]
fn calls_at_the_very_end_are_answered_too() {
    let turn = conversation(vec![(Role::User, vec![text("go")]), (Role::Assistant, vec![call("a", "{}")])]);
    assert_eq!(sent(&turn)["messages"][2]["content"][0]["is_error"], true);
}

#[test]
fn a_result_without_its_call_is_dropped_and_named() {
    let turn = conversation(vec![
        (Role::User, vec![text("go"), result("zz", "?")]),
        (Role::Assistant, vec![call("a", "{}")]),
        (Role::User, vec![result("a", "A")]),
        (Role::Assistant, vec![text("so")]),
        (Role::User, vec![result("a", "again")]),
    ]);
    let encoded = encode(&turn, "up").unwrap();
    assert_eq!(encoded.dropped, ["tool_result"]);
    let sent: Value = serde_json::from_slice(&encoded.body).unwrap();
    assert_eq!(sent["messages"].as_array().unwrap().len(), 4, "{sent}");
    assert_eq!(sent["messages"][0], json!({"role":"user","content":"go"}));
    assert_eq!(sent["messages"][2]["content"], json!([{"type":"tool_result","tool_use_id":"a","content":"A"}]));
    // With nothing else there is no conversation.
    let turn = conversation(vec![(Role::User, vec![result("zz", "?")])]);
    assert_eq!(encode(&turn, "up").unwrap_err().path, "messages");
}

#[test]
fn arguments_that_are_no_object_are_kept_as_text() {
    for arguments in ["{\"a\":", "[1]", "\"x\"", "7 7"] {
        let turn = conversation(vec![(Role::Assistant, vec![call("a", arguments)])]);
        assert_eq!(sent(&turn)["messages"][0]["content"][0]["input"], json!({"_raw": arguments}));
    }
    let turn = conversation(vec![(Role::Assistant, vec![call("a", "\n{\"b\": 1.50}\n")])]);
    let encoded = encode(&turn, "up").unwrap();
    assert!(std::str::from_utf8(&encoded.body).unwrap().contains(r#""input":{"b": 1.50}"#));
}

#[test]
fn empty_texts_and_empty_messages_are_left_out() {
    let turn = conversation(vec![
        (Role::User, vec![text("a"), text(" \n")]),
        (Role::Assistant, vec![text("")]),
        (Role::User, vec![text("b")]),
    ]);
    assert_eq!(
        sent(&turn)["messages"],
        json!([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])
    );
    let nothing = conversation(vec![(Role::User, vec![text("")])]);
    assert_eq!(encode(&nothing, "up").unwrap_err().path, "messages");
}

#[test]
fn thinking_goes_along_only_with_the_provider_s_own_signature() {
    let thinking =
        |signature: Option<&'static str>| Body::Thinking { text: "hm".into(), signature: signature.map(Into::into) };
    let turn = conversation(vec![
        (Role::User, vec![text("a")]),
        (
            Role::Assistant,
            vec![
                thinking(Some("native")),
                thinking(Some("turnkeep.v1.x")),
                thinking(None),
                Body::RedactedThinking("blob".into()),
                Body::RedactedThinking("turnkeep.x".into()),
                Body::Refusal("no".into()),
            ],
        ),
    ]);
    let encoded = encode(&turn, "up").unwrap();
    assert_eq!(
        body(&encoded)["messages"][1]["content"],
        json!([{"type":"thinking","thinking":"hm","signature":"native"},{"type":"redacted_thinking","data":"blob"},
            {"type":"text","text":"no"}])
    );
    assert_eq!(encoded.dropped, ["thinking"]);
}

#[test]
fn images_are_sent_as_their_source() {
    let data = Image::Data { media_type: "image/png".into(), data: "AA==".into() };
    let turn = conversation(vec![(Role::User, vec![Body::Image(data), Body::Image(Image::Url("https://x/y".into()))])]);
    assert_eq!(
        sent(&turn)["messages"][0]["content"],
        json!([{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},
            {"type":"image","source":{"type":"url","url":"https://x/y"}}])
    );
}

#[test]
fn sampling_asks_for_the_old_version_and_is_kept_within_its_bounds() {
    let turn = Turn { temperature: Some("1.5"), top_p: Some("0.90"), ..hello() };
    let encoded = encode(&turn, "up").unwrap();
    let text = std::str::from_utf8(&encoded.body).unwrap();
    assert!(text.contains(r#""temperature":1,"top_p":0.90"#), "{text}");
    assert_eq!((encoded.version, encoded.dropped), (ApiVersion::V2023, vec!["temperature".to_owned()]));
    let turn = Turn { temperature: Some("0"), ..hello() };
    assert_eq!(encode(&turn, "up").unwrap().dropped, Vec::<String>::new());
}

#[test]
fn stops_user_stream_and_hints_are_mapped_or_named() {
    let turn = Turn {
        stop: vec!["END".into(), " \n".into()],
        user: Some("u".into()),
        stream: true,
        hints: vec!["seed".into(), "logit_bias".into(), "seed".into()],
        ..hello()
    };
    let encoded = encode(&turn, "up").unwrap();
    let sent = body(&encoded);
    assert_eq!(sent["stop_sequences"], json!(["END"]));
    assert_eq!((&sent["metadata"], &sent["stream"]), (&json!({"user_id":"u"}), &json!(true)));
    assert_eq!(encoded.dropped, ["logit_bias", "seed", "stop"]);
}

#[test]
fn tools_always_have_an_object_schema() {
    for (schema, wanted) in [
        (None, json!({"type":"object","properties":{}})),
        (Some("{}"), json!({"type":"object","properties":{}})),
        (Some(r#"{"properties":{"a":{}}}"#), json!({"type":"object","properties":{"a":{}}})),
        (Some(r#"{"type":"object","x":1}"#), json!({"type":"object","x":1})),
    ] {
        let turn = Turn { tools: vec![function("f", schema)], ..hello() };
        assert_eq!(sent(&turn)["tools"], json!([{"name":"f","input_schema":wanted}]));
    }
}

#[test]
fn the_choice_of_tools_and_one_at_a_time_are_mapped() {
    let cases: [(Option<ToolChoice<'_>>, Option<bool>, Value); 7] = [
        (None, None, Value::Null),
        (None, Some(false), json!({"type":"auto","disable_parallel_tool_use":true})),
        (Some(ToolChoice::Auto), Some(true), json!({"type":"auto"})),
        (Some(ToolChoice::None), Some(false), json!({"type":"none"})),
        (Some(ToolChoice::Any), None, json!({"type":"any"})),
        (Some(ToolChoice::Named("f".into())), None, json!({"type":"tool","name":"f"})),
        (Some(ToolChoice::Any), Some(false), json!({"type":"any","disable_parallel_tool_use":true})),
    ];
    for (tool_choice, parallel_tools, wanted) in cases {
        let turn = Turn { tools: vec![function("f", None)], tool_choice, parallel_tools, ..hello() };
        assert_eq!(sent(&turn)["tool_choice"], wanted);
    }
}

#[test]
fn effort_and_schema_become_the_output_config() {
    for (effort, wanted, thinking) in [
        ("none", Value::Null, json!({"type":"disabled"})),
        ("minimal", json!({"effort":"low"}), Value::Null),
        ("medium", json!({"effort":"medium"}), Value::Null),
        ("xhigh", json!({"effort":"max"}), Value::Null),
    ] {
        let turn = Turn { reasoning: Reasoning { mode: None, effort: Some(effort.into()) }, ..hello() };
        let sent = sent(&turn);
        assert_eq!((&sent["output_config"], &sent["thinking"]), (&wanted, &thinking), "{effort}");
    }
    let turn = Turn { output: Output::Schema { name: None, schema: r#"{"type":"object"}"#, strict: None }, ..hello() };
    assert_eq!(sent(&turn)["output_config"], json!({"format":{"type":"json_schema","schema":{"type":"object"}}}));
    let turn = Turn { reasoning: Reasoning { mode: Some(Thinking::Budget(9000)), effort: None }, ..hello() };
    assert_eq!(sent(&turn)["max_tokens"], 9000 + DEFAULT_MAX_TOKENS);
}

#[test]
fn content_that_cannot_be_carried_is_an_error_with_its_path() {
    let refused = |turn: Turn<'_>| -> Invalid { encode(&turn, "up").unwrap_err() };
    let other = |role| conversation(vec![(role, vec![text("a"), Body::Other("input_audio".into())])]);
    assert_eq!(refused(other(Role::User)).path, "messages[0].content[1]");
    assert_eq!(refused(other(Role::System)).path, "messages[0].content[1]");
    assert_eq!(refused(Turn { output: Output::Json, ..hello() }).path, "response_format");
    let hosted = Tool { index: 3, kind: ToolKind::Hosted("web_search".into()) };
    assert_eq!(refused(Turn { tools: vec![hosted], ..hello() }).path, "tools[3]");
    let forced = Turn { tool_choice: Some(ToolChoice::Any), ..hello() };
    assert_eq!(refused(forced).path, "tool_choice");
    let allowed = Some(ToolChoice::Other("allowed_tools".into()));
    let turn = Turn { tools: vec![function("f", None)], tool_choice: allowed, ..hello() };
    assert_eq!(refused(turn).path, "tool_choice");
}

fn any_body() -> impl Strategy<Value = Body<'static>> {
    let id = prop::sample::select(vec!["a", "b", "c.d"]);
    prop_oneof![
        Just(Body::Text("x".into())),
        Just(Body::Text("".into())),
        (id.clone(), any::<String>()).prop_map(|(id, arguments)| Body::ToolCall {
            id: id.into(),
            name: "f".into(),
            arguments: arguments.into()
        }),
        id.prop_map(|id| result(id, "r")),
        Just(Body::Thinking { text: "t".into(), signature: None }),
        Just(Body::RedactedThinking("r".into())),
        Just(Body::Image(Image::Url("u".into()))),
    ]
}

fn any_message() -> impl Strategy<Value = (Role, Vec<Body<'static>>)> {
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant]);
    (role, prop::collection::vec(any_body(), 0..4))
}

proptest! {
    #[test]
    fn whatever_is_encoded_alternates_and_answers_every_call_at_once(said in prop::collection::vec(any_message(), 0..8)) {
        let Ok(encoded) = encode(&conversation(said), "up") else { return Ok(()) };
        let sent = body(&encoded);
        let messages = sent["messages"].as_array().unwrap();
        prop_assert!(!messages.is_empty());
        let mut due: Vec<Value> = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            prop_assert!(at == 0 || message["role"] != messages[at - 1]["role"]);
            let empty = Vec::new();
            let content = message["content"].as_array().unwrap_or(&empty);
            let results: Vec<Value> = content.iter().take_while(|block| block["type"] == "tool_result").map(|block| block["tool_use_id"].clone()).collect();
            prop_assert_eq!(&results, &due);
            prop_assert!(content.iter().skip(results.len()).all(|block| block["type"] != "tool_result"));
            due.clear();
            for block in content.iter().filter(|block| block["type"] == "tool_use") {
                if !due.contains(&block["id"]) {
                    due.push(block["id"].clone());
                }
            }
        }
        prop_assert!(due.is_empty());
        // What the encoder writes, the check accepts.
        prop_assert!(turnkeep_dialect::messages::request::read(turnkeep_dialect::request::Operation::Generate, encoded.body).is_ok());
    }
}
