//! A Chat request as a canonical turn.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use turnkeep_dialect::chat::request::decode;
use turnkeep_dialect::turn::{At, Body, File, FileSource, Image, Output, Part, Role, Thinking, ToolChoice, ToolKind};

#[track_caller]
fn refused(fields: &str) -> String {
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],{fields}}}"#);
    decode(body.as_bytes()).unwrap_err().path
}

fn bodies<'m, 'a>(parts: &'m [Part<'a>]) -> Vec<&'m Body<'a>> {
    parts.iter().map(|part| &part.body).collect()
}

fn text(text: &str) -> Body<'_> {
    Body::Text(text.into())
}

#[test]
fn messages_keep_their_order_and_roles_become_three() {
    let body = br#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},
        {"role":"developer","content":"d"},{"role":"assistant","content":"b"},{"role":"tool","tool_call_id":"1","content":"r"},
        {"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"q"}]}]}"#;
    let turn = decode(body).unwrap();
    let roles: Vec<_> = turn.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::System, Role::Assistant, Role::User, Role::User]);
    let at = At::Content { message: 5, part: 0 };
    let content = vec![Part { body: text("q"), at, cache: None }];
    assert_eq!(turn.messages[5].parts[0].body, Body::ToolResult { id: "2".into(), content, is_error: false });
    assert!(turn.hints.is_empty());
}

#[test]
fn parts_find_their_canonical_form() {
    let body = br#"{"model":"m","messages":[{"role":"user","name":"bo","content":[{"type":"text","text":"t","cache_control":{"type":"ephemeral"}},
        {"type":"image_url","image_url":{"url":"data:image/PNG;base64,AAA=","detail":"high"}},
        {"type":"image_url","image_url":{"url":"https://x/y.png","detail":"auto"}},
        {"type":"input_audio","input_audio":{"data":"UklG","format":"WAV"}},{"type":"file","file":{"file_id":"f"}},
        {"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}},{"type":"video_url","video_url":{"url":"x"}}]}]}"#;
    let turn = decode(body).unwrap();
    let file = |media_type: &'static str, name: Option<&'static str>, data: &'static str| {
        Body::File(File {
            media_type: Some(media_type.into()),
            name: name.map(Into::into),
            source: FileSource::Data(data.into()),
        })
    };
    let parts = &turn.messages[0].parts;
    assert_eq!(
        bodies(parts),
        [
            &text("t"),
            &Body::Image(Image::Data { media_type: "image/png".into(), data: "AAA=".into() }),
            &Body::Image(Image::Url("https://x/y.png".into())),
            &file("audio/wav", None, "UklG"),
            &Body::Other("file with a file_id".into()),
            &file("application/pdf", Some("a.pdf"), "JVBERi0="),
            &Body::Other("video_url".into()),
        ]
    );
    assert_eq!(parts[0].cache, Some(r#"{"type":"ephemeral"}"#));
    assert_eq!(parts[4].at.path(), "messages[0].content[4]");
    assert_eq!(turn.hints, ["messages[].content[].image_url.detail", "messages[].name"]);
}

#[test]
fn an_assistants_thinking_comes_first_and_its_calls_last() {
    let body = br#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}],
        "content":"","refusal":"no","reasoning_content":"hm"}]}"#;
    let turn = decode(body).unwrap();
    assert_eq!(
        bodies(&turn.messages[0].parts),
        [
            &Body::Thinking { text: "hm".into(), signature: None },
            &Body::Refusal("no".into()),
            &Body::ToolCall { id: "c".into(), name: "f".into(), arguments: "".into() },
        ]
    );
    assert_eq!(turn.messages[0].parts[2].at.path(), "messages[0].tool_calls[0]");
}

#[test]
fn thinking_blocks_bring_their_signatures_back() {
    for (blocks, expected) in [
        // Out of a stream: text and signature apart.
        (r#"[{"index":0,"type":"thinking","thinking":"","signature":"s"}]"#, vec![("hm", "s")]),
        // Out of a whole answer: the text in both.
        (r#"[{"type":"thinking","thinking":"hm","signature":"s"}]"#, vec![("hm", "s")]),
        // Several out of a stream: the signatures stand for the texts.
        (
            r#"[{"type":"thinking","thinking":"","signature":"s"},{"type":"thinking","thinking":"","signature":"t"}]"#,
            vec![("", "s"), ("", "t")],
        ),
    ] {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"assistant","content":"x","reasoning_content":"hm","thinking_blocks":{blocks}}}]}}"#
        );
        let turn = decode(body.as_bytes()).unwrap();
        let thinking: Vec<_> = turn.messages[0]
            .parts
            .iter()
            .filter_map(|part| {
                let Body::Thinking { text, signature } = &part.body else { return None };
                Some((text.as_ref(), signature.as_deref().unwrap()))
            })
            .collect();
        assert_eq!(thinking, expected);
    }
    let body = br#"{"model":"m","messages":[{"role":"assistant","content":"x","thinking_blocks":[{"type":"redacted_thinking","data":"zz"},{"type":"?"}]}]}"#;
    let turn = decode(body).unwrap();
    assert_eq!(bodies(&turn.messages[0].parts), [&Body::RedactedThinking("zz".into()), &text("x")]);
}

#[test]
fn old_functions_become_tools_where_they_are_plain() {
    let body = br#"{"model":"m","messages":[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
        {"role":"function","name":"f","content":"r"}],"functions":[{"name":"f","parameters":{"type":"object"}}],"function_call":{"name":"f"}}"#;
    let turn = decode(body).unwrap();
    let Body::ToolCall { id, .. } = &turn.messages[0].parts[0].body else { panic!() };
    let Body::ToolResult { id: answered, .. } = &turn.messages[1].parts[0].body else { panic!() };
    assert_eq!(id, answered);
    assert_eq!(turn.tool_choice, Some(ToolChoice::Named("f".into())));
    assert_eq!(turn.tools.len(), 1);
    let stray = br#"{"model":"m","messages":[{"role":"function","name":"f","content":"r"}]}"#;
    assert_eq!(decode(stray).unwrap_err().path, "messages[0]");
}

#[test]
fn tools_and_choices_are_read() {
    let body = br#"{"model":"m","messages":[{"role":"user","content":"x"}],"parallel_tool_calls":false,"tools":[
        {"type":"function","function":{"name":"f","description":"d","parameters":{ "type":"object" },"strict":true}},
        {"type":"function","function":{"name":"g"}},{"type":"custom","custom":{"name":"h","description":"e",
        "format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: \"a\""}}}},
        {"type":"custom","custom":{"name":"i","format":{"type":"text"}}},{"type":"mcp"}]}"#;
    let turn = decode(body).unwrap();
    let f = ToolKind::Function {
        name: "f".into(),
        description: Some("d".into()),
        schema: Some(r#"{ "type":"object" }"#),
        strict: Some(true),
    };
    let g = ToolKind::Function { name: "g".into(), description: None, schema: None, strict: None };
    let kinds: Vec<_> = turn.tools.iter().map(|tool| &tool.kind).collect();
    let form = r#"{"type":"grammar","definition":"start: \"a\"","syntax":"lark"}"#;
    let h = ToolKind::Custom { name: "h".into(), description: Some("e".into()), format: Some(form.into()) };
    let i = ToolKind::Custom { name: "i".into(), description: None, format: None };
    assert_eq!(kinds, [&f, &g, &h, &i, &ToolKind::Hosted("mcp".into())]);
    assert_eq!(turn.parallel_tools, Some(false));
    for (choice, expected) in [
        (r#""auto""#, ToolChoice::Auto),
        (r#""none""#, ToolChoice::None),
        (r#""required""#, ToolChoice::Any),
        (r#"{"type":"function","function":{"name":"f"}}"#, ToolChoice::Named("f".into())),
        (
            r#"{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"g"}}]}}"#,
            ToolChoice::Allowed { required: true, names: vec!["f".into(), "g".into()] },
        ),
        (
            r#"{"type":"allowed_tools","allowed_tools":{"tools":[]}}"#,
            ToolChoice::Allowed { required: false, names: vec![] },
        ),
        (r#"{"type":"custom","custom":{"name":"f"}}"#, ToolChoice::Named("f".into())),
        (r#"{"type":"mcp","name":"f"}"#, ToolChoice::Other("mcp".into())),
    ] {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],"tool_choice":{choice}}}"#);
        assert_eq!(decode(body.as_bytes()).unwrap().tool_choice, Some(expected));
    }
}

#[test]
fn settings_find_their_places_and_the_rest_is_named() {
    let body = br#"{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true},
        "temperature":0.10,"top_p":1e-1,"stop":"x","max_tokens":5,"max_completion_tokens":6,"reasoning_effort":"low","user":"u",
        "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"a":1},"strict":false}},
        "seed":7,"logit_bias":{"5":1},"prediction":{"type":"content"},"made_up":[1],
        "n":1,"logprobs":false,"store":false,"frequency_penalty":0.0,"presence_penalty":-0.50,"prompt_cache_key":"k","metadata":{},"service_tier":"auto","modalities":["text"],
        "audio":null,"web_search_options":null,"verbosity":"low"}"#;
    let turn = decode(body).unwrap();
    assert_eq!((turn.stream, turn.stream_usage, turn.max_output), (true, true, Some(6)));
    assert_eq!((turn.temperature, turn.top_p), (Some("0.10"), Some("1e-1")));
    assert_eq!(turn.stop, ["x"]);
    assert_eq!(turn.reasoning.effort.as_deref(), Some("low"));
    assert_eq!(turn.user.as_deref(), Some("u"));
    assert_eq!(turn.output, Output::Schema { name: Some("n".into()), schema: r#"{"a":1}"#, strict: Some(false) });
    assert_eq!((turn.seed, turn.frequency_penalty, turn.presence_penalty), (Some("7"), None, Some("-0.50")));
    assert_eq!((turn.verbosity.as_deref(), turn.cache_key.as_deref()), (Some("low"), Some("k")));
    assert_eq!(turn.hints, ["logit_bias", "prediction", "made_up"]);
    let off = br#"{"model":"m","messages":[{"role":"user","content":"x"}],"reasoning_effort":"none","response_format":{"type":"json_object"},"user":"u","safety_identifier":"s","stop":null}"#;
    let turn = decode(off).unwrap();
    assert_eq!((turn.reasoning.mode, turn.reasoning.effort), (Some(Thinking::Off), None));
    assert_eq!(turn.output, Output::Json);
    assert_eq!((turn.user.as_deref(), turn.hints), (Some("s"), vec!["user".to_owned()]));
}

#[test]
fn what_cannot_be_carried_is_refused_by_its_path() {
    for (fields, path) in [
        (r#""n":2"#, "n"),
        (r#""audio":{"voice":"x"}"#, "audio"),
        (r#""modalities":["text","audio"]"#, "modalities[1]"),
        (r#""web_search_options":{}"#, "web_search_options"),
        (r#""response_format":{"type":"grammar"}"#, "response_format"),
        (r#""response_format":{"type":"json_schema"}"#, "response_format.json_schema.schema"),
        (r#""tools":[{"type":"function"}]"#, "tools[0].function"),
        (r#""tools":[{"type":"custom"}]"#, "tools[0].custom"),
        (r#""tools":[{"type":"custom","custom":{}}]"#, "tools[0].custom.name"),
        (
            r#""tools":[{"type":"custom","custom":{"name":"f","format":{"type":"grammar"}}}]"#,
            "tools[0].custom.format.grammar.definition",
        ),
        (r#""tool_choice":{"type":"allowed_tools"}"#, "tool_choice.allowed_tools"),
        (r#""tool_choice":{"type":"allowed_tools","allowed_tools":{}}"#, "tool_choice.allowed_tools.tools"),
        (
            r#""tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[{"type":"mcp"}]}}"#,
            "tool_choice.allowed_tools.tools[0]",
        ),
        (r#""tools":[{"type":"function","function":{"name":"f","parameters":[]}}]"#, "tools[0].function.parameters"),
    ] {
        assert_eq!(refused(fields), path, "{fields}");
    }
    for url in ["ftp://x", "data:image/png,xx", "data:;base64,xx", "data:nothing"] {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}]}}"#
        );
        assert_eq!(decode(body.as_bytes()).unwrap_err().path, "messages[0].content[0].image_url.url", "{url}");
    }
}

#[test]
fn a_call_of_free_text_is_wrapped_and_a_proof_of_gemini_stands_before_its_call() {
    let body = br#"{"model":"m","messages":[{"role":"assistant","content":null,
        "thinking_blocks":[{"type":"thinking","thinking":"","signature":"turnkeep.gemini.c2ln"},{"type":"thinking","thinking":"t","signature":"EqQB"}],
        "tool_calls":[{"id":"1","type":"custom","custom":{"name":"patch","input":"say \"hi\"\n"}},
        {"id":"2","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}},
        {"id":"3","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"vertex":{"thought_signature":""},"other":1}}]}]}"#;
    let turn = decode(body).unwrap();
    let thinking =
        |text: &'static str, proof: &'static str| Body::Thinking { text: text.into(), signature: Some(proof.into()) };
    let call = |id: &'static str, name: &'static str, arguments: &'static str| Body::ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    assert_eq!(
        bodies(&turn.messages[0].parts),
        [
            // The block that repeats the call's proof is gone.
            &thinking("t", "EqQB"),
            &call("1", "patch", r#"{"input":"say \"hi\"\n"}"#),
            &thinking("", "turnkeep.gemini.c2ln"),
            &call("2", "f", "{}"),
            &call("3", "f", "{}"),
        ]
    );
    assert_eq!(turn.hints, ["messages[].tool_calls[].extra_content.other"]);
}

#[test]
fn reasoning_is_read_in_every_form_that_servers_give_it() {
    for (fields, text, hints) in [
        (r#""reasoning_content":"a""#, Some("a"), &[][..]),
        (r#""reasoning":"a""#, Some("a"), &[]),
        (r#""reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]"#, Some("a"), &[]),
        (
            r#""reasoning_details":[{"type":"reasoning.summary","summary":"a"},{"type":"reasoning.encrypted","data":"xx","format":"y"}]"#,
            Some("a"),
            &["messages[].reasoning_details"],
        ),
        (r#""reasoning_details":[7]"#, None, &["messages[].reasoning_details"]),
    ] {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"assistant","content":"b",{fields}}}]}}"#);
        let turn = decode(body.as_bytes()).unwrap();
        let thinking = text.map(|text| Body::Thinking { text: text.into(), signature: None });
        let wanted: Vec<_> = thinking.into_iter().chain([self::text("b")]).collect();
        assert_eq!(bodies(&turn.messages[0].parts), wanted.iter().collect::<Vec<_>>(), "{fields}");
        assert_eq!(turn.hints, hints, "{fields}");
    }
}
