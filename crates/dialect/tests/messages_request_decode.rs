//! A Messages request as a canonical turn.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use turnkeep_dialect::messages::request::decode;
use turnkeep_dialect::turn::{At, Body, File, FileSource, Image, Output, Part, Role, Thinking, ToolChoice, ToolKind};

fn text(text: &str, at: At) -> Part<'_> {
    Part { body: Body::Text(text.into()), at, cache: None }
}

#[test]
fn the_system_prompt_comes_first_and_later_system_messages_stay_in_place() {
    let turn = decode(
        br#"{"messages":[{"role":"user","content":"a"},{"role":"system","content":"b"}],
        "system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]}"#,
    )
    .unwrap();
    let roles: Vec<_> = turn.messages.iter().map(|message| (message.role, message.at)).collect();
    assert_eq!(roles, [(Role::System, At::System), (Role::User, At::Message(0)), (Role::System, At::Message(1))]);
    assert_eq!(turn.messages[0].parts[0].cache, Some(r#"{"type":"ephemeral"}"#));
    assert_eq!(turn.messages[2].parts, [text("b", At::Message(1))]);
}

#[test]
fn every_block_with_a_canonical_form_finds_it() {
    let turn = decode(
        br#"{"messages":[{"role":"assistant","content":[
        {"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"xx"},{"type":"text","text":"t"},
        {"id":"c1","name":"f","input":{ "a" : 1.0 },"type":"tool_use","caller":{"type":"direct"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[{"type":"text","text":"r"},
        {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},{"type":"document","title":"n","source":{"type":"text","media_type":"text/plain","data":"d"}}]},
        {"type":"document","context":"c","citations":{"enabled":true},"source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}},
        {"type":"document","source":{"type":"url","url":"http://y"}},{"type":"document","source":{"type":"file","file_id":"f"}},
        {"type":"tool_result","tool_use_id":"c2","content":"plain"},
        {"type":"image","source":{"type":"url","url":"http://x"}},{"type":"image","source":{"type":"file","file_id":"f"}},
        {"type":"web_search_tool_result","content":[]}]}]}"#,
    )
    .unwrap();
    let said: Vec<_> = turn.messages[0].parts.iter().map(|part| part.body.clone()).collect();
    assert_eq!(
        said,
        [
            Body::Thinking { text: "hm".into(), signature: Some("sig".into()) },
            Body::RedactedThinking("xx".into()),
            Body::Text("t".into()),
            Body::ToolCall { id: "c1".into(), name: "f".into(), arguments: r#"{ "a" : 1.0 }"#.into() },
        ]
    );
    let inner = |inner| At::Inner { message: 1, part: 0, inner };
    let file = |media_type: Option<&'static str>, name: Option<&'static str>, source| {
        Body::File(File { media_type: media_type.map(Into::into), name: name.map(Into::into), source })
    };
    let answers: Vec<_> = turn.messages[1].parts.iter().map(|part| part.body.clone()).collect();
    let image = Image::Data { media_type: "image/png".into(), data: "AA==".into() };
    assert_eq!(
        answers,
        [
            Body::ToolResult {
                id: "c1".into(),
                content: vec![
                    text("r", inner(0)),
                    Part { body: Body::Image(image), at: inner(1), cache: None },
                    Part {
                        body: file(Some("text/plain"), Some("n"), FileSource::Plain("d".into())),
                        at: inner(2),
                        cache: None
                    },
                ],
                is_error: true,
            },
            file(Some("application/pdf"), None, FileSource::Data("JVBERi0=".into())),
            file(None, None, FileSource::Url("http://y".into())),
            Body::Other("document source file".into()),
            Body::ToolResult {
                id: "c2".into(),
                content: vec![text("plain", At::Content { message: 1, part: 4 })],
                is_error: false,
            },
            Body::Image(Image::Url("http://x".into())),
            Body::Other("image source file".into()),
            Body::Other("web_search_tool_result".into()),
        ]
    );
    assert_eq!(
        turn.hints,
        ["messages[].content[].caller", "messages[].content[].context", "messages[].content[].citations"]
    );
}

#[test]
fn tools_and_the_choice_among_them_are_read() {
    let turn = decode(
        br#"{"tools":[{"name":"a","description":"d","input_schema":{"type":"object"},"strict":true,"defer_loading":true},
        {"type":"custom","name":"b","cache_control":{"type":"ephemeral"},"eager_input_streaming":false},
        {"type":"web_search_20250305","name":"web_search","max_uses":3},{"name":"c","defer_loading":true}],
        "tool_choice":{"type":"tool","name":"a","disable_parallel_tool_use":true}}"#,
    )
    .unwrap();
    let kinds: Vec<_> = turn.tools.into_iter().map(|tool| tool.kind).collect();
    let plain =
        |name: &'static str| ToolKind::Function { name: name.into(), description: None, schema: None, strict: None };
    assert_eq!(
        kinds,
        [
            ToolKind::Function {
                name: "a".into(),
                description: Some("d".into()),
                schema: Some(r#"{"type":"object"}"#),
                strict: Some(true),
            },
            plain("b"),
            ToolKind::Hosted("web_search_20250305".into()),
            plain("c"),
        ]
    );
    assert_eq!(turn.tool_choice, Some(ToolChoice::Named("a".into())));
    assert_eq!(turn.parallel_tools, Some(false));
    assert_eq!(turn.hints, ["tools[].defer_loading", "tools[].cache_control", "tools[].eager_input_streaming"]);
}

#[test]
fn thinking_and_the_form_of_the_answer_are_read() {
    for (thinking, mode) in [
        (r#"{"type":"enabled","budget_tokens":2000}"#, Some(Thinking::Budget(2000))),
        (r#"{"type":"adaptive"}"#, Some(Thinking::Adaptive)),
        (r#"{"type":"disabled"}"#, Some(Thinking::Off)),
        (r#"{"type":"between_tools"}"#, Some(Thinking::Adaptive)),
        (r#"{"type":"new"}"#, None),
        ("null", None),
    ] {
        let body = format!(r#"{{"thinking":{thinking}}}"#);
        assert_eq!(decode(body.as_bytes()).unwrap().reasoning.mode, mode, "{thinking}");
    }
    let turn = decode(
        br#"{"output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}},"temperature":0.50,
        "top_k":3,"stop_sequences":["a","b"],"metadata":{"user_id":"u"},"max_tokens":9,"stream":true}"#,
    )
    .unwrap();
    assert_eq!(turn.reasoning.effort.as_deref(), Some("high"));
    assert_eq!(turn.output, Output::Schema { name: None, schema: r#"{"type":"object"}"#, strict: None });
    assert_eq!((turn.temperature, turn.top_k, turn.user.as_deref()), (Some("0.50"), Some("3"), Some("u")));
    assert_eq!((turn.stop.len(), turn.max_output, turn.stream), (2, Some(9), true));
    assert!(turn.hints.is_empty());
}

#[test]
fn what_has_no_place_is_named_once_and_what_says_nothing_is_not() {
    let turn = decode(
        br#"{"service_tier":"auto","speed":null,"context_management":{"edits":[1]},"thinking":{"type":"adaptive","display":"omitted"},
        "metadata":{"x":1},"safeguards":[],"mcp_servers":[ ],"container":null,"cache_control":{"type":"ephemeral"},
        "messages":[{"role":"user","content":[{"type":"text","text":"a","citations":[1]},{"type":"text","text":"b","citations":[1]},
        {"type":"text","text":"","citations":null}]},{"role":"system","content":"x","output_config":{"effort":"low"}}]}"#,
    )
    .unwrap();
    assert_eq!(
        turn.hints,
        [
            "service_tier",
            "context_management",
            "thinking.display",
            "metadata.x",
            "cache_control",
            "messages[].content[].citations",
            "messages[].output_config",
        ]
    );
}

#[test]
fn content_of_the_provider_s_own_is_an_error_with_its_path() {
    for (body, path) in [
        (r#"{"mcp_servers":[{"url":"x"}]}"#, "mcp_servers"),
        (r#"{"container":"c_1"}"#, "container"),
        (r#"{"output_config":{"format":{"type":"grammar"}}}"#, "output_config.format"),
        (r#"{"tool_choice":{"type":"tool"}}"#, "tool_choice"),
    ] {
        assert_eq!(decode(body.as_bytes()).unwrap_err().path, path);
    }
}
