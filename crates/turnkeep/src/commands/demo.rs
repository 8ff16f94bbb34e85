//! `turnkeep demo`: the main job with nothing set up: a lab upstream, a gateway over it on loopback with an embedded
//! store in a temporary folder, and one real turn through every dialect and route.

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
        "A lab upstream and a gateway over it are up, on loopback. One turn through each dialect and route:\n"
    )?;
    let mut failed = 0;
    for (title, path, body) in turns() {
        match turn(address, key.expose(), path, &body).await {
            Ok(answer) => writeln!(out, "  {title:<44} {answer}")?,
            Err(why) => {
                failed += 1;
                writeln!(out, "  {title:<44} FAILED: {why}")?;
            }
        }
    }
    writeln!(out)?;
    if !args.once {
        write!(out, "{}", hints(address, key.expose()))?;
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

fn turns() -> Vec<(&'static str, &'static str, Value)> {
    let mut out = Vec::new();
    for (model, behind) in [(CHAT_MODEL, "OpenAI upstream"), (MESSAGES_MODEL, "Anthropic upstream")] {
        for stream in [false, true] {
            let title = match (behind, stream) {
                ("OpenAI upstream", false) => ["OpenAI Chat -> OpenAI", "Anthropic Messages -> OpenAI"],
                ("OpenAI upstream", true) => {
                    ["OpenAI Chat -> OpenAI, streamed", "Anthropic Messages -> OpenAI, streamed"]
                }
                (_, false) => ["OpenAI Chat -> Anthropic", "Anthropic Messages -> Anthropic"],
                (_, true) => ["OpenAI Chat -> Anthropic, streamed", "Anthropic Messages -> Anthropic, streamed"],
            };
            let messages = json!([{"role": "user", "content": "Hello, gateway!"}]);
            let chat = json!({"model": model, "messages": messages, "stream": stream});
            let anthropic = json!({"model": model, "messages": messages, "stream": stream, "max_tokens": 64});
            out.push((title[0], "/v1/chat/completions", chat));
            out.push((title[1], "/v1/messages", anthropic));
        }
    }
    out
}

/// Sends one turn as a client would, and gives the answer's text.
async fn turn(address: SocketAddr, key: &str, path: &str, body: &Value) -> Result<String, String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let stream = TcpStream::connect(address).await.map_err(|error| words(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| words(&error))?;
    let connection = tokio::spawn(connection);
    let request = http::Request::post(path)
        .header("host", address.to_string())
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("anthropic-version", "2023-06-01")
        .body(Full::new(Bytes::from(body.to_string())))
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
    let answer = if body["stream"] == json!(true) { streamed_text(&text)? } else { plain_text(&text)? };
    if answer.is_empty() { Err("the answer is empty".into()) } else { Ok(answer) }
}

fn plain_text(text: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let chat = value.pointer("/choices/0/message/content").and_then(Value::as_str);
    let messages = value.pointer("/content/0/text").and_then(Value::as_str);
    chat.or(messages).map(str::to_owned).ok_or_else(|| format!("no text in {text}"))
}

fn streamed_text(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut ended = false;
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if data == "[DONE]" {
            ended = true;
            continue;
        }
        let value: Value = serde_json::from_str(data).map_err(|error| error.to_string())?;
        ended |= value["type"] == "message_stop";
        let chat = value.pointer("/choices/0/delta/content").and_then(Value::as_str);
        let messages = value.pointer("/delta/text").and_then(Value::as_str);
        out.push_str(chat.or(messages).unwrap_or(""));
    }
    if ended { Ok(out) } else { Err("the stream has no end".into()) }
}

fn hints(address: SocketAddr, key: &str) -> String {
    format!(
        r#"The gateway is at http://{address} and this is its key, until you stop it:

  {key}

Claude Code:    ANTHROPIC_BASE_URL=http://{address} ANTHROPIC_API_KEY={key} claude
OpenAI SDKs:    export OPENAI_BASE_URL=http://{address}/v1 OPENAI_API_KEY={key}
Anthropic SDKs: export ANTHROPIC_BASE_URL=http://{address} ANTHROPIC_API_KEY={key}
curl:           curl http://{address}/v1/chat/completions -H "authorization: Bearer {key}" \
                  -H "content-type: application/json" \
                  -d '{{"model":"{CHAT_MODEL}","messages":[{{"role":"user","content":"Hi"}}]}}'
Counters:       curl http://{address}/dashboard/api/connect-metrics -H "authorization: Bearer {key}"

Models:         {CHAT_MODEL} and {MESSAGES_MODEL}; any other name goes where {MESSAGES_MODEL} goes

Codex and Gemini CLI speak dialects that are not in this version.
Ctrl-C stops it.
"#
    )
}
