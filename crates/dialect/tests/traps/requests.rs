//! What goes out: fields, schemas, empty texts, limits and order.

use crate::pairs::{ask, conversation, every_pair, request};
use crate::sent::{schemas, sent, sent_to, tool, tools};
use serde_json::{Value, json};
use turnkeep_base::Dialect;

fn with_tools(client: Dialect, list: Vec<Value>) -> Value {
    let mut body = ask(client, &[]);
    body["tools"] = if client == Dialect::Gemini { json!([{"functionDeclarations":list}]) } else { json!(list) };
    body
}

#[test]
fn fields_that_an_upstream_does_not_know_are_not_sent_and_are_named() {
    for (client, target) in every_pair() {
        if client == target {
            continue;
        }
        let mut body = ask(client, &["f"]);
        body["prompt_cache_retention"] = json!("24h");
        body["made_up"] = json!({"a":1});
        let mark = match client {
            Dialect::Chat => {
                Some(("messages", json!({"type":"text","text":"t","prompt_cache_breakpoint":{"mode":"explicit"}})))
            }
            Dialect::Responses => {
                Some(("input", json!({"type":"input_text","text":"t","prompt_cache_breakpoint":{"mode":"explicit"}})))
            }
            Dialect::Messages => {
                Some(("messages", json!({"type":"text","text":"t","cache_control":{"type":"ephemeral"}})))
            }
            Dialect::Gemini => None,
        };
        if let Some((field, part)) = mark {
            body[field][0]["content"] = json!([part]);
        }
        let (sent, encoded) = sent(client, &body, target);
        let text = sent.to_string();
        for field in ["prompt_cache_retention", "made_up", "prompt_cache_breakpoint"] {
            assert!(!text.contains(field), "{client} to {target}: {text}");
        }
        assert!(target == Dialect::Messages || !text.contains("cache_control"), "{client} to {target}: {text}");
        let spelt = if client == Dialect::Gemini {
            ["promptCacheRetention", "madeUp"]
        } else {
            ["prompt_cache_retention", "made_up"]
        };
        for field in spelt {
            assert!(encoded.dropped.contains(&field.to_owned()), "{client} to {target}: {:?}", encoded.dropped);
        }
    }
}

#[test]
fn an_object_schema_without_properties_gets_them_where_servers_ask_for_them() {
    for (client, target) in every_pair() {
        let body = with_tools(client, vec![tool(client, "f", &json!({"type":"object"}))]);
        let schema = schemas(target, &sent(client, &body, target).0).remove(0);
        match target {
            Dialect::Chat | Dialect::Responses => {
                assert_eq!(schema, json!({"type":"object","properties":{}}), "{client} to {target}");
            }
            Dialect::Messages | Dialect::Gemini => assert_eq!(schema["type"], "object", "{client} to {target}"),
        }
    }
}

/// A schema with everything that schema cleaners stumble over.
fn rich() -> Value {
    json!({
        "type":"object",
        "properties":{
            "title":{"type":"string","title":"a title","default":"title"},
            "format":{"type":"string","format":"date-time","enum":["format","default"]},
            "default":{"$ref":"#/$defs/item"},
            "additionalProperties":{"type":"boolean"}
        },
        "required":["title","format"],
        "additionalProperties":false,
        "$defs":{"item":{"type":["string","null"],"const":"title"}}
    })
}

#[test]
fn gemini_gets_a_schema_as_json_schema_with_all_its_words_and_is_not_asked_to_be_strict() {
    for client in Dialect::ALL {
        let mut declared = tool(client, "f", &rich());
        match client {
            Dialect::Chat => declared["function"]["strict"] = json!(true),
            Dialect::Responses | Dialect::Messages => declared["strict"] = json!(true),
            Dialect::Gemini => {}
        }
        let (sent, _) = sent(client, &with_tools(client, vec![declared]), Dialect::Gemini);
        let function = &sent["tools"][0]["functionDeclarations"][0];
        assert_eq!(function["parametersJsonSchema"], rich(), "{client}");
        assert!(function.get("parameters").is_none() && function.get("strict").is_none(), "{client}: {function}");
        let mut body = ask(client, &[]);
        match client {
            Dialect::Chat => {
                body["response_format"] =
                    json!({"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":rich()}});
            }
            Dialect::Responses => {
                body["text"] = json!({"format":{"type":"json_schema","name":"a","strict":true,"schema":rich()}});
            }
            Dialect::Messages => body["output_config"] = json!({"format":{"type":"json_schema","schema":rich()}}),
            Dialect::Gemini => {
                body["generationConfig"] = json!({"responseMimeType":"application/json","responseJsonSchema":rich()});
            }
        }
        let (sent, _) = crate::sent::sent(client, &body, Dialect::Gemini);
        let config = &sent["generationConfig"];
        assert_eq!(config["responseJsonSchema"], rich(), "{client}");
        assert_eq!(config["responseMimeType"], "application/json", "{client}");
        assert!(config.get("responseSchema").is_none(), "{client}: {config}");
    }
}

#[test]
fn a_schema_arrives_with_the_names_and_values_of_its_data_untouched() {
    for (client, target) in every_pair() {
        let body = with_tools(client, vec![tool(client, "f", &rich())]);
        assert_eq!(schemas(target, &sent(client, &body, target).0), [rich()], "{client} to {target}");
    }
    // Gemini's own kind of schema is written in other words: only those are replaced.
    let own = json!({"type":"OBJECT","title":"T","properties":{
        "title":{"type":"STRING","format":"enum","enum":["nullable","OBJECT"]},
        "format":{"type":"INTEGER","nullable":true},
        "default":{"type":"ARRAY","items":{"type":"STRING"},"default":["OBJECT"]}}});
    let body = with_tools(Dialect::Gemini, vec![json!({"name":"f","parameters":own})]);
    for target in [Dialect::Chat, Dialect::Responses, Dialect::Messages] {
        let schema = schemas(target, &sent(Dialect::Gemini, &body, target).0).remove(0);
        assert_eq!(schema["properties"]["title"]["enum"], json!(["nullable", "OBJECT"]), "{target}: {schema}");
        assert_eq!(schema["properties"]["default"]["default"], json!(["OBJECT"]), "{target}: {schema}");
        assert_eq!(schema["properties"]["default"]["type"], "array", "{target}: {schema}");
        assert_eq!(schema["title"], "T", "{target}: {schema}");
    }
}

#[test]
fn empty_texts_never_reach_messages() {
    for client in Dialect::ALL {
        let mut body = ask(client, &[]);
        let said = conversation(client, &mut body);
        let (empty, more) = match client {
            Dialect::Chat => (
                json!({"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"t"},{"type":"text","text":" \n"}]}),
                json!({"role":"assistant","content":""}),
            ),
            Dialect::Responses => (
                json!({"role":"user","content":[{"type":"input_text","text":""},{"type":"input_text","text":"t"}]}),
                json!({"role":"assistant","content":""}),
            ),
            Dialect::Messages => (
                json!({"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"t"}]}),
                json!({"role":"assistant","content":[{"type":"text","text":""}]}),
            ),
            Dialect::Gemini => (
                json!({"role":"user","parts":[{"text":""},{"text":"t"}]}),
                json!({"role":"model","parts":[{"text":""}]}),
            ),
        };
        let again = said[0].clone();
        said.extend([empty, more, again]);
        let (sent, _) = sent(client, &body, Dialect::Messages);
        for message in sent["messages"].as_array().unwrap() {
            match &message["content"] {
                Value::String(text) => assert!(!text.trim().is_empty(), "{client}: {sent}"),
                Value::Array(blocks) => {
                    assert!(!blocks.is_empty(), "{client}: {sent}");
                    for block in blocks {
                        assert!(!block["text"].as_str().unwrap().trim().is_empty(), "{client}: {sent}");
                    }
                }
                other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
                    panic!("{client}: {other}")
                }
            }
        }
    }
}

#[test]
fn both_names_of_the_limit_of_tokens_are_read() {
    for (fields, limit) in [
        (json!({"max_tokens":100}), 100),
        (json!({"max_completion_tokens":200}), 200),
        (json!({"max_tokens":100,"max_completion_tokens":200}), 200),
    ] {
        let mut body = ask(Dialect::Chat, &[]);
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        assert_eq!(request(Dialect::Chat, &body).max_output, Some(limit), "{fields}");
        for (target, model, path) in [
            (Dialect::Chat, "gpt-6-sol", "/max_completion_tokens"),
            (Dialect::Chat, "llama", "/max_tokens"),
            (Dialect::Responses, "gpt-6-sol", "/max_output_tokens"),
            (Dialect::Messages, "claude-sonnet-5", "/max_tokens"),
            (Dialect::Gemini, "gemini-3-pro", "/generationConfig/maxOutputTokens"),
        ] {
            let (sent, _) = sent_to(Dialect::Chat, &body, target, model);
            assert_eq!(sent.pointer(path), Some(&json!(limit)), "{fields} to {target}");
        }
    }
}

#[test]
fn tools_keep_their_order_and_a_request_has_the_same_bytes_each_time() {
    let names: Vec<String> = (0..40).map(|number| format!("tool_{}", (number * 7) % 40)).collect();
    for (client, target) in every_pair() {
        let list = names.iter().map(|name| tool(client, name, &rich())).collect();
        let body = with_tools(client, list);
        let (first, encoded) = sent(client, &body, target);
        assert_eq!(tools(target, &first), names, "{client} to {target}");
        assert_eq!(sent(client, &body, target).1.body, encoded.body, "{client} to {target}");
    }
}
