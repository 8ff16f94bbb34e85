//! Bad requests to Chat and Messages: each is the right answer or a refusal that says where, and never a panic. What is
//! accepted and translated is a request that its own dialect accepts.

#![recursion_limit = "512"]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "support/walk.rs"]
mod walk;

use bytes::Bytes;
use serde_json::{Value, json};
use std::fmt::Write;
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{Operation, encode, read};

const PAIR: [Dialect; 2] = [Dialect::Chat, Dialect::Messages];

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

/// Carries a body to every target. What comes of it must be accepted there; a refusal must say something.
fn carry(client: Dialect, body: &[u8], what: &str) -> Vec<Result<Bytes, Invalid>> {
    let request = match read(client, Operation::Generate, Bytes::copy_from_slice(body)) {
        Ok(request) => request,
        Err(error) => return vec![Err(error)],
    };
    let carried = PAIR.iter().map(|target| {
        let encoded = request.turn().and_then(|turn| encode(*target, &turn, "up"))?;
        if let Err(error) = read(*target, Operation::Generate, encoded.body.clone()) {
            panic!("{client} to {target}, {what}: {error}\n{}", String::from_utf8_lossy(&encoded.body));
        }
        Ok(encoded.body)
    });
    carried.collect()
}

#[test]
fn a_wrong_value_in_any_place_is_refused_by_its_path_or_makes_a_good_request() {
    for (client, request) in [(Dialect::Chat, chat()), (Dialect::Messages, messages())] {
        assert!(carry(client, request.to_string().as_bytes(), "as it is").iter().all(Result::is_ok), "{client}");
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

fn ask(client: Dialect, message: Value) -> Value {
    match client {
        Dialect::Chat => json!({"model":"m","messages":[message]}),
        Dialect::Messages | Dialect::Responses | Dialect::Gemini => {
            json!({"model":"m","max_tokens":9,"messages":[message]})
        }
    }
}

#[test]
fn a_hundred_thousand_messages_and_a_thousand_tools_are_carried() {
    let started = std::time::Instant::now();
    for client in PAIR {
        let messages: Vec<_> = (0..100_000)
            .map(|at| json!({"role": if at % 2 == 0 { "user" } else { "assistant" },"content":format!("{at}")}))
            .collect();
        let tools: Vec<_> = (0..1000)
            .map(|at| match client {
                Dialect::Chat => {
                    json!({"type":"function","function":{"name":format!("tool.{at}"),"parameters":{"type":"object"}}})
                }
                Dialect::Messages | Dialect::Responses | Dialect::Gemini => {
                    json!({"name":format!("tool.{at}"),"input_schema":{"type":"object"}})
                }
            })
            .collect();
        let body = json!({"model":"m","max_tokens":9,"messages":messages,"tools":tools}).to_string();
        for carried in carry(client, body.as_bytes(), "many") {
            let sent: Value = serde_json::from_slice(&carried.unwrap()).unwrap();
            assert_eq!(
                (sent["messages"].as_array().unwrap().len(), sent["tools"].as_array().unwrap().len()),
                (100_000, 1000)
            );
        }
    }
    // Linear work takes a second or two unoptimised.
    assert!(started.elapsed() < std::time::Duration::from_secs(30), "{:?}", started.elapsed());
}

#[test]
fn a_schema_two_hundred_deep_is_refused_by_its_path_and_one_of_a_hundred_is_carried() {
    for client in PAIR {
        for (levels, fits) in [(100, true), (200, false)] {
            let mut schema = String::from(r#"{"type":"object"}"#);
            for _ in 0..levels / 2 {
                schema = format!(r#"{{"properties":{{"a":{schema}}}}}"#);
            }
            let tool = match client {
                Dialect::Chat => format!(r#"{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}"#),
                Dialect::Messages | Dialect::Responses | Dialect::Gemini => {
                    format!(r#"{{"name":"f","input_schema":{schema}}}"#)
                }
            };
            let mut body = ask(client, json!({"role":"user","content":"q"})).to_string();
            body.pop();
            write!(body, r#","tools":[{tool}]}}"#).unwrap();
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
            let sent: Value = serde_json::from_slice(&carried.unwrap()).unwrap();
            assert!(sent["messages"][0]["content"].is_string(), "{arguments}");
        }
    }
    // A NUL outside a string, and bytes that are no UTF-8, are no JSON.
    for body in [&b"{\"model\":\"m\",\0}"[..], b"{\"model\":\"\xff\"}", b"\0", b""] {
        for client in PAIR {
            assert!(carry(client, body, "bytes").iter().all(Result::is_err));
        }
    }
}

#[test]
fn empty_content_in_every_place_is_left_out_or_refused() {
    let empties = [json!(""), json!([]), json!(null), json!([{"type":"text","text":""}])];
    for client in PAIR {
        for (role, content) in
            ["system", "user", "assistant"].into_iter().flat_map(|role| empties.iter().map(move |empty| (role, empty)))
        {
            for alone in [true, false] {
                let mut body = ask(client, json!({"role":role,"content":content}));
                if !alone {
                    body["messages"].as_array_mut().unwrap().push(json!({"role":"user","content":"q"}));
                }
                for (carried, target) in carry(client, body.to_string().as_bytes(), role).into_iter().zip(PAIR) {
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
                            assert!(alone || content.is_null(), "{client} to {target}: {role} {content}: {error}")
                        }
                    }
                }
            }
        }
    }
}
