//! `turnkeep demo`: the main job with nothing set up: a lab upstream, a gateway over it on loopback with an embedded
//! store in a temporary folder, and real turns through every client's dialect over every upstream's.

use super::Failure;
use crate::cli::DemoArgs;
use crate::config::{Config, DEFAULT_PORT};
use crate::{logs, wiring};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::io::Write;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use turnkeep_http::Bound;
use turnkeep_lab::{Lab, LabOptions};

/// The models of the demonstration, by the dialect of the upstream behind each.
const CHAT_MODEL: &str = "lab-chat";
const RESPONSES_MODEL: &str = "lab-responses";
const GEMINI_MODEL: &str = "lab-gemini";
const MESSAGES_MODEL: &str = "lab-messages";

/// Runs the demonstration; stays up until `stop` is done unless asked to run once.
///
/// # Errors
/// Operation: something could not be started, or a turn failed.
pub async fn run(args: &DemoArgs, out: &mut impl Write, stop: impl Future<Output = ()>) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(Failure::operation)?;
    let lab = Lab::start(LabOptions::default()).await.map_err(Failure::operation)?;
    let port = if std::net::TcpListener::bind(("127.0.0.1", DEFAULT_PORT)).is_ok() { DEFAULT_PORT } else { 0 };
    let text = config(lab.addr(), port);
    let config = Config::parse(&text, &folder.path().join("turnkeep.toml"), std::iter::empty())?;
    logs::start(&config.telemetry);
    let wired = wiring::wire(config).await?;
    let Some(Bound::Tcp(address)) = wired.bound.first().cloned() else {
        return Err(Failure::Operation("the gateway listens nowhere".into()));
    };
    let Some(key) = wired.made_key.clone() else {
        return Err(Failure::Operation("the gateway made no key".into()));
    };
    let (end, ended) = oneshot::channel::<()>();
    let serving = tokio::spawn(wired.serve(async {
        let _ = ended.await;
    }));
    writeln!(
        out,
        "A lab upstream and a gateway over it are up, on loopback. Turns through each dialect, over each upstream:\n"
    )?;
    let mut failed = 0;
    for asked in turns() {
        let title = &asked.title;
        match turn(address, key.expose(), &asked).await {
            Ok(answer) => writeln!(out, "  {title:<52} {answer}")?,
            Err(why) => {
                failed += 1;
                writeln!(out, "  {title:<52} FAILED: {why}")?;
            }
        }
    }
    writeln!(out)?;
    write!(out, "{}", hints(address, key.expose()))?;
    if !args.once {
        writeln!(out, "Ctrl-C stops it.")?;
        out.flush()?;
        stop.await;
    }
    drop(end);
    serving.await.map_err(Failure::operation)??;
    lab.stop().await;
    if failed > 0 {
        return Err(Failure::Operation(format!("{failed} of the demonstration's turns failed")));
    }
    writeln!(out, "Every turn was answered.")?;
    Ok(())
}

fn config(lab: SocketAddr, port: u16) -> String {
    format!(
        r#"allow_plain_secrets = true

[server]
listen = "127.0.0.1:{port}"
shutdown_grace = "5s"

[store]
url = "sqlite:demo.db"

[telemetry]
log = "warn"

[[upstreams]]
name = "lab-openai"
kind = "openai"
base_url = "http://{lab}/v1"
[[upstreams.accounts]]
name = "demo"
secret = "lab-account-one"

[[upstreams]]
name = "lab-anthropic"
kind = "anthropic"
base_url = "http://{lab}"
[[upstreams.accounts]]
name = "demo"
secret = "lab-account-two"

[[upstreams]]
name = "lab-openai-responses"
kind = "openai-responses"
base_url = "http://{lab}/v1"
[[upstreams.accounts]]
name = "demo"
secret = "lab-account-three"

[[upstreams]]
name = "lab-google"
kind = "gemini"
base_url = "http://{lab}"
[[upstreams.accounts]]
name = "demo"
secret = "lab-account-four"

[[models]]
name = "{RESPONSES_MODEL}"
routes = [{{ upstream = "lab-openai-responses" }}]

[[models]]
name = "{GEMINI_MODEL}"
routes = [{{ upstream = "lab-google" }}]

[[models]]
name = "{CHAT_MODEL}"
routes = [{{ upstream = "lab-openai" }}]

[[models]]
name = "{MESSAGES_MODEL}"
routes = [{{ upstream = "lab-anthropic" }}]

[[models]]
name = "*"
routes = [{{ upstream = "lab-anthropic" }}]
"#
    )
}

/// A client's dialect, with the path and body of one turn in it.
#[derive(Clone, Copy)]
enum Client {
    Chat,
    Responses,
    Messages,
    Gemini,
}

impl Client {
    const ALL: [Client; 4] = [Client::Chat, Client::Responses, Client::Messages, Client::Gemini];

    fn name(self) -> &'static str {
        match self {
            Client::Chat => "OpenAI Chat",
            Client::Responses => "OpenAI Responses",
            Client::Messages => "Anthropic Messages",
            Client::Gemini => "Gemini",
        }
    }

    fn path(self, model: &str, stream: bool) -> String {
        match (self, stream) {
            (Client::Chat, _) => "/v1/chat/completions".into(),
            (Client::Responses, _) => "/v1/responses".into(),
            (Client::Messages, _) => "/v1/messages".into(),
            (Client::Gemini, false) => format!("/v1beta/models/{model}:generateContent"),
            (Client::Gemini, true) => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        }
    }

    fn body(self, model: &str, stream: bool) -> Value {
        let text = "Hello, gateway!";
        let messages = json!([{"role": "user", "content": text}]);
        match self {
            Client::Chat => json!({"model": model, "messages": messages, "stream": stream}),
            Client::Responses => json!({"model": model, "input": messages, "stream": stream, "store": false}),
            Client::Messages => json!({"model": model, "messages": messages, "stream": stream, "max_tokens": 64}),
            Client::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
        }
    }

    /// The text of a whole answer.
    fn plain_text(self, answer: &Value) -> Option<String> {
        let at = |path: &str| answer.pointer(path).and_then(Value::as_str).map(str::to_owned);
        match self {
            Client::Chat => at("/choices/0/message/content"),
            Client::Responses => {
                let items = answer["output"].as_array()?.iter();
                let parts = items.filter_map(|item| item["content"].as_array()).flatten();
                Some(parts.filter_map(|part| part["text"].as_str()).collect())
            }
            Client::Messages => at("/content/0/text"),
            Client::Gemini => {
                let parts = answer.pointer("/candidates/0/content/parts")?.as_array()?.iter();
                Some(parts.filter_map(|part| part["text"].as_str()).collect())
            }
        }
    }

    /// What one event of a stream adds, and whether it is the stream's end.
    fn event(self, event: &Value) -> (String, bool) {
        let at = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        match self {
            // Its end is no event.
            Client::Chat => (at("/choices/0/delta/content"), false),
            Client::Responses if event["type"] == "response.output_text.delta" => (at("/delta"), false),
            Client::Responses => (String::new(), event["type"] == "response.completed"),
            Client::Messages => (at("/delta/text"), event["type"] == "message_stop"),
            Client::Gemini => {
                let ended = event.pointer("/candidates/0/finishReason").is_some_and(Value::is_string);
                (self.plain_text(event).unwrap_or_default(), ended)
            }
        }
    }
}

/// One turn of the demonstration.
struct Asked {
    title: String,
    client: Client,
    path: String,
    body: Value,
    stream: bool,
}

/// Every dialect over every upstream: streamed, and over its own as a whole, too.
fn turns() -> Vec<Asked> {
    let upstreams = [
        (CHAT_MODEL, "OpenAI Chat"),
        (RESPONSES_MODEL, "OpenAI Responses"),
        (MESSAGES_MODEL, "Anthropic Messages"),
        (GEMINI_MODEL, "Gemini"),
    ];
    let mut out = Vec::new();
    for client in Client::ALL {
        for (model, behind) in upstreams {
            for stream in [false, true] {
                if !stream && client.name() != behind {
                    continue;
                }
                let how = if stream { ", streamed" } else { "" };
                out.push(Asked {
                    title: format!("{} -> {behind}{how}", client.name()),
                    client,
                    path: client.path(model, stream),
                    body: client.body(model, stream),
                    stream,
                });
            }
        }
    }
    out
}

/// Sends one turn as a client would, and gives the answer's text.
async fn turn(address: SocketAddr, key: &str, asked: &Asked) -> Result<String, String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let stream = TcpStream::connect(address).await.map_err(|error| words(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| words(&error))?;
    let connection = tokio::spawn(connection);
    let request = http::Request::post(asked.path.as_str())
        .header("host", address.to_string())
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("anthropic-version", "2023-06-01")
        .body(Full::new(Bytes::from(asked.body.to_string())))
        .map_err(|error| words(&error))?;
    let response = sender.send_request(request).await.map_err(|error| words(&error))?;
    let status = response.status();
    let bytes = response.into_body().collect().await.map_err(|error| words(&error))?.to_bytes();
    drop(sender);
    let _ = connection.await;
    let text = String::from_utf8_lossy(&bytes);
    if !status.is_success() {
        return Err(format!("{status}: {text}"));
    }
    let client = asked.client;
    let answer = if asked.stream { streamed_text(client, &text)? } else { plain_text(client, &text)? };
    if answer.is_empty() { Err("the answer is empty".into()) } else { Ok(answer) }
}

fn plain_text(client: Client, text: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    client.plain_text(&value).ok_or_else(|| format!("no text in {text}"))
}

fn streamed_text(client: Client, text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut ended = false;
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if data == "[DONE]" {
            ended = true;
            continue;
        }
        let value: Value = serde_json::from_str(data).map_err(|error| error.to_string())?;
        let (more, end) = client.event(&value);
        out.push_str(&more);
        ended |= end;
    }
    if ended { Ok(out) } else { Err("the stream has no end".into()) }
}

/// Lines that point clients at the gateway, each as it stands.
fn hints(address: SocketAddr, key: &str) -> String {
    format!(
        r#"The gateway is at http://{address} and this is its key, as long as this command runs:

  {key}

Claude Code:    ANTHROPIC_BASE_URL=http://{address} ANTHROPIC_API_KEY={key} claude --model {MESSAGES_MODEL}
Codex:          TURNKEEP_KEY={key} codex -m {RESPONSES_MODEL} \
                  -c model_provider=turnkeep -c model_providers.turnkeep.name=turnkeep \
                  -c model_providers.turnkeep.base_url=http://{address}/v1 \
                  -c model_providers.turnkeep.env_key=TURNKEEP_KEY \
                  -c model_providers.turnkeep.wire_api=responses
Gemini CLI:     GOOGLE_GEMINI_BASE_URL=http://{address} GEMINI_API_KEY={key} gemini -m {GEMINI_MODEL}
OpenAI SDKs:    export OPENAI_BASE_URL=http://{address}/v1 OPENAI_API_KEY={key}
Anthropic SDKs: export ANTHROPIC_BASE_URL=http://{address} ANTHROPIC_API_KEY={key}
Google's SDKs:  export GOOGLE_GEMINI_BASE_URL=http://{address} GEMINI_API_KEY={key}
curl:           curl http://{address}/v1/chat/completions -H "authorization: Bearer {key}" \
                  -H "content-type: application/json" \
                  -d '{{"model":"{CHAT_MODEL}","messages":[{{"role":"user","content":"Hi"}}]}}'
Counters:       curl http://{address}/dashboard/api/connect-metrics -H "authorization: Bearer {key}"

Models:         {CHAT_MODEL}, {RESPONSES_MODEL}, {MESSAGES_MODEL} and {GEMINI_MODEL}; any other name goes where
                {MESSAGES_MODEL} goes. Every client may ask for any of them.

"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_asks_every_upstream_and_its_own_both_ways() {
        let turns = turns();
        assert_eq!(turns.len(), 4 * 4 + 4);
        let streamed = turns.iter().filter(|turn| turn.stream).count();
        assert_eq!(streamed, 16);
        let gemini = turns.iter().find(|turn| turn.title == "Gemini -> OpenAI Chat, streamed").unwrap();
        assert_eq!(gemini.path, "/v1beta/models/lab-chat:streamGenerateContent?alt=sse");
    }

    #[test]
    fn an_answer_is_read_in_each_dialect_and_a_stream_without_an_end_is_a_failure() {
        for (client, plain, streamed) in [
            (
                Client::Chat,
                r#"{"choices":[{"message":{"content":"Hi"}}]}"#,
                "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n",
            ),
            (
                Client::Responses,
                r#"{"output":[{"type":"reasoning"},{"content":[{"type":"output_text","text":"Hi"}]}]}"#,
                "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n\
                 data: {\"type\":\"response.completed\"}\n\n",
            ),
            (
                Client::Messages,
                r#"{"content":[{"type":"text","text":"Hi"}]}"#,
                "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"Hi\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
            ),
            (
                Client::Gemini,
                r#"{"candidates":[{"content":{"parts":[{"text":"H"},{"text":"i"}]}}]}"#,
                "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]}}]}\n\n\
                 data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
            ),
        ] {
            assert_eq!(plain_text(client, plain).unwrap(), "Hi", "{}", client.name());
            assert_eq!(streamed_text(client, streamed).unwrap(), "Hi", "{}", client.name());
            let cut = streamed.rfind("data: ").unwrap();
            assert!(streamed_text(client, &streamed[..cut]).is_err(), "{}", client.name());
        }
    }

    #[test]
    fn the_demonstrations_configuration_is_right() {
        let text = config("127.0.0.1:9".parse().unwrap(), 0);
        let parsed = Config::parse(&text, std::path::Path::new("turnkeep.toml"), std::iter::empty()).unwrap();
        assert_eq!((parsed.upstreams.len(), parsed.models.len()), (4, 5));
        let hints = hints("127.0.0.1:9".parse().unwrap(), "k-1");
        for client in ["Claude Code", "Codex", "Gemini CLI", "OpenAI SDKs", "Anthropic SDKs", "Google's SDKs"] {
            assert!(hints.contains(client), "{client}");
        }
    }
}
