//! A canonical turn as a Gemini request: the goldens are what Gemini's API takes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test's functions, too, end by panicking"
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use turnkeep_dialect::gemini::request_encode::encode;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{Encoded, InPath, Operation, StreamForm, read_in_path};
use turnkeep_dialect::turn::{
    At, Body, File, FileSource, Image, Message, Output, Part, Reasoning, Role, Thinking, Tool, ToolChoice, ToolKind,
    Turn,
};

fn part(body: Body<'_>, message: u32, part: u32) -> Part<'_> {
    Part { body, at: At::Content { message, part }, cache: None }
}

fn conversation(said: Vec<(Role, Vec<Body<'_>>)>) -> Turn<'_> {
    let message = |(index, (role, bodies)): (usize, (Role, Vec<_>))| {
        let index = index as u32;
        let parts = bodies.into_iter().enumerate().map(|(at, body)| part(body, index, at as u32)).collect();
        Message { role, at: At::Message(index), parts }
    };
    Turn { model: "m".into(), messages: said.into_iter().enumerate().map(message).collect(), ..Turn::default() }
}

fn text(text: &str) -> Body<'_> {
    Body::Text(text.into())
}

fn call<'a>(id: &'a str, name: &'a str, arguments: &'a str) -> Body<'a> {
    Body::ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn result<'a>(id: &'a str, content: Vec<Body<'a>>, is_error: bool) -> Body<'a> {
    let content = content.into_iter().enumerate().map(|(at, body)| part(body, 9, at as u32)).collect();
    Body::ToolResult { id: id.into(), content, is_error }
}

fn signed<'a>(said: &'a str, signature: &'a str) -> Body<'a> {
    Body::Thinking { text: said.into(), signature: Some(signature.into()) }
}

fn image() -> Body<'static> {
    Body::Image(Image::Data { media_type: "image/png".into(), data: "AAAA".into() })
}

fn file<'a>(media_type: Option<&'a str>, source: FileSource<'a>) -> Body<'a> {
    Body::File(File { media_type: media_type.map(Into::into), name: None, source })
}

fn hello() -> Turn<'static> {
    conversation(vec![(Role::User, vec![text("hi")])])
}

fn body(encoded: &Encoded) -> Value {
    serde_json::from_slice(&encoded.body).unwrap()
}

fn to(turn: &Turn<'_>, model: &str) -> (Value, Vec<String>) {
    let encoded = encode(turn, model).unwrap_or_else(|error| panic!("{error}"));
    (body(&encoded), encoded.dropped)
}

fn sent(turn: &Turn<'_>) -> Value {
    to(turn, "gemini-3-pro").0
}

fn refused(turn: &Turn<'_>) -> Invalid {
    encode(turn, "gemini-3-pro").unwrap_err()
}

/// The parts of a content.
fn parts(turn: &Turn<'_>, content: usize) -> Value {
    sent(turn)["contents"][content]["parts"].clone()
}

fn function<'a>(name: &'a str, schema: Option<&'a str>) -> Tool<'a> {
    Tool { index: 0, kind: ToolKind::Function { name: name.into(), description: None, schema, strict: None } }
}

#[test]
fn the_smallest_turn_is_its_contents_and_nothing_else() {
    let (body, dropped) = to(&Turn { stream: true, ..hello() }, "up");
    assert_eq!(body, json!({"contents":[{"role":"user","parts":[{"text":"hi"}]}]}));
    assert!(dropped.is_empty());
}

#[test]
fn leading_system_messages_are_hoisted_and_later_ones_stay_in_place_marked() {
    let turn = conversation(vec![
        (Role::System, vec![text("one"), text("")]),
        (Role::System, vec![text("two")]),
        (Role::User, vec![text("hi"), text("")]),
        (Role::System, vec![text("three")]),
        (Role::Assistant, vec![text("yes")]),
        (Role::Assistant, vec![text("and"), text("")]),
        (Role::User, vec![text("so")]),
    ]);
    assert_eq!(
        sent(&turn),
        json!({"systemInstruction":{"parts":[{"text":"one"},{"text":"two"}]},"contents":[
            {"role":"user","parts":[{"text":"hi"},{"text":"<system>three</system>"}]},
            {"role":"model","parts":[{"text":"yes"},{"text":"and"}]},
            {"role":"user","parts":[{"text":"so"}]}]})
    );
    let alone = conversation(vec![(Role::System, vec![text("only")])]);
    assert_eq!(sent(&alone)["contents"][0]["parts"][0]["text"], "<system>only</system>");
}

#[test]
fn results_follow_their_calls_in_one_content_and_in_their_order() {
    let turn = conversation(vec![
        (Role::User, vec![text("hi")]),
        (Role::Assistant, vec![call("a", "f", r#"{"x": 1}"#), call("b", "g", ""), call("c", "f", "null")]),
        (Role::User, vec![result("c", vec![text("3")], false), text("and?")]),
        (Role::User, vec![result("a", vec![text("old")], false), result("a", vec![text("1"), text("2")], true)]),
    ]);
    let (body, dropped) = to(&turn, "gemini-2.5-pro");
    assert_eq!(
        body["contents"][1]["parts"],
        json!([{"functionCall":{"id":"a","name":"f","args":{"x":1}}},{"functionCall":{"id":"b","name":"g","args":{}}},
            {"functionCall":{"id":"c","name":"f","args":{}}}])
    );
    assert_eq!(
        body["contents"][2],
        json!({"role":"user","parts":[
            {"functionResponse":{"id":"a","name":"f","response":{"error":"1\n2"}}},
            {"functionResponse":{"id":"b","name":"g","response":{"error":"no result was given"}}},
            {"functionResponse":{"id":"c","name":"f","response":{"output":"3"}}},
            {"text":"and?"}]})
    );
    assert!(dropped.is_empty());
    let orphan =
        conversation(vec![(Role::User, vec![text("hi")]), (Role::User, vec![result("x", vec![text("1")], false)])]);
    let (body, dropped) = to(&orphan, "gemini-2.5-pro");
    assert_eq!((&body["contents"][0]["parts"], dropped), (&json!([{"text":"hi"}]), vec!["tool_result".to_owned()]));
    let unanswered = conversation(vec![(Role::User, vec![text("hi")]), (Role::Assistant, vec![call("a", "f", "{}")])]);
    assert_eq!(parts(&unanswered, 2)[0]["functionResponse"]["name"], "f");
}

#[test]
fn results_carry_images_and_files_beside_their_text() {
    let answer = |content, is_error| {
        conversation(vec![
            (Role::User, vec![text("hi")]),
            (Role::Assistant, vec![call("a", "f", "{}")]),
            (Role::User, vec![result("a", content, is_error)]),
        ])
    };
    let blob = json!({"inlineData":{"mimeType":"image/png","data":"AAAA"}});
    let response = |turn: &Turn<'_>| parts(turn, 2)[0]["functionResponse"].clone();
    assert_eq!(
        response(&answer(
            vec![text("see"), image(), file(Some("application/pdf"), FileSource::Data("BBBB".into()))],
            false
        )),
        json!({"id":"a","name":"f","response":{"output":"see"},
            "parts":[blob,{"inlineData":{"mimeType":"application/pdf","data":"BBBB"}}]})
    );
    assert_eq!(response(&answer(vec![image()], false))["response"], json!({"output":""}));
    assert_eq!(response(&answer(vec![], false)), json!({"id":"a","name":"f","response":{"output":""}}));
    assert_eq!(response(&answer(vec![text("")], true))["response"]["error"], "the tool failed without a message");
    let plain = file(None, FileSource::Plain("file text".into()));
    assert_eq!(response(&answer(vec![plain], false))["response"]["output"], "file text");
    let url = answer(vec![Body::Image(Image::Url("https://h/x".into()))], false);
    assert!(refused(&url).message.contains("the gateway fetches http and https addresses"));
    assert_eq!(refused(&answer(vec![Body::Other("search_result".into())], false)).path, "messages[9].content[0]");
}

#[test]
fn arguments_that_are_no_object_are_kept_as_a_text() {
    for (arguments, args) in [
        ("{\"a\":", json!({"input":"{\"a\":"})),
        ("[1]", json!({"input":"[1]"})),
        ("\"x\"", json!({"input":"\"x\""})),
        ("\u{0}", json!({"input":"\u{0}"})),
        ("  ", json!({})),
        (r#" {"b":1,"a":2.50} "#, json!({"b":1,"a":2.5})),
    ] {
        let turn =
            conversation(vec![(Role::User, vec![text("hi")]), (Role::Assistant, vec![call("a", "f", arguments)])]);
        assert_eq!(parts(&turn, 1)[0]["functionCall"]["args"], args, "{arguments:?}");
    }
}

#[test]
fn files_and_images_go_by_their_bytes_and_never_by_their_address() {
    let user = |body| conversation(vec![(Role::User, vec![body])]);
    let blob = |media_type: &str| json!([{"inlineData":{"mimeType":media_type,"data":"AAAA"}}]);
    assert_eq!(parts(&user(image()), 0), blob("image/png"));
    assert_eq!(parts(&user(file(Some("audio/wav"), FileSource::Data("AAAA".into()))), 0), blob("audio/wav"));
    assert_eq!(parts(&user(file(Some("text/plain"), FileSource::Plain("t".into()))), 0), json!([{"text":"t"}]));
    let pdf = parts(&user(file(None, FileSource::Data("JVBERi0x".into()))), 0);
    assert_eq!(pdf, json!([{"inlineData":{"mimeType":"application/pdf","data":"JVBERi0x"}}]));
    for (body, word) in [
        (Body::Image(Image::Url("https://h/x".into())), "an image by its address"),
        (file(None, FileSource::Url("https://h/x".into())), "a file by its address"),
        (file(None, FileSource::Data("AAAA".into())), "without a media type"),
        (Body::Other("container_upload".into()), "`container_upload`"),
        (call("a", "f", "{}"), "outside a message of the assistant"),
    ] {
        let error = refused(&user(body));
        assert_eq!(error.path, "messages[0].content[0]");
        assert!(error.message.contains(word), "{error}");
    }
}

#[test]
fn geminis_own_proof_goes_to_the_part_behind_it_and_no_other_proof_goes() {
    let own = "turnkeep.gemini.c2ln";
    let turn = |said| {
        conversation(vec![(Role::User, vec![text("hi")]), (Role::Assistant, said), (Role::User, vec![text("so")])])
    };
    let parts = |said| {
        let (body, dropped) = to(&turn(said), "gemini-3-pro");
        (body["contents"][1]["parts"].clone(), dropped.contains(&"thinking".to_owned()))
    };
    let function = json!({"id":"a","name":"f","args":{}});
    assert_eq!(
        parts(vec![signed("", own), call("a", "f", "")]),
        (json!([{"functionCall":function,"thoughtSignature":"c2ln"}]), false)
    );
    assert_eq!(
        parts(vec![signed("hm", own), call("a", "f", "")]),
        (json!([{"text":"hm","thought":true},{"functionCall":function,"thoughtSignature":"c2ln"}]), false)
    );
    assert_eq!(parts(vec![signed("", own), text("said")]), (json!([{"text":"said","thoughtSignature":"c2ln"}]), false));
    assert_eq!(
        parts(vec![text("said"), Body::RedactedThinking(own.into())]),
        (json!([{"text":"said"},{"text":"","thoughtSignature":"c2ln"}]), false)
    );
    assert_eq!(
        parts(vec![signed("", own), signed("", "turnkeep.gemini.Mg=="), text("said")]),
        (json!([{"text":"","thoughtSignature":"c2ln"},{"text":"said","thoughtSignature":"Mg=="}]), false)
    );
    for foreign in [
        signed("hm", "EqQB"),
        signed("hm", "turnkeep.responses.x"),
        signed("hm", "turnkeep.unsigned"),
        Body::Thinking { text: "hm".into(), signature: None },
        Body::RedactedThinking("EqQB".into()),
    ] {
        assert_eq!(parts(vec![foreign, text("said")]), (json!([{"text":"said"}]), true));
    }
}

#[test]
fn a_call_that_gemini_did_not_make_gets_the_placeholder_where_it_is_asked_for() {
    let turn = conversation(vec![
        (Role::User, vec![text("hi")]),
        (Role::Assistant, vec![call("z", "f", "")]),
        (Role::User, vec![result("z", vec![], false)]),
        (Role::Assistant, vec![text("done")]),
        (Role::User, vec![text("again")]),
        (Role::Assistant, vec![signed("hm", "EqQB"), text("well"), call("a", "f", ""), call("b", "f", "")]),
        (Role::User, vec![result("a", vec![], false), result("b", vec![], false)]),
        (Role::Assistant, vec![signed("", "turnkeep.gemini.c2ln"), call("c", "f", ""), call("d", "f", "")]),
        (Role::User, vec![result("c", vec![], false), result("d", vec![], false), text("a reminder")]),
        (Role::Assistant, vec![call("e", "f", "")]),
        (Role::User, vec![result("e", vec![], false)]),
    ]);
    let signatures = |model: &str| -> Vec<(String, String)> {
        let body = to(&turn, model).0;
        let all = body["contents"].as_array().unwrap().iter().flat_map(|content| content["parts"].as_array().unwrap());
        all.filter_map(|part| {
            let id = part["functionCall"]["id"].as_str()?;
            Some((id.to_owned(), part["thoughtSignature"].as_str()?.to_owned()))
        })
        .collect()
    };
    let placeholder = |id: &str| (id.to_owned(), "skip_thought_signature_validator".to_owned());
    let own = ("c".to_owned(), "c2ln".to_owned());
    for model in ["gemini-3-pro-preview", "models/gemini-3.8-flash", "gemini-4"] {
        assert_eq!(signatures(model), [placeholder("a"), own.clone(), placeholder("e")], "{model}");
    }
    for model in ["gemini-2.5-pro", "local", "gemini-flash-latest"] {
        assert_eq!(signatures(model), std::slice::from_ref(&own), "{model}");
    }
}

#[test]
fn tools_go_with_their_json_schema_and_the_choice_with_them() {
    let schema = r#"{"type":"object","properties":{"a":{"$ref":"x"}},"additionalProperties":false}"#;
    let custom = ToolKind::Custom {
        name: "c".into(),
        description: Some("d".into()),
        format: Some(r#"{"type":"grammar","syntax":"lark","definition":"start: a"}"#.into()),
    };
    let tools = vec![function("f", Some(schema)), function("g", None), Tool { index: 2, kind: custom }];
    let with = |choice| Turn { tools: tools.clone(), tool_choice: choice, ..hello() };
    let (body, dropped) = to(&with(None), "gemini-3-pro");
    let free_text: Value = serde_json::from_str(turnkeep_dialect::free_text::SCHEMA).unwrap();
    // There is no place for a grammar but the words.
    let described = "d\n\nThe string `input` must keep to this lark grammar:\nstart: a";
    assert_eq!(
        body["tools"],
        json!([{"functionDeclarations":[
            {"name":"f","parametersJsonSchema":serde_json::from_str::<Value>(schema).unwrap()},{"name":"g"},
            {"name":"c","description":described,"parametersJsonSchema":free_text}]}])
    );
    assert_eq!((dropped, body.get("toolConfig")), (vec![], None));
    let names = || vec!["f".into(), "c".into()];
    for (choice, calling) in [
        (ToolChoice::Auto, json!({"mode":"AUTO"})),
        (ToolChoice::None, json!({"mode":"NONE"})),
        (ToolChoice::Any, json!({"mode":"ANY"})),
        (ToolChoice::Named("f".into()), json!({"mode":"ANY","allowedFunctionNames":["f"]})),
        (
            ToolChoice::Allowed { required: true, names: names() },
            json!({"mode":"ANY","allowedFunctionNames":["f","c"]}),
        ),
    ] {
        let body = sent(&with(Some(choice)));
        assert_eq!(body["toolConfig"]["functionCallingConfig"], calling);
        assert_eq!(body["tools"][0]["functionDeclarations"].as_array().unwrap().len(), 3);
    }
    // Names without a call being asked for: Gemini knows none, so only their tools are sent.
    let body = sent(&with(Some(ToolChoice::Allowed { required: false, names: names() })));
    let declared: Vec<_> = body["tools"][0]["functionDeclarations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["name"].as_str().unwrap())
        .collect();
    assert_eq!((declared, &body["toolConfig"]["functionCallingConfig"]), (vec!["f", "c"], &json!({"mode":"AUTO"})));
    assert_eq!(refused(&with(Some(ToolChoice::Other("mcp".into())))).path, "tool_choice");
    assert_eq!(refused(&Turn { tool_choice: Some(ToolChoice::Any), ..hello() }).path, "tool_choice");
    let hosted = Tool { index: 4, kind: ToolKind::Hosted("web_search".into()) };
    assert_eq!(refused(&Turn { tools: vec![hosted], ..hello() }).path, "tools[4]");
    assert_eq!(refused(&Turn { tools: vec![function("f", Some("[]"))], ..hello() }).path, "tools[0]");
    let (_, dropped) = to(&Turn { parallel_tools: Some(false), ..with(None) }, "m");
    assert_eq!(dropped, ["parallel_tool_calls"]);
}

#[test]
fn sampling_and_limits_keep_their_digits_and_what_has_no_place_is_named() {
    let turn = Turn {
        max_output: Some(5),
        temperature: Some("1.70"),
        top_p: Some("0.5"),
        top_k: Some("3"),
        seed: Some("7"),
        presence_penalty: Some("-0.5"),
        frequency_penalty: Some("1"),
        stop: vec!["x".into(), " ".into()],
        user: Some("u".into()),
        verbosity: Some("low".into()),
        cache_key: Some("k".into()),
        hints: vec!["metadata".into()],
        ..hello()
    };
    let encoded = encode(&turn, "gemini-3-pro").unwrap();
    assert!(String::from_utf8_lossy(&encoded.body).contains("\"temperature\":1.70,"));
    assert_eq!(
        body(&encoded)["generationConfig"],
        json!({"maxOutputTokens":5,"temperature":1.7,"topP":0.5,"topK":3,"seed":7,"presencePenalty":-0.5,
            "frequencyPenalty":1,"stopSequences":["x"]})
    );
    assert_eq!(encoded.dropped, ["metadata", "prompt_cache_key", "stop", "user", "verbosity"]);
    let odd = Turn { temperature: Some("2.5"), seed: Some("9999999999"), max_output: Some(u64::MAX), ..hello() };
    let (body, dropped) = to(&odd, "m");
    assert_eq!(body["generationConfig"], json!({"temperature":2,"maxOutputTokens":i32::MAX}));
    assert_eq!(dropped, ["seed", "temperature"]);
    let six = Turn { stop: vec!["x".into(); 6], ..hello() };
    assert_eq!(refused(&six).path, "stop_sequences");
    let cached = Message {
        role: Role::User,
        at: At::Message(0),
        parts: vec![Part { body: text("hi"), at: At::Message(0), cache: Some("{}") }],
    };
    assert_eq!(to(&Turn { messages: vec![cached], ..hello() }, "m").1, ["cache_control"]);
}

#[test]
fn the_form_of_the_answer_is_asked_for_in_json_schema() {
    let config = |output| {
        let (body, dropped) = to(&Turn { output, ..hello() }, "m");
        (body["generationConfig"].clone(), dropped)
    };
    assert_eq!(config(Output::Json), (json!({"responseMimeType":"application/json"}), vec![]));
    let schema = Output::Schema { name: Some("n".into()), schema: r#"{"type":"object"}"#, strict: Some(false) };
    let dropped = ["response_format.json_schema.name", "response_format.json_schema.strict"].map(String::from);
    assert_eq!(
        config(schema),
        (json!({"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}), dropped.to_vec())
    );
}

#[test]
fn how_much_to_think_is_said_as_the_models_generation_takes_it() {
    let config = |mode, effort: Option<&'static str>, model: &str| {
        let reasoning = Reasoning { mode, effort: effort.map(Into::into) };
        let (body, dropped) = to(&Turn { reasoning, ..hello() }, model);
        (body["generationConfig"]["thinkingConfig"].clone(), dropped)
    };
    for (effort, third, second) in [
        ("none", json!({"thinkingLevel":"MINIMAL"}), json!({"thinkingBudget":0})),
        ("minimal", json!({"thinkingLevel":"MINIMAL"}), json!({"thinkingBudget":1024})),
        ("low", json!({"thinkingLevel":"LOW"}), json!({"thinkingBudget":1024})),
        ("medium", json!({"thinkingLevel":"MEDIUM"}), json!({"thinkingBudget":8192})),
        ("high", json!({"thinkingLevel":"HIGH"}), json!({"thinkingBudget":24576})),
        ("xhigh", json!({"thinkingLevel":"HIGH"}), json!({"thinkingBudget":-1})),
        ("max", json!({"thinkingLevel":"HIGH"}), json!({"thinkingBudget":-1})),
    ] {
        assert_eq!(config(None, Some(effort), "gemini-3.5-flash"), (third, vec![]), "{effort}");
        assert_eq!(config(None, Some(effort), "gemini-2.5-flash"), (second.clone(), vec![]), "{effort}");
        assert_eq!(config(None, Some(effort), "local"), (second, vec![]), "{effort}");
    }
    let effort = vec!["reasoning_effort".to_owned()];
    assert_eq!(config(None, Some("huge"), "gemini-3-pro"), (Value::Null, effort.clone()));
    assert_eq!(config(None, Some("high"), "gemini-2.0-flash"), (Value::Null, effort.clone()));
    assert_eq!(config(Some(Thinking::Off), None, "gemini-3-pro").0, json!({"thinkingLevel":"LOW"}));
    assert_eq!(config(Some(Thinking::Off), None, "gemini-2.5-pro").0, json!({"thinkingBudget":0}));
    assert_eq!(config(Some(Thinking::Adaptive), None, "gemini-3-pro").0, json!({"includeThoughts":true}));
    assert_eq!(
        config(Some(Thinking::Adaptive), None, "gemini-2.5-pro").0,
        json!({"includeThoughts":true,"thinkingBudget":-1})
    );
    assert_eq!(
        config(Some(Thinking::Budget(2048)), Some("high"), "gemini-3-pro"),
        (json!({"includeThoughts":true,"thinkingBudget":2048}), effort)
    );
    assert_eq!(config(Some(Thinking::Budget(1)), None, "gemini-1.5-pro"), (Value::Null, vec!["thinking".to_owned()]));
}

/// What a turn says, without the places it was read from.
fn said(turn: &Turn<'_>) -> Vec<(Role, Vec<String>)> {
    fn words(part: &Part<'_>) -> String {
        match &part.body {
            Body::ToolResult { id, content, is_error } => {
                format!("result {id} {is_error} {:?}", content.iter().map(words).collect::<Vec<_>>())
            }
            body => format!("{body:?}"),
        }
    }
    turn.messages.iter().map(|message| (message.role, message.parts.iter().map(words).collect())).collect()
}

fn there_and_back(turn: &Turn<'_>, look: impl FnOnce(&Turn<'_>)) {
    let encoded = encode(turn, "gemini-2.5-pro").unwrap_or_else(|error| panic!("{error}"));
    let path = InPath { model: "m".into(), stream: false, form: StreamForm::Events };
    let request = read_in_path(Operation::Generate, path, encoded.body.clone())
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&encoded.body)));
    look(&request.turn().unwrap());
}

#[test]
fn a_conversation_comes_back_as_it_was() {
    let turn = conversation(vec![
        (Role::System, vec![text("s")]),
        (Role::User, vec![text("hi"), image(), file(Some("application/pdf"), FileSource::Data("AAAA".into()))]),
        (
            Role::Assistant,
            vec![
                signed("hm", "turnkeep.gemini.c2ln"),
                call("a:1", "f", r#"{"b":1,"a":"\ud83d"}"#),
                call("b", "f", "{}"),
            ],
        ),
        (Role::User, vec![result("a:1", vec![text("1"), image()], false), result("b", vec![text("no")], true)]),
        (Role::Assistant, vec![signed("", "turnkeep.gemini.Mg=="), text("done")]),
        (Role::User, vec![text("thanks")]),
    ]);
    there_and_back(&turn, |back| assert_eq!(said(back), said(&turn)));
    let tools = Turn {
        tools: vec![
            function("f", Some(r#"{"type":"object","properties":{"type":{"type":"string"}}}"#)),
            function("g", None),
        ],
        tool_choice: Some(ToolChoice::Named("f".into())),
        output: Output::Schema { name: None, schema: r#"{"type":"array"}"#, strict: None },
        max_output: Some(9),
        temperature: Some("0.10"),
        stop: vec!["x".into()],
        ..hello()
    };
    there_and_back(&tools, |back| {
        assert_eq!((&back.tools, &back.tool_choice, &back.output), (&tools.tools, &tools.tool_choice, &tools.output));
        assert_eq!((back.max_output, back.temperature, &back.stop), (Some(9), Some("0.10"), &tools.stop));
    });
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![".{1,12}", Just("\u{0}\u{fffd}\"\\".to_owned()), Just("{\"output\":\"x\"}".to_owned())]
}

proptest! {
    #[test]
    fn texts_calls_and_results_of_any_words_come_back(
        hi in any_text(), answer in any_text(), told in any_text(), failed in any::<bool>(),
        ids in prop::collection::btree_set("[a-zA-Z0-9_:.-]{1,20}", 1..5), arguments in "[a-z]{0,5}",
    ) {
        let arguments = json!({"k": arguments}).to_string();
        let calls: Vec<_> = ids.iter().map(|id| call(id, "f", &arguments)).collect();
        let mut model = vec![text(&answer)];
        model.extend(calls);
        let results = ids.iter().map(|id| result(id, vec![text(&told)], failed)).collect();
        let turn = conversation(vec![(Role::User, vec![text(&hi)]), (Role::Assistant, model), (Role::User, results)]);
        // Ids that look wrapped are unwrapped for the upstream.
        prop_assume!(!ids.iter().any(|id| id.starts_with("tkid_")));
        there_and_back(&turn, |back| assert_eq!(said(back), said(&turn)));
    }
}
