//! The gateway of a run, one life after the other: wired as the product wires it, over the run's clock, chance, store and
//! network.

use crate::agents::Starter;
use crate::clock::Clock;
use crate::net::{Net, WayOut, host};
use crate::plan::{Family, Plan};
use crate::script::secret;
use crate::store::{Life, Seen};
use crate::streams::{Chance, Stream};
use crate::trace::Trace;
use anyhow::{Context as _, Result, anyhow};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use turnkeep::commands::Failure;
use turnkeep::config::Config;
use turnkeep::wiring::{World, wire_in};
use turnkeep_agents::supervise::Launch;
use turnkeep_http::{Gateway, Limits, Listener};
use turnkeep_store::MemoryStore;
use turnkeep_upstream::Egress;

/// The key of a caller.
pub fn key(caller: u8) -> String {
    format!("key-of-{caller}")
}

/// The operator's changes to the configuration so far.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// How often an account's secret was rotated.
    pub rotated: BTreeMap<(Family, u8), u32>,
    /// Accounts that are out.
    pub removed: BTreeSet<(Family, u8)>,
}

/// The configuration's text.
pub fn config(plan: &Plan, changes: &Changes) -> String {
    let mut text = String::from(
        "allow_plain_secrets = true\n[server]\nlisten = [\"127.0.0.1:4141\"]\n[store]\nurl = \"memory:\"\n[fetch]\nenabled = false\n",
    );
    // A string takes all that is written to it.
    let mut put = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    for caller in 0..plan.callers {
        put(format!("[[keys]]\nname = \"c{caller}\"\nsecret = {:?}\nscopes = [\"chat\", \"viewer\"]", key(caller)));
    }
    if plan.queue_places > 0 {
        put(format!("[tuning]\nqueue_places = {}", plan.queue_places));
    }
    for upstream in &plan.upstreams {
        let family = upstream.family;
        let (kind, path) = match family {
            Family::Chat => ("openai", "/v1"),
            Family::Messages => ("anthropic", ""),
            Family::Responses => ("openai-responses", "/v1"),
            Family::Gemini => ("gemini", ""),
            Family::Connect => ("connect", ""),
            Family::Cascade => ("cascade", ""),
            Family::Devin => ("devin", ""),
            Family::Acp => ("acp", ""),
        };
        put(format!("[[upstreams]]\nname = {:?}\nkind = \"{kind}\"", family.name()));
        put(match family {
            Family::Acp => "command = [\"agent\"]".to_owned(),
            Family::Chat
            | Family::Messages
            | Family::Responses
            | Family::Gemini
            | Family::Connect
            | Family::Cascade
            | Family::Devin => format!("base_url = \"http://{}{path}\"", host(family)),
        });
        if plan.finish {
            put("on_client_gone = { finish = { max_tokens = 2000, max_seconds = 30 } }".into());
        }
        for account in (0..upstream.accounts).filter(|account| !changes.removed.contains(&(family, *account))) {
            let rotated = changes.rotated.get(&(family, account)).copied().unwrap_or_default();
            let secret = secret(family, account, rotated);
            put(format!("[[upstreams.accounts]]\nname = \"a{account}\"\nmax_in_flight = {}", upstream.max_in_flight));
            put(match family {
                Family::Acp => format!("home = \"home-{account}\"\nenv = {{ AGENT_WORD = {secret:?} }}"),
                Family::Chat
                | Family::Messages
                | Family::Responses
                | Family::Gemini
                | Family::Connect
                | Family::Cascade
                | Family::Devin => format!("secret = {secret:?}"),
            });
            if family == Family::Devin {
                put("organization = \"org-1\"".into());
            }
        }
    }
    let route = |family: Family| format!("{{ upstream = {:?}, model = \"upstream-m\" }}", family.name());
    for upstream in &plan.upstreams {
        put(format!("[[models]]\nname = {:?}\nroutes = [{}]", upstream.family.name(), route(upstream.family)));
    }
    let all: Vec<String> = plan.upstreams.iter().map(|upstream| route(upstream.family)).collect();
    put(format!("[[models]]\nname = \"any\"\nroutes = [{}]", all.join(", ")));
    text
}

/// A gateway that runs.
pub struct Running {
    /// Its parts, for looking at.
    pub gateway: Arc<Gateway>,
    way_out: Arc<WayOut>,
    life: Arc<Life>,
    recovered: usize,
    configs: mpsc::Sender<Config>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Result<(), Failure>>,
}

/// What a gateway is started in.
pub struct Ground {
    pub plan: Plan,
    pub net: Arc<Net>,
    pub clock: Arc<Clock>,
    pub trace: Arc<Trace>,
    pub committed: Arc<MemoryStore>,
    pub seen: Arc<Mutex<Seen>>,
    /// Where its configuration would be, and agents' working directories are.
    pub folder: TempDir,
}

impl Ground {
    /// Starts the gateway's life of this number.
    pub async fn start(&self, life: u32, changes: &Changes) -> Result<Running> {
        let config = read(&self.plan, changes, self.folder.path())?;
        let mut stream = Stream::of(self.plan.seed, &format!("store {life}"));
        let commit = Duration::from_micros(stream.within(50..=4000));
        let store = Life::open(self.committed.clone(), self.seen.clone(), self.trace.clone(), commit);
        let store = Arc::new(store);
        let way_out = WayOut::through(self.net.clone());
        let front = tokio::sync::Mutex::new(self.net.open_front());
        let world = World {
            clock: self.clock.clone(),
            random: Arc::new(Chance::of(self.plan.seed, life)),
            egress: Egress::Dialled(way_out.clone()),
            launch: Launch::By(Arc::new(Starter(self.net.clone()))),
            store: Some(store.clone()),
            listeners: Some(vec![Listener::Links(front, SocketAddr::from(([127, 0, 0, 1], 4141)))]),
        };
        let wired = wire_in(config, Limits::default(), world).await.map_err(|failure| anyhow!("{failure}"))?;
        let recovered = wired.recovered;
        let (configs, brought) = mpsc::channel(16);
        let wired = wired.fed(brought);
        let gateway = wired.gateway().clone();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(wired.serve(async {
            // Whoever would stop it may be gone.
            let _ = stopped.await;
        }));
        self.trace.note(format_args!("the gateway starts, life {life}"));
        Ok(Running { gateway, way_out, life: store, recovered, configs, stop: Some(stop), serving })
    }
}

fn read(plan: &Plan, changes: &Changes, folder: &Path) -> Result<Config> {
    Config::parse(&config(plan, changes), &folder.join("sim.toml"), [])
        .map_err(|errors| anyhow!("{errors}"))
        .context("the run's configuration")
}

impl Running {
    /// Attempts of the life before that had no end.
    pub fn recovered(&self) -> usize {
        self.recovered
    }

    /// Brings another configuration.
    pub async fn reload(&self, ground: &Ground, changes: &Changes) -> Result<()> {
        // A gateway that has ended takes nothing up.
        let _ = self.configs.send(read(&ground.plan, changes, ground.folder.path())?).await;
        Ok(())
    }

    /// The process dies: what it holds in memory is nobody's, and it can neither write, call nor answer.
    pub fn crash(self, net: &Net) {
        net.close_front();
        self.life.crash();
        self.way_out.end();
        self.serving.abort();
        // Its tasks have no process to run in.
        self.gateway.engine().stop();
    }

    /// The process is told to end, and does.
    pub async fn drain(mut self, net: &Net) -> Result<()> {
        net.ending();
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        let ended = self.serving.await.context("the gateway's task")?;
        net.close_front();
        self.way_out.end();
        ended.map_err(|failure| anyhow!("{failure}"))
    }
}
