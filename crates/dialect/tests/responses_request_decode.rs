//! A Responses request as a canonical turn: every kind of item is carried, or refused by its path; nothing is dropped
//! without its name.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper of a test may fail the test")]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::encode;
use turnkeep_dialect::responses::request::decode;
use turnkeep_dialect::turn::{
    At, Body, ClientTool, File, FileSource, Image, Output, Role, Thinking, ToolChoice, ToolKind, Turn,
};

const CODEX: &str = include_str!("responses_requests/codex.json");

/// What a part is, in short.
fn brief(body: &Body<'_>) -> String {
    match body {
        Body::Text(text) => format!("text {text}"),
        Body::Image(Image::Url(url)) => format!("image {url}"),
        Body::Image(Image::Data { media_type, data }) => format!("image {media_type} {data}"),
        Body::File(File { media_type, name, source }) => {
            let source = match source {
                FileSource::Data(text) | FileSource::Url(text) | FileSource::Plain(text) => text,
            };
            format!("file {} {} {source}", media_type.as_deref().unwrap_or("?"), name.as_deref().unwrap_or("?"))
        }
        Body::ToolCall { id, name, arguments } => format!("call {id} {name} {arguments}"),
        Body::ToolResult { id, content, is_error } => {
            assert!(!is_error);
            let inside: Vec<_> = content.iter().map(|part| brief(&part.body)).collect();
            format!("result {id} [{}]", inside.join(", "))
        }
        Body::Thinking { text, signature } => format!("thinking {text} {}", signature.as_deref().unwrap_or("?")),
        Body::RedactedThinking(data) => format!("redacted {data}"),
        Body::Refusal(text) => format!("refusal {text}"),
        Body::Other(kind) => format!("other {kind}"),
    }
}

/// The messages in short.
fn said(turn: &Turn<'_>) -> Vec<(Role, Vec<String>)> {
    let parts = |parts: &[turnkeep_dialect::turn::Part<'_>]| parts.iter().map(|part| brief(&part.body)).collect();
    turn.messages.iter().map(|message| (message.role, parts(&message.parts))).collect()
}

fn of(input: Value) -> Vec<u8> {
    json!({"model": "m", "input": input}).to_string().into_bytes()
}

fn parts(items: Value) -> Vec<(Role, Vec<String>)> {
    said(&decode(&of(items)).unwrap())
}

fn refused(items: Value) -> Invalid {
    decode(&of(items)).unwrap_err()
}

fn one(role: Role, part: &str) -> (Role, Vec<String>) {
    (role, vec![part.to_owned()])
}

#[test]
fn a_string_is_what_the_user_says() {
    assert_eq!(parts(json!("hi")), [one(Role::User, "text hi")]);
}

#[test]
fn messages_of_every_role_and_form_are_carried() {
    let items = json!([
        {"role": "system", "content": "a"},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "b"}]},
        {"role": "user", "content": "c"},
        {"content": [{"text": "d", "type": "output_text"}, {"refusal": "no", "type": "refusal"}], "role": "assistant"},
    ]);
    assert_eq!(
        parts(items),
        [
            one(Role::System, "text a"),
            one(Role::System, "text b"),
            one(Role::User, "text c"),
            (Role::Assistant, vec!["text d".into(), "refusal no".into()]),
        ]
    );
}

#[test]
fn images_files_and_sounds_are_carried() {
    let content = json!([
        {"type": "input_image", "image_url": "https://a/b.png", "detail": "auto"},
        {"type": "input_image", "image_url": "data:image/PNG;charset=x;base64,AAAA"},
        {"type": "input_image", "file_id": "file_1"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
        {"type": "input_file", "filename": "a.csv", "file_data": "YSxi"},
        {"type": "input_file", "file_url": "https://a/c.pdf"},
        {"type": "input_file", "file_id": "file_2"},
        {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
        {"type": "smell"},
    ]);
    assert_eq!(
        parts(json!([{"role": "user", "content": content}]))[0].1,
        [
            "image https://a/b.png",
            "image image/png AAAA",
            "other input_image with a file_id",
            "file application/pdf a.pdf JVBE",
            "file text/csv a.csv YSxi",
            "file ? ? https://a/c.pdf",
            "other input_file with a file_id",
            "file audio/wav ? UklG",
            "other smell",
        ]
    );
}

#[test]
fn an_address_that_is_none_is_refused_by_its_path() {
    for (part, path) in [
        (json!({"type": "input_image", "image_url": "ftp://a"}), "image_url"),
        (json!({"type": "input_image", "image_url": "data:image/png,AAAA"}), "image_url"),
        (json!({"type": "input_file", "file_data": "data:application/pdf"}), "file_data"),
        (json!({"type": "input_file", "file_url": "file:///etc/passwd"}), "file_url"),
    ] {
        let error = refused(json!([{"role": "user", "content": "x"}, {"role": "user", "content": [part]}]));
        assert_eq!(error.path, format!("input[1].content[0].{path}"));
    }
}

#[test]
fn one_turn_of_the_model_is_one_message_in_its_order() {
    let items = json!([
        {"role": "user", "content": "q"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}], "encrypted_content": "xyz"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "t"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "not json"},
        {"type": "function_call_output", "call_id": "c1", "output": "r"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "s"}, {"type": "input_image", "image_url": "https://a"}]},
        {"role": "user", "content": "more"},
        {"type": "function_call", "call_id": "c3", "name": "f", "arguments": ""},
    ]);
    let call = |text: &str| format!("call {text}");
    assert_eq!(
        parts(items),
        [
            one(Role::User, "text q"),
            (
                Role::Assistant,
                vec![
                    "thinking a\n\nb turnkeep.responses.xyz".into(),
                    "text t".into(),
                    call("c1 f {\"a\":1}"),
                    call("c2 f not json"),
                ]
            ),
            (Role::User, vec!["result c1 [text r]".into(), "result c2 [text s, image https://a]".into()]),
            one(Role::User, "text more"),
            one(Role::Assistant, &call("c3 f ")),
        ]
    );
}

#[test]
fn reasoning_keeps_the_origin_of_its_proof() {
    for (item, part) in [
        (json!({"summary": [], "encrypted_content": "x"}), "thinking  turnkeep.responses.x"),
        (json!({"summary": [], "encrypted_content": "turnkeep.gemini.x"}), "thinking  turnkeep.gemini.x"),
        (json!({"summary": [], "encrypted_content": "turnkeep.messages.c2ln"}), "thinking  c2ln"),
        (json!({"summary": [], "encrypted_content": "turnkeep.redacted.ZGF0YQ=="}), "redacted ZGF0YQ=="),
        (json!({"summary": [{"type": "summary_text", "text": "s"}]}), "thinking s ?"),
        (
            json!({"summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "c"}], "encrypted_content": ""}),
            "thinking c ?",
        ),
    ] {
        let mut item = item;
        item["type"] = "reasoning".into();
        assert_eq!(parts(json!([item])), [one(Role::Assistant, part)]);
    }
    assert_eq!(parts(json!([{"type": "reasoning", "summary": []}])), []);
}

#[test]
fn a_free_text_call_is_a_call_with_one_string() {
    let items = json!([
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "a \"b\"\n"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": ""},
    ]);
    assert_eq!(
        parts(items),
        [one(Role::Assistant, r#"call c patch {"input":"a \"b\"\n"}"#), one(Role::User, "result c []")]
    );
}

#[test]
fn what_needs_stored_state_or_a_responses_upstream_is_refused_in_words() {
    for (item, word) in [
        (json!({"type": "item_reference", "id": "fc_1"}), "stored"),
        (json!({"id": "fc_1"}), "stored"),
        (
            json!({"type": "compaction", "encrypted_content": "x"}),
            "`compaction` needs an upstream that speaks Responses",
        ),
        (json!({"type": "compaction_trigger"}), "`compaction_trigger` needs an upstream that speaks Responses"),
    ] {
        let error = refused(json!([{"role": "user", "content": "x"}, item]));
        assert_eq!(error.path, "input[1]");
        assert!(error.message.contains(word), "{error}");
    }
    let prompt = json!({"model": "m", "prompt": {"id": "p"}}).to_string();
    assert_eq!(decode(prompt.as_bytes()).unwrap_err().path, "prompt");
}

#[test]
fn items_of_hosted_tools_are_refused_by_every_target_by_their_path() {
    let kinds = [
        "web_search_call",
        "file_search_call",
        "computer_call",
        "computer_call_output",
        "image_generation_call",
        "code_interpreter_call",
        "local_shell_call",
        "local_shell_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "tool_search_call",
        "tool_search_output",
        "program",
        "program_output",
        "configuration_update",
    ];
    for kind in kinds {
        let item = json!({"type": kind, "id": "x", "output": {"a": 1}, "content": [7], "tools": [{"name": "a"}]});
        let body = of(json!([{"role": "user", "content": "x"}, item]));
        let turn = decode(&body).unwrap();
        assert_eq!(said(&turn)[1].1, [format!("other {kind}")]);
        for target in [Dialect::Chat, Dialect::Responses, Dialect::Messages] {
            let error = encode(target, &turn, "up").unwrap_err();
            assert_eq!(error.path, "input[1]", "{kind} to {target}");
            assert!(error.message.contains(kind), "{error}");
        }
    }
}

#[test]
fn settings_are_carried() {
    let body = json!({
        "model": "m", "input": "x", "instructions": "i", "stream": true, "max_output_tokens": 7,
        "temperature": 0.50, "top_p": 1, "parallel_tool_calls": false, "prompt_cache_key": "k", "safety_identifier": "s",
        "reasoning": {"effort": "high", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true}, "verbosity": "low"},
        "include": ["reasoning.encrypted_content"], "store": true, "background": false, "truncation": "disabled",
        "service_tier": "auto", "metadata": {}, "top_logprobs": 0, "stream_options": {"include_obfuscation": false},
        "previous_response_id": "resp_1", "tool_choice": "required",
    })
    .to_string();
    let turn = decode(body.as_bytes()).unwrap();
    assert_eq!(turn.hints, [""; 0]);
    assert_eq!((turn.model.as_ref(), turn.stream, turn.max_output), ("m", true, Some(7)));
    assert_eq!((turn.temperature, turn.top_p), (Some("0.5"), Some("1")));
    assert_eq!((turn.parallel_tools, turn.tool_choice), (Some(false), Some(ToolChoice::Any)));
    assert_eq!((turn.cache_key.as_deref(), turn.user.as_deref()), (Some("k"), Some("s")));
    assert_eq!((turn.reasoning.mode, turn.reasoning.effort.as_deref()), (None, Some("high")));
    assert_eq!(turn.verbosity.as_deref(), Some("low"));
    let schema = r#"{"type":"object"}"#;
    assert_eq!(turn.output, Output::Schema { name: Some("n".into()), schema, strict: Some(true) });
    assert_eq!(turn.messages[0].at, At::Instructions);
    assert_eq!(turn.messages[0].role, Role::System);
}

#[test]
fn an_effort_of_none_is_no_thinking() {
    let turn = decode(br#"{"model":"m","input":"x","reasoning":{"effort":"none"}}"#).unwrap();
    assert_eq!((turn.reasoning.mode, turn.reasoning.effort), (Some(Thinking::Off), None));
}

#[test]
fn what_has_no_place_is_named() {
    let body = json!({
        "model": "m", "user": "u", "safety_identifier": "s",
        "input": [
            {"role": "assistant", "phase": "commentary", "content": "x"},
            {"role": "user", "content": [{"type": "input_image", "image_url": "https://a", "detail": "high"}]},
        ],
        "reasoning": {"context": "all_turns", "mode": "standard"}, "truncation": "auto", "metadata": {"a": "b"},
        "include": ["web_search_call.results"], "service_tier": "flex", "max_tool_calls": 3, "future": [1],
        "tools": [
            {"type": "function", "name": "f", "defer_loading": true, "async": false, "output_schema": {"type": "object"}},
        ],
        "text": {"format": {"type": "json_object", "description": "d"}},
    })
    .to_string();
    let mut hints = decode(body.as_bytes()).unwrap().hints;
    hints.sort();
    assert_eq!(
        hints,
        [
            "future",
            "include",
            "input[].content[].detail",
            "input[].phase",
            "max_tool_calls",
            "metadata",
            "reasoning.context",
            "service_tier",
            "text.format.description",
            "tools[].defer_loading",
            "tools[].output_schema",
            "truncation",
            "user",
        ]
    );
}

#[test]
fn every_choice_of_tools_is_read() {
    let choice = |value: Value| {
        let body = json!({"model": "m", "input": "x", "tool_choice": value}).to_string();
        format!("{:?}", decode(body.as_bytes()).unwrap().tool_choice.unwrap())
    };
    assert_eq!(choice(json!("auto")), "Auto");
    assert_eq!(choice(json!("none")), "None");
    assert_eq!(choice(json!("required")), "Any");
    assert_eq!(choice(json!({"type": "function", "name": "f"})), r#"Named("f")"#);
    assert_eq!(choice(json!({"type": "custom", "name": "f"})), r#"Named("f")"#);
    assert_eq!(choice(json!({"type": "mcp", "server_label": "s"})), r#"Other("mcp")"#);
    assert_eq!(choice(json!({"type": "web_search_preview"})), r#"Other("web_search_preview")"#);
    let allowed = json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]});
    assert_eq!(choice(allowed), r#"Allowed { required: true, names: ["f"] }"#);
    let hosted = json!({"type": "allowed_tools", "tools": [{"type": "mcp", "server_label": "s"}]});
    assert_eq!(choice(hosted), r#"Other("allowed_tools with mcp")"#);
}

#[test]
fn codex_is_read_with_its_tools_in_an_item() {
    let turn = decode(CODEX.as_bytes()).unwrap();
    let names: Vec<_> = turn
        .tools
        .iter()
        .map(|tool| match &tool.kind {
            ToolKind::Function { name, .. } => format!("function {name}"),
            ToolKind::Custom { name, format, .. } => format!("custom {name} {}", format.is_some()),
            ToolKind::Hosted(kind) => format!("hosted {kind}"),
        })
        .collect();
    assert_eq!(names, ["custom functions__exec true", "function functions__wait", "function clock__sleep"]);
    let known = |canonical: &str| {
        turn.renamed.iter().find(|known| known.canonical == canonical).map(|known| known.client.clone()).unwrap()
    };
    let tool =
        |name: &str, space: &str, custom| ClientTool { name: name.into(), namespace: Some(space.into()), custom };
    assert_eq!(known("functions__exec"), tool("exec", "functions", true));
    assert_eq!(known("clock__sleep"), tool("sleep", "clock", false));
    let said = said(&turn);
    assert_eq!(
        said[4],
        (
            Role::Assistant,
            vec![
                "thinking Run the command. turnkeep.responses.c3R1Yi1lbmNyeXB0ZWQ".into(),
                r#"call call_1 functions__exec {"input":"text(\"hello\");"}"#.into(),
            ]
        )
    );
    assert_eq!(said[6], one(Role::Assistant, "call call_2 clock__sleep {}"));
    assert_eq!(said[8], one(Role::Assistant, "text Done."));
    assert_eq!(
        turn.hints,
        [
            "tools[].namespace.description",
            "input[].internal_chat_message_metadata_passthrough",
            "input[].phase",
            "reasoning.context",
            "client_metadata"
        ]
    );
}

#[test]
fn codex_goes_to_chat_and_messages() {
    let turn = decode(CODEX.as_bytes()).unwrap();
    for target in [Dialect::Chat, Dialect::Messages] {
        let encoded = encode(target, &turn, "up").unwrap();
        let text = String::from_utf8(encoded.body.to_vec()).unwrap();
        assert!(text.contains("functions__exec") && text.contains("clock__sleep"), "{text}");
        assert!(encoded.names.is_custom("functions__exec"), "{target}");
        assert_eq!(encoded.names.client("clock__sleep").unwrap().namespace.as_deref(), Some("clock"));
    }
}

#[test]
fn names_in_namespaces_do_not_meet_others() {
    let space = |name: &str, tool: &str| json!({"type": "namespace", "name": name, "tools": [{"type": "function", "name": tool}]});
    let body = json!({
        "model": "m",
        "input": [
            {"type": "function_call", "call_id": "1", "name": "c", "namespace": "a__b", "arguments": "{}"},
            {"type": "function_call", "call_id": "2", "name": "b__c", "namespace": "a", "arguments": "{}"},
            {"type": "function_call", "call_id": "3", "name": "a__b__c", "arguments": "{}"},
            {"type": "function_call", "call_id": "4", "name": "alone", "arguments": "{}"},
            {"type": "function_call", "call_id": "5", "name": "gone", "namespace": "x", "arguments": "{}"},
        ],
        "tools": [space("a", "b__c"), space("a__b", "c"), {"type": "function", "name": "a__b__c"}, space("z", "alone")],
        "tool_choice": {"type": "function", "name": "alone"},
    })
    .to_string();
    let turn = decode(body.as_bytes()).unwrap();
    assert_eq!(
        said(&turn)[0].1,
        ["call 1 a__b__c_3 {}", "call 2 a__b__c_2 {}", "call 3 a__b__c {}", "call 4 z__alone {}", "call 5 x__gone {}"]
    );
    assert_eq!(turn.tool_choice, Some(ToolChoice::Named("z__alone".into())));
    assert_eq!(turn.renamed.len(), 4);
}

#[test]
fn two_hundred_names_that_would_be_written_alike_are_told_apart() {
    let call = |n: usize| {
        let (space, name) = (format!("a{}", "_".repeat(n)), format!("{}b", "_".repeat(200 - n)));
        json!({"type": "function_call", "call_id": n.to_string(), "name": name, "namespace": space, "arguments": "{}"})
    };
    let body = of((0..200).map(call).collect());
    let turn = decode(&body).unwrap();
    let names: BTreeSet<String> = said(&turn)[0].1.iter().map(|call| call.split(' ').nth(2).unwrap().into()).collect();
    assert_eq!(names.len(), 200);
    assert!(names.iter().any(|name| name.ends_with("b_200")));
}

#[test]
fn a_tool_that_an_item_brings_again_replaces_the_one_before() {
    let tool = |description: &str| json!({"type": "function", "name": "f", "description": description});
    let body = json!({
        "model": "m", "tools": [tool("old")],
        "input": [{"type": "additional_tools", "tools": [tool("new")]}, {"role": "user", "content": "x"}],
    })
    .to_string();
    let turn = decode(body.as_bytes()).unwrap();
    let [only] = turn.tools.as_slice() else { panic!("{:?}", turn.tools) };
    let ToolKind::Function { description, .. } = &only.kind else { panic!("{only:?}") };
    assert_eq!(description.as_deref(), Some("new"));
}

#[test]
fn hosted_tools_are_known_by_their_type() {
    let body = br#"{"model":"m","input":"x","tools":[{"type":"web_search","external_web_access":true},{"type":"mcp","tools":[1]}]}"#;
    let turn = decode(body).unwrap();
    assert_eq!(turn.tools[0].kind, ToolKind::Hosted("web_search".into()));
    assert_eq!(turn.tools[1].kind, ToolKind::Hosted("mcp".into()));
    assert_eq!(turn.hints, [""; 0]);
}

#[test]
fn a_cache_mark_is_kept_in_the_form_of_a_turn() {
    let part = json!({"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "1h"}});
    let body = of(json!([{"role": "user", "content": [part]}]));
    let turn = decode(&body).unwrap();
    assert_eq!(turn.messages[0].parts[0].cache, Some(r#"{"type":"ephemeral","ttl":"1h"}"#));
}

#[test]
fn texts_are_borrowed_where_no_escape_forces_a_copy() {
    let body = of(json!([{"role": "user", "content": "plain"}]));
    let turn = decode(&body).unwrap();
    assert!(matches!(&turn.messages[0].parts[0].body, Body::Text(std::borrow::Cow::Borrowed("plain"))));
}
