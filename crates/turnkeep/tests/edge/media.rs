//! Images and files that are none: refused with their place in the dialect of the client, and never left out.

use crate::scene::{Gateway, model, server, upstream};
use serde_json::{Value, json};

/// One client's turn with an image, its place, and an upstream of another dialect.
fn turns(media_type: &str, data: &str) -> [(&'static str, Value, &'static str, &'static str); 4] {
    let url = format!("data:{media_type};base64,{data}");
    [
        (
            "/v1/chat/completions",
            json!({"model": "over-anthropic", "messages": [{"role": "user", "content": [
                {"type": "text", "text": "t"}, {"type": "image_url", "image_url": {"url": url}}]}]}),
            "messages[0].content[1]",
            "/error/param",
        ),
        (
            "/v1/responses",
            json!({"model": "over-gemini", "store": false, "input": [{"role": "user", "content": [
                {"type": "input_text", "text": "t"}, {"type": "input_image", "image_url": url}]}]}),
            "input[0].content[1]",
            "/error/param",
        ),
        (
            "/v1/messages",
            json!({"model": "over-openai", "max_tokens": 9, "messages": [{"role": "user", "content": [
                {"type": "text", "text": "t"},
                {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}]}]}),
            "messages[0].content[1]",
            "/error/message",
        ),
        (
            "/v1beta/models/over-responses:generateContent",
            json!({"contents": [{"role": "user", "parts": [
                {"text": "t"}, {"inlineData": {"mimeType": media_type, "data": data}}]}]}),
            "contents[0].parts[1]",
            "/error/message",
        ),
    ]
}

#[tokio::test]
async fn an_image_that_is_none_is_refused_with_its_place_in_every_clients_dialect() {
    let (addr, asked) = server(&[]).await;
    let kinds = [
        ("over-anthropic", "anthropic"),
        ("over-gemini", "gemini"),
        ("over-openai", "openai"),
        ("over-responses", "openai-responses"),
    ];
    let upstreams = kinds.map(|(_, kind)| upstream(kind, addr)).concat();
    let models = kinds.map(|(name, kind)| model(name, &[kind])).concat();
    let gateway = Gateway::with(&format!("{upstreams}{models}")).await;
    for (media_type, data) in [("image/png", "no base64!"), ("text/html", "AAAA")] {
        for (path, body, place, told) in turns(media_type, data) {
            // Gemini has one kind of part for images and for files, so that a type alone makes no image of it.
            if path.ends_with(":generateContent") && media_type != "image/png" {
                continue;
            }
            let reply = gateway.ask("POST", path, &body.to_string()).await;
            assert_eq!(reply.status, 400, "{path} {media_type}: {}", reply.text());
            let body = reply.json();
            let said = body.pointer(told).and_then(Value::as_str).unwrap_or_default();
            assert!(said.contains(place), "{path} {media_type}: {body}");
        }
    }
    assert!(asked.lock().unwrap().is_empty());
}
