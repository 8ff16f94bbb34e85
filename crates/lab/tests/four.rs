//! What the lab answers in Responses, Gemini, the older completions and embeddings, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod client;

use client::{h1, lab, lab_toml, post, with};
use serde_json::{Value, json};

const SAID: &str = "You said: \"Hello there\". This is the lab model lab-1 answering.";
const GENERATE: &str = "/v1beta/models/lab-1:generateContent";
const STREAM: &str = "/v1beta/models/lab-1:streamGenerateContent";

fn hello_responses() -> Value {
    json!({"model": "lab-1", "input": "Hello there"})
}

fn hello_gemini() -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "Hello there"}]}]})
}

#[tokio::test]
async fn responses_answers_whole_and_in_numbered_events_with_one_end() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let body = peer.get(post("/v1/responses", &hello_responses())).await.json();
    assert_eq!((&body["status"], &body["object"]), (&json!("completed"), &json!("response")));
    assert_eq!(body["output"][0]["content"][0]["text"], SAID);
    assert_eq!((&body["usage"]["input_tokens"], &body["usage"]["output_tokens"]), (&json!(2), &json!(11)));

    let events = peer.get(post("/v1/responses", &with(&hello_responses(), &json!({"stream": true})))).await.events();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event.json()["sequence_number"], at);
        assert_eq!(event.name.as_deref(), event.json()["type"].as_str());
    }
    let named = |name: &str| events.iter().filter(|event| event.name.as_deref() == Some(name)).count();
    assert_eq!((named("response.output_item.added"), named("response.output_item.done")), (1, 1));
    let last = events.last().unwrap();
    assert_eq!(last.name.as_deref(), Some("response.completed"));
    assert_eq!(last.json()["response"]["output"][0]["content"][0]["text"], SAID);
}

#[tokio::test]
async fn responses_calls_functions_and_free_text_tools_and_quotes_their_results() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let tools = json!([{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
        {"type": "namespace", "name": "shell", "description": "", "tools": [{"type": "custom", "name": "patch"}]}]);
    let ask =
        json!({"model": "lab-1", "input": [{"role": "user", "content": "call read and call patch"}], "tools": tools});
    let body = peer.get(post("/v1/responses", &ask)).await.json();
    let output = body["output"].as_array().unwrap();
    assert_eq!((&output[0]["type"], &output[0]["arguments"]), (&json!("function_call"), &json!("{\"path\":\"lab\"}")));
    assert_eq!((&output[1]["type"], &output[1]["namespace"]), (&json!("custom_tool_call"), &json!("shell")));

    let unanswered = with(&ask, &json!({"input": [{"role": "user", "content": "x"}, output[0]]}));
    assert_eq!(peer.get(post("/v1/responses", &unanswered)).await.status, 400);
    let result = json!({"type": "function_call_output", "call_id": output[0]["call_id"], "output": "12 files"});
    let answered = with(&ask, &json!({"input": [{"role": "user", "content": "x"}, output[0], result]}));
    let body = peer.get(post("/v1/responses", &answered)).await.json();
    let text = body["output"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("The tool read returned: \"12 files\"."), "{text}");
}

#[tokio::test]
async fn encrypted_reasoning_must_come_back_as_it_was_given() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let ask = with(&hello_responses(), &json!({"reasoning": {"effort": "low"}}));
    let output = peer.get(post("/v1/responses", &ask)).await.json()["output"].clone();
    assert_eq!(output[0]["type"], "reasoning");
    let again = |item: &Value| json!({"model": "lab-1", "input": [item, {"role": "user", "content": "more"}]});
    assert_eq!(peer.get(post("/v1/responses", &again(&output[0]))).await.status, 200);
    let forged = with(&output[0], &json!({"encrypted_content": "Zm9yZ2Vk"}));
    let refused = peer.get(post("/v1/responses", &again(&forged))).await;
    assert_eq!(
        (refused.status.as_u16(), refused.json()["error"]["code"].clone()),
        (400, json!("invalid_encrypted_content"))
    );
}

#[tokio::test]
async fn an_unknown_field_of_responses_and_gemini_is_refused_by_name() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let refused = peer.get(post("/v1/responses", &with(&hello_responses(), &json!({"stop": ["x"]})))).await;
    assert_eq!((refused.status.as_u16(), refused.json()["error"]["param"].clone()), (400, json!("stop")));
    let refused = peer.get(post(GENERATE, &with(&hello_gemini(), &json!({"generationConfig": {"stop": 1}})))).await;
    assert_eq!(refused.status, 400);
    let error = refused.json()["error"].clone();
    assert_eq!(error["status"], "INVALID_ARGUMENT");
    assert!(error["message"].as_str().unwrap().contains("\"stop\" at 'generation_config'"), "{error}");
}

#[tokio::test]
async fn gemini_answers_whole_in_events_and_as_one_array_in_either_spelling() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let body = peer.get(post(GENERATE, &hello_gemini())).await.json();
    assert_eq!(body["candidates"][0]["content"]["parts"], json!([{"text": SAID}]));
    assert_eq!(body["candidates"][0]["finishReason"], "STOP");
    assert_eq!(body["usageMetadata"]["totalTokenCount"], 13);

    let said = |chunks: &[Value]| -> String {
        let parts = chunks.iter().flat_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array().unwrap());
        parts.filter_map(|part| part["text"].as_str()).collect()
    };
    let events = peer.get(post(&format!("{STREAM}?alt=sse"), &hello_gemini())).await.events();
    let chunks: Vec<Value> = events.iter().map(client::Event::json).collect();
    assert_eq!(said(&chunks), SAID);
    assert_eq!(chunks.last().unwrap()["candidates"][0]["finishReason"], "STOP");
    let array = peer.get(post(STREAM, &hello_gemini())).await;
    assert_eq!(array.headers["content-type"], "application/json");
    assert_eq!(said(array.json().as_array().unwrap()), SAID);

    let cut = with(&hello_gemini(), &json!({"generation_config": {"max_output_tokens": 2}}));
    assert_eq!(peer.get(post(GENERATE, &cut)).await.json()["candidates"][0]["finishReason"], "MAX_TOKENS");
    let counted = peer.get(post("/v1/models/lab-1:countTokens", &hello_gemini())).await.json();
    assert_eq!(counted, json!({"totalTokens": 2}));
}

#[tokio::test]
async fn a_call_of_the_current_turn_needs_its_thought_signature() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let path = "/v1beta/models/gemini-3-pro:generateContent";
    let tools = json!([{"functionDeclarations": [{"name": "read", "parametersJsonSchema": {"type": "object"}}]}]);
    let user = json!({"role": "user", "parts": [{"text": "call read"}]});
    let ask =
        json!({"contents": [user], "tools": tools, "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}});
    let made = peer.get(post(path, &ask)).await.json()["candidates"][0]["content"].clone();
    assert!(made["parts"][0]["thoughtSignature"].is_string(), "{made}");
    let result =
        json!({"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "ok"}}}]});
    let follow = |call: &Value| with(&ask, &json!({"contents": [user, call, result]}));
    let body = peer.get(post(path, &follow(&made))).await.json();
    assert!(
        body["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap().contains("returned: \"ok\""),
        "{body}"
    );
    let call = made["parts"][0]["functionCall"].clone();
    let bare = json!({"role": "model", "parts": [{"functionCall": call}]});
    assert_eq!(peer.get(post(path, &follow(&bare))).await.status, 400);
    let skipped = json!({"role": "model", "parts": [{"functionCall": call, "thoughtSignature": "skip_thought_signature_validator"}]});
    assert_eq!(peer.get(post(path, &follow(&skipped))).await.status, 200);
    let forged = json!({"role": "model", "parts": [{"functionCall": call, "thoughtSignature": "Zm9yZ2Vk"}]});
    assert_eq!(peer.get(post(path, &follow(&forged))).await.status, 400);
}

#[tokio::test]
async fn completions_continue_a_prompt_and_embeddings_are_the_same_for_the_same_text() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let ask = json!({"model": "lab-1", "prompt": "Hello there", "max_tokens": 64});
    let body = peer.get(post("/v1/completions", &ask)).await.json();
    assert_eq!((&body["object"], &body["choices"][0]["text"]), (&json!("text_completion"), &json!(SAID)));
    let events = peer.get(post("/v1/completions", &with(&ask, &json!({"stream": true})))).await.events();
    let (done, chunks) = events.split_last().unwrap();
    let text: String =
        chunks.iter().filter_map(|e| e.json()["choices"][0]["text"].as_str().map(str::to_owned)).collect();
    assert_eq!((done.data.as_str(), text.as_str()), ("[DONE]", SAID));

    let made = peer.get(post("/v1/embeddings", &json!({"model": "e", "input": ["one", "two", "one"]}))).await.json();
    let vector = |at: usize| &made["data"][at]["embedding"];
    assert_eq!(vector(0), vector(2));
    assert_ne!(vector(0), vector(1));
    let requests = json!({"requests": [{"model": "models/e", "content": {"parts": [{"text": "one"}]}}]});
    let body = peer.get(post("/v1beta/models/e:batchEmbedContents", &requests)).await.json();
    assert_eq!(&body["embeddings"][0]["values"], vector(0));
}

#[tokio::test]
async fn a_program_can_ask_what_the_lab_was_asked() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    peer.get(post("/v1/responses", &hello_responses())).await;
    let mut ask = post("/lab/requests", &json!({}));
    *ask.method_mut() = http::Method::GET;
    let seen = peer.get(ask).await.json();
    assert_eq!(seen.as_array().unwrap().len(), 1, "{seen}");
    assert_eq!((&seen[0]["target"], &seen[0]["body"]), (&json!("/v1/responses"), &hello_responses()));
    assert_eq!(seen[0]["status"], 200);
}

#[tokio::test]
async fn faults_and_errors_come_in_the_form_of_each_dialect() {
    let lab = lab_toml(
        "[[rule]]\nmodel = \"busy\"\nerror = { status = 429, retry_after = 3 }\n\
         [[rule]]\nmodel = \"broken\"\nfault = \"error_in_stream\"\nerror = { code = \"server_error\" }\n",
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    let got = peer.get(post("/v1beta/models/busy:generateContent", &hello_gemini())).await;
    assert_eq!((got.status.as_u16(), got.json()["error"]["details"][0]["retryDelay"].clone()), (429, json!("3s")));
    let ask = json!({"model": "broken", "input": "Hello", "stream": true});
    let events = peer.get(post("/v1/responses", &ask)).await.events();
    assert_eq!(events.last().unwrap().name.as_deref(), Some("error"));
    let events = peer.get(post("/v1beta/models/broken:streamGenerateContent?alt=sse", &hello_gemini())).await.events();
    assert_eq!(events.last().unwrap().json()["error"]["code"], 500);
}
