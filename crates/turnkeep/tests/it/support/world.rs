//! A gateway in this process over labs, and what an operator sees of it.

use super::client::{Client, request_bytes};
use super::dialects::{Pair, kind, letter};
use clap::Parser;
use serde_json::Value;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use turnkeep::cli::{Cli, Command};
use turnkeep::commands::Failure;
use turnkeep::config::Config;
use turnkeep::wiring;
use turnkeep_base::Dialect;
use turnkeep_http::{Bound, Delivery};
use turnkeep_lab::{Lab, LabOptions, LabTls, Rule, Script};
use turnkeep_store::{LedgerEntry, Role, SqliteStore, Store, StoreOptions, SystemClock};

/// The caller's key, which opens everything that may be read.
pub const KEY: &str = "a-key-for-everything";

/// Nothing in these tests takes longer when it works.
pub const BOUND: Duration = Duration::from_secs(30);

/// What must happen soon.
pub async fn soon<T>(happens: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, happens).await.expect("it happens in time")
}

/// An address at which nobody listens: bound and held, so that nobody else gets it while the socket lives.
pub fn nobodys() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}

/// How often a condition is looked at that nothing tells of.
const LOOK: Duration = Duration::from_millis(5);

/// A lab without TLS.
pub async fn plain_lab(script: Script) -> Lab {
    Lab::start(LabOptions { script, ..LabOptions::default() }).await.unwrap()
}

/// A lab of these rules, without TLS.
pub async fn lab(rules: impl IntoIterator<Item = Rule>) -> Lab {
    plain_lab(Script::of(rules)).await
}

/// A lab with a certificate of its own; it speaks HTTP/2 and HTTP/1.1 by ALPN.
pub async fn tls_lab(script: Script) -> Lab {
    let tls = Some(LabTls::SelfSigned);
    Lab::start(LabOptions { script, tls, ..LabOptions::default() }).await.unwrap()
}

/// A lab for each dialect, in the order of [`Dialect::ALL`].
pub async fn lab_of_each(script: impl Fn() -> Script) -> [Lab; 4] {
    [plain_lab(script()).await, plain_lab(script()).await, plain_lab(script()).await, plain_lab(script()).await]
}

/// A plan over an upstream of each kind, at these labs; the model that each serves is named by its [`letter`].
pub fn over_each(labs: &[Lab; 4], change: impl Fn(Up) -> Up) -> Plan {
    let ups = Dialect::ALL.iter().zip(labs).map(|(dialect, lab)| change(Up::at(*dialect, lab)));
    let model = |(at, dialect): (usize, &Dialect)| {
        format!("[[models]]\nname = \"{}\"\nroutes = [{{ upstream = \"up{at}\" }}]\n", letter(*dialect))
    };
    Plan::over(ups).models(&Dialect::ALL.iter().enumerate().map(model).collect::<String>())
}

/// An upstream in the configuration.
#[derive(Clone)]
pub struct Up {
    /// Its protocol.
    pub dialect: Dialect,
    /// Where it is.
    pub addr: SocketAddr,
    /// The authority to trust, if it speaks TLS.
    pub ca: Option<String>,
    /// Its accounts' names; the secret of `a` is `secret-a`.
    pub accounts: Vec<&'static str>,
    /// Slots of each account.
    pub max_in_flight: u32,
    /// The inside of its `timeouts` table.
    pub timeouts: &'static str,
    /// More lines for each account.
    pub each: String,
    /// More lines for the upstream.
    pub lines: String,
}

impl Up {
    /// One account named `a` at this lab.
    pub fn at(dialect: Dialect, lab: &Lab) -> Up {
        Up { ca: lab.ca_pem().map(str::to_owned), ..Up::address(dialect, lab.addr()) }
    }

    /// One account named `a` at this address, without TLS.
    pub fn address(dialect: Dialect, addr: SocketAddr) -> Up {
        let (each, lines) = (String::new(), String::new());
        Up { dialect, addr, ca: None, accounts: vec!["a"], max_in_flight: 16, timeouts: "", each, lines }
    }

    /// With these accounts.
    pub fn accounts(self, accounts: &[&'static str]) -> Up {
        Up { accounts: accounts.to_vec(), ..self }
    }

    /// With so many slots for each account.
    pub fn slots(self, max_in_flight: u32) -> Up {
        Up { max_in_flight, ..self }
    }

    /// With these lines for each account.
    pub fn each(self, lines: &str) -> Up {
        Up { each: lines.to_owned(), ..self }
    }

    /// With these lines for the upstream.
    pub fn lines(self, lines: &str) -> Up {
        Up { lines: lines.to_owned(), ..self }
    }

    /// With these clocks.
    pub fn timeouts(self, timeouts: &'static str) -> Up {
        Up { timeouts, ..self }
    }
}

/// The configuration of a gateway.
pub struct Plan {
    /// The upstreams: the model `m` goes to each in turn, by the name `upstream-m`.
    pub ups: Vec<Up>,
    /// Lines for `[server]`.
    pub server: String,
    /// Lines for `[store]`.
    pub store: String,
    /// Every reply counts as arrived as soon as the connection has it: what must turn tests of delivery red.
    pub forced: bool,
    /// Where it listens.
    pub listen: String,
    /// It listens on a Unix socket in its folder, too.
    pub unix_too: bool,
    /// The inside of its `[tuning]` table.
    pub tuning: String,
    /// The `[[models]]` in place of the one named `m`.
    pub models: Option<String>,
    /// More TOML.
    pub more: String,
}

impl Plan {
    /// Over these upstreams, on a free loopback port.
    pub fn over(ups: impl IntoIterator<Item = Up>) -> Plan {
        let listen = "127.0.0.1:0".to_owned();
        Plan {
            ups: ups.into_iter().collect(),
            server: String::new(),
            store: String::new(),
            forced: false,
            listen,
            unix_too: false,
            tuning: String::new(),
            models: None,
            more: String::new(),
        }
    }

    /// With these numbers.
    pub fn tuning(self, lines: &str) -> Plan {
        Plan { tuning: lines.to_owned(), ..self }
    }

    /// With these models in place of the one named `m`.
    pub fn models(self, toml: &str) -> Plan {
        Plan { models: Some(toml.to_owned()), ..self }
    }

    /// The file's text; writes the authorities it refers to into the folder.
    pub fn toml(&self, folder: &Path) -> String {
        let mut listen = vec![self.listen.clone()];
        if self.unix_too {
            listen.push(format!("unix:{}", folder.join("gateway.sock").display()));
        }
        let mut text = format!(
            "allow_plain_secrets = true\n[server]\nlisten = {listen:?}\n{}\n[store]\nurl = \"sqlite:test.db\"\n{}\n\
             [[keys]]\nname = \"tester\"\nsecret = {KEY:?}\nscopes = [\"chat\", \"viewer\", \"metrics\"]\n",
            self.server, self.store
        );
        let mut routes = Vec::new();
        for (number, up) in self.ups.iter().enumerate() {
            let (kind, path) = kind(up.dialect);
            let scheme = if up.ca.is_some() { "https" } else { "http" };
            let addr = up.addr;
            write!(text, "[[upstreams]]\nname = \"up{number}\"\nkind = \"{kind}\"\n").unwrap();
            writeln!(text, "base_url = \"{scheme}://{addr}{path}\"").unwrap();
            writeln!(text, "timeouts = {{ {} }}\n{}", up.timeouts, up.lines).unwrap();
            if let Some(pem) = &up.ca {
                let file = folder.join(format!("ca{number}.pem"));
                std::fs::write(&file, pem).unwrap();
                writeln!(text, "ca = \"{}\"", file.display()).unwrap();
            }
            for name in &up.accounts {
                let slots = up.max_in_flight;
                writeln!(text, "[[upstreams.accounts]]\nname = \"{name}\"\nsecret = \"secret-{name}\"").unwrap();
                writeln!(text, "max_in_flight = {slots}\n{}", up.each.replace("NAME", name)).unwrap();
            }
            routes.push(format!("{{ upstream = \"up{number}\", model = \"upstream-m\" }}"));
        }
        let models = format!("[[models]]\nname = \"m\"\nroutes = [{}]\n", routes.join(", "));
        write!(text, "{}\n{}", self.models.as_ref().unwrap_or(&models), self.more).unwrap();
        write!(text, "[tuning]\n{}\n", self.tuning).unwrap();
        text
    }
}

/// A running gateway.
pub struct World {
    /// Where it listens.
    pub bound: Vec<Bound>,
    /// Attempts of an earlier run that it closed at its start.
    pub recovered: usize,
    folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Result<(), Failure>>,
}

impl World {
    /// Over these upstreams.
    pub async fn over(ups: impl IntoIterator<Item = Up>) -> World {
        World::of(&Plan::over(ups)).await
    }

    /// One account named `a`, at this lab.
    pub async fn simple(pair: Pair, lab: &Lab) -> World {
        World::over([Up::at(pair.upstream, lab)]).await
    }

    /// The accounts `a` and `b`, at this lab.
    pub async fn two(pair: Pair, lab: &Lab) -> World {
        World::over([Up::at(pair.upstream, lab).accounts(&["a", "b"])]).await
    }

    /// Of a configuration.
    pub async fn of(plan: &Plan) -> World {
        World::in_folder(plan, tempfile::tempdir().unwrap()).await
    }

    /// Of a configuration, in a folder that may hold an earlier run's database.
    pub async fn in_folder(plan: &Plan, folder: TempDir) -> World {
        let file = folder.path().join("turnkeep.toml");
        std::fs::write(&file, plan.toml(folder.path())).unwrap();
        let mut config = Config::load(&file).unwrap();
        if plan.forced {
            config.server.delivery = Delivery::Forced;
        }
        let wired = wiring::wire(config).await.map_err(|failure| failure.to_string()).unwrap().following(file);
        let bound = wired.bound.clone();
        let recovered = wired.recovered;
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(wired.serve(async {
            let _ = stopped.await;
        }));
        World { bound, recovered, folder, stop: Some(stop), serving }
    }

    /// Its TCP address.
    pub fn addr(&self) -> SocketAddr {
        match &self.bound[0] {
            Bound::Tcp(addr) => *addr,
            Bound::Unix(path) => panic!("listens on {}", path.display()),
        }
    }

    /// A client of it.
    pub async fn client(&self) -> Client {
        Client::tcp(self.addr()).await
    }

    /// What the operator's counters say.
    pub async fn counters(&self) -> Value {
        let mut client = match self.bound.last() {
            Some(Bound::Unix(path)) => Client::unix(path).await,
            Some(Bound::Tcp(_)) | None => self.client().await,
        };
        client.write(&request_bytes("GET", "/dashboard/api/connect-metrics", &[], b"")).await;
        client.reply().await.json()
    }

    /// Waits until the counters are as they should be, and gives them.
    pub async fn until(&self, what: &str, reached: impl Fn(&Value) -> bool) -> Value {
        let mut looks = tokio::time::interval(LOOK);
        let end = tokio::time::Instant::now() + BOUND;
        loop {
            looks.tick().await;
            let counters = self.counters().await;
            if reached(&counters) {
                return counters;
            }
            assert!(tokio::time::Instant::now() < end, "{what} did not come about: {counters:#}");
        }
    }

    /// Waits until no slot is taken and no turn waits for one.
    pub async fn until_at_rest(&self) -> Value {
        self.until("rest", |counters| {
            let accounts = counters["accounts"].as_array().unwrap();
            counters["waiting"] == 0 && accounts.iter().all(|account| account["in_flight"] == 0)
        })
        .await
    }

    /// Puts another configuration in its file's place, in one step as editors do.
    pub fn put(&self, text: &str) {
        let next = self.folder.path().join("next.toml");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(&next, self.file()).unwrap();
    }

    /// Puts another plan in its file's place, and waits until it is taken up.
    pub async fn take_up(&self, plan: &Plan) -> Value {
        let before = self.counters().await["config"]["reloads"].as_u64().unwrap();
        self.put(&plan.toml(self.folder.path()));
        self.until("the new configuration", |counters| counters["config"]["reloads"].as_u64() > Some(before)).await
    }

    /// Its configuration's file.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("turnkeep.toml")
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command of the command line on this gateway's configuration, beside it.
    pub async fn command(&self, words: &[&str]) -> String {
        let file = self.file();
        let cli = Cli::parse_from(["turnkeep"].iter().chain(words).chain(&["--config", file.to_str().unwrap()]));
        let mut out = Vec::new();
        match cli.command {
            Command::Accounts { command } => {
                turnkeep::commands::accounts::run(&command, &mut std::io::empty(), &mut out).await.unwrap();
            }
            Command::Explain { topic } => turnkeep::commands::explain::run(&topic, &mut out).await.unwrap(),
            Command::Usage(args) => turnkeep::commands::usage::run(&args, &mut out).await.unwrap(),
            Command::Backup(args) => turnkeep::commands::backup::run(&args, &mut out).unwrap(),
            Command::Serve(_)
            | Command::Demo(_)
            | Command::Init(_)
            | Command::Check(_)
            | Command::Keys { .. }
            | Command::Restore(_)
            | Command::Validate(_)
            | Command::Replay(_)
            | Command::Lab(_) => panic!("not a command for here: {words:?}"),
        }
        String::from_utf8(out).unwrap()
    }

    /// Asks it to stop.
    pub fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until it has stopped in order, and gives its folder.
    pub async fn stopped(mut self) -> TempDir {
        self.ask_to_stop();
        tokio::time::timeout(BOUND, &mut self.serving).await.expect("it stops").unwrap().unwrap();
        self.folder
    }

    /// Stops it, and gives the ledger, oldest entry first.
    pub async fn into_ledger(self) -> Vec<LedgerEntry> {
        let folder = self.stopped().await;
        ledger(folder.path()).await
    }
}

/// The database of a gateway that runs, or ran, in a folder.
pub fn database(folder: &Path) -> PathBuf {
    folder.join("test.db")
}

/// The ledger in a folder, oldest entry first.
pub async fn ledger(folder: &Path) -> Vec<LedgerEntry> {
    let options = StoreOptions { role: Role::Tool, master_key: None, clock: std::sync::Arc::new(SystemClock) };
    let store = SqliteStore::open(&database(folder), options).unwrap();
    let mut entries = store.ledger_entries(1_000).await.unwrap();
    entries.reverse();
    entries
}

/// The account of this name in the counters.
pub fn account<'a>(counters: &'a Value, name: &str) -> &'a Value {
    counters["accounts"].as_array().unwrap().iter().find(|account| account["name"] == name).expect("the account")
}

/// Asserts that an account was blamed for nothing.
pub fn assert_unblamed(counters: &Value, name: &str) {
    let account = account(counters, name);
    assert_eq!(account["status"], "active", "{account}");
    assert_eq!(account["budget_used"], 0, "{account}");
    assert_eq!(account["in_flight"], 0, "{account}");
    assert_eq!(account["cooldowns"].as_array().unwrap().len(), 0, "{account}");
}
