//! The one-pass check of a Gemini request: what passes, what does not, how an error names its place, and that nothing
//! makes it, the decoding or the encoding behind it fall over.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test's functions, too, end by panicking"
)]

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{ClientRequest, InPath, Operation, StreamForm, encode, read, read_in_path};

fn path(model: &str) -> InPath {
    InPath { model: model.into(), stream: true, form: StreamForm::Array }
}

fn of(operation: Operation, body: &str) -> Result<ClientRequest, Invalid> {
    read_in_path(operation, path("gemini-3-pro"), Bytes::copy_from_slice(body.as_bytes()))
}

fn generate(body: &str) -> Result<ClientRequest, Invalid> {
    of(Operation::Generate, body)
}

const HELLO: &str = r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#;

#[test]
fn the_path_tells_the_model_and_the_stream_and_the_body_its_limits() {
    let body =
        r#" {"contents":[{"parts":[{"text":"hi"}]}], "generationConfig":{"maxOutputTokens":7,"candidate_count":2}}"#;
    let request = generate(body).unwrap();
    assert_eq!((request.model.as_str(), request.stream, request.form), ("gemini-3-pro", true, StreamForm::Array));
    assert_eq!((request.max_output, request.choices, request.dialect), (Some(7), 2, Dialect::Gemini));
    assert!(request.spans.model.is_empty());
    // The upstream's name goes into the path too.
    assert_eq!(request.pass_through("another"), body.as_bytes());
    let plain = generate(HELLO).unwrap();
    assert_eq!((plain.max_output, plain.choices), (None, 1));
    let elsewhere = read(Dialect::Gemini, Operation::Generate, Bytes::from_static(HELLO.as_bytes())).unwrap_err();
    assert_eq!(elsewhere.path, "model");
}

#[test]
fn the_roles_that_googles_sdks_give_are_taken() {
    for body in [
        r#"{"contents":[{"parts":[{"text":"hi"}]}],"systemInstruction":{"role":"system","parts":[{"text":"s"}]}}"#,
        r#"{"contents":[{"role":"function","parts":[{"functionResponse":{"name":"f","response":{}}}]}]}"#,
    ] {
        assert!(generate(body).is_ok(), "{body}");
    }
}

#[test]
fn a_missing_or_wrong_field_is_named() {
    for (body, path, message) in [
        ("{}", "contents", "this field is required"),
        (r#"{"contents":null}"#, "contents", "this field is required"),
        (r#"{"contents":[]}"#, "contents", "at least one content"),
        (r#"{"contents":{"parts":[{"text":"hi"}]}}"#, "contents", "a list of contents"),
        (r#"{"contents":"hi"}"#, "contents", "a list of contents"),
        (r#"{"contents":[{"role":"tool","parts":[]}]}"#, "contents[0].role", "expected `user` or `model`"),
        (r#"{"contents":[{"parts":[{"text":"a"},{}]}]}"#, "contents[0].parts[1]", "a part without content"),
        (r#"{"contents":[{"parts":[{"thought":true}]}]}"#, "contents[0].parts[0]", "a part without content"),
        (
            r#"{"contents":[{"parts":[{"text":"a","functionCall":{"name":"f"}}]}]}"#,
            "contents[0].parts[0].functionCall",
            "one kind of content, and this one has `text`",
        ),
        (r#"{"contents":[{"parts":[{"text":7}]}]}"#, "contents[0].parts[0].text", "expected a string, found a number"),
        (
            r#"{"contents":[{"parts":[{"functionCall":{"args":{}}}]}]}"#,
            "contents[0].parts[0].functionCall.name",
            "required",
        ),
        (
            r#"{"contents":[{"parts":[{"function_call":{"name":"f","args":"{}"}}]}]}"#,
            "contents[0].parts[0].function_call.args",
            "expected an object, found a string",
        ),
        (
            r#"{"contents":[{"parts":[{"functionResponse":{"response":{}}}]}]}"#,
            "contents[0].parts[0].functionResponse.name",
            "required",
        ),
        (
            r#"{"contents":[{"parts":[{"inlineData":{"data":"AA"}}]}]}"#,
            "contents[0].parts[0].inlineData.mimeType",
            "required",
        ),
        (r#"{"contents":[{"parts":[{"fileData":{}}]}]}"#, "contents[0].parts[0].fileData.fileUri", "required"),
        (
            r#"{"contents":[{"parts":[{"text":"a"}]}],"tools":[{"functionDeclarations":[{"description":"x"}]}]}"#,
            "tools[0].functionDeclarations[0].name",
            "required",
        ),
        (
            r#"{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{"maxOutputTokens":-1}}"#,
            "generationConfig.maxOutputTokens",
            "a whole number of at least 0",
        ),
        (r#"{"contents":[{"parts":[{"text":"a"}]}],"model":"models/other"}"#, "model", "another model than the path"),
        ("[]", "", "expected an object, found an array"),
        (r#"{"contents":[{"parts":[{"text":"a"}]}]} x"#, "", "text after the end"),
    ] {
        let error = generate(body).unwrap_err();
        assert_eq!(error.path, path, "{body}: {error}");
        assert!(error.message.contains(message), "{body}: {error}");
    }
    assert_eq!(read_in_path(Operation::Generate, path(""), Bytes::from_static(b"{}")).unwrap_err().path, "model");
    assert_eq!(read_in_path(Operation::Generate, path("a\nb"), Bytes::from_static(b"{}")).unwrap_err().path, "model");
}

#[test]
fn a_field_in_both_spellings_is_refused_at_every_level() {
    for body in [
        r#"{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{},"generation_config":{}}"#,
        r#"{"contents":[{"parts":[{"text":"a"}]}],"contents":[{"parts":[{"text":"b"}]}]}"#,
        r#"{"contents":[{"parts":[{"functionCall":{"name":"f"},"function_call":null}]}]}"#,
        r#"{"contents":[{"parts":[{"text":"a","thoughtSignature":"A","thought_signature":"B"}]}]}"#,
        r#"{"contents":[{"parts":[{"inlineData":{"mimeType":"a/b","mime_type":"a/b","data":""}}]}]}"#,
        r#"{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{"topK":1,"top_k":2}}"#,
        r#"{"contents":[{"parts":[{"text":"a"}]}],"tools":[{"functionDeclarations":[],"function_declarations":[]}]}"#,
        r#"{"contents":[{"parts":[{"text":"a"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":[],"allowed_function_names":[]}}}"#,
    ] {
        let error = generate(body).unwrap_err();
        assert!(error.message.contains("is given twice"), "{body}: {error}");
        assert!(!error.path.is_empty(), "{body}");
    }
}

#[test]
fn what_is_not_known_yet_passes_byte_for_byte() {
    let body = r#"{"contents":[{"role":"","parts":{"text":"one part"}},{"parts":[{"holo_gram":{"x":1}}],"extra":[1]},{"role":"model"}],
        "safetySettings":[{"category":"NEW","threshold":"x"}],"somethingNew":true,"generationConfig":{"thinkingConfig":{"thinkingLevel":"EXTREME"},"new":[]},
        "tools":[{"googleSearch":{}},{"newTool":{"a":1}}],"systemInstruction":"be brief","model":"models/gemini-3-pro"}"#;
    let request = generate(body).unwrap();
    assert_eq!(request.pass_through("gemini-3-pro"), body.as_bytes());
    assert!(request.dropped_in_passing().is_empty());
}

#[test]
fn tokens_are_counted_of_contents_or_of_a_whole_request() {
    let count = |body: &str| of(Operation::CountTokens, body);
    assert!(count(HELLO).is_ok());
    let whole = r#"{"generateContentRequest":{"model":"models/gemini-3-pro","contents":[{"parts":[{"text":"hi"}]}],"systemInstruction":{"parts":[{"text":"s"}]}}}"#;
    let request = count(whole).unwrap();
    let turn = request.turn().unwrap();
    assert_eq!((turn.messages.len(), &*turn.model), (2, "gemini-3-pro"));
    for (body, path) in [
        ("{}", "contents"),
        (r#"{"generateContentRequest":{}}"#, "generateContentRequest.contents"),
        (
            r#"{"generateContentRequest":{"model":"models/x","contents":[{"parts":[{"text":"hi"}]}]}}"#,
            "generateContentRequest.model",
        ),
        (
            r#"{"contents":[{"parts":[{"text":"hi"}]}],"generateContentRequest":{"contents":[{"parts":[{"text":"hi"}]}]}}"#,
            "contents",
        ),
    ] {
        assert_eq!(count(body).unwrap_err().path, path, "{body}");
    }
    assert_eq!(generate(whole).unwrap_err().path, "contents");
}

/// A request with something in every place that is looked at.
fn full() -> Value {
    json!({
        "systemInstruction": {"role":"user","parts":[{"text":"s"}]},
        "contents": [
            {"role":"user","parts":[{"text":"u"},{"inlineData":{"mimeType":"image/png","data":"AAAA","displayName":"n"}},
                {"fileData":{"mimeType":"application/pdf","fileUri":"https://h/f"},"videoMetadata":{"fps":1}}]},
            {"role":"model","parts":[{"text":"t","thought":true},{"functionCall":{"id":"a","name":"f","args":{"x":1}},"thoughtSignature":"c2ln"},
                {"functionCall":{"name":"f","args":{}}},{"executableCode":{"code":"1"}}]},
            {"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"o"},
                "parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}},{"functionResponse":{"name":"f","response":{"error":"e"}}}]}
        ],
        "tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"OBJECT","nullable":true,"properties":{"x":{"type":"STRING","enum":["a"]}}}},
            {"name":"g","parametersJsonSchema":{"type":"object"}}]},{"googleSearch":{}}],
        "toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","g"]}},
        "generationConfig":{"temperature":1,"topP":0.5,"topK":3,"seed":1,"presencePenalty":0,"frequencyPenalty":0,"candidateCount":1,
            "maxOutputTokens":5,"stopSequences":["x"],"responseMimeType":"application/json","responseSchema":{"type":"ARRAY","minItems":"1","items":{"type":"STRING"}},
            "responseModalities":["TEXT"],"thinkingConfig":{"includeThoughts":true,"thinkingBudget":-1,"thinkingLevel":"LOW"}},
        "safetySettings":[{"category":"a","threshold":"b"}],"labels":{"a":"b"},"cachedContent":"","model":"gemini-3-pro"
    })
}

/// The pointers of all values in a document.
fn places(value: &Value, at: String, out: &mut Vec<String>) {
    out.push(at.clone());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                places(value, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), out);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, format!("{at}/{index}"), out);
            }
        }
        _ => {}
    }
}

#[test]
fn a_wrong_value_in_any_place_is_an_error_with_a_path_or_makes_no_difference() {
    let mut all = Vec::new();
    places(&full(), String::new(), &mut all);
    let odd = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1.5),
        json!(1e300),
        json!(""),
        json!("\u{0}\u{fffd}😀"),
        json!([]),
        json!({}),
        json!([[]]),
        json!({"a": {"b": []}}),
        json!([{"text": "x"}]),
    ];
    let (mut refused, mut taken) = (0, 0);
    for place in &all {
        for value in &odd {
            let mut body = full();
            *body.pointer_mut(place).unwrap() = value.clone();
            let told = |error: Invalid| {
                let about_the_document = place.is_empty() || error.message.contains("cannot be carried");
                assert!(!error.path.is_empty() || about_the_document, "{place} {value}: {error}");
                assert!(!error.message.is_empty());
            };
            match generate(&body.to_string()) {
                Err(error) => {
                    refused += 1;
                    told(error);
                }
                Ok(request) => match request.turn() {
                    Err(error) => told(error),
                    Ok(turn) => {
                        taken += 1;
                        if let Err(error) = encode(Dialect::Gemini, &turn, "gemini-3-pro") {
                            told(error);
                        }
                    }
                },
            }
        }
    }
    assert!(refused > 300 && taken > 100, "{refused} refused, {taken} taken");
}

#[test]
fn sizes_and_letters_at_the_edge_are_answered_and_never_crash() {
    let many = format!(r#"{{"contents":[{}]}}"#, vec![r#"{"role":"user","parts":[{"text":"x"}]}"#; 100_000].join(","));
    let request = generate(&many).unwrap();
    assert_eq!(request.turn().unwrap().messages.len(), 100_000);
    let calls = r#"{"functionCall":{"name":"f"}}"#;
    let results = r#"{"functionResponse":{"name":"f","response":{}}}"#;
    let paired = format!(
        r#"{{"contents":[{{"role":"model","parts":[{}]}},{{"parts":[{}]}}]}}"#,
        vec![calls; 20_000].join(","),
        vec![results; 20_000].join(",")
    );
    let request = generate(&paired).unwrap();
    let turn = request.turn().unwrap();
    assert!(encode(Dialect::Gemini, &turn, "m").is_ok());
    let tool = r#"{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}}"#;
    let tools = format!(
        r#"{{"contents":[{{"parts":[{{"text":"x"}}]}}],"tools":[{{"functionDeclarations":[{}]}}]}}"#,
        vec![tool; 1000].join(",")
    );
    assert_eq!(generate(&tools).unwrap().turn().unwrap().tools.len(), 1000);
    for levels in [20, 200] {
        let deep = format!("{}{{}}{}", r#"{"type":"OBJECT","properties":{"a":"#.repeat(levels), "}}".repeat(levels));
        for field in ["parameters", "parametersJsonSchema"] {
            let body = format!(
                r#"{{"contents":[{{"parts":[{{"text":"x"}}]}}],"tools":[{{"functionDeclarations":[{{"name":"f","{field}":{deep}}}]}}]}}"#
            );
            match (generate(&body), levels) {
                (Ok(request), 20) => assert!(request.turn().is_ok()),
                (Err(error), 200) => assert!(error.message.contains("nested deeper than 128"), "{error}"),
                (other, _) => panic!("{levels}: {other:?}"),
            }
        }
    }
    let odd = r#"{"contents":[{"parts":[{"text":"a\ud800b\u0000c"},{"functionCall":{"name":"\udfff","args":{"\ud800":"\u0000"}}}]}]}"#;
    assert!(generate(odd).unwrap().turn().is_ok());
    assert!(read_in_path(Operation::Generate, path("m"), Bytes::from_static(b"{\"contents\":[\xff]}")).is_err());
    for empty in [
        r#"{"contents":[{"parts":[{"text":""}]}]}"#,
        r#"{"contents":[{"parts":[]}]}"#,
        r#"{"contents":[{}]}"#,
        r#"{"contents":[{"role":"model","parts":[{"text":"","thoughtSignature":""}]}],"systemInstruction":{"parts":[]}}"#,
    ] {
        let request = generate(empty).unwrap();
        let error = encode(Dialect::Gemini, &request.turn().unwrap(), "m").unwrap_err();
        assert!(error.message.contains("no message with content"), "{empty}: {error}");
    }
}
