//! A gateway over a Chat upstream that answers what it is told to, when it is told to, and shows what it was asked.

use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use turnkeep::commands::Failure;
use turnkeep::config::Config;
use turnkeep::wiring;
use turnkeep_http::Bound;
use turnkeep_lab::Lab;

pub const KEY: &str = "the-key-of-ann";
pub const OTHER: &str = "the-key-of-bob";
pub const SHARED: &str = "the-key-of-many";
const BOUND: Duration = Duration::from_secs(30);

pub async fn soon<T>(happens: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, happens).await.expect("it happens in time")
}

/// The upstream. It says `answer N` to its request number N, from 1 on.
pub struct Upstream {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    asked: Mutex<Vec<Value>>,
    came: Notify,
    /// The rest of an answer waits for this.
    held: Mutex<Option<Arc<Notify>>>,
    gone: Notify,
    /// Bytes by which an answer is longer.
    longer: AtomicUsize,
}

impl Upstream {
    pub async fn start() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let served = shared.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, served.clone()));
            }
        });
        Upstream { addr, shared }
    }

    /// From now on an answer stops after its first word until this is told to go on.
    pub fn hold(&self) -> Arc<Notify> {
        let go_on = Arc::new(Notify::new());
        *self.shared.held.lock().unwrap() = Some(go_on.clone());
        go_on
    }

    /// From now on an answer is longer by so many bytes.
    pub fn lengthen(&self, bytes: usize) {
        self.shared.longer.store(bytes, Ordering::SeqCst);
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn asked(&self) -> Vec<Value> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Waits until it has been asked so many times.
    pub async fn until_asked(&self, times: usize) {
        soon(async {
            loop {
                let came = self.shared.came.notified();
                if self.asked().len() >= times {
                    return;
                }
                came.await;
            }
        })
        .await;
    }

    /// Waits until somebody who asked has left before the end of the answer.
    pub async fn until_left(&self) {
        soon(self.shared.gone.notified()).await;
    }

    /// The roles and texts of the messages of request number N, from 1 on.
    pub fn messages(&self, number: usize) -> Vec<(String, String)> {
        let asked = self.asked();
        let messages = asked[number - 1]["messages"].as_array().unwrap();
        let text = |content: &Value| match content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().map(|part| part["text"].as_str().unwrap_or("")).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => content.to_string(),
        };
        messages.iter().map(|one| (one["role"].as_str().unwrap().to_owned(), text(&one["content"]))).collect()
    }
}

async fn serve(mut socket: TcpStream, shared: Arc<Shared>) {
    let mut unread = Vec::new();
    while let Some(body) = read_body(&mut socket, &mut unread).await {
        let Ok(asked) = serde_json::from_slice::<Value>(&body) else { return };
        let stream = asked["stream"] == true;
        let number = {
            let mut all = shared.asked.lock().unwrap();
            all.push(asked);
            all.len()
        };
        shared.came.notify_waiters();
        let held = shared.held.lock().unwrap().clone();
        let longer = "x".repeat(shared.longer.load(Ordering::SeqCst));
        let texts = ["answer ".to_owned(), number.to_string() + &longer];
        let head =
            |kind: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
        let base = json!({"id": format!("chatcmpl-{number}"), "created": 1, "model": "upstream-m"});
        let mut parts: Vec<String> = Vec::new();
        if stream {
            let chunk = |delta: Value, finish: Value| {
                let mut chunk = base.clone();
                chunk["object"] = "chat.completion.chunk".into();
                chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
                format!("data: {chunk}\n\n")
            };
            parts.push(chunk(json!({"role": "assistant", "content": texts[0]}), Value::Null));
            parts.push(chunk(json!({"content": texts[1]}), Value::Null));
            parts.push(chunk(json!({}), "stop".into()) + "data: [DONE]\n\n");
        } else {
            let mut whole = base.clone();
            whole["object"] = "chat.completion".into();
            let message = json!({"role": "assistant", "content": texts.concat()});
            whole["choices"] = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
            whole["usage"] = json!({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3});
            parts.push(whole.to_string());
        }
        let kind = if stream { "text/event-stream" } else { "application/json" };
        if socket.write_all(head(kind).as_bytes()).await.is_err() {
            return;
        }
        for (at, part) in parts.iter().enumerate() {
            if at == usize::from(stream)
                && let Some(held) = &held
            {
                let mut byte = [0; 1];
                tokio::select! {
                    () = held.notified() => {}
                    _ = socket.read(&mut byte) => {
                        shared.gone.notify_one();
                        return;
                    }
                }
            }
            let framed = format!("{:x}\r\n{part}\r\n", part.len());
            if socket.write_all(framed.as_bytes()).await.is_err() {
                shared.gone.notify_one();
                return;
            }
        }
        if socket.write_all(b"0\r\n\r\n").await.is_err() {
            return;
        }
    }
}

async fn read_body(socket: &mut TcpStream, unread: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&unread[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if unread.len() >= end + 4 + length {
                let body = unread[end + 4..end + 4 + length].to_vec();
                unread.drain(..end + 4 + length);
                return Some(body);
            }
        }
        if socket.read_buf(unread).await.ok()? == 0 {
            return None;
        }
    }
}

/// The configuration of a gateway over upstreams of these kinds, with more lines for its store.
pub fn config(ups: &[(&str, SocketAddr)], sealed: bool, store: &str) -> String {
    let master = if sealed { format!("master_key = {:?}\n", "ab".repeat(32)) } else { String::new() };
    let mut text = format!(
        "allow_plain_secrets = true\n[server]\nlisten = [\"127.0.0.1:0\"]\n[store]\nurl = \"sqlite:test.db\"\n{master}{store}\
         [[keys]]\nname = \"ann\"\nsecret = {KEY:?}\n[[keys]]\nname = \"bob\"\nsecret = {OTHER:?}\n\
         [[keys]]\nname = \"many\"\nsecret = {SHARED:?}\nshared = true\n"
    );
    let mut routes = Vec::new();
    for (kind, addr) in ups {
        let path = if kind.starts_with("openai") { "/v1" } else { "" };
        let route = format!("{{ upstream = \"{kind}\", model = \"upstream-m\" }}");
        text += &format!(
            "[[upstreams]]\nname = \"{kind}\"\nkind = \"{kind}\"\nbase_url = \"http://{addr}{path}\"\n\
             [[upstreams.accounts]]\nname = \"a\"\nsecret = \"secret-a\"\nmax_in_flight = 300\n\
             [[models]]\nname = \"{kind}\"\nroutes = [{route}]\n"
        );
        routes.push(route);
    }
    text + &format!("[[models]]\nname = \"m\"\nroutes = [{}]\n", routes.join(", "))
}

/// Sends a request and reads the answer to its end.
pub async fn exchange(
    addr: SocketAddr,
    method: &str,
    path: &str,
    key: &str,
    more: &str,
    body: Option<Value>,
) -> (u16, String) {
    let mut asked = open(addr, method, path, key, more, body).await;
    let mut all = Vec::new();
    soon(asked.read_to_end(&mut all)).await.unwrap();
    read_reply(&all)
}

async fn open(addr: SocketAddr, method: &str, path: &str, key: &str, more: &str, body: Option<Value>) -> TcpStream {
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\nconnection: close\r\n{more}\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    let mut socket = TcpStream::connect(addr).await.unwrap();
    // Who is refused early may find the connection closed before all of its body is taken.
    let _ = socket.write_all((head + &body).as_bytes()).await;
    socket
}

/// A gateway in this process.
pub struct Scene {
    addr: SocketAddr,
    pub folder: TempDir,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), Failure>>,
}

impl Scene {
    pub async fn over(upstream: &Upstream) -> Scene {
        Scene::in_folder(upstream, tempfile::tempdir().unwrap(), true).await
    }

    /// In a folder that may hold an earlier run's database.
    pub async fn in_folder(upstream: &Upstream, folder: TempDir, sealed: bool) -> Scene {
        Scene::of(&config(&[("openai", upstream.addr)], sealed, ""), folder).await
    }

    /// Over labs of these kinds: the model of a kind's name goes there, and `m` to the first that can.
    pub async fn over_labs(labs: &[(&'static str, &Lab)]) -> Scene {
        let ups: Vec<_> = labs.iter().map(|(kind, lab)| (*kind, lab.addr())).collect();
        Scene::of(&config(&ups, true, ""), tempfile::tempdir().unwrap()).await
    }

    /// With this configuration.
    pub async fn of(text: &str, folder: TempDir) -> Scene {
        let file = folder.path().join("turnkeep.toml");
        std::fs::write(&file, text).unwrap();
        let config = Config::load(&file).unwrap();
        let wired = wiring::wire(config).await.map_err(|failure| failure.to_string()).unwrap();
        let Bound::Tcp(addr) = wired.bound[0].clone() else { panic!("it listens on TCP") };
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(wired.serve(async {
            let _ = stopped.await;
        }));
        Scene { addr, folder, stop, serving }
    }

    /// Stops it, and gives its folder.
    pub async fn stop(self) -> TempDir {
        self.stop.send(()).unwrap();
        soon(self.serving).await.unwrap().map_err(|failure| failure.to_string()).unwrap();
        self.folder
    }

    /// Sends a request and reads the answer to its end.
    pub async fn send(&self, method: &str, path: &str, key: &str, body: Option<Value>) -> (u16, String) {
        exchange(self.addr, method, path, key, "", body).await
    }

    /// The same under an idempotency key.
    pub async fn under(&self, idempotency: &str, body: &Value) -> (u16, String) {
        let more = format!("idempotency-key: {idempotency}\r\n");
        exchange(self.addr, "POST", "/v1/responses", KEY, &more, Some(body.clone())).await
    }

    /// Sends a request and leaves the answer on its connection.
    pub async fn open(&self, method: &str, path: &str, key: &str, body: Option<Value>) -> TcpStream {
        open(self.addr, method, path, key, "", body).await
    }

    /// Sends these bytes and reads the answer to its end.
    pub async fn raw(&self, request: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(self.addr).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut all = Vec::new();
        soon(socket.read_to_end(&mut all)).await.unwrap();
        read_reply(&all)
    }

    /// The same, whose answer is a success.
    pub async fn json(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let (status, text) = self.send(method, path, KEY, body).await;
        assert_eq!(status, 200, "{method} {path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// A response to this.
    pub async fn ask(&self, mut body: Value) -> Value {
        body["model"] = "m".into();
        self.json("POST", "/v1/responses", Some(body)).await
    }

    /// A response of this model, streamed or plain: the whole object, which a stream has in its last event.
    pub async fn turn(&self, model: &str, stream: bool, mut body: Value) -> Value {
        body["model"] = model.into();
        body["stream"] = stream.into();
        let (status, text) = self.send("POST", "/v1/responses", KEY, Some(body)).await;
        assert_eq!(status, 200, "{model} {stream}: {text}");
        if !stream {
            return serde_json::from_str(&text).unwrap();
        }
        let last = events(&text).pop().unwrap();
        assert_eq!(last["type"], "response.completed", "{model}: {last}");
        last["response"].clone()
    }

    /// What is said to a request that is refused.
    pub async fn refused(&self, method: &str, path: &str, key: &str, body: Option<Value>) -> (u16, Value) {
        let (status, text) = self.send(method, path, key, body).await;
        assert!(status >= 400, "{method} {path}: {status} {text}");
        (status, serde_json::from_str::<Value>(&text).unwrap()["error"].clone())
    }

    /// Looks at a response until it has this status.
    pub async fn until_status(&self, id: &str, status: &str) -> Value {
        soon(async {
            let mut looks = tokio::time::interval(Duration::from_millis(5));
            loop {
                looks.tick().await;
                let response = self.json("GET", &format!("/v1/responses/{id}"), None).await;
                if response["status"] == status {
                    return response;
                }
            }
        })
        .await
    }

    /// Some file of its folder holds these bytes.
    pub fn holds(&self, text: &str) -> bool {
        holds(self.folder.path(), text)
    }
}

pub fn holds(folder: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let databases = files.filter(|path| path.to_string_lossy().contains("test.db"));
    let mut bytes = databases.map(|path| std::fs::read(path).unwrap());
    bytes.any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

fn read_reply(all: &[u8]) -> (u16, String) {
    let end = all.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut rest = &all[end + 4..];
    if !head.contains("transfer-encoding: chunked") {
        return (status, String::from_utf8(rest.to_vec()).unwrap());
    }
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n").expect("the size of a chunk");
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap().trim(), 16).unwrap();
        if size == 0 {
            return (status, String::from_utf8(body).unwrap());
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 4 + size..];
    }
}

/// The text of a response's first message.
pub fn text_of(response: &Value) -> &str {
    let output = response["output"].as_array().unwrap();
    let message = output.iter().find(|item| item["type"] == "message").expect("a message");
    message["content"][0]["text"].as_str().unwrap()
}

/// The data of each event of a stream.
pub fn events(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}
