//! What is measured: the bare proxy, nginx, Turnkeep's three flows, and any peer named on the command line. Each start
//! gets a fresh folder, port and configuration, so no round inherits another's state.

use crate::answers::Dialect;
use crate::process::{Launch, Pinned};
use crate::request::{Ask, Size};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The key that every peer under test gets; only Turnkeep looks at it.
pub const KEY: &str = "bench-key-0123456789abcdefghijklmnop";

/// Which program answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The floor.
    Proxy,
    /// nginx as a plain reverse proxy.
    Nginx,
    /// Turnkeep with everything on.
    Turnkeep,
    /// A command from the command line that listens on `port`.
    Other {
        /// Run by `sh`, with the stub's base URL in `STUB_URL`.
        command: String,
        /// Where it listens on loopback.
        port: u16,
    },
}

/// One column of the report.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The column's head.
    pub name: String,
    /// The program.
    pub kind: Kind,
    /// The client's protocol.
    pub dialect: Dialect,
    /// Before the stub's model names in what the client asks for.
    pub prefix: &'static str,
}

/// What starting a peer needs to know.
pub struct Setting {
    /// The stub.
    pub stub: SocketAddr,
    /// Turnkeep's binary.
    pub gateway: Option<PathBuf>,
    /// The peers' core.
    pub core: Option<usize>,
    /// Where folders are made.
    pub scratch: PathBuf,
}

/// A peer that runs.
pub struct Running {
    /// Its process.
    pub process: Pinned,
    /// Where it listens.
    pub addr: SocketAddr,
    /// From start to the first 200.
    pub cold_start: Duration,
    _folder: tempfile::TempDir,
}

impl Peer {
    /// The columns, in order: the floor, nginx when installed, Turnkeep's flows when a binary was given, then `others`.
    pub fn all(nginx: bool, gateway: bool, others: &[String]) -> Result<Vec<Self>> {
        let peer = |name: &str, kind, dialect, prefix| Self { name: name.to_owned(), kind, dialect, prefix };
        let mut all = vec![peer("bare proxy", Kind::Proxy, Dialect::Chat, "")];
        if nginx {
            all.push(peer("nginx", Kind::Nginx, Dialect::Chat, ""));
        }
        if gateway {
            all.push(peer("turnkeep chat", Kind::Turnkeep, Dialect::Chat, "c-"));
            all.push(peer("turnkeep messages", Kind::Turnkeep, Dialect::Messages, "m-"));
            all.push(peer("turnkeep translate", Kind::Turnkeep, Dialect::Messages, "t-"));
        }
        for other in others {
            let (name, rest) = other.split_once('=').context("--peer takes NAME=PORT:COMMAND")?;
            let (port, command) = rest.split_once(':').context("--peer takes NAME=PORT:COMMAND")?;
            let kind = Kind::Other { command: command.to_owned(), port: port.parse().context("--peer's port")? };
            all.push(peer(name, kind, Dialect::Chat, ""));
        }
        Ok(all)
    }

    /// A request to this peer.
    pub fn ask(&self, model: &str, size: Size, stream: bool) -> Ask {
        let model = format!("{}{model}", self.prefix);
        Ask { dialect: self.dialect, model, key: Some(KEY.to_owned()), size, stream }
    }

    /// The same request as the stub itself takes it.
    pub fn direct(&self, model: &str, size: Size, stream: bool) -> Ask {
        Ask { dialect: self.dialect, model: model.to_owned(), key: None, size, stream }
    }

    /// Starts it and waits until it answers.
    pub async fn start(&self, setting: &Setting) -> Result<Running> {
        let folder = tempfile::tempdir_in(&setting.scratch)?;
        let addr = match self.kind {
            Kind::Other { port, .. } => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            Kind::Proxy | Kind::Nginx | Kind::Turnkeep => free_port()?,
        };
        let launch = self.launch(setting, folder.path(), addr)?;
        let mut process = Pinned::start(&launch, setting.core)?;
        let cold_start = process.ready(addr).await.with_context(|| self.name.clone())?;
        Ok(Running { process, addr, cold_start, _folder: folder })
    }

    fn launch(&self, setting: &Setting, folder: &Path, addr: SocketAddr) -> Result<Launch> {
        let log = folder.join("output.log");
        let mut env = Vec::new();
        let argv: Vec<OsString> = match &self.kind {
            Kind::Proxy => vec![
                std::env::current_exe()?.into(),
                "proxy".into(),
                "--listen".into(),
                addr.to_string().into(),
                "--upstream".into(),
                setting.stub.to_string().into(),
            ],
            Kind::Nginx => {
                let config = folder.join("nginx.conf");
                std::fs::write(&config, nginx_config(folder, addr, setting.stub))?;
                // Without -e it would open the system's log before it reads the configuration.
                let log = folder.join("error.log");
                ["nginx".into(), "-e".into(), log.into(), "-p".into(), folder.into(), "-c".into(), config.into()]
                    .to_vec()
            }
            Kind::Turnkeep => {
                let gateway = setting.gateway.as_ref().context("no gateway was given")?;
                let config = folder.join("turnkeep.toml");
                std::fs::write(&config, turnkeep_config(folder, addr, setting.stub))?;
                env.push(("BENCH_KEY".to_owned(), KEY.to_owned()));
                env.push(("BENCH_UPSTREAM_KEY".to_owned(), "upstream-key-0123456789abcdefghijklm".to_owned()));
                env.push(("BENCH_MASTER_KEY".to_owned(), "5a".repeat(32)));
                vec![gateway.into(), "serve".into(), "--config".into(), config.into()]
            }
            Kind::Other { command, .. } => {
                env.push(("STUB_URL".to_owned(), format!("http://{}/v1", setting.stub)));
                vec!["sh".into(), "-c".into(), format!("exec {command}").into()]
            }
        };
        Ok(Launch { argv, env, log })
    }
}

/// A port that was free a moment ago. Peers take no inherited sockets, so this small race stays.
pub fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// One process, so that it is accounted for and ended as the others are.
fn nginx_config(folder: &Path, addr: SocketAddr, stub: SocketAddr) -> String {
    let at = folder.display();
    format!(
        "daemon off;
master_process off;
worker_processes 1;
pid {at}/nginx.pid;
error_log {at}/error.log error;
events {{ worker_connections 20000; }}
http {{
    access_log off;
    client_body_temp_path {at}/body;
    proxy_temp_path {at}/proxy;
    fastcgi_temp_path {at}/fastcgi;
    uwsgi_temp_path {at}/uwsgi;
    scgi_temp_path {at}/scgi;
    client_max_body_size 64m;
    client_body_buffer_size 128k;
    keepalive_requests 1000000000;
    tcp_nodelay on;
    upstream stub {{
        server {stub};
        keepalive 512;
        keepalive_requests 1000000000;
    }}
    server {{
        listen {addr} backlog=8192;
        location / {{
            proxy_pass http://stub;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_buffering off;
            proxy_request_buffering off;
            proxy_read_timeout 300s;
        }}
    }}
}}
"
    )
}

/// Nothing is turned off; the limit that one account would meet under such load is raised.
fn turnkeep_config(folder: &Path, addr: SocketAddr, stub: SocketAddr) -> String {
    let mut config = format!(
        "[server]
listen = \"{addr}\"

[store]
url = \"sqlite:{}/bench.db\"
master_key = {{ env = \"BENCH_MASTER_KEY\" }}

[[upstreams]]
name = \"stub-openai\"
kind = \"openai\"
base_url = \"http://{stub}/v1\"
[[upstreams.accounts]]
name = \"openai-one\"
secret = {{ env = \"BENCH_UPSTREAM_KEY\" }}
max_in_flight = 20000

[[upstreams]]
name = \"stub-anthropic\"
kind = \"anthropic\"
base_url = \"http://{stub}\"
[[upstreams.accounts]]
name = \"anthropic-one\"
secret = {{ env = \"BENCH_UPSTREAM_KEY\" }}
max_in_flight = 20000

[[keys]]
name = \"bench\"
secret = {{ env = \"BENCH_KEY\" }}
",
        folder.display()
    );
    for (prefix, upstream) in [("c-", "stub-openai"), ("m-", "stub-anthropic"), ("t-", "stub-openai")] {
        for model in ["instant", "paced-10ms", "hold"] {
            config.push_str(&format!(
                "\n[[models]]\nname = \"{prefix}{model}\"\nroutes = [{{ upstream = \"{upstream}\", model = \"{model}\" }}]\n"
            ));
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_from_the_command_line_come_after_the_built_in_ones() {
        let all = Peer::all(true, true, &["other=4000:thing --port 4000 --url a:b".to_owned()]).unwrap();
        let names: Vec<_> = all.iter().map(|p| p.name.as_str()).collect();
        let built_in = ["bare proxy", "nginx", "turnkeep chat", "turnkeep messages", "turnkeep translate"];
        assert_eq!(names[..5], built_in);
        assert_eq!(all[5].kind, Kind::Other { command: "thing --port 4000 --url a:b".to_owned(), port: 4000 });
        assert!(Peer::all(false, false, &["broken".to_owned()]).is_err());
    }
}
