//! Gemini's routes, errors, keys and lists.

use crate::scene::{Gateway, KEY, Reply, model, server, upstream};
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex};

const BODY: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
const ANSWER: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"hello"}]},"finishReason":"STOP"}],
    "usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}"#;

async fn gateway() -> (Gateway, crate::scene::Asked) {
    let answers = [
        (":generateContent", "application/json", ANSWER.as_bytes().to_vec()),
        (":countTokens", "application/json", br#"{"totalTokens":31}"#.to_vec()),
    ];
    let (addr, asked) = server(&answers).await;
    let models = ["m", "tunedModels/mine", "llama3:8b"].map(|name| model(name, &["gemini"])).concat();
    (Gateway::with(&format!("{}{models}", upstream("gemini", addr))).await, asked)
}

fn assert_google(reply: &Reply, status: u16, name: &str) {
    let body = reply.json();
    let error = &body["error"];
    assert_eq!((reply.status, &error["code"], &error["status"]), (status, &status.into(), &name.into()), "{body}");
    assert!(error["message"].is_string(), "{body}");
}

#[tokio::test]
async fn a_turn_is_found_under_every_form_of_its_path() {
    let (gateway, asked) = gateway().await;
    for path in [
        "/v1beta/models/m:generateContent",
        "/v1/models/m:generateContent",
        "/models/m:generateContent",
        "/gemini/v1beta/models/m:generateContent",
        "/v1beta/models/models%2Fm:generateContent",
        "/v1beta/tunedModels/mine:generateContent",
        "/v1beta/models/llama3:8b:generateContent",
        "/v1beta/models/llama3%3A8b:generateContent",
    ] {
        let reply = gateway.ask("POST", path, BODY).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert_eq!(reply.json()["candidates"][0]["content"]["parts"][0]["text"], "hello", "{path}");
        assert_eq!(asked.lock().unwrap().pop().unwrap().0, "/v1beta/models/upstream-m:generateContent");
    }
}

#[tokio::test]
async fn a_key_may_stand_in_each_of_its_places_and_never_leaves() {
    let (gateway, asked) = gateway().await;
    let json = ("content-type", "application/json");
    let path = "/v1beta/models/m:generateContent";
    let bearer = format!("Bearer {KEY}");
    for (path, key) in [
        (path.to_owned(), Some(("x-goog-api-key", KEY))),
        (path.to_owned(), Some(("authorization", bearer.as_str()))),
        (format!("{path}?key={KEY}"), None),
        (format!("{path}?alt=json&key={KEY}"), None),
    ] {
        let headers: Vec<(&str, &str)> = [json].into_iter().chain(key).collect();
        assert_eq!(gateway.send("POST", &path, &headers, BODY).await.status, 200, "{path}");
    }
    assert!(asked.lock().unwrap().iter().all(|(path, body)| !path.contains(KEY) && !body.contains(KEY)));
    assert_google(&gateway.send("POST", path, &[json], BODY).await, 401, "UNAUTHENTICATED");
}

/// Takes what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_key_in_a_query_stands_in_no_line_of_the_log_and_in_no_answer() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    // All of the gateway runs on this thread.
    let _logging = tracing::subscriber::set_default(subscriber);
    let (gateway, _) = gateway().await;
    let json = [("content-type", "application/json")];
    for path in [
        "/v1beta/models/m:generateContent",
        "/v1beta/models/nope:generateContent",
        "/v1beta/models/m:unknownVerb",
        "/v1beta/models?pageSize=x",
        "/v1beta/nothing",
        "/v1/chat/completions",
    ] {
        for key in [KEY, "a-key-that-nobody-knows"] {
            let join = if path.contains('?') { '&' } else { '?' };
            let method = if path.contains("pageSize") { "GET" } else { "POST" };
            let reply = gateway.send(method, &format!("{path}{join}key={key}"), &json, BODY).await;
            assert!(!reply.text().contains(key), "{}", reply.text());
        }
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("outcome") && log.contains("refused"), "{log}");
    assert!(!log.contains(KEY) && !log.contains("a-key-that-nobody-knows"), "{log}");
}

#[tokio::test]
async fn errors_are_googles_and_an_unknown_verb_is_told_the_known_ones() {
    let (gateway, _) = gateway().await;
    let unknown = gateway.ask("POST", "/v1beta/models/m:embedContent", BODY).await;
    assert_google(&unknown, 404, "NOT_FOUND");
    for verb in [":generateContent", ":streamGenerateContent", ":countTokens"] {
        assert!(unknown.text().contains(verb), "{}", unknown.text());
    }
    assert_google(&gateway.ask("POST", "/v1beta/models/nope:generateContent", BODY).await, 404, "NOT_FOUND");
    assert_google(&gateway.ask("POST", "/v1beta/models/m:generateContent", "{").await, 400, "INVALID_ARGUMENT");
    assert_google(&gateway.ask("GET", "/v1beta/files", "").await, 404, "NOT_FOUND");
    for (status, reply) in [
        (405, gateway.ask("PUT", "/v1beta/models/m:generateContent", BODY).await),
        (413, gateway.ask("POST", "/v1beta/models/m:generateContent", &" ".repeat(70 << 10)).await),
    ] {
        assert_eq!((reply.status, reply.json()["error"]["code"].clone()), (status, status.into()));
    }
}

#[tokio::test]
async fn models_are_listed_page_by_page_and_found_one_by_one() {
    let (gateway, _) = gateway().await;
    let google = [("x-goog-api-key", KEY)];
    let mut seen = Vec::new();
    let mut path = "/v1/models?pageSize=2".to_owned();
    loop {
        let page = gateway.send("GET", &path, &google, "").await.json();
        seen.extend(page["models"].as_array().unwrap().iter().map(|model| model["name"].as_str().unwrap().to_owned()));
        let Some(token) = page["nextPageToken"].as_str() else { break };
        path = format!("/v1/models?pageSize=2&pageToken={}", token.replace('/', "%2F"));
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(seen.contains(&"models/m".to_owned()), "{seen:?}");
    let one = gateway.send("GET", &format!("/v1beta/models/m?key={KEY}"), &[], "").await;
    assert_eq!((one.status, one.json()["name"].clone()), (200, "models/m".into()));
    assert_google(&gateway.send("GET", "/v1beta/models/nope", &google, "").await, 404, "NOT_FOUND");
    // The same path in the shape of another dialect.
    let other = gateway.ask("GET", "/v1/models", "").await.json();
    assert_eq!((other["object"].clone(), other["models"].clone()), ("list".into(), Value::Null));
}

#[tokio::test]
async fn tokens_are_counted_by_gemini_for_clients_of_any_dialect() {
    let (gateway, asked) = gateway().await;
    let own = gateway.ask("POST", "/v1beta/models/m:countTokens", BODY).await;
    assert_eq!((own.status, own.json()["totalTokens"].clone()), (200, 31.into()), "{}", own.text());
    let messages = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    let other = gateway.ask("POST", "/v1/messages/count_tokens", messages).await;
    assert_eq!((other.status, other.json()["input_tokens"].clone()), (200, 31.into()), "{}", other.text());
    assert!(asked.lock().unwrap().iter().all(|(path, _)| path == "/v1beta/models/upstream-m:countTokens"));
}
