//! A canonical turn as a Chat request.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use serde_json::{Value, json};
use turnkeep_dialect::chat::request::decode;
use turnkeep_dialect::chat::request_encode::encode;
use turnkeep_dialect::chat::{SIGNATURE, SIGNATURE_PREFIX};
use turnkeep_dialect::tool_id::to_messages_safe;
use turnkeep_dialect::turn::{
    At, Body, Image, Message, Output, Part, Reasoning, Role, Thinking, Tool, ToolChoice, ToolKind, Turn,
};

fn part(body: Body<'_>) -> Part<'_> {
    Part { body, at: At::Content { message: 0, part: 3 }, cache: None }
}

fn message<'a>(role: Role, parts: Vec<Body<'a>>) -> Message<'a> {
    Message { role, at: At::Message(0), parts: parts.into_iter().map(part).collect() }
}

fn text(text: &str) -> Body<'_> {
    Body::Text(text.into())
}

fn call<'a>(id: &'a str, arguments: &'a str) -> Body<'a> {
    Body::ToolCall { id: id.into(), name: "f".into(), arguments: arguments.into() }
}

fn result<'a>(id: &'a str, content: Vec<Body<'a>>, is_error: bool) -> Body<'a> {
    Body::ToolResult { id: id.into(), content: content.into_iter().map(part).collect(), is_error }
}

fn image() -> Body<'static> {
    Body::Image(Image::Data { media_type: "image/png".into(), data: "AA==".into() })
}

fn turn<'a>(messages: Vec<Message<'a>>) -> Turn<'a> {
    Turn { model: "client-name".into(), messages, ..Turn::default() }
}

fn asking() -> Turn<'static> {
    turn(vec![message(Role::User, vec![text("hi")])])
}

#[track_caller]
fn encoded(turn: &Turn<'_>, model: &str) -> (Value, Vec<String>) {
    let encoded = encode(turn, model).unwrap();
    turnkeep_dialect::chat::request::read(encoded.body.clone()).unwrap();
    (serde_json::from_slice(&encoded.body).unwrap(), encoded.dropped)
}

fn function(schema: Option<&str>) -> Tool<'_> {
    Tool { index: 0, kind: ToolKind::Function { name: "f".into(), description: None, schema, strict: None } }
}

#[test]
fn the_smallest_turn_is_the_smallest_request() {
    let (body, dropped) = encoded(&asking(), "up");
    assert_eq!(body, json!({"model": "up", "messages": [{"role": "user", "content": "hi"}]}));
    assert!(dropped.is_empty());
}

#[test]
fn system_messages_stay_in_their_places() {
    let (body, _) = encoded(
        &turn(vec![
            message(Role::System, vec![text("a"), text("b")]),
            message(Role::User, vec![text("hi"), image()]),
            message(Role::System, vec![text("c")]),
        ]),
        "up",
    );
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
            {"role": "system", "content": "c"},
        ])
    );
}

#[test]
fn results_come_right_behind_the_calls_and_their_images_after_all_of_them() {
    let (body, dropped) = encoded(
        &turn(vec![
            message(Role::Assistant, vec![text("let me"), call("1", ""), call("2", "{\"a\":"), call("3", "{}")]),
            message(Role::User, vec![text("well?"), result("1", vec![text("seen"), image()], false)]),
            message(Role::User, vec![result("2", vec![text("boom")], true), result("3", vec![image()], false)]),
        ]),
        "up",
    );
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let mark = |id: &str| json!({"type": "text", "text": format!("[Images in the result of the tool call {id}:]")});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "assistant", "content": "let me", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "2", "type": "function", "function": {"name": "f", "arguments": "{\"a\":"}},
                {"id": "3", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "1", "content": "seen"},
            {"role": "tool", "tool_call_id": "2", "content": "Error: boom"},
            {"role": "tool", "tool_call_id": "3", "content": "[The result is images; they follow in the next user message.]"},
            {"role": "user", "content": [mark("1"), image, mark("3"), image]},
            {"role": "user", "content": "well?"},
        ])
    );
    assert!(dropped.is_empty());
}

#[test]
fn a_system_message_between_a_call_and_its_result_stands_behind_the_result() {
    let turn = turn(vec![
        message(Role::User, vec![text("q")]),
        message(Role::Assistant, vec![call("a", "{}"), call("b", "{}")]),
        message(Role::System, vec![text("mind the time")]),
        message(Role::User, vec![result("b", vec![text("B")], false)]),
        message(Role::System, vec![text("and the place")]),
        message(Role::User, vec![result("a", vec![text("A")], false), text("go on")]),
    ]);
    let (body, dropped) = encoded(&turn, "up");
    let said: Vec<_> = body["messages"].as_array().unwrap()[2..]
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect();
    assert_eq!(
        said,
        [("tool", "B"), ("tool", "A"), ("system", "mind the time"), ("system", "and the place"), ("user", "go on")]
    );
    assert!(dropped.is_empty(), "{dropped:?}");
}

#[test]
fn a_result_without_its_call_is_dropped_and_named() {
    let turn = turn(vec![
        message(Role::User, vec![result("zz", vec![image()], false), text("q")]),
        message(Role::Assistant, vec![call("a", "{}")]),
        message(Role::User, vec![result("a", vec![text("A")], false)]),
        message(Role::Assistant, vec![text("so")]),
        message(Role::User, vec![result("a", vec![text("again")], false), text("r")]),
    ]);
    let (body, dropped) = encoded(&turn, "up");
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"], "{body}");
    assert_eq!(dropped, ["tool_result"]);
}

#[test]
fn a_failed_tool_that_says_error_itself_is_not_made_to_say_it_twice() {
    for (content, sent) in [(vec![text("error: x")], "error: x"), (vec![], "Error: the tool failed without a message")]
    {
        let failed = message(Role::User, vec![result("1", content, true)]);
        let (body, _) = encoded(&turn(vec![message(Role::Assistant, vec![call("1", "{}")]), failed]), "up");
        assert_eq!(body["messages"][1]["content"], sent);
    }
}

#[test]
fn assistant_messages_in_a_row_become_one() {
    let (body, _) = encoded(
        &turn(vec![
            message(Role::Assistant, vec![text("a")]),
            message(Role::Assistant, vec![call("1", "{}"), Body::Refusal("no".into())]),
        ]),
        "up",
    );
    assert_eq!(body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant").count(), 1);
    assert_eq!(body["messages"][0]["refusal"], "no");
    assert_eq!(body["messages"][0]["content"], "a");
}

#[test]
fn thinking_goes_back_only_where_it_came_from() {
    let thinking =
        |signature: Option<&'static str>| Body::Thinking { text: "hm".into(), signature: signature.map(Into::into) };
    assert!(SIGNATURE.starts_with(SIGNATURE_PREFIX));
    let (body, dropped) =
        encoded(&turn(vec![message(Role::Assistant, vec![thinking(Some(SIGNATURE)), call("1", "{}")])]), "up");
    assert_eq!(body["messages"][0]["reasoning_content"], "hm");
    assert!(dropped.is_empty());
    let foreign = vec![thinking(Some("EqQB")), thinking(None), Body::RedactedThinking("zz".into()), text("x")];
    let (body, dropped) = encoded(&turn(vec![message(Role::Assistant, foreign)]), "up");
    assert_eq!(body["messages"], json!([{"role": "assistant", "content": "x"}]));
    assert_eq!(dropped, ["thinking", "redacted_thinking"]);
}

#[test]
fn ids_that_were_wrapped_for_messages_are_the_upstreams_again() {
    let wrapped = to_messages_safe("functions.Bash:0");
    let long = "x".repeat(41);
    let calls = message(Role::Assistant, vec![call(&wrapped, ""), call(&long, "")]);
    let results = message(Role::User, vec![result(&wrapped, vec![], false), result(&long, vec![], false)]);
    let (body, _) = encoded(&turn(vec![calls, results]), "up");
    let messages = &body["messages"];
    assert_eq!(messages[0]["tool_calls"][0]["id"], "functions.Bash:0");
    assert_eq!(messages[1]["tool_call_id"], "functions.Bash:0");
    assert_eq!(messages[0]["tool_calls"][1]["id"], messages[2]["tool_call_id"]);
    assert!(messages[2]["tool_call_id"].as_str().unwrap().len() <= 40);
}

#[test]
fn an_object_schema_gets_properties_at_its_top_and_nowhere_else() {
    for (schema, sent) in [
        (r#"{"type":"object"}"#, r#"{"properties":{},"type":"object"}"#),
        (r#"{ "type":"object","x":{"type":"object"}}"#, r#"{"properties":{}, "type":"object","x":{"type":"object"}}"#),
        (r#"{"type":"object","properties":{"a":{}}}"#, r#"{"type":"object","properties":{"a":{}}}"#),
        (r#"{"anyOf":[]}"#, r#"{"anyOf":[]}"#),
        ("{}", "{}"),
    ] {
        let body = encode(&Turn { tools: vec![function(Some(schema))], ..asking() }, "up").unwrap().body;
        let body = std::str::from_utf8(&body).unwrap();
        assert!(body.contains(&format!("\"parameters\":{sent}")), "{body}");
    }
}

#[test]
fn tools_and_their_choice_are_written() {
    for (choice, sent) in [
        (ToolChoice::Auto, json!("auto")),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Any, json!("required")),
        (ToolChoice::Named("f".into()), json!({"type": "function", "function": {"name": "f"}})),
    ] {
        let turn =
            Turn { tools: vec![function(None)], tool_choice: Some(choice), parallel_tools: Some(false), ..asking() };
        let (body, _) = encoded(&turn, "up");
        assert_eq!(body["tool_choice"], sent);
        assert_eq!(body["parallel_tool_calls"], false);
        assert_eq!(body["tools"], json!([{"type": "function", "function": {"name": "f"}}]));
    }
    let none = Turn { tool_choice: Some(ToolChoice::Auto), parallel_tools: Some(true), ..asking() };
    assert_eq!(encoded(&none, "up").0, encoded(&asking(), "up").0);
}

#[test]
fn the_limit_of_tokens_has_the_name_that_the_model_knows() {
    for (model, name) in [
        ("gpt-4o", "max_tokens"),
        ("llama", "max_tokens"),
        ("o3-mini", "max_completion_tokens"),
        ("openai/gpt-5.2", "max_completion_tokens"),
    ] {
        assert_eq!(encoded(&Turn { max_output: Some(7), ..asking() }, model).0[name], 7, "{model}");
    }
}

#[test]
fn settings_are_written_as_they_were_given() {
    let turn = Turn {
        temperature: Some("0.10"),
        top_p: Some("1e-1"),
        top_k: Some("5"),
        stop: vec!["a".into(), "b".into()],
        user: Some("u".into()),
        stream: true,
        output: Output::Schema { name: None, schema: r#"{"b":1,"a":2}"#, strict: None },
        hints: vec!["top_k".into(), "metadata".into()],
        ..asking()
    };
    let encoded = encode(&turn, "up").unwrap();
    assert_eq!(
        std::str::from_utf8(&encoded.body).unwrap(),
        r#"{"model":"up","messages":[{"role":"user","content":"hi"}],"temperature":0.10,"top_p":1e-1,"stop":["a","b"],"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"b":1,"a":2}}},"user":"u","stream":true,"stream_options":{"include_usage":true}}"#
    );
    assert_eq!(encoded.dropped, ["top_k", "metadata"]);
}

#[test]
fn thinking_settings_become_an_effort_or_are_named() {
    use Thinking::{Adaptive, Budget, Off};
    for (mode, effort, sent, dropped) in [
        (None, None, None, vec![]),
        (Some(Adaptive), None, None, vec![]),
        (Some(Adaptive), Some("max"), Some("max"), vec![]),
        (Some(Budget(1024)), None, Some("low"), vec![]),
        (Some(Budget(4096)), None, Some("medium"), vec![]),
        (Some(Budget(16384)), None, Some("high"), vec![]),
        (Some(Budget(1024)), Some("high"), Some("high"), vec![]),
        (Some(Off), None, None, vec!["thinking"]),
        (Some(Off), Some("low"), None, vec!["thinking", "effort"]),
        (None, Some("ultra"), None, vec!["effort"]),
    ] {
        let turn = Turn { reasoning: Reasoning { mode, effort: effort.map(Into::into) }, ..asking() };
        let (body, named) = encoded(&turn, "up");
        assert_eq!((body["reasoning_effort"].as_str(), named), (sent, dropped.iter().map(|n| n.to_string()).collect()));
    }
}

#[test]
fn what_chat_has_no_form_for_is_refused_by_its_path() {
    let hosted = Tool { index: 2, kind: ToolKind::Hosted("web_search_1".into()) };
    let other = Some(ToolChoice::Other("x".into()));
    let many = vec!["a".into(); 5];
    for (turn, path) in [
        (turn(vec![message(Role::User, vec![Body::Other("document".into())])]), "messages[0].content[3]"),
        (
            turn(vec![
                message(Role::Assistant, vec![call("1", "{}")]),
                message(Role::User, vec![result("1", vec![Body::Other("x".into())], false)]),
            ]),
            "messages[0].content[3]",
        ),
        (turn(vec![message(Role::User, vec![result("1", vec![text("an orphan")], false)])]), "messages"),
        (turn(vec![message(Role::System, vec![image()])]), "messages[0].content[3]"),
        (Turn { tools: vec![hosted], ..asking() }, "tools[2]"),
        (Turn { tools: vec![function(None)], tool_choice: other, ..asking() }, "tool_choice"),
        (Turn { tool_choice: Some(ToolChoice::Any), ..asking() }, "tool_choice"),
        (Turn { stop: many, ..asking() }, "stop_sequences"),
    ] {
        assert_eq!(encode(&turn, "up").unwrap_err().path, path);
    }
}

#[test]
fn a_cache_mark_is_named_once() {
    let mut turn = turn(vec![message(Role::User, vec![text("a"), text("b")])]);
    for part in &mut turn.messages[0].parts {
        part.cache = Some("{}");
    }
    assert_eq!(encoded(&turn, "up").1, ["cache_control"]);
}

#[test]
fn what_was_encoded_decodes_to_the_same_turn() {
    let body = br#"{"model":"up","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"https://x"}}]},
        {"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},
        {"role":"tool","tool_call_id":"1","content":"r"},{"role":"user","content":"go on"}],
        "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}},"strict":true}}],
        "tool_choice":"auto","parallel_tool_calls":true,"max_tokens":9,"temperature":0.5,"top_p":0.9,"stop":["x"],
        "response_format":{"type":"json_object"},"reasoning_effort":"high","user":"u","stream":true,"stream_options":{"include_usage":true}}"#;
    let first = decode(body).unwrap();
    let encoded = encode(&first, "up").unwrap();
    assert!(encoded.dropped.is_empty());
    let second = decode(&encoded.body).unwrap();
    assert_eq!(first, second);
}
