//! What a storm of 429s costs: the gateway over a stub that refuses every attempt, its CPU per turn beside that of a
//! successful turn on the same process a moment before. Each case gets a fresh process, since what an account suffered
//! lasts longer than a load.

use crate::answers::Dialect;
use crate::gateway::{Gateway, Setting};
use crate::load::{self, Outcome};
use crate::peer::KEY;
use crate::refusal::{self, Refusal};
use crate::request::{Ask, Size};
use anyhow::{Result, bail};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Connections of every load here.
pub const CONNECTIONS: usize = 64;
/// After a load, before the account is read: work put off is charged to its turns.
const SETTLE: Duration = Duration::from_millis(500);
/// Successful turns before the first measurement.
const WARM: Duration = Duration::from_millis(500);

/// One storm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// Accounts of the upstream, each with a limit of its own.
    pub accounts: usize,
    /// What the 429s say.
    pub refusal: Refusal,
}

impl Case {
    /// Every case, in the report's order.
    pub fn all() -> impl Iterator<Item = Case> {
        [1, 20].into_iter().flat_map(|accounts| Refusal::ALL.into_iter().map(move |refusal| Case { accounts, refusal }))
    }
}

/// What one round of a case showed.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// CPU of a successful turn, microseconds.
    pub success_us: f64,
    /// The same at the storm's own rate, where the storm leaves the core mostly idle: few turns share what a wake-up or a
    /// transaction of the store costs, and the process' idle time is charged to them.
    pub alike_us: Option<f64>,
    /// CPU of a refused turn, microseconds.
    pub storm_us: f64,
    /// Attempts that the upstream refused, per turn.
    pub attempts: f64,
    /// Turns that were refused, per second.
    pub rate: f64,
}

impl Figures {
    /// A refused turn's CPU to that of a successful one under like load.
    pub fn ratio(&self) -> f64 {
        self.storm_us / self.alike_us.unwrap_or(self.success_us)
    }
}

/// A storm that takes less of its core than this is compared at its own rate.
const MOSTLY_IDLE: f64 = 0.25;

/// One round of `case`.
pub async fn round(setting: &Setting, case: Case) -> Result<Figures> {
    let gateway = start(setting, case.accounts).await?;
    let served = ask("instant");
    load::closed(gateway.addr, &served, CONNECTIONS, u64::MAX, WARM).await?;
    let before = gateway.process.exact_cpu()?;
    let success = load::closed(gateway.addr, &served, CONNECTIONS, u64::MAX, setting.window).await?;
    let success_us = cost_since(&gateway, before, "success", &success).await?;

    let refused_before = refusal::count(setting.stub).await?;
    let before = gateway.process.exact_cpu()?;
    let storm = load::refused(gateway.addr, &ask(case.refusal.model()), CONNECTIONS, setting.window).await?;
    let storm_us = cost_since(&gateway, before, "storm", &storm).await?;
    let refused = refusal::count(setting.stub).await? - refused_before;
    gateway.process.stop().await?;

    let mut alike_us = None;
    if storm_us / 1e6 * storm.rate() < MOSTLY_IDLE {
        let gateway = start(setting, case.accounts).await?;
        load::closed(gateway.addr, &served, CONNECTIONS, u64::MAX, WARM).await?;
        let before = gateway.process.exact_cpu()?;
        let alike = load::open(gateway.addr, &served, CONNECTIONS, storm.rate(), setting.window).await?;
        alike_us = Some(cost_since(&gateway, before, "success at the storm's rate", &alike).await?);
        gateway.process.stop().await?;
    }
    Ok(Figures { success_us, alike_us, storm_us, attempts: refused as f64 / storm.done as f64, rate: storm.rate() })
}

/// A gateway with everything on and so many accounts.
async fn start(setting: &Setting, accounts: usize) -> Result<Gateway> {
    Gateway::start(setting, &[], |folder, addr| configuration(folder, addr, setting.stub, accounts)).await
}

/// CPU microseconds per turn since `before`, once what was put off is done.
async fn cost_since(gateway: &Gateway, before: f64, what: &str, outcome: &Outcome) -> Result<f64> {
    tokio::time::sleep(SETTLE).await;
    if outcome.done == 0 || outcome.failed > outcome.done / 1000 {
        let first = outcome.failures.first().map(String::as_str).unwrap_or_default();
        bail!("{what}: {} answered, {} failed, first: {first}", outcome.done, outcome.failed);
    }
    Ok((gateway.process.exact_cpu()? - before) / outcome.done as f64 * 1e6)
}

fn ask(model: &str) -> Ask {
    Ask { dialect: Dialect::Chat, model: model.to_owned(), key: Some(KEY.to_owned()), size: Size::Small, stream: false }
}

fn configuration(folder: &Path, addr: SocketAddr, stub: SocketAddr, accounts: usize) -> String {
    let mut config = format!(
        "[server]
listen = \"{addr}\"

[store]
url = \"sqlite:{}/bench.db\"
master_key = {{ env = \"BENCH_MASTER_KEY\" }}

[[keys]]
name = \"bench\"
secret = {{ env = \"BENCH_KEY\" }}

[[upstreams]]
name = \"stub\"
kind = \"openai\"
base_url = \"http://{stub}/v1\"
",
        folder.display()
    );
    for n in 1..=accounts {
        config.push_str(&format!(
            "[[upstreams.accounts]]\nname = \"account-{n}\"\nsecret = {{ env = \"BENCH_UPSTREAM_KEY\" }}\nmax_in_flight = 20000\n"
        ));
    }
    for model in Refusal::ALL.into_iter().map(Refusal::model).chain(["instant"]) {
        config.push_str(&format!("\n[[models]]\nname = \"{model}\"\nroutes = [{{ upstream = \"stub\" }}]\n"));
    }
    config
}
