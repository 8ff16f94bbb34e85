//! What URLs in requests name, for an upstream that takes bytes only.

use crate::scene::{Gateway, model, server, upstream};
use serde_json::{Value, json};
use std::net::SocketAddr;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0123456789";
const BASE64: &str = "iVBORw0KGgowMTIzNDU2Nzg5";
const ANSWER: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"a picture"}]},"finishReason":"STOP"}],
    "usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}"#;
const CHAT: &str = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":
    {"role":"assistant","content":"by chat"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;

fn ask(model: &str, url: &str) -> String {
    json!({"model": model, "messages": [{"role": "user", "content": [
        {"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]}]})
    .to_string()
}

async fn gateway(upstreams: SocketAddr, pictures: SocketAddr, more: &str) -> Gateway {
    let models = model("only-gemini", &["gemini"]) + &model("both", &["openai", "gemini"]);
    let allow = format!("[fetch]\nallow = [\"{pictures}\"]\n{more}");
    let both = upstream("openai", upstreams) + &upstream("gemini", upstreams);
    Gateway::with(&format!("{both}{models}{allow}")).await
}

#[tokio::test]
async fn an_image_by_url_reaches_gemini_as_bytes_and_is_fetched_once() {
    let (pictures, seen) = server(&[("/a.png", "image/png", PNG.to_vec())]).await;
    let (up, asked) = server(&[(":generateContent", "application/json", ANSWER.as_bytes().to_vec())]).await;
    let gateway = gateway(up, pictures, "").await;
    let reply =
        gateway.ask("POST", "/v1/chat/completions", &ask("only-gemini", &format!("http://{pictures}/a.png?s=1"))).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "a picture");
    assert_eq!(seen.lock().unwrap().len(), 1);
    let (path, body) = asked.lock().unwrap()[0].clone();
    assert_eq!(path, "/v1beta/models/upstream-m:generateContent");
    let body: Value = serde_json::from_str(&body).unwrap();
    let inline = &body["contents"][0]["parts"][1]["inlineData"];
    assert_eq!((&inline["mimeType"], &inline["data"]), (&"image/png".into(), &BASE64.into()), "{body}");
}

#[tokio::test]
async fn a_failed_fetch_refuses_the_turn_where_only_gemini_could_answer_and_no_other() {
    let (pictures, seen) = server(&[]).await;
    let (up, asked) = server(&[("/chat/completions", "application/json", CHAT.as_bytes().to_vec())]).await;
    let gateway = gateway(up, pictures, "").await;
    let url = format!("http://{pictures}/gone.png?signature=secret");
    let refused = gateway.ask("POST", "/v1/chat/completions", &ask("only-gemini", &url)).await;
    let error = refused.json()["error"].clone();
    assert_eq!((refused.status, &error["param"]), (400, &"messages[0].content[1]".into()), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("it answered 404") && !message.contains("secret"), "{message}");
    assert!(asked.lock().unwrap().is_empty());
    let answered = gateway.ask("POST", "/v1/chat/completions", &ask("both", &url)).await;
    assert_eq!(answered.json()["choices"][0]["message"]["content"], "by chat", "{}", answered.text());
    // Chat takes the URL as it is.
    assert!(asked.lock().unwrap()[0].1.contains("gone.png?signature=secret"));
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_url_that_leads_inside_is_refused_and_nothing_is_sent_there() {
    let (inside, seen) = server(&[("/a.png", "image/png", PNG.to_vec())]).await;
    let (pictures, _) = server(&[]).await;
    let (up, asked) = server(&[]).await;
    let gateway = gateway(up, pictures, "").await;
    let port = inside.port();
    for url in [
        format!("http://{inside}/a.png"),
        format!("http://localhost:{port}/a.png"),
        format!("http://2130706433:{port}/a.png"),
        format!("http://[::ffff:127.0.0.1]:{port}/a.png"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        let refused = gateway.ask("POST", "/v1/chat/completions", &ask("only-gemini", &url)).await;
        assert_eq!(refused.status, 400, "{url}: {}", refused.text());
    }
    assert!(seen.lock().unwrap().is_empty() && asked.lock().unwrap().is_empty());
    let counters = gateway.ask("GET", "/dashboard/api/connect-metrics", "").await.json();
    assert_eq!((&counters["fetches"], &counters["fetches_failed"]), (&5.into(), &5.into()));
}

#[tokio::test]
async fn a_gateway_that_does_not_fetch_says_so_and_still_serves_upstreams_that_take_urls() {
    let (pictures, seen) = server(&[("/a.png", "image/png", PNG.to_vec())]).await;
    let (up, _) = server(&[("/chat/completions", "application/json", CHAT.as_bytes().to_vec())]).await;
    let gateway = gateway(up, pictures, "enabled = false\n").await;
    let url = format!("http://{pictures}/a.png");
    let refused = gateway.ask("POST", "/v1/chat/completions", &ask("only-gemini", &url)).await;
    assert!(refused.status == 400 && refused.text().contains("does not fetch"), "{}", refused.text());
    assert_eq!(gateway.ask("POST", "/v1/chat/completions", &ask("both", &url)).await.status, 200);
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_file_by_url_is_sent_as_what_it_is_whatever_its_name_says() {
    let (pictures, _) = server(&[("/a", "image/png", PNG.to_vec())]).await;
    let (up, asked) = server(&[(":generateContent", "application/json", ANSWER.as_bytes().to_vec())]).await;
    let gateway = gateway(up, pictures, "").await;
    let file = json!({"type": "input_file", "filename": "a.pdf", "file_url": format!("http://{pictures}/a")});
    let body = json!({"model": "only-gemini", "store": false, "input": [{"role": "user", "content": [file]}]});
    let reply = gateway.ask("POST", "/v1/responses", &body.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let body: Value = serde_json::from_str(&asked.lock().unwrap()[0].1).unwrap();
    let inline = &body["contents"][0]["parts"][0]["inlineData"];
    assert_eq!((&inline["mimeType"], &inline["data"]), (&"image/png".into(), &BASE64.into()), "{body}");
}
