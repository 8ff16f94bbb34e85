//! Bad requests in every dialect: each is the right answer or a refusal that says where, and never a panic. What is
//! accepted and translated is a request that its own dialect accepts.

#![recursion_limit = "512"]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "support/pairs.rs"]
mod pairs;
#[path = "support/walk.rs"]
mod walk;

use bytes::Bytes;
use pairs::read_body;
use serde_json::{Value, json};
use std::fmt::Write;
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::write_for;
use turnkeep_dialect::translation::model;

fn chat() -> Value {
    json!({
        "model":"m","max_tokens":100,"max_completion_tokens":90,"stream":true,"stream_options":{"include_usage":true},
        "temperature":0.5,"top_p":0.5,"seed":1,"presence_penalty":0.5,"frequency_penalty":0.5,"stop":["a","b"],"user":"u",
        "n":1,"logprobs":false,"top_logprobs":0,"logit_bias":{"1":2},"metadata":{"a":"b"},"store":false,"verbosity":"low",
        "service_tier":"auto","prompt_cache_key":"k","safety_identifier":"s","parallel_tool_calls":true,
        "reasoning_effort":"low","modalities":["text"],
        "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"},"strict":true}},
        "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}},
            {"type":"custom","custom":{"name":"c","description":"d","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"x"}}}}],
        "tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}},
        "messages":[
            {"role":"system","content":"s","name":"n"},
            {"role":"developer","content":[{"type":"text","text":"d","cache_control":{"type":"ephemeral"}}]},
            {"role":"user","content":[{"type":"text","text":"t","prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}},
                {"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"auto"}}]},
            {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"r"}],"refusal":"no",
                "reasoning_content":"r","reasoning":"r","reasoning_details":[{"type":"reasoning.text","text":"r"}],
                "thinking_blocks":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"redacted_thinking","data":"d"}],
                "tool_calls":[{"id":"1","type":"function","index":0,"function":{"name":"f","arguments":"{\"a\":1}"},
                    "extra_content":{"google":{"thought_signature":"c2ln"}}},
                    {"id":"2","type":"custom","custom":{"name":"c","input":"i"}}]},
            {"role":"tool","tool_call_id":"1","content":"r"},
            {"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"r"}]},
            {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
            {"role":"function","name":"f","content":"r"},
            {"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]}
        ]
    })
}

fn messages() -> Value {
    json!({
        "model":"m","max_tokens":100,"stream":true,"temperature":0.5,"top_p":0.5,"top_k":5,"stop_sequences":["a"],
        "metadata":{"user_id":"u"},"service_tier":"auto","thinking":{"type":"enabled","budget_tokens":2000},
        "output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}},
        "system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
        "tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"strict":true,"type":"custom","cache_control":{"type":"ephemeral"}}],
        "tool_choice":{"type":"auto","disable_parallel_tool_use":true},
        "messages":[
            {"role":"user","content":[{"type":"text","text":"t"},
                {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},
                {"type":"document","title":"n","context":"c","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}},
                {"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}]},
            {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"redacted_thinking","data":"d"},
                {"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"f","input":{"a":1}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,
                "content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"url","url":"http://x"}}]}]},
            {"role":"system","content":"m"},
            {"role":"assistant","content":"a"}
        ]
    })
}

fn responses() -> Value {
    serde_json::from_str(include_str!("responses_requests/full.json")).unwrap()
}

fn gemini() -> Value {
    json!({
        "systemInstruction":{"role":"user","parts":[{"text":"s"}]},
        "contents":[
            {"role":"user","parts":[{"text":"t"},{"inlineData":{"mimeType":"image/png","data":"AAAA","displayName":"n"}},
                {"inlineData":{"mimeType":"application/pdf","data":"JVBERi0="}}]},
            {"role":"model","parts":[{"text":"hm","thought":true},{"text":"a","thoughtSignature":"c2ln"},
                {"functionCall":{"id":"1","name":"f","args":{"a":1}},"thoughtSignature":"c2ln"},
                {"functionCall":{"name":"g","args":{}}}]},
            {"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"r"},
                    "parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}},
                {"functionResponse":{"name":"g","response":{"error":"e"}}},{"text":"t"}]}
        ],
        "tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{"a":{"type":"integer"}}}},
            {"name":"g","parameters":{"type":"OBJECT","properties":{"b":{"type":"STRING","nullable":true,"enum":["x"]}},"required":["b"]},
                "response":{"type":"STRING"}}]}],
        "toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},
        "safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],
        "generationConfig":{"maxOutputTokens":100,"temperature":0.5,"topP":0.5,"topK":5,"seed":1,"presencePenalty":0.5,"frequencyPenalty":0.5,
            "stopSequences":["a"],"candidateCount":1,"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","properties":{"a":{"type":"STRING"}}},
            "thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}},
        "labels":{"a":"b"}
    })
}

/// Carries a body to every target. What comes of it must be accepted there; a refusal must say something.
fn carry(client: Dialect, body: &[u8], what: &str) -> Vec<Result<Bytes, Invalid>> {
    let request = match read_body(client, body) {
        Ok(request) => request,
        Err(error) => return vec![Err(error)],
    };
    let carried = Dialect::ALL.into_iter().map(|target| {
        let encoded = write_for(&request, target, model(target), false)?;
        if let Err(error) = read_body(target, &encoded.body) {
            panic!("{client} to {target}, {what}: {error}\n{}", String::from_utf8_lossy(&encoded.body));
        }
        Ok(encoded.body)
    });
    carried.collect()
}

#[test]
fn a_wrong_value_in_any_place_is_refused_by_its_path_or_makes_a_good_request() {
    for (client, request) in Dialect::ALL.into_iter().zip([chat(), responses(), messages(), gemini()]) {
        let whole = carry(client, request.to_string().as_bytes(), "as it is");
        assert!(whole.iter().any(Result::is_ok), "{client}: {whole:?}");
        let (mut refused, mut carried) = (0, 0);
        walk::every_wrong(&request, |bad| {
            for outcome in carry(client, &bad.body, &bad.what) {
                match outcome {
                    Ok(_) => carried += 1,
                    Err(error) => {
                        refused += 1;
                        let whole = bad.what.starts_with("$ is");
                        let broken = error.message.starts_with("not JSON") || error.message.starts_with("duplicate");
                        assert!(whole || broken || !error.path.is_empty(), "{client}, {}: {error}", bad.what);
                        assert!(!error.message.is_empty());
                    }
                }
            }
        });
        assert!(refused > 500 && carried > 500, "{client}: {refused} refused, {carried} carried");
    }
}

/// A conversation of these: who speaks (`user`, `assistant`, `system`), and what.
fn conversation(client: Dialect, said: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let said = said.into_iter().map(|(role, content)| match client {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => json!({"role":role,"content":content}),
        Dialect::Gemini => {
            let parts = if content.is_string() { json!([{"text":content}]) } else { content };
            json!({"role":if role == "assistant" { "model" } else { "user" },"parts":parts})
        }
    });
    let said: Vec<_> = said.collect();
    match client {
        Dialect::Chat => json!({"model":"m","messages":said}),
        Dialect::Responses => json!({"model":"m","input":said}),
        Dialect::Messages => json!({"model":"m","max_tokens":9,"messages":said}),
        Dialect::Gemini => json!({"contents":said}),
    }
}

/// The tools of a request, each a name and the text of its schema.
fn tools(client: Dialect, tools: impl IntoIterator<Item = (String, String)>) -> String {
    let tool = |(name, schema): (String, String)| match client {
        Dialect::Chat => format!(r#"{{"type":"function","function":{{"name":"{name}","parameters":{schema}}}}}"#),
        Dialect::Responses => format!(r#"{{"type":"function","name":"{name}","parameters":{schema}}}"#),
        Dialect::Messages => format!(r#"{{"name":"{name}","input_schema":{schema}}}"#),
        Dialect::Gemini => format!(r#"{{"name":"{name}","parametersJsonSchema":{schema}}}"#),
    };
    let list = tools.into_iter().map(tool).collect::<Vec<_>>().join(",");
    if client == Dialect::Gemini { format!(r#"[{{"functionDeclarations":[{list}]}}]"#) } else { format!("[{list}]") }
}

fn with_tools(body: &Value, tools: &str) -> String {
    let mut body = body.to_string();
    body.pop();
    write!(body, r#","tools":{tools}}}"#).unwrap();
    body
}

#[test]
fn a_hundred_thousand_messages_and_a_thousand_tools_are_carried() {
    // Work that grows with the square would take minutes here, and hours for calls and their results.
    for client in Dialect::ALL {
        let said = (0..100_000).map(|at| (["user", "assistant"][at % 2], json!(format!("{at}"))));
        let list = (0..1000).map(|at| (format!("tool.{at}"), r#"{"type":"object"}"#.to_owned()));
        let body = with_tools(&conversation(client, said), &tools(client, list));
        for (carried, target) in carry(client, body.as_bytes(), "many").into_iter().zip(Dialect::ALL) {
            let sent: Value = serde_json::from_slice(&carried.unwrap()).unwrap();
            let (said, list) = match target {
                Dialect::Chat | Dialect::Messages => (&sent["messages"], &sent["tools"]),
                Dialect::Responses => (&sent["input"], &sent["tools"]),
                Dialect::Gemini => (&sent["contents"], &sent["tools"][0]["functionDeclarations"]),
            };
            let counts = (said.as_array().unwrap().len(), list.as_array().unwrap().len());
            assert_eq!(counts, (100_000, 1000), "{client} to {target}");
        }
    }
}

#[test]
fn tens_of_thousands_of_calls_results_orphans_and_thoughts_in_one_turn_are_carried() {
    let number = 20_000;
    let chat = {
        let call = |at| json!({"id":format!("c.{at}"),"type":"function","function":{"name":"f.x","arguments":"{}"}});
        let calls: Vec<_> = (0..number).map(call).collect();
        let result = |id: String| json!({"role":"tool","tool_call_id":id,"content":"r"});
        let mut said =
            vec![json!({"role":"user","content":"q"}), json!({"role":"assistant","content":null,"tool_calls":calls})];
        said.extend((0..number).map(|at| result(format!("c.{at}"))));
        said.extend((0..number).map(|at| result(format!("orphan.{at}"))));
        said.push(json!({"role":"assistant","content":"so"}));
        said.extend((0..number).map(|at| result(format!("c.{at}"))));
        said.push(json!({"role":"user","content":"q"}));
        json!({"model":"m","messages":said})
    };
    let gemini = {
        let thought = |_| json!({"role":"model","parts":[{"text":"a piece of a thought","thought":true}]});
        let call = |_| json!({"functionCall":{"name":"f","args":{}}});
        let result = |_| json!({"functionResponse":{"name":"f","response":{"output":"r"}}});
        let mut said = vec![json!({"role":"user","parts":[{"text":"q"}]})];
        said.extend((0..number).map(thought));
        said.push(json!({"role":"model","parts":(0..number).map(call).collect::<Vec<_>>()}));
        said.push(json!({"role":"user","parts":(0..number).map(result).collect::<Vec<_>>()}));
        json!({"contents":said})
    };
    for (client, body) in [(Dialect::Chat, chat), (Dialect::Gemini, gemini)] {
        for (carried, target) in carry(client, body.to_string().as_bytes(), "calls").into_iter().zip(Dialect::ALL) {
            let sent = String::from_utf8(carried.unwrap().to_vec()).unwrap();
            let result = match target {
                Dialect::Chat => r#""role":"tool""#,
                Dialect::Responses => r#""type":"function_call_output""#,
                Dialect::Messages => r#""type":"tool_result""#,
                Dialect::Gemini => r#""functionResponse""#,
            };
            assert_eq!(sent.matches(result).count(), number, "{client} to {target}");
        }
    }
}

#[test]
fn a_schema_two_hundred_deep_is_refused_by_its_path_and_one_of_a_hundred_is_carried() {
    for client in Dialect::ALL {
        for (levels, fits) in [(100, true), (200, false)] {
            let mut schema = String::from(r#"{"type":"object"}"#);
            for _ in 0..levels / 2 {
                schema = format!(r#"{{"properties":{{"a":{schema}}}}}"#);
            }
            let asked = conversation(client, [("user", json!("q"))]);
            let body = with_tools(&asked, &tools(client, [("f".to_owned(), schema)]));
            for carried in carry(client, body.as_bytes(), "deep") {
                match carried {
                    Ok(_) => assert!(fits, "{client}: {levels}"),
                    Err(error) => {
                        assert!(!fits && error.path.starts_with("tools[0]"), "{client}: {levels}: {error}");
                        assert!(error.message.contains("nested deeper than"), "{error}");
                    }
                }
            }
        }
    }
}

#[test]
fn arguments_that_are_no_json_lone_surrogates_and_nul_bytes_are_carried() {
    for arguments in
        ["", "null", "{", "{\\\"a\\\":", "[1]", "7", "\\ud800", "\\u0000", "\\\"", "{\\\"a\\\":\\\"\\\\ud800\\\"}"]
    {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"\ud83d \u0000"}},{{"role":"assistant","content":null,
            "tool_calls":[{{"id":"\u0000","type":"function","function":{{"name":"\ud800","arguments":"{arguments}"}}}},
            {{"id":"\ud800","type":"custom","custom":{{"name":"\u0000","input":"{arguments}"}}}}]}},
            {{"role":"tool","tool_call_id":"\u0000","content":"\udfff"}}]}}"#
        );
        for carried in carry(Dialect::Chat, body.as_bytes(), arguments) {
            assert!(!carried.unwrap().is_empty(), "{arguments}");
        }
        let body = format!(
            r#"{{"model":"m","input":[{{"role":"user","content":"\ud83d \u0000"}},
            {{"type":"function_call","call_id":"\u0000","name":"\ud800","arguments":"{arguments}"}},
            {{"type":"custom_tool_call","call_id":"\ud800","name":"\u0000","input":"{arguments}"}},
            {{"type":"function_call_output","call_id":"\u0000","output":"\udfff"}}]}}"#
        );
        for carried in carry(Dialect::Responses, body.as_bytes(), arguments) {
            assert!(!carried.unwrap().is_empty(), "{arguments}");
        }
    }
    // Where arguments are an object, they hold anything.
    let odd = r#"{"\ud800":"\u0000","a":[null,"\udfff",1e400]}"#;
    for (client, body) in [
        (
            Dialect::Messages,
            format!(
                r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"\ud83d \u0000"}},
            {{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"\ud800","input":{odd}}}]}},
            {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"\udfff"}}]}}]}}"#
            ),
        ),
        (
            Dialect::Gemini,
            format!(
                r#"{{"contents":[{{"role":"user","parts":[{{"text":"\ud83d \u0000"}}]}},
            {{"role":"model","parts":[{{"functionCall":{{"name":"\ud800","args":{odd}}}}}]}},
            {{"role":"user","parts":[{{"functionResponse":{{"name":"\ud800","response":{odd}}}}}]}}]}}"#
            ),
        ),
    ] {
        for carried in carry(client, body.as_bytes(), odd) {
            assert!(!carried.unwrap().is_empty(), "{client}");
        }
    }
    // A NUL outside a string, and bytes that are no UTF-8, are no JSON.
    for body in [&b"{\"model\":\"m\",\0}"[..], b"{\"model\":\"\xff\"}", b"\0", b""] {
        for client in Dialect::ALL {
            assert!(carry(client, body, "bytes").iter().all(Result::is_err));
        }
    }
}

#[test]
fn empty_content_in_every_place_is_left_out_or_refused() {
    for client in Dialect::ALL {
        let text = match client {
            Dialect::Chat | Dialect::Messages => json!({"type":"text","text":""}),
            Dialect::Responses => json!({"type":"input_text","text":""}),
            Dialect::Gemini => json!({"text":""}),
        };
        let empties = [json!(""), json!([]), json!(null), json!([text])];
        for (role, content) in
            ["system", "user", "assistant"].into_iter().flat_map(|role| empties.iter().map(move |empty| (role, empty)))
        {
            for alone in [true, false] {
                let said = [(role, content.clone())].into_iter().chain((!alone).then(|| ("user", json!("q"))));
                let body = conversation(client, said);
                for (carried, target) in carry(client, body.to_string().as_bytes(), role).into_iter().zip(Dialect::ALL)
                {
                    match carried {
                        Ok(sent) if target == Dialect::Messages => {
                            let sent: Value = serde_json::from_slice(&sent).unwrap();
                            let empty = |block: &Value| block["text"] == "" || block == "";
                            let all = sent["messages"].as_array().unwrap().iter().map(|message| &message["content"]);
                            assert!(
                                !all.flat_map(|content| content
                                    .as_array()
                                    .cloned()
                                    .unwrap_or_else(|| vec![content.clone()]))
                                    .any(|block| empty(&block)),
                                "{sent}"
                            );
                        }
                        Ok(_) => {}
                        Err(error) => {
                            let text = client == Dialect::Responses && role == "assistant" && content.is_array();
                            let odd = alone || content.is_null() || text;
                            assert!(odd && !error.path.is_empty(), "{client} to {target}: {role} {content}: {error}");
                        }
                    }
                }
            }
        }
    }
}
