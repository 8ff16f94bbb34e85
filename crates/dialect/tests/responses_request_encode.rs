//! A canonical turn as a Responses request: where each thing goes, what is dropped by name and what is refused by path.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper of a test may fail the test")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{Encoded, Operation, encode, read};
use turnkeep_dialect::responses::request::decode;
use turnkeep_dialect::turn::{
    At, Body, File, FileSource, Image, Message, Part, Reasoning, Role, Thinking, Tool, ToolChoice, ToolKind, Turn,
};

const FULL: &str = include_str!("responses_requests/full.json");
const CODEX: &str = include_str!("responses_requests/codex.json");

fn part(body: Body<'_>) -> Part<'_> {
    Part { body, at: At::Content { message: 3, part: 1 }, cache: None }
}

fn message<'a>(role: Role, bodies: Vec<Body<'a>>) -> Message<'a> {
    Message { role, at: At::Message(3), parts: bodies.into_iter().map(part).collect() }
}

fn text(text: &str) -> Body<'_> {
    Body::Text(text.into())
}

fn call<'a>(id: &'a str, name: &'a str, arguments: &'a str) -> Body<'a> {
    Body::ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn result<'a>(id: &'a str, content: Vec<Body<'a>>, is_error: bool) -> Body<'a> {
    Body::ToolResult { id: id.into(), content: content.into_iter().map(part).collect(), is_error }
}

fn thinking<'a>(text: &'a str, signature: &'a str) -> Body<'a> {
    Body::Thinking { text: text.into(), signature: Some(signature.into()) }
}

fn turn(messages: Vec<Message<'_>>) -> Turn<'_> {
    Turn { model: "m".into(), messages, ..Turn::default() }
}

/// Writes the turn; what was written is a request that our own reader takes.
fn written(turn: &Turn<'_>) -> (Value, Encoded) {
    let encoded = encode(Dialect::Responses, turn, "up").unwrap();
    read(Dialect::Responses, Operation::Generate, encoded.body.clone()).unwrap();
    (serde_json::from_slice(&encoded.body).unwrap(), encoded)
}

fn input(messages: Vec<Message<'_>>) -> Value {
    written(&turn(messages)).0["input"].take()
}

fn refused(turn: &Turn<'_>) -> Invalid {
    encode(Dialect::Responses, turn, "up").unwrap_err()
}

fn user() -> Message<'static> {
    message(Role::User, vec![text("q")])
}

fn said(role: &str, kind: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

fn answered(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

#[test]
fn leading_system_messages_are_the_instructions_and_later_ones_stay_in_their_place() {
    let system = |words| message(Role::System, vec![text(words)]);
    let (body, _) = written(&turn(vec![system("a"), system(""), system("b"), user(), system("c"), user()]));
    assert_eq!(body["instructions"], "a\n\nb");
    let user = said("user", "input_text", "q");
    assert_eq!(body["input"], json!([user, said("developer", "input_text", "c"), user]));
    let (alone, _) = written(&turn(vec![system("a"), system("b")]));
    assert_eq!(
        (&alone["instructions"], &alone["input"]),
        (&json!("a"), &json!([said("developer", "input_text", "b")]))
    );
}

#[test]
fn nothing_is_stored_and_reasoning_is_asked_for_where_there_can_be_some() {
    let (body, encoded) = written(&turn(vec![user()]));
    assert_eq!(body["store"], false);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!((body.get("stream"), body.get("tools")), (None, None));
    assert!(encoded.dropped.is_empty());
    let without = encode(Dialect::Responses, &turn(vec![user()]), "gpt-4.1-mini").unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&without.body).unwrap().get("include"), None);
}

#[test]
fn images_and_files_of_the_user_are_carried() {
    let file = |media_type: Option<&'static str>, name: Option<&'static str>, source| {
        Body::File(File { media_type: media_type.map(Into::into), name: name.map(Into::into), source })
    };
    let items = input(vec![message(
        Role::User,
        vec![
            Body::Image(Image::Url("https://a".into())),
            Body::Image(Image::Data { media_type: "image/png".into(), data: "AAAA".into() }),
            file(Some("application/pdf"), Some("a.pdf"), FileSource::Data("JVBE".into())),
            file(None, None, FileSource::Data("JVBERi0x".into())),
            file(None, None, FileSource::Url("https://b".into())),
            file(Some("text/plain"), None, FileSource::Plain("words".into())),
        ],
    )]);
    assert_eq!(
        items[0]["content"],
        json!([
            {"type": "input_image", "detail": "auto", "image_url": "https://a"},
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"},
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
            {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBERi0x"},
            {"type": "input_file", "file_url": "https://b"},
            {"type": "input_text", "text": "words"},
        ])
    );
}

#[test]
fn what_has_no_form_is_refused_by_its_path() {
    let sound =
        Body::File(File { media_type: Some("audio/wav".into()), name: None, source: FileSource::Data("A".into()) });
    for (role, body, word) in [
        (Role::User, sound, "audio/wav"),
        (Role::User, Body::Other("smell".into()), "`smell`"),
        (Role::User, call("c", "f", ""), "a tool call"),
        (Role::Assistant, Body::Image(Image::Url("https://a".into())), "an image"),
        (Role::Assistant, Body::Other("mcp_call".into()), "`mcp_call`"),
        (Role::System, Body::Image(Image::Url("https://a".into())), "an image"),
    ] {
        let error = refused(&turn(vec![user(), message(role, vec![body]), user()]));
        assert_eq!(error.path, "messages[3].content[1]");
        assert!(error.message.contains(word), "{error}");
    }
    assert_eq!(refused(&turn(vec![message(Role::User, vec![])])).path, "input");
}

#[test]
fn what_the_model_said_stays_in_order() {
    let items = input(vec![
        user(),
        message(
            Role::Assistant,
            vec![
                thinking("why", "turnkeep.responses.c3RhdGU="),
                text("a"),
                Body::Refusal("no".into()),
                call("c1", "f", "{\"x\": 1}"),
                text("b"),
                call("c2", "f", ""),
            ],
        ),
        message(Role::User, vec![result("c2", vec![text("2")], false), result("c1", vec![], false)]),
    ]);
    let mut words = answered("a");
    words["content"].as_array_mut().unwrap().push(json!({"type": "refusal", "refusal": "no"}));
    assert_eq!(
        items,
        json!([
            said("user", "input_text", "q"),
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "why"}], "encrypted_content": "c3RhdGU="},
            words,
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"x\": 1}"},
            answered("b"),
            {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c2", "output": "2"},
            {"type": "function_call_output", "call_id": "c1", "output": ""},
        ])
    );
}

#[test]
fn thinking_of_another_origin_is_dropped_and_named() {
    for proof in ["bmF0aXZl", "turnkeep.chat.djE", "turnkeep.gemini.x", "turnkeep.unsigned"] {
        let (body, encoded) =
            written(&turn(vec![user(), message(Role::Assistant, vec![thinking("why", proof), text("a")])]));
        assert_eq!(body["input"][1], answered("a"));
        assert_eq!(encoded.dropped, ["thinking"]);
    }
    let redacted = vec![Body::RedactedThinking("bmF0aXZl".into()), text("a")];
    assert_eq!(written(&turn(vec![user(), message(Role::Assistant, redacted)])).1.dropped, ["redacted_thinking"]);
}

#[test]
fn reasoning_that_nothing_follows_is_left_out() {
    let alone = vec![text("a"), thinking("", "turnkeep.responses.x"), text("")];
    let (body, encoded) = written(&turn(vec![user(), message(Role::Assistant, alone), user()]));
    assert_eq!(body["input"].as_array().unwrap().len(), 3);
    assert_eq!(encoded.dropped, ["thinking"]);
}

#[test]
fn a_free_text_tool_is_called_and_answered_as_one() {
    let mut turn = turn(vec![
        user(),
        message(Role::Assistant, vec![call("c1", "patch", r#"{"input":"a\nb"}"#), call("c2", "patch", "as it is")]),
        message(Role::User, vec![result("c1", vec![text("ok")], false)]),
    ]);
    let format = Some(r#"{"type":"text"}"#.into());
    turn.tools = vec![Tool { index: 0, kind: ToolKind::Custom { name: "patch".into(), description: None, format } }];
    turn.tool_choice = Some(ToolChoice::Named("patch".into()));
    let (body, _) = written(&turn);
    assert_eq!(body["tools"], json!([{"type": "custom", "name": "patch", "format": {"type": "text"}}]));
    assert_eq!(body["tool_choice"], json!({"type": "custom", "name": "patch"}));
    assert_eq!(
        body["input"].as_array().unwrap()[1..],
        [
            json!({"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "a\nb"}),
            json!({"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "as it is"}),
            json!({"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}),
            json!({"type": "custom_tool_call_output", "call_id": "c2", "output": "Error: no result was given"}),
        ]
    );
}

#[test]
fn results_keep_their_images_and_say_that_a_tool_failed() {
    let calls = || message(Role::Assistant, vec![call("c", "f", "{}")]);
    let image = || Body::Image(Image::Url("https://a".into()));
    let picture = json!({"type": "input_image", "detail": "auto", "image_url": "https://a"});
    let words = |text: &str| json!({"type": "input_text", "text": text});
    for (content, is_error, output) in [
        (vec![text("x")], true, json!("Error: x")),
        (vec![text("error: x")], true, json!("error: x")),
        (vec![], true, json!("Error: the tool failed without a message")),
        (vec![image()], false, json!([picture])),
        (vec![image()], true, json!([words("Error: the tool failed"), picture])),
        (vec![text("a"), image(), text("b")], true, json!([words("Error: a"), picture, words("b")])),
    ] {
        let items = input(vec![user(), calls(), message(Role::User, vec![result("c", content, is_error)])]);
        assert_eq!(items[2]["output"], output);
    }
}

#[test]
fn each_call_has_one_result_right_behind_its_turn() {
    let (body, encoded) = written(&turn(vec![
        user(),
        message(Role::Assistant, vec![call("a", "f", "{}"), call("b", "f", "{}")]),
        message(Role::User, vec![text("first")]),
        message(Role::System, vec![text("then")]),
        message(
            Role::User,
            vec![
                result("a", vec![text("old")], false),
                result("a", vec![text("new")], false),
                result("stray", vec![text("x")], false),
            ],
        ),
        message(Role::Assistant, vec![call("c", "f", "{}")]),
    ]));
    let output = |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
    let items = body["input"].as_array().unwrap();
    assert_eq!(
        items[3..7],
        [
            output("a", "new"),
            output("b", "Error: no result was given"),
            said("user", "input_text", "first"),
            said("developer", "input_text", "then"),
        ]
    );
    assert_eq!(items[8], output("c", "Error: no result was given"));
    assert_eq!(items.len(), 9);
    assert_eq!(encoded.dropped, ["tool_result"]);
}

#[test]
fn ids_are_the_upstreams_own_again_and_fit() {
    let long = "x".repeat(65);
    let items = input(vec![
        user(),
        message(Role::Assistant, vec![call("tkid_Zi46MA", "f", "{}"), call(&long, "f", "{}")]),
        message(Role::User, vec![result(&long, vec![text("x")], false), result("tkid_Zi46MA", vec![], false)]),
    ]);
    let ids: Vec<_> = items.as_array().unwrap().iter().filter_map(|item| item["call_id"].as_str()).collect();
    assert_eq!(ids, ["f.:0", "call_long_0", "call_long_0", "f.:0"]);
}

#[test]
fn tools_are_flat_and_say_whether_they_are_strict() {
    let function = |name: &'static str, schema, strict| ToolKind::Function {
        name: name.into(),
        description: Some("d".into()),
        schema,
        strict,
    };
    let mut turn = turn(vec![user()]);
    let kinds = [
        function("a", Some(r#"{"type":"object"}"#), None),
        function("b", None, Some(true)),
        function("c.d", Some("{}"), Some(false)),
    ];
    turn.tools = kinds.into_iter().enumerate().map(|(at, kind)| Tool { index: at as u32, kind }).collect();
    turn.parallel_tools = Some(false);
    turn.tool_choice = Some(ToolChoice::Allowed { required: true, names: vec!["a".into(), "c.d".into()] });
    let (body, encoded) = written(&turn);
    let empty = json!({"type": "object", "properties": {}});
    let sent = body["tools"][2]["name"].as_str().unwrap();
    assert_eq!(
        body["tools"],
        json!([
            {"type": "function", "name": "a", "description": "d", "parameters": empty, "strict": false},
            {"type": "function", "name": "b", "description": "d", "parameters": empty, "strict": true},
            {"type": "function", "name": sent, "description": "d", "parameters": {}, "strict": false},
        ])
    );
    assert_eq!(encoded.names.name(sent), "c.d");
    let tool = |name: &str| json!({"type": "function", "name": name});
    assert_eq!(
        body["tool_choice"],
        json!({"type": "allowed_tools", "mode": "required", "tools": [tool("a"), tool(sent)]})
    );
    assert_eq!(body["parallel_tool_calls"], false);
    turn.tool_choice = Some(ToolChoice::Other("mcp".into()));
    assert_eq!(refused(&turn).path, "tool_choice");
    // Beside others it is left out by name; alone it is all that was asked for.
    turn.tool_choice = None;
    turn.tools[1].kind = ToolKind::Hosted("web_search".into());
    turn.tools.swap(0, 1);
    turn.tools.truncate(1);
    assert_eq!(refused(&turn).path, "tools[1]");
    turn.tools.clear();
    turn.tool_choice = Some(ToolChoice::Any);
    assert_eq!(refused(&turn).path, "tool_choice");
}

#[test]
fn settings_go_to_their_places_and_the_rest_is_named() {
    let body = turn(vec![user()]);
    let full = Turn {
        stream: true,
        max_output: Some(70),
        temperature: Some("0.50"),
        top_p: Some("1"),
        top_k: Some("5"),
        seed: Some("1"),
        presence_penalty: Some("1"),
        frequency_penalty: Some("1"),
        stop: vec!["x".into()],
        output: turnkeep_dialect::turn::Output::Schema { name: None, schema: "{}", strict: None },
        reasoning: Reasoning { mode: Some(Thinking::Budget(5000)), effort: None },
        verbosity: Some("low".into()),
        user: Some("u".into()),
        cache_key: Some("k".into()),
        hints: vec!["metadata".into()],
        ..body
    };
    let (body, encoded) = written(&full);
    assert!(String::from_utf8_lossy(&encoded.body).contains("\"temperature\":0.50,"));
    assert_eq!((&body["max_output_tokens"], &body["top_p"], &body["stream"]), (&json!(70), &json!(1), &json!(true)));
    assert_eq!(
        body["text"],
        json!({"format": {"type": "json_schema", "name": "answer", "schema": {}}, "verbosity": "low"})
    );
    assert_eq!(body["reasoning"], json!({"effort": "medium"}));
    assert_eq!((&body["user"], &body["prompt_cache_key"]), (&json!("u"), &json!("k")));
    assert_eq!(encoded.dropped, ["stop", "top_k", "seed", "presence_penalty", "frequency_penalty", "metadata"]);
}

#[test]
fn a_limit_below_the_apis_least_is_raised_to_it_and_named() {
    for (asked, sent, dropped) in [(1, 16, &["max_tokens"][..]), (16, 16, &[]), (17, 17, &[])] {
        let (body, encoded) = written(&Turn { max_output: Some(asked), ..turn(vec![user()]) });
        assert_eq!(
            (&body["max_output_tokens"], encoded.dropped.iter().map(String::as_str).collect::<Vec<_>>()),
            (&json!(sent), dropped.to_vec())
        );
    }
}

/// What is said and done in a turn, without the system prompt, which is one text behind a translation.
fn heard(turn: &Turn<'_>) -> Vec<(Role, Vec<String>)> {
    fn brief(body: &Body<'_>) -> String {
        match body {
            Body::ToolResult { id, content, is_error } => {
                let inside: Vec<_> = content.iter().map(|part| brief(&part.body)).collect();
                format!("{id} {is_error} {inside:?}")
            }
            other => format!("{other:?}"),
        }
    }
    let rest = turn.messages.iter().skip_while(|message| message.role == Role::System);
    rest.map(|message| (message.role, message.parts.iter().map(|part| brief(&part.body)).collect())).collect()
}

fn comes_back(body: &str) {
    let first = decode(body.as_bytes()).unwrap();
    let once = encode(Dialect::Responses, &first, "m").unwrap();
    let second = decode(&once.body).unwrap();
    assert_eq!(heard(&second), heard(&first));
    assert_eq!(
        (second.max_output, second.temperature, second.top_p),
        (first.max_output, first.temperature, first.top_p)
    );
    assert_eq!(
        (&second.output, &second.reasoning, &second.verbosity),
        (&first.output, &first.reasoning, &first.verbosity)
    );
    assert_eq!((&second.tool_choice, second.parallel_tools), (&first.tool_choice, first.parallel_tools));
    assert_eq!((&second.user, &second.cache_key, second.stream), (&first.user, &first.cache_key, first.stream));
    assert_eq!(second.tools.len(), first.tools.len());
    let twice = encode(Dialect::Responses, &second, "m").unwrap();
    let value = |body: &Bytes| serde_json::from_slice::<Value>(body).unwrap();
    assert_eq!(value(&twice.body), value(&once.body));
}

#[test]
fn a_request_comes_back_from_its_own_translation() {
    comes_back(FULL);
    comes_back(CODEX);
}

/// A step of a conversation, as items; ids are made of its number.
fn items(step: &(u8, String), at: usize) -> Vec<Value> {
    let (kind, words) = step;
    let said = format!("{words}.");
    let id = format!("call_{at}");
    match kind % 5 {
        0 => vec![json!({"role": "user", "content": words})],
        1 => vec![json!({"role": "assistant", "content": said})],
        2 => vec![
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": said}], "encrypted_content": "x"}),
            json!({"role": "assistant", "content": [{"type": "refusal", "refusal": said}]}),
        ],
        3 => vec![
            json!({"type": "function_call", "call_id": id, "name": "f", "arguments": said}),
            json!({"type": "function_call_output", "call_id": id, "output": words}),
        ],
        _ => vec![
            json!({"type": "custom_tool_call", "call_id": id, "name": "free", "input": words}),
            json!({"type": "custom_tool_call_output", "call_id": id, "output": [{"type": "input_text", "text": words}, {"type": "input_text", "text": said}]}),
        ],
    }
}

proptest! {
    #[test]
    fn every_conversation_comes_back(steps in prop::collection::vec(any::<(u8, String)>(), 1..12)) {
        let input: Vec<_> = steps.iter().enumerate().flat_map(|(at, step)| items(step, at)).collect();
        let tools = json!([{"type": "function", "name": "f"}, {"type": "custom", "name": "free"}]);
        comes_back(&json!({"model": "m", "input": input, "tools": tools}).to_string());
    }
}
