//! A supervised process that listens where it is told to: at a loopback port or a Unix socket that we choose. It is told by
//! two variables, `TURNKEEP_LISTEN` (`127.0.0.1:PORT`, or `unix:/path`) and `TURNKEEP_SECRET`, which whoever calls it must
//! present; both are new with each start. It should end when its standard input closes.

use super::listener::{self, Whose};
use super::process::private_directory;
use super::supervisor::random;
use super::{Input, NotReady, Output, ProcessSpec, Running, Service, Started, Supervisor, Variables};
use futures_util::future::BoxFuture;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use turnkeep_base::Secret;

/// The variable of a start's own secret, which is kept out of what is logged of the process.
pub(super) const SECRET: &str = "TURNKEEP_SECRET";
/// Between two looks whether the process listens yet.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Where the process is to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// At a free port of 127.0.0.1.
    Loopback,
    /// At a socket of this directory, which is made for its owner alone if it is not there. Short: a socket's whole path may
    /// have 107 bytes.
    Unix(PathBuf),
}

/// Where a process listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A loopback port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A process that listens.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where.
    pub address: Address,
    /// What it wants to be shown; of this start alone.
    pub secret: Secret,
    /// This start's own id.
    pub instance: u128,
}

/// A process that listens, to be kept. It is ready once it listens.
#[derive(Clone, Debug)]
pub struct DaemonSpec {
    /// How it is started.
    pub process: ProcessSpec,
    /// Where it is to listen.
    pub listen: Listen,
}

/// Keeps a process that listens.
#[derive(Debug)]
pub struct Daemon {
    name: Arc<str>,
    supervisor: Supervisor<Listening>,
}

/// A process that listens, held: it does not end while this is kept, unless it dies.
#[derive(Clone)]
pub struct Lent {
    /// Where it listens, and what it wants to be shown.
    pub endpoint: Endpoint,
    _running: Arc<Running<Client>>,
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Daemon {
    /// Keeps what this spec tells. Nothing is started yet.
    pub fn new(spec: DaemonSpec) -> Self {
        let DaemonSpec { process, listen } = spec;
        let name = process.name.clone();
        let listening = Listening { name: name.clone(), listen };
        Daemon { name, supervisor: Supervisor::new(process, listening) }
    }

    /// The running process; started, and waited for, if there is none. Any number may ask at once: one is started.
    pub async fn lend(&self) -> Result<Lent, NotReady> {
        let running = self.supervisor.get().await?;
        Ok(Lent { endpoint: running.client.endpoint.clone(), _running: running })
    }

    /// The process of this instance is of no use, as whoever calls it has found: it is not lent again, ends with the last hold
    /// of it, and that counts as a failure, once.
    pub fn dismiss(&self, instance: u128) {
        if self.supervisor.dismiss(instance) {
            tracing::warn!(process = %self.name, "it runs and takes no calls: it is not used any more");
        }
    }

    /// Keeps no process any more: what runs ends with the last hold of it, and so does what is started for who asks late.
    pub fn let_go(&self) {
        self.supervisor.let_go();
    }

    /// The instance that runs and is lent, if one does.
    pub fn instance(&self) -> Option<u128> {
        Some(self.supervisor.running()?.process.instance())
    }
}

struct Listening {
    name: Arc<str>,
    listen: Listen,
}

/// A process that listens. Its standard input is kept open, and what it prints is passed over.
struct Client {
    endpoint: Endpoint,
    printed: JoinHandle<()>,
    _stdin: Input,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.printed.abort();
        if let Address::Unix(path) = &self.endpoint.address {
            let _gone = std::fs::remove_file(path);
        }
    }
}

impl Service for Listening {
    type Client = Client;
    type Place = Endpoint;

    fn place(&self, instance: u128) -> Result<(Variables, Endpoint), NotReady> {
        let address = match &self.listen {
            Listen::Loopback => Address::Tcp(
                listener::free_port()
                    .map_err(|error| NotReady::unavailable(format!("{}: no free loopback port: {error}", self.name)))?,
            ),
            Listen::Unix(directory) => {
                private_directory(directory).map_err(|error| {
                    NotReady::unavailable(format!("{}: {}: {error}", self.name, directory.display()))
                })?;
                Address::Unix(directory.join(format!("{:08x}.sock", instance >> 96)))
            }
        };
        let secret = Secret::new(format!("{:032x}{:032x}", random()?, random()?));
        let variables =
            vec![("TURNKEEP_LISTEN".to_owned(), address.to_string()), (SECRET.to_owned(), secret.expose().to_owned())];
        Ok((variables, Endpoint { address, secret, instance }))
    }

    fn ready(&self, started: Started, endpoint: Endpoint) -> BoxFuture<'_, Result<Client, NotReady>> {
        Box::pin(async move {
            let Started { instance: _, pid, stdin, stdout } = started;
            let printed = tokio::spawn(pass_over(stdout));
            // Made first, so that its end takes the socket's file along whatever happens.
            let client = Client { endpoint, printed, _stdin: stdin };
            while !listens(&self.name, pid, &client.endpoint.address).await? {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Ok(client)
        })
    }
}

/// The process listens at its address. Another one there is an error: it is never talked to.
async fn listens(name: &str, pid: u32, address: &Address) -> Result<bool, NotReady> {
    match address {
        Address::Tcp(tcp) => {
            let port = tcp.port();
            let whose = tokio::task::spawn_blocking(move || listener::whose(pid, port)).await;
            match whose.unwrap_or(Whose::Unknown) {
                Whose::Nobodys => Ok(false),
                Whose::Anothers => Err(NotReady::unavailable(format!(
                    "{name}: another process listens at {address}, which was chosen for it"
                ))),
                Whose::Groups | Whose::Unknown => Ok(TcpStream::connect(tcp).await.is_ok()),
            }
        }
        // Nobody else can make anything in its directory.
        Address::Unix(path) => Ok(UnixStream::connect(path).await.is_ok()),
    }
}

async fn pass_over(mut printed: Output) {
    let mut buffer = [0u8; 4096];
    while let Ok(1..) = printed.read(&mut buffer).await {}
}
