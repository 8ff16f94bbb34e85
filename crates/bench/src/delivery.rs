//! The third part of the benchmark: what receipts, closings' commits and the ledger cost beside the same build with them
//! off, what slow readers cost in memory, and how many turns the ledger takes. The gateways that are compared run at the
//! same time on one core and are loaded in turn, a slice each, so that what else the machine does falls on all of them.

use crate::answers::Dialect;
use crate::delivery_report::{Measured, section};
use crate::failures::load_average;
use crate::gateway::{self, Gateway, Setting};
use crate::load::{self, Outcome};
use crate::peer::KEY;
use crate::process::{first_line, settle_self};
use crate::request::{Ask, Size};
use crate::section::with_section;
use anyhow::{Context, Result, bail};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The section's heading in the report.
pub const HEADING: &str = "## Receipts, closings, ledger and slow readers";

/// Connections of every CPU load.
const CONNECTIONS: usize = 16;
/// Turns before the first measurement.
const WARM: Duration = Duration::from_millis(700);
/// After a load, before the account is read: work put off is charged to its turns.
const SETTLE: Duration = Duration::from_millis(300);
/// Open streams, and how many of them read slowly.
pub const STREAMS: usize = 2_000;
/// Of them read slowly.
pub const SLOW: usize = STREAMS / 2;
/// Bytes that a slow reader takes a second.
pub const SIP: usize = 2_048;

/// The options of `delivery`.
pub type Options = crate::failures::Options;

/// What a gateway has on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// Everything.
    On,
    /// No receipt is waited for and there is no ledger; what follows from a delivery still happens.
    Bare,
    /// That is off too: nothing is recorded, bound or committed for its caller.
    Off,
}

impl Build {
    /// All of them, the one that the others are compared with last.
    pub const ALL: [Build; 3] = [Build::On, Build::Bare, Build::Off];
}

/// One load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The protocol of client and upstream.
    pub dialect: Dialect,
    /// The turns.
    pub size: Size,
}

impl Case {
    const ALL: [Case; 4] = [
        Case { dialect: Dialect::Chat, size: Size::Small },
        Case { dialect: Dialect::Messages, size: Size::Small },
        Case { dialect: Dialect::Chat, size: Size::Agent },
        Case { dialect: Dialect::Messages, size: Size::Agent },
    ];
}

/// CPU microseconds per turn of each build, a slice each.
pub type Slices = Vec<[f64; 3]>;

/// What the slow readers' upstream does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// It has sent a whole answer of 100 events.
    Answer,
    /// It sends without end, as fast as it is taken.
    Flood,
}

/// Runs the measurements on a machine of `cores` cores and writes the section.
pub async fn run(options: &Options, cores: usize) -> Result<()> {
    let load = load_average();
    let slices = if options.quick { 5 } else { options.rounds.clamp(1, 20) * 4 };
    let seconds = if options.quick { 0.7 } else { options.seconds.clamp(0.5, 60.0) / 2.0 };
    let pin = cores > options.peer_core.max(options.load_core);
    let mut notes = settle_self(pin.then_some(options.load_core)).await;
    if !pin {
        notes.push("too few cores: gateway and load generator were not kept apart".to_owned());
    }
    let binary = options.gateway.canonicalize().context("--gateway")?;
    let scratch = tempfile::tempdir()?;
    let (stub, stub_at) = gateway::stub(scratch.path(), pin.then_some(options.load_core)).await?;
    let setting = Setting {
        gateway: binary.clone(),
        stub: stub_at,
        core: pin.then_some(options.peer_core),
        scratch: scratch.path().to_owned(),
        window: Duration::try_from_secs_f64(seconds)?,
    };
    let mut cpu = Vec::new();
    for case in Case::ALL {
        eprintln!("CPU: {case:?}");
        cpu.push((case, compare(&setting, case, slices).await));
    }
    let mut memory = Vec::new();
    for (dialect, behind) in
        [(Dialect::Chat, Behind::Answer), (Dialect::Messages, Behind::Answer), (Dialect::Chat, Behind::Flood)]
    {
        eprintln!("memory: {dialect:?}, {behind:?}");
        memory.push((dialect, behind, open_streams(&setting, dialect, behind).await));
    }
    stub.stop().await?;
    eprintln!("ledger");
    let ledger = ledger(&options.examples.join("ledger_speed")).await;

    let version = first_line(&binary.to_string_lossy(), &["--version"]).await.unwrap_or_else(|| "unknown".to_owned());
    let commit = first_line("git", &["rev-parse", "--short", "HEAD"]).await.unwrap_or_else(|| "unknown".to_owned());
    let shown = |load: Option<f64>| load.map_or("unknown".to_owned(), |load| format!("{load:.1}"));
    let mut conditions = vec![
        format!("Date: {} (UTC)", time::OffsetDateTime::now_utc().date()),
        format!("Turnkeep: {version}, commit {commit}"),
        format!(
            "{cores} cores; load average before the run {}, after it {}; {slices} slices of {seconds} s per build and load",
            shown(load),
            shown(load_average()),
        ),
    ];
    if load.is_some_and(|load| load > 0.5) {
        conditions.push("Not as it should be: the machine was busy before the run".to_owned());
    }
    conditions.extend(notes.into_iter().map(|note| format!("Not as it should be: {note}")));
    let section = section(&conditions, &Measured { cpu, memory, ledger });
    let old = std::fs::read_to_string(&options.out).unwrap_or_default();
    let text = with_section(&old, HEADING, &section);
    std::fs::write(&options.out, text).with_context(|| options.out.display().to_string())?;
    eprintln!("wrote the section into {}", options.out.display());
    Ok(())
}

/// A gateway of this build, which never leaves the machine.
async fn start(setting: &Setting, build: Build) -> Result<Gateway> {
    let bare = [("TURNKEEP_EGRESS", "loopback"), ("TURNKEEP_BENCH_BARE", "1")];
    let more = if build == Build::On { &bare[..1] } else { &bare[..] };
    Gateway::start(setting, more, |folder, addr| configuration(folder, addr, setting.stub, build)).await
}

/// One slice of every build after the other, so often.
async fn compare(setting: &Setting, case: Case, slices: usize) -> Result<Slices> {
    let mut gateways = Vec::new();
    for build in Build::ALL {
        let gateway = start(setting, build).await?;
        whole(&load::closed(gateway.addr, &ask(case, "instant"), CONNECTIONS, u64::MAX, WARM).await?)?;
        gateways.push(gateway);
    }
    let mut measured = Vec::new();
    for _ in 0..slices {
        let mut slice = [0.0; 3];
        for (gateway, cost) in gateways.iter().zip(&mut slice) {
            let before = gateway.process.exact_cpu()?;
            let asked = ask(case, "instant");
            let outcome = load::closed(gateway.addr, &asked, CONNECTIONS, u64::MAX, setting.window).await?;
            whole(&outcome)?;
            tokio::time::sleep(SETTLE).await;
            *cost = (gateway.process.exact_cpu()? - before) / outcome.done as f64 * 1e6;
        }
        measured.push(slice);
    }
    for gateway in gateways {
        gateway.process.stop().await?;
    }
    Ok(measured)
}

/// KiB of resident memory per open stream over idle, the most that was seen while the slow ones read.
async fn open_streams(setting: &Setting, dialect: Dialect, behind: Behind) -> Result<f64> {
    let gateway = start(setting, Build::On).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = gateway.process.rss_mib()?;
    let model = match behind {
        Behind::Answer => "full",
        Behind::Flood => "flood",
    };
    let streamed = |model| Ask { stream: true, ..ask(Case { dialect, size: Size::Small }, model) };
    let (outcome, quick) = load::hold(gateway.addr, &streamed("hold"), STREAMS - SLOW).await?;
    whole(&outcome)?;
    let (outcome, mut slow) = load::hold_slowly(gateway.addr, &streamed(model), SLOW).await?;
    whole(&outcome)?;
    let mut most = 0f64;
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if slow.sip(SIP) < SLOW || quick.len() < STREAMS - SLOW {
            bail!("streams were ended while they were measured");
        }
        most = most.max(gateway.process.rss_mib()?);
    }
    gateway.process.stop().await?;
    Ok((most - idle) * 1024.0 / STREAMS as f64)
}

/// The store's own measurement: the lines of its table.
async fn ledger(example: &Path) -> Result<Vec<Vec<String>>> {
    let output = tokio::process::Command::new(example).kill_on_drop(true).output().await;
    let output = output.with_context(|| example.display().to_string())?;
    if !output.status.success() {
        bail!("{}: {}", example.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().skip(1).map(|line| line.split_whitespace().map(str::to_owned).collect()).collect())
}

fn whole(outcome: &Outcome) -> Result<()> {
    if outcome.done == 0 || outcome.failed > outcome.done / 1000 {
        let first = outcome.failures.first().map(String::as_str).unwrap_or_default();
        bail!("{} answered, {} failed, first: {first}", outcome.done, outcome.failed);
    }
    Ok(())
}

fn ask(case: Case, model: &str) -> Ask {
    let prefix = match case.dialect {
        Dialect::Chat => "c-",
        Dialect::Messages => "m-",
    };
    let model = format!("{prefix}{model}");
    Ask { dialect: case.dialect, model, key: Some(KEY.to_owned()), size: case.size, stream: false }
}

/// Two accounts each, so that there is a choice for bindings to bear on.
fn configuration(folder: &Path, addr: SocketAddr, stub: SocketAddr, build: Build) -> String {
    // For a shared key whose users nobody names nothing is kept.
    let shared = build == Build::Off;
    let mut config = format!(
        "[server]
listen = \"{addr}\"

[store]
url = \"sqlite:{}/bench.db\"
master_key = {{ env = \"BENCH_MASTER_KEY\" }}

[[keys]]
name = \"bench\"
secret = {{ env = \"BENCH_KEY\" }}
shared = {shared}
",
        folder.display()
    );
    for (name, kind, path, prefix) in [("chat", "openai", "/v1", "c-"), ("messages", "anthropic", "", "m-")] {
        config.push_str(&format!(
            "\n[[upstreams]]\nname = \"{name}\"\nkind = \"{kind}\"\nbase_url = \"http://{stub}{path}\"\n"
        ));
        for account in ["one", "two"] {
            config.push_str(&format!(
                "[[upstreams.accounts]]\nname = \"{account}\"\nsecret = {{ env = \"BENCH_UPSTREAM_KEY\" }}\nmax_in_flight = 20000\n"
            ));
        }
        for model in ["instant", "hold", "full", "flood"] {
            config.push_str(&format!(
                "\n[[models]]\nname = \"{prefix}{model}\"\nroutes = [{{ upstream = \"{name}\", model = \"{model}\" }}]\nprice = {{ input = 3.0, output = 15.0 }}\n"
            ));
        }
    }
    config
}
