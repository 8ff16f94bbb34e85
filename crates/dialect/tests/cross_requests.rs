//! Requests of Chat and Messages on their way to each other, where the dialects differ in what they can say: names and
//! kinds of tools, choices, files, parameters, thinking and cache marks.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::request::{ApiVersion, Encoded, Operation, encode, read};
use turnkeep_dialect::tool_names::sent;
use turnkeep_dialect::turn::{Body, Reasoning, Thinking, Turn};

const MARK: &str = "ephemeral";

fn carried(client: Dialect, body: &Value, target: Dialect, model: &str) -> (Value, Encoded) {
    let body = Bytes::from(body.to_string());
    let request = read(client, Operation::Generate, body).unwrap();
    let encoded = encode(target, &request.turn().unwrap(), model).unwrap();
    read(target, Operation::Generate, encoded.body.clone()).unwrap();
    (serde_json::from_slice(&encoded.body).unwrap(), encoded)
}

fn chat(fields: Value) -> Value {
    with(json!({"model":"m","messages":[{"role":"user","content":"q"}]}), fields)
}

fn messages(fields: Value) -> Value {
    with(json!({"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"}]}), fields)
}

fn with(mut body: Value, fields: Value) -> Value {
    for (key, value) in fields.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn function(name: &str) -> Value {
    json!({"type":"function","function":{"name":name,"parameters":{"type":"object","properties":{}}}})
}

#[test]
fn a_name_that_the_target_refuses_is_the_same_other_name_in_tools_choices_and_calls() {
    let name = "files.read all";
    let made = sent(name, Dialect::Messages).into_owned();
    let asked = chat(json!({"tools":[function(name)],"tool_choice":{"type":"function","function":{"name":name}},
        "messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":name,"arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"1","content":"r"}]}));
    let (body, encoded) = carried(Dialect::Chat, &asked, Dialect::Messages, "up");
    assert_eq!(body["tools"][0]["name"], made);
    assert_eq!(body["tool_choice"]["name"], made);
    assert_eq!(body["messages"][1]["content"][0]["name"], made);
    assert_eq!(encoded.names.name(&made), name);

    let asked = messages(json!({"tools":[{"name":name,"input_schema":{}}],"tool_choice":{"type":"tool","name":name},
        "messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":name,"input":{}}]}]}));
    let (body, encoded) = carried(Dialect::Messages, &asked, Dialect::Chat, "up");
    assert_eq!(body["tools"][0]["function"]["name"], made);
    assert_eq!(body["tool_choice"]["function"]["name"], made);
    assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["name"], made);
    assert_eq!(encoded.names.name(&made), name);
}

#[test]
fn a_tool_of_free_text_is_a_function_with_one_string_and_its_grammar_is_told() {
    let format = json!({"type":"grammar","grammar":{"syntax":"lark","definition":"start: WORD"}});
    let asked = chat(
        json!({"tools":[{"type":"custom","custom":{"name":"patch","description":"Patches.","format":format}}],
        "tool_choice":{"type":"custom","custom":{"name":"patch"}},
        "messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"custom","custom":{"name":"patch","input":"a\n\"b\""}}]},
            {"role":"tool","tool_call_id":"1","content":"done"}]}),
    );
    let (body, encoded) = carried(Dialect::Chat, &asked, Dialect::Messages, "up");
    let tool = &body["tools"][0];
    assert_eq!((&tool["name"], &tool["input_schema"]["required"]), (&json!("patch"), &json!(["input"])));
    let description = tool["description"].as_str().unwrap();
    assert!(
        description.starts_with("Patches.") && description.ends_with("lark grammar:\nstart: WORD"),
        "{description}"
    );
    assert_eq!(body["tool_choice"], json!({"type":"tool","name":"patch"}));
    assert_eq!(body["messages"][1]["content"][0]["input"], json!({"input":"a\n\"b\""}));
    assert!(encoded.names.is_custom("patch"));
    // A Chat server, too, gets a function: few know the other kind.
    let request = read(Dialect::Chat, Operation::Generate, Bytes::from(asked.to_string())).unwrap();
    let encoded = encode(Dialect::Chat, &request.turn().unwrap(), "up").unwrap();
    let body: Value = serde_json::from_slice(&encoded.body).unwrap();
    assert_eq!(body["tools"][0]["type"], "function");
    assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["arguments"], r#"{"input":"a\n\"b\""}"#);
}

#[test]
fn of_some_allowed_tools_the_others_are_not_offered() {
    let allowed = |mode: &str, names: &[&str]| {
        let tools: Vec<_> = names.iter().map(|name| json!({"type":"function","function":{"name":name}})).collect();
        chat(json!({"tools":[function("a"),{"type":"mcp"},function("b")],
            "tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":mode,"tools":tools}}}))
    };
    for (mode, choice) in [("auto", "auto"), ("required", "any")] {
        let (body, _) = carried(Dialect::Chat, &allowed(mode, &["b"]), Dialect::Messages, "up");
        assert_eq!(body["tools"].as_array().unwrap().len(), 1);
        assert_eq!((&body["tools"][0]["name"], &body["tool_choice"]["type"]), (&json!("b"), &json!(choice)));
    }
    let (body, _) = carried(Dialect::Chat, &allowed("auto", &["none of them"]), Dialect::Messages, "up");
    assert_eq!((&body["tools"], &body["tool_choice"]), (&Value::Null, &Value::Null));
    let request = read(Dialect::Chat, Operation::Generate, Bytes::from(allowed("required", &[]).to_string())).unwrap();
    for target in [Dialect::Chat, Dialect::Messages] {
        assert_eq!(encode(target, &request.turn().unwrap(), "up").unwrap_err().path, "tool_choice", "{target}");
    }
}

#[test]
fn documents_cross_both_ways_and_a_sound_only_where_it_is_heard() {
    let file = json!({"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}});
    let document = json!({"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}});
    let (body, _) =
        carried(Dialect::Chat, &chat(json!({"messages":[{"role":"user","content":[file]}]})), Dialect::Messages, "up");
    assert_eq!(body["messages"][0]["content"], json!([document]));
    let asked = messages(json!({"messages":[{"role":"user","content":[document,
        {"type":"document","source":{"type":"text","media_type":"text/plain","data":"plain"}}]}]}));
    let (body, _) = carried(Dialect::Messages, &asked, Dialect::Chat, "up");
    assert_eq!(body["messages"][0]["content"], json!([file, {"type":"text","text":"plain"}]));

    // Without a data: URL the file's name, or its first bytes, tell what it is; a text is decoded.
    for (file, source) in [
        (
            json!({"filename":"x.PDF","file_data":"AAAA"}),
            json!({"type":"base64","media_type":"application/pdf","data":"AAAA"}),
        ),
        (json!({"file_data":"JVBERi0="}), json!({"type":"base64","media_type":"application/pdf","data":"JVBERi0="})),
        (
            json!({"file_data":"data:text/csv;base64,YSxi"}),
            json!({"type":"text","media_type":"text/plain","data":"a,b"}),
        ),
    ] {
        let asked = chat(json!({"messages":[{"role":"user","content":[{"type":"file","file":file}]}]}));
        let (body, _) = carried(Dialect::Chat, &asked, Dialect::Messages, "up");
        assert_eq!(body["messages"][0]["content"][0]["source"], source);
    }

    let refused = |client, body: Value, target| {
        let request = read(client, Operation::Generate, Bytes::from(body.to_string())).unwrap();
        let error = encode(target, &request.turn().unwrap(), "up").unwrap_err();
        assert_eq!(error.path, "messages[0].content[0]", "{error}");
        error.message
    };
    let sound = json!({"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}});
    let asked = chat(json!({"messages":[{"role":"user","content":[sound]}]}));
    assert!(refused(Dialect::Chat, asked.clone(), Dialect::Messages).contains("audio/wav"));
    let request = read(Dialect::Chat, Operation::Generate, Bytes::from(asked.to_string())).unwrap();
    let again: Value =
        serde_json::from_slice(&encode(Dialect::Chat, &request.turn().unwrap(), "up").unwrap().body).unwrap();
    assert_eq!(again["messages"][0]["content"], json!([sound]));
    let unknown = json!({"type":"file","file":{"file_data":"data:application/zip;base64,AAAA"}});
    assert!(
        refused(Dialect::Chat, chat(json!({"messages":[{"role":"user","content":[unknown]}]})), Dialect::Messages)
            .contains("application/zip")
    );
    let by_address = json!({"type":"document","source":{"type":"url","url":"https://x/a.pdf"}});
    assert!(
        refused(
            Dialect::Messages,
            messages(json!({"messages":[{"role":"user","content":[by_address]}]})),
            Dialect::Chat
        )
        .contains("address")
    );
}

#[test]
fn a_document_in_a_result_follows_it_in_chat_and_stays_in_it_in_messages() {
    let document = json!({"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}});
    let asked = messages(
        json!({"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[document]}]}]}),
    );
    let (body, _) = carried(Dialect::Messages, &asked, Dialect::Chat, "up");
    assert_eq!(body["messages"][1]["content"], "[The result is files; they follow in the next user message.]");
    assert_eq!(body["messages"][2]["content"][0]["text"], "[Files in the result of the tool call 1:]");
    assert_eq!(body["messages"][2]["content"][1]["file"]["filename"], "a.pdf");
    let request = read(Dialect::Messages, Operation::Generate, Bytes::from(asked.to_string())).unwrap();
    let again: Value =
        serde_json::from_slice(&encode(Dialect::Messages, &request.turn().unwrap(), "up").unwrap().body).unwrap();
    assert_eq!(again["messages"][1]["content"][0]["content"], json!([document]));
}

#[test]
fn parameters_that_a_target_lacks_are_named_and_those_it_has_keep_their_digits() {
    let asked =
        chat(json!({"seed":7,"presence_penalty":0.50,"frequency_penalty":-1,"verbosity":"low","prompt_cache_key":"k"}));
    let (_, encoded) = carried(Dialect::Chat, &asked, Dialect::Messages, "up");
    assert_eq!(encoded.dropped, ["frequency_penalty", "presence_penalty", "prompt_cache_key", "seed", "verbosity"]);
    assert_eq!(encoded.version, ApiVersion::V2026);
    let raw = r#"{"model":"m","messages":[{"role":"user","content":"q"}],"seed":7,"presence_penalty":0.50,"verbosity":"low","prompt_cache_key":"k"}"#;
    let request = read(Dialect::Chat, Operation::Generate, Bytes::from_static(raw.as_bytes())).unwrap();
    for (model, dropped) in [("gpt-5.1", &[][..]), ("llama", &["verbosity", "prompt_cache_key"])] {
        let encoded = encode(Dialect::Chat, &request.turn().unwrap(), model).unwrap();
        let body = std::str::from_utf8(&encoded.body).unwrap();
        assert!(body.contains(r#""seed":7,"presence_penalty":0.50"#), "{body}");
        assert_eq!(body.contains("prompt_cache_key"), dropped.is_empty());
        assert_eq!(encoded.dropped, dropped, "{model}");
    }
}

fn thinking(budget: u64, max_output: Option<u64>) -> Turn<'static> {
    let body = messages(json!({})).to_string().into_bytes().leak();
    let turn = turnkeep_dialect::messages::request::decode(body).unwrap();
    Turn { max_output, reasoning: Reasoning { mode: Some(Thinking::Budget(budget)), effort: None }, ..turn }
}

fn to_messages(turn: &Turn<'_>) -> (Value, Vec<String>) {
    let encoded = encode(Dialect::Messages, turn, "up").unwrap();
    (serde_json::from_slice(&encoded.body).unwrap(), encoded.dropped)
}

#[test]
fn the_limit_of_tokens_exceeds_the_budget_of_thought() {
    for (budget, limit, wanted) in [
        (2000, Some(5000), 5000),
        (2000, Some(2000), 4000),
        (2000, Some(100), 2100),
        (2000, Some(0), 2001),
        (u64::MAX, Some(9), u64::MAX),
    ] {
        let (body, _) = to_messages(&thinking(budget, limit));
        assert_eq!((&body["max_tokens"], &body["thinking"]["budget_tokens"]), (&json!(wanted), &json!(budget)));
    }
    let (body, dropped) = to_messages(&thinking(100, Some(5000)));
    assert_eq!((&body["thinking"]["budget_tokens"], dropped), (&json!(1024), vec!["thinking_budget".to_owned()]));
    assert_eq!(to_messages(&thinking(0, None)).0["thinking"], json!({"type":"disabled"}));
}

#[test]
fn a_model_that_thinks_is_not_sampled_and_not_forced_and_not_asked_to_think_on_calls_it_did_not_think_of() {
    let sampled = Turn { temperature: Some("0.5"), top_p: Some("0.9"), top_k: Some("40"), ..thinking(2000, None) };
    let (body, dropped) = to_messages(&sampled);
    assert_eq!((&body["temperature"], &body["top_p"], &body["top_k"]), (&Value::Null, &Value::Null, &Value::Null));
    assert_eq!(dropped, ["temperature", "top_k", "top_p"]);

    let call = json!({"type":"tool_use","id":"1","name":"f","input":{}});
    let thought = |signature: &str| json!({"type":"thinking","thinking":"t","signature":signature});
    for (choice, before, thinks) in [
        ("auto", vec![thought("EqQB"), call.clone()], true),
        ("auto", vec![call.clone()], false),
        ("auto", vec![thought("turnkeep.chat.djE"), call.clone()], false),
        ("auto", vec![json!({"type":"text","text":"a"})], true),
        ("any", vec![json!({"type":"text","text":"a"})], false),
    ] {
        let asked = messages(
            json!({"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000},"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":choice},
            "messages":[{"role":"user","content":"q"},{"role":"assistant","content":before},{"role":"user","content":"next"}]}),
        );
        let request = read(Dialect::Messages, Operation::Generate, Bytes::from(asked.to_string())).unwrap();
        let (body, dropped) = to_messages(&request.turn().unwrap());
        assert_eq!(body["thinking"].is_object(), thinks, "{choice} {before:?}");
        assert_eq!(dropped.contains(&"thinking".to_owned()), !thinks, "{choice} {before:?}");
    }
}

#[test]
fn an_agent_whose_dialect_has_no_cache_marks_gets_two() {
    let turn = |messages: Value| chat(json!({"tools":[function("f")],"messages":messages}));
    let (body, _) = carried(
        Dialect::Chat,
        &turn(json!([{"role":"system","content":"s"},{"role":"user","content":"q"}])),
        Dialect::Messages,
        "up",
    );
    assert_eq!(body["system"], json!([{"type":"text","text":"s","cache_control":{"type":MARK}}]));
    assert_eq!(body["messages"][0]["content"], json!([{"type":"text","text":"q","cache_control":{"type":MARK}}]));
    // At a result, where the conversation ends with one.
    let calls = json!([{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"1","content":"r"}]);
    let (body, _) = carried(Dialect::Chat, &turn(calls), Dialect::Messages, "up");
    assert_eq!(body["messages"][2]["content"][0]["cache_control"]["type"], MARK);
    assert_eq!(body.to_string().matches(MARK).count(), 1);
    // A client's own marks are its own, and a single question is not worth one.
    let marked = json!([{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"q","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"text","text":"r"}]}]);
    let (body, _) = carried(Dialect::Chat, &turn(marked), Dialect::Messages, "up");
    assert_eq!(body["system"], "s");
    assert_eq!(body.to_string().matches(MARK).count(), 1);
    let (body, _) = carried(Dialect::Chat, &chat(json!({})), Dialect::Messages, "up");
    assert_eq!(body.to_string().matches(MARK).count(), 0);
}

#[test]
fn a_proof_of_gemini_goes_to_its_own_endpoint_and_to_no_other() {
    let call = json!({"id":"1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}});
    let asked = chat(
        json!({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[call]},{"role":"tool","tool_call_id":"1","content":"r"}]}),
    );
    let request = read(Dialect::Chat, Operation::Generate, Bytes::from(asked.to_string())).unwrap();
    let turn = request.turn().unwrap();
    let proofs = turn.messages[1].parts.iter().filter(|part| matches!(part.body, Body::Thinking { .. })).count();
    assert_eq!(proofs, 1);
    for (target, model, kept) in [
        (Dialect::Chat, "google/gemini-3-pro", true),
        (Dialect::Chat, "gpt-5", false),
        (Dialect::Messages, "up", false),
    ] {
        let encoded = encode(target, &turn, model).unwrap();
        let body = String::from_utf8(encoded.body.to_vec()).unwrap();
        assert_eq!(
            body.contains(r#""extra_content":{"google":{"thought_signature":"c2ln"}}"#),
            kept,
            "{model}: {body}"
        );
        assert_eq!(body.contains("c2ln"), kept, "{body}");
        assert_eq!(encoded.dropped.contains(&"thinking".to_owned()), !kept, "{model}");
    }
}
