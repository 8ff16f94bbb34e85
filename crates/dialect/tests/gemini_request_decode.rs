//! A Gemini request as a canonical turn: either spelling, the forms that real clients send, and whose result is whose.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test's functions, too, end by panicking"
)]

use serde_json::{Value, json};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{ClientRequest, InPath, Operation, StreamForm, read_in_path};
use turnkeep_dialect::turn::{At, Body, File, FileSource, Image, Output, Role, Thinking, ToolChoice, ToolKind, Turn};

fn request(body: &Value) -> ClientRequest {
    let path = InPath { model: "gemini-3-pro".into(), stream: true, form: StreamForm::Events };
    read_in_path(Operation::Generate, path, body.to_string().into()).unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn with<T>(body: &Value, look: impl FnOnce(Turn<'_>) -> T) -> T {
    look(request(body).turn().unwrap_or_else(|error| panic!("{error}: {body}")))
}

fn refused(body: &Value) -> Invalid {
    request(body).turn().unwrap_err()
}

fn hello(fields: Value) -> Value {
    let mut body = json!({"contents":[{"parts":[{"text":"hi"}]}]});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

/// The bodies of a message.
fn bodies<'t, 'a>(turn: &'t Turn<'a>, message: usize) -> Vec<&'t Body<'a>> {
    turn.messages[message].parts.iter().map(|part| &part.body).collect()
}

fn rich() -> Value {
    json!({
        "systemInstruction": {"role":"user","parts":[{"text":"one"},{"text":"two"}]},
        "contents": [
            {"role":"user","parts":[{"text":"u"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},
                {"inlineData":{"mimeType":"application/pdf","data":"AAAA","displayName":"n.pdf"}},
                {"fileData":{"mimeType":"image/jpeg","fileUri":"https://h/f"},"videoMetadata":{"fps":1},"mediaResolution":"HIGH"}]},
            {"role":"model","parts":[{"text":"t","thought":true},
                {"functionCall":{"id":"a","name":"f","args":{"someKey":1,"other_key":2}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"f"}}]},
            {"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"o"},"willContinue":true,
                "parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}},{"functionResponse":{"name":"f","response":{"error":"e"}}}]}
        ],
        "tools":[{"functionDeclarations":[
            {"name":"f","description":"d","parameters":{"type":"OBJECT","anyOf":[{"type":"STRING"}],"minProperties":"1","propertyOrdering":["x"]}},
            {"name":"g","parametersJsonSchema":{"type":"object","properties":{"camelCase":{"type":"string"},"snake_case":{}}},"responseJsonSchema":{"type":"string"}}]},
            {"codeExecution":{}}],
        "toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]},"retrievalConfig":{"languageCode":"en"}},
        "generationConfig":{"temperature":1,"topP":0.5,"topK":3,"seed":1,"presencePenalty":0.1,"frequencyPenalty":0.2,"candidateCount":1,
            "maxOutputTokens":5,"stopSequences":["x"],"responseMimeType":"application/json",
            "responseSchema":{"type":"ARRAY","minItems":"1","items":{"type":"STRING"}},"responseModalities":["TEXT"],"responseLogprobs":true,
            "thinkingConfig":{"includeThoughts":true,"thinkingBudget":7,"thinkingLevel":"LOW"}},
        "safetySettings":[{"category":"a","threshold":"b"}],"labels":{"someLabel":"b"},"serviceTier":"flex"
    })
}

fn snake(key: &str) -> String {
    key.chars().flat_map(|c| if c.is_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] }).collect()
}

/// Every field of the protocol in snake_case; what is data or JSON Schema stays.
fn in_snake_case(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                let data = ["args", "response", "parametersJsonSchema", "responseJsonSchema", "labels"];
                (snake(key), if data.contains(&key.as_str()) { value.clone() } else { in_snake_case(value) })
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(in_snake_case).collect(),
        other => other.clone(),
    }
}

#[test]
fn both_spellings_of_every_field_give_the_same_turn() {
    let (camel, snake) = (rich(), in_snake_case(&rich()));
    assert!(snake.to_string().contains("function_declarations") && snake.to_string().contains("any_of"));
    let (camel, snake) = (request(&camel), request(&snake));
    assert_eq!(camel.max_output, snake.max_output);
    let (camel, snake) = (camel.turn().unwrap(), snake.turn().unwrap());
    assert_eq!(camel, snake);
    assert_eq!(
        camel.hints,
        [
            "contents[].parts[].videoMetadata",
            "contents[].parts[].mediaResolution",
            "contents[].parts[].functionResponse.willContinue",
            "tools[].functionDeclarations[].responseJsonSchema",
            "toolConfig.retrievalConfig",
            "generationConfig.responseLogprobs",
            "safetySettings",
            "labels",
            "serviceTier",
        ]
    );
}

#[test]
fn every_kind_of_content_has_its_canonical_form() {
    with(&rich(), |turn| {
        assert_eq!((turn.stream, &*turn.model), (true, "gemini-3-pro"));
        assert_eq!((turn.messages[0].role, turn.messages[0].parts.len()), (Role::System, 2));
        let pdf = File {
            media_type: Some("application/pdf".into()),
            name: Some("n.pdf".into()),
            source: FileSource::Data("AAAA".into()),
        };
        let image = || Body::Image(Image::Data { media_type: "image/png".into(), data: "AAAA".into() });
        assert_eq!(
            bodies(&turn, 1),
            [&Body::Text("u".into()), &image(), &Body::File(pdf), &Body::Image(Image::Url("https://h/f".into()))]
        );
        assert_eq!(turn.messages[1].parts[2].at.path(), "contents[0].parts[2]");
        let call = |id: &'static str, arguments: &'static str| Body::ToolCall {
            id: id.into(),
            name: "f".into(),
            arguments: arguments.into(),
        };
        let thinking = Body::Thinking { text: "t".into(), signature: Some("turnkeep.gemini.c2ln".into()) };
        assert_eq!(bodies(&turn, 2), [&thinking, &call("a", r#"{"someKey":1,"other_key":2}"#), &call("call_1_2", "")]);
        let [
            Body::ToolResult { id: first, content, is_error: false },
            Body::ToolResult { id: second, content: said, is_error: true },
        ] = bodies(&turn, 3)[..]
        else {
            panic!("{:?}", bodies(&turn, 3))
        };
        assert_eq!((&**first, &content[0].body, &content[1].body), ("a", &Body::Text("o".into()), &image()));
        assert_eq!(content[1].at, At::ContentsInner { content: 2, part: 0, inner: 0 });
        assert_eq!((&**second, &said[0].body), ("call_1_2", &Body::Text("e".into())));
        let kinds: Vec<_> = turn.tools.iter().map(|tool| (tool.index, &tool.kind)).collect();
        assert_eq!(kinds[2], (1, &ToolKind::Hosted("codeExecution".into())));
        assert_eq!(turn.tool_choice, Some(ToolChoice::Named("f".into())));
        assert_eq!(
            (turn.temperature, turn.top_p, turn.top_k, turn.seed),
            (Some("1"), Some("0.5"), Some("3"), Some("1"))
        );
        assert_eq!((turn.presence_penalty, turn.frequency_penalty), (Some("0.1"), Some("0.2")));
        assert_eq!((turn.max_output, &*turn.stop), (Some(5), &["x".into()][..]));
        let schema = r#"{"type":"array","minItems":1,"items":{"type":"string"}}"#;
        assert_eq!(turn.output, Output::Schema { name: None, schema, strict: None });
        assert_eq!((turn.reasoning.mode, turn.reasoning.effort.as_deref()), (Some(Thinking::Budget(7)), Some("low")));
    });
}

fn call(name: &str, id: Option<&str>) -> Value {
    json!({"functionCall":{"name":name,"id":id,"args":{}}})
}

fn response(name: &str, id: Option<&str>, said: &str) -> Value {
    json!({"functionResponse":{"name":name,"id":id,"response":{"output":said}}})
}

/// The ids of a conversation's results and what each said.
fn results(contents: Value) -> Vec<(String, String)> {
    with(&json!({"contents":contents}), |turn| {
        let parts = turn.messages.iter().flat_map(|message| &message.parts);
        let read = |body: &Body<'_>| match body {
            Body::ToolResult { id, content, .. } => match content.as_slice() {
                [one] => match &one.body {
                    Body::Text(text) => Some((id.to_string(), text.to_string())),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        parts.filter_map(|part| read(&part.body)).collect()
    })
}

#[test]
fn results_join_their_calls_by_id_else_by_name_and_order() {
    let pair = |id: &str, said: &str| (id.to_owned(), said.to_owned());
    let user = json!({"parts":[{"text":"go"}]});
    // Parallel calls of one function, without ids.
    assert_eq!(
        results(json!([user, {"role":"model","parts":[call("f", None), call("g", None), call("f", None)]},
            {"parts":[response("g", None, "1"), response("f", None, "2"), response("f", None, "3")]}])),
        [pair("call_1_1", "1"), pair("call_1_0", "2"), pair("call_1_2", "3")]
    );
    // By id, in any order; the one without takes what is left, wherever it stands.
    assert_eq!(
        results(json!([user, {"role":"model","parts":[call("f", Some("a")), call("f", Some("b"))]},
            {"parts":[response("f", None, "1"), response("f", Some("a"), "2")]}])),
        [pair("b", "1"), pair("a", "2")]
    );
    // One content for each result, and the next turn begins anew.
    assert_eq!(
        results(json!([user, {"role":"model","parts":[call("f", None)]},{"role":"model","parts":[call("f", None)]},
            {"parts":[response("f", None, "1")]},{"parts":[response("f", None, "2")]},
            {"role":"model","parts":[call("f", None)]},{"parts":[response("f", None, "3")]}])),
        [pair("call_1_0", "1"), pair("call_2_0", "2"), pair("call_5_0", "3")]
    );
    // An id that the calls do not have, as they had none.
    assert_eq!(
        results(
            json!([user, {"role":"model","parts":[call("f", None)]},{"parts":[response("f", Some("made-up"), "1")]}])
        ),
        [pair("call_1_0", "1")]
    );
    // A result of nothing keeps its own id, which the target's encoder refuses.
    assert_eq!(
        results(json!([user, {"parts":[response("f", Some("x"), "1"), response("f", None, "2")]}])),
        [pair("x", "1"), pair("call_1_1", "2")]
    );
    // Twice: both belong to the one call, and the last one wins later.
    assert_eq!(
        results(json!([user, {"role":"model","parts":[call("f", Some("a"))]},
            {"parts":[response("f", Some("a"), "1"), response("f", Some("a"), "2")]}])),
        [pair("a", "1"), pair("a", "2")]
    );
}

#[test]
fn what_a_tool_says_is_its_text_where_there_is_nothing_else() {
    for (response, text, is_error) in [
        (json!({"output":"t"}), "t", false),
        (json!({"result":"t"}), "t", false),
        (json!({"content":"t"}), "t", false),
        (json!({"name":"f","content":"t"}), "t", false),
        (json!({"error":"t"}), "t", true),
        (json!({"error":{"code":1}}), r#"{"code":1}"#, true),
        (json!({"output":{"a":1}}), r#"{"output":{"a":1}}"#, false),
        (json!({"output":"t","code":1}), r#"{"output":"t","code":1}"#, false),
        (json!({"error":"t","code":1}), r#"{"error":"t","code":1}"#, false),
        (json!({"name":"x"}), r#"{"name":"x"}"#, false),
        (json!({"output":""}), "", false),
        (json!({}), "", false),
    ] {
        let body = json!({"contents":[{"role":"model","parts":[call("f", None)]},
            {"parts":[{"functionResponse":{"response":response,"name":"f"}}]}]});
        with(&body, |turn| {
            let [Body::ToolResult { content, is_error: failed, .. }] = bodies(&turn, 1)[..] else { panic!() };
            let said: Vec<_> = content.iter().map(|part| &part.body).collect();
            let expected = Body::Text(text.into());
            assert_eq!((said, *failed), (if text.is_empty() { vec![] } else { vec![&expected] }, is_error), "{body}");
        });
    }
}

#[test]
fn what_has_no_canonical_form_is_named_and_what_only_gemini_can_read_is_too() {
    for (part, name) in [
        (json!({"executableCode":{"code":"1"}}), "executableCode"),
        (json!({"code_execution_result":{"output":"1"}}), "codeExecutionResult"),
        (json!({"toolCall":{}}), "toolCall"),
        (json!({"somethingNew":{"a":1}}), "somethingNew"),
        (json!({"fileData":{"fileUri":"gs://b/x","mimeType":"image/png"}}), "fileData"),
        (json!({"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/x"}}), "fileData"),
        (json!({"fileData":{"fileUri":"https://www.youtube.com/watch?v=x"}}), "fileData"),
    ] {
        with(&json!({"contents":[{"parts":[part]}]}), |turn| {
            assert_eq!(bodies(&turn, 0), [&Body::Other(name.into())]);
        });
    }
    for (fields, path) in [
        (json!({"cachedContent":"cachedContents/x"}), "cachedContent"),
        (json!({"generationConfig":{"candidateCount":2}}), "generationConfig.candidateCount"),
        (json!({"generationConfig":{"responseModalities":["TEXT","IMAGE"]}}), "generationConfig.responseModalities[1]"),
        (json!({"generationConfig":{"responseMimeType":"text/x.enum"}}), "generationConfig.responseMimeType"),
        (
            json!({"generationConfig":{"thinkingConfig":{"thinkingBudget":-2}}}),
            "generationConfig.thinkingConfig.thinkingBudget",
        ),
        (json!({"generationConfig":{"continuationToken":"x"}}), "generationConfig.continuationToken"),
    ] {
        assert_eq!(refused(&hello(fields.clone())).path, path, "{fields}");
    }
}

#[test]
fn thinking_choice_and_form_are_read_in_their_words() {
    let config = |config: Value| hello(json!({"generationConfig":config}));
    for (thinking, mode, effort) in [
        (json!({"thinkingBudget":0}), Some(Thinking::Off), None),
        (json!({"thinkingBudget":-1}), Some(Thinking::Adaptive), None),
        (json!({"thinkingBudget":512}), Some(Thinking::Budget(512)), None),
        (json!({"thinkingLevel":"HIGH","includeThoughts":true}), None, Some("high")),
        (json!({"thinkingLevel":"minimal"}), None, Some("minimal")),
        (json!({"includeThoughts":false}), None, None),
    ] {
        with(&config(json!({"thinkingConfig":thinking})), |turn| {
            assert_eq!((turn.reasoning.mode, turn.reasoning.effort.as_deref()), (mode, effort));
            assert!(turn.hints.is_empty());
        });
    }
    for (calling, choice) in [
        (json!({}), None),
        (json!({"mode":"MODE_UNSPECIFIED"}), None),
        (json!({"mode":"auto"}), Some(ToolChoice::Auto)),
        (json!({"mode":"NONE"}), Some(ToolChoice::None)),
        (json!({"mode":"ANY"}), Some(ToolChoice::Any)),
        (
            json!({"mode":"ANY","allowedFunctionNames":["f","g"]}),
            Some(ToolChoice::Allowed { required: true, names: vec!["f".into(), "g".into()] }),
        ),
        (json!({"mode":"VALIDATED"}), Some(ToolChoice::Auto)),
        (json!({"mode":"SOMETHING"}), Some(ToolChoice::Other("SOMETHING".into()))),
    ] {
        let body = hello(json!({"toolConfig":{"functionCallingConfig":calling}}));
        with(&body, |turn| {
            assert_eq!(turn.tool_choice, choice);
            assert_eq!(turn.hints.is_empty(), calling["mode"] != "VALIDATED");
        });
    }
    for (form, output) in [
        (json!({"responseMimeType":"application/json"}), Output::Json),
        (json!({"responseMimeType":"text/plain"}), Output::Text),
        (
            json!({"responseJsonSchema":{"type":"object"}}),
            Output::Schema { name: None, schema: r#"{"type":"object"}"#, strict: None },
        ),
        (json!({"responseJsonSchema":{"type":"object"},"responseMimeType":"text/plain"}), Output::Text),
    ] {
        with(&config(form), |turn| assert_eq!(turn.output, output));
    }
    for system in [
        json!("s"),
        json!([{"text":"s"}]),
        json!({"parts":{"text":"s"}}),
        json!({"role":"user","parts":[{"text":"s"}]}),
    ] {
        with(&hello(json!({"systemInstruction":system})), |turn| {
            assert_eq!((turn.messages[0].role, bodies(&turn, 0)), (Role::System, vec![&Body::Text("s".into())]));
        });
    }
    with(&json!({"contents":[{"parts":[{"inlineData":{"mimeType":"audio/wav","data":"-_8"}}]}]}), |turn| {
        let [Body::File(File { source: FileSource::Data(data), .. })] = bodies(&turn, 0)[..] else { panic!() };
        assert_eq!(data, "+/8=", "the standard alphabet, with its padding");
    });
}

/// What the agents and SDKs send, shortened: a thought and a signed call, its result, the tools in either spelling.
#[test]
fn the_forms_of_real_clients_are_understood() {
    let thought = json!({"text":"**Running**\n\nI run the command.","thought":true});
    let signed = |call: Value| json!({"functionCall":call,"thoughtSignature":"c3R1Yg=="});
    let history = |call: Value, result: Value, before: Vec<Value>| {
        let mut model = before;
        model.push(call);
        json!([{"role":"user","parts":[{"text":"Run echo hello"}]},{"role":"model","parts":model},{"role":"user","parts":[result]}])
    };
    let clients = [
        // Gemini CLI, and after a resume: the placeholder, and the result twice.
        history(
            signed(json!({"id":"fc-1","args":{"command":"echo hello"},"name":"bash"})),
            json!({"functionResponse":{"name":"bash","response":{"output":"hello\n"},"id":"fc-1"}}),
            vec![],
        ),
        history(
            json!({"functionCall":{"id":"fc-1","args":{"command":"echo hello"},"name":"bash"},"thoughtSignature":"skip_thought_signature_validator"}),
            json!({"functionResponse":{"name":"bash","response":{"output":"hello\n"},"id":"fc-1"}}),
            vec![],
        ),
        // Qwen Code.
        history(
            signed(json!({"id":"fc-1","args":{"command":"echo hello"},"name":"bash"})),
            json!({"functionResponse":{"id":"fc-1","name":"bash","response":{"output":"hello\n"}}}),
            vec![thought.clone()],
        ),
        // opencode drops the ids, and names the function twice.
        history(
            signed(json!({"name":"bash","args":{"command":"echo hello"}})),
            json!({"functionResponse":{"name":"bash","response":{"name":"bash","content":"hello\n"}}}),
            vec![thought],
        ),
        // Google's own SDK for Python answers a call with an id without one.
        history(
            signed(json!({"id":"fc-1","args":{"command":"echo hello"},"name":"bash"})),
            json!({"functionResponse":{"name":"bash","response":{"result":"hello\n"}}}),
            vec![],
        ),
        // litellm.
        history(
            json!({"function_call":{"name":"bash","args":{"command":"echo hello"}},"thoughtSignature":"c3R1Yg=="}),
            json!({"function_response":{"name":"bash","response":{"content":"hello\n"}}}),
            vec![],
        ),
    ];
    let tools = [
        json!([{"functionDeclarations":[{"name":"bash","description":"d","parametersJsonSchema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}]}]),
        json!([{"functionDeclarations":[{"name":"bash","description":"d","parameters_json_schema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]},"response_json_schema":{"type":"string"}}]}]),
        json!([{"function_declarations":[{"name":"bash","description":"d","parameters":{"type":"OBJECT","properties":{"command":{"type":"STRING"}},"required":["command"]}}]}]),
    ];
    for contents in &clients {
        for tools in &tools {
            with(&json!({"contents":contents,"tools":tools,"generationConfig":{}}), |turn| {
                let said: Vec<_> =
                    bodies(&turn, 1).into_iter().filter(|body| !matches!(body, Body::Thinking { .. })).collect();
                let [Body::ToolCall { id, name, arguments }] = said[..] else { panic!("{said:?}") };
                assert_eq!((&**name, &**arguments), ("bash", r#"{"command":"echo hello"}"#));
                let [Body::ToolResult { id: answered, content, is_error: false }] = bodies(&turn, 2)[..] else {
                    panic!()
                };
                assert_eq!((answered, &content[0].body), (id, &Body::Text("hello\n".into())));
                let [tool] = &*turn.tools else { panic!() };
                let ToolKind::Function { name, schema: Some(schema), .. } = &tool.kind else { panic!() };
                let schema: Value = serde_json::from_str(schema).unwrap();
                assert_eq!(
                    (&**name, &schema["type"], &schema["properties"]["command"]["type"]),
                    ("bash", &json!("object"), &json!("string"))
                );
            });
        }
    }
    // Gemini CLI's router asks for JSON Schema with types in upper case.
    let router = hello(
        json!({"generationConfig":{"temperature":1,"topP":0.95,"topK":64,"responseMimeType":"application/json",
        "responseJsonSchema":{"type":"OBJECT","properties":{"score":{"type":"INTEGER","description":"1-100."}},"required":["score"]},
        "thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}}),
    );
    with(&router, |turn| {
        let Output::Schema { schema, .. } = turn.output else { panic!() };
        let schema: Value = serde_json::from_str(schema).unwrap();
        assert_eq!(
            schema,
            json!({"type":"object","properties":{"score":{"type":"integer","description":"1-100."}},"required":["score"]})
        );
    });
}
