//! `turnkeep explain turn ID --export FILE`: asks the running gateway for a turn's incident trace, and writes it down.
//!
//! The traces are in the gateway's memory alone, so that this asks it over its operator API, with a key that may read it.

use crate::cli::ExplainTurnArgs;
use crate::commands::Failure;
use crate::config::{Config, Listen, Scope, SecretRef};
use crate::wiring;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use turnkeep_base::{AccountId, Secret, TurnId};
use turnkeep_engine::incident;
use turnkeep_engine::ports::{Call, Upstream};
use turnkeep_upstream::{Endpoint, EndpointSpec, Kind};

/// How long the gateway may take to answer.
const WAIT: Duration = Duration::from_secs(30);

/// Where the gateway listens.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Url(String),
    Unix(PathBuf),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Url(url) => f.write_str(url),
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Writes the trace into the file.
///
/// # Errors
/// Usage: the configuration, no such id, no key or no address to ask with. Operation: the gateway does not answer, keeps no
/// trace of the turn, or the file is there or cannot be written.
pub(super) async fn run(args: &ExplainTurnArgs, file: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let id: TurnId = args.id.parse().map_err(|error| Failure::Usage(format!("{:?}: {error}", args.id)))?;
    let config = Config::load(&args.file.config)?;
    if file.exists() && !args.force {
        return Err(is_there(file));
    }
    let place = place(args.url.as_deref(), &config)?;
    let key = key(args.key_env.as_deref(), &config)?;
    let path = format!("/dashboard/api/turns/{id}/incident");
    let asked = tokio::time::timeout(WAIT, ask(&place, &path, &key, &config));
    let answer = asked.await.unwrap_or_else(|_| Err("it has not answered within 30 s".into()));
    let (status, body) = answer.map_err(|why| {
        Failure::Operation(format!(
            "the gateway at {place} cannot be asked: {why}; traces are in the memory of the gateway that ran the turn, and \
             `--url` tells where that listens"
        ))
    })?;
    if status != StatusCode::OK {
        return Err(Failure::Operation(refusal(&place, status, &body)));
    }
    let trace =
        incident::read(&body).map_err(|why| Failure::Operation(format!("what the gateway at {place} sent {why}")))?;
    if trace.head.turn != id.to_string() {
        return Err(Failure::Operation(format!("the gateway at {place} sent the trace of another turn")));
    }
    write(file, &body, args.force)?;
    let ran = match trace.state {
        incident::State::Running => ", which runs still",
        incident::State::Ended => "",
    };
    writeln!(out, "wrote {}: {} steps of {id}{ran}", file.display(), trace.steps.len())?;
    if let Some(cut) = trace.cut {
        writeln!(out, "it breaks off {} ms after the turn began: {}", cut.us / 1_000, cut.by.words())?;
    }
    writeln!(out, "next: turnkeep replay {}", file.display())?;
    Ok(())
}

/// Where to ask: what was said, else the first address of the configuration, from this machine.
fn place(url: Option<&str>, config: &Config) -> Result<Place, Failure> {
    if let Some(url) = url {
        return match url.strip_prefix("unix:") {
            Some(path) if !path.is_empty() => Ok(Place::Unix(path.into())),
            None if url.starts_with("http://") || url.starts_with("https://") => {
                Ok(Place::Url(url.trim_end_matches('/').to_owned()))
            }
            Some(_) | None => {
                Err(Failure::Usage(format!("--url {url}: write http://HOST:PORT, https://HOST:PORT or unix:PATH")))
            }
        };
    }
    match config.server.listen.first() {
        Some(Listen::Unix(path)) => Ok(Place::Unix(path.clone())),
        Some(Listen::Tcp { port: 0, .. }) | None => Err(Failure::Usage(
            "server.listen names no port that could be asked; say with --url where it listens".into(),
        )),
        Some(Listen::Tcp { host, port }) => {
            let scheme = if config.server.tls.is_some() { "https" } else { "http" };
            let host = match host.as_str() {
                "0.0.0.0" => "127.0.0.1".to_owned(),
                "::" => "[::1]".to_owned(),
                v6 if v6.contains(':') => format!("[{v6}]"),
                host => host.to_owned(),
            };
            Ok(Place::Url(format!("{scheme}://{host}:{port}")))
        }
    }
}

/// The key to ask with.
fn key(variable: Option<&str>, config: &Config) -> Result<Secret, Failure> {
    if let Some(name) = variable {
        let found = SecretRef::Env(name.to_owned()).resolve();
        return found.map_err(|why| Failure::Usage(format!("--key-env: {why}")));
    }
    let opens = |scopes: &[Scope]| scopes.contains(&Scope::Viewer) || scopes.contains(&Scope::Admin);
    let Some(key) = config.keys.iter().find(|key| opens(&key.scopes)) else {
        let words = "reading a trace takes a key of the scope viewer, and the config has none; make one with `turnkeep keys \
                     create NAME --scope viewer`, put it into an environment variable and name that with --key-env";
        return Err(Failure::Usage(words.into()));
    };
    key.secret.resolve().map_err(|why| Failure::Usage(format!("the key {:?} of the config: {why}", key.name)))
}

async fn ask(place: &Place, path: &str, key: &Secret, config: &Config) -> Result<(StatusCode, Vec<u8>), String> {
    match place {
        Place::Url(url) => ask_url(url, path, key, config).await,
        Place::Unix(socket) => ask_socket(socket, path, key).await,
    }
}

/// Over the connector that upstreams are asked with: the same TLS, and the same bounds on where a test may connect.
async fn ask_url(url: &str, path: &str, key: &Secret, config: &Config) -> Result<(StatusCode, Vec<u8>), String> {
    let ca_pem = match &config.server.tls {
        Some(tls) if url.starts_with("https://") => {
            Some(std::fs::read(&tls.cert).map_err(|error| format!("its certificate {}: {error}", tls.cert.display()))?)
        }
        Some(_) | None => None,
    };
    let spec = EndpointSpec {
        ca_pem,
        egress: wiring::egress(),
        max_connections: 1,
        ..EndpointSpec::new("gateway", Kind::OpenAi, url)
    };
    let endpoint = Endpoint::new(spec).map_err(|error| error.to_string())?;
    let call = Call {
        method: Method::GET,
        path: path.to_owned().into(),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        account: AccountId { upstream: "gateway".into(), account: "operator".into() },
        secret: key.clone(),
    };
    let mut answer = endpoint.send(call).await.map_err(|fault| fault.to_string())?;
    let mut body = Vec::new();
    while let Some(chunk) = poll_fn(|cx| answer.body.poll_chunk(cx)).await {
        body.extend_from_slice(&chunk.map_err(|fault| fault.to_string())?);
        if body.len() > incident::MAX_BYTES {
            return Err("its answer is longer than any trace".into());
        }
    }
    Ok((answer.status, body))
}

async fn ask_socket(socket: &Path, path: &str, key: &Secret) -> Result<(StatusCode, Vec<u8>), String> {
    let stream = tokio::net::UnixStream::connect(socket).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let connection = tokio::spawn(connection);
    let request = http::Request::get(path)
        .header("host", "localhost")
        .header("authorization", format!("Bearer {}", key.expose()))
        .body(Empty::<Bytes>::new())
        .map_err(|_| "the key cannot be sent in a header")?;
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let status = response.status();
    let body = Limited::new(response.into_body(), incident::MAX_BYTES).collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes().to_vec();
    drop(sender);
    connection.abort();
    Ok((status, body))
}

/// What a refusal says.
fn refusal(place: &Place, status: StatusCode, body: &[u8]) -> String {
    let told = serde_json::from_slice::<serde_json::Value>(body).ok();
    let told = told.as_ref().and_then(|body| body.pointer("/error/message")).and_then(serde_json::Value::as_str);
    let told: String = told.map_or_else(|| "it does not say why".into(), |told| told.chars().take(400).collect());
    let hint = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; --key-env names another key",
        StatusCode::NOT_FOUND => "; `turnkeep explain turn ID` shows what the store has of it",
        _ => "",
    };
    format!("the gateway at {place} answers {}: {told}{hint}", status.as_u16())
}

fn is_there(file: &Path) -> Failure {
    Failure::Operation(format!("{} is there already; `--force` replaces it", file.display()))
}

/// Writes the file in one step, for its owner alone.
fn write(file: &Path, body: &[u8], force: bool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Operation(format!("{} cannot be written: {error}", file.display()));
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A temporary file has the mode 0600.
    let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    temporary.write_all(body).and_then(|()| temporary.write_all(b"\n")).map_err(failed)?;
    temporary.as_file().sync_all().map_err(failed)?;
    let placed = if force { temporary.persist(file) } else { temporary.persist_noclobber(file) };
    match placed {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(is_there(file)),
        Err(error) => Err(failed(error.error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn config(text: &str) -> Config {
        Config::parse(text, Path::new("turnkeep.toml"), std::iter::empty()).unwrap()
    }

    #[test]
    fn a_file_that_is_there_stays_unless_it_is_to_be_replaced_and_the_new_one_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.json");
        std::fs::write(&file, "precious").unwrap();
        let refused = write(&file, b"{}", false).unwrap_err();
        assert!(refused.to_string().contains("is there already; `--force`"), "{refused}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
        write(&file, b"{}", true).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{}\n");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file is left");
    }

    #[test]
    fn the_gateway_is_asked_where_it_listens_or_where_it_is_said() {
        let of = |listen: &str| place(None, &config(&format!("[server]\nlisten = \"{listen}\"\n")));
        assert_eq!(of("127.0.0.1:4141").unwrap(), Place::Url("http://127.0.0.1:4141".into()));
        assert_eq!(of("[::]:80").unwrap(), Place::Url("http://[::1]:80".into()));
        assert_eq!(of("unix:/run/t.sock").unwrap(), Place::Unix("/run/t.sock".into()));
        assert!(of("127.0.0.1:0").unwrap_err().to_string().contains("--url"));
        let said = |url| place(Some(url), &Config::default());
        assert_eq!(said("https://gate.example/").unwrap(), Place::Url("https://gate.example".into()));
        assert_eq!(said("unix:a.sock").unwrap(), Place::Unix("a.sock".into()));
        assert!(said("gate.example").is_err() && said("unix:").is_err());
    }

    #[test]
    fn without_a_key_that_may_read_it_is_said_how_one_is_made() {
        let text = "[[keys]]\nname = \"a\"\nsecret = { env = \"A\" }\n";
        let refused = key(None, &config(text)).unwrap_err();
        assert!(refused.to_string().contains("--scope viewer"), "{refused}");
        assert_eq!(refused.status(), 2);
    }
}
