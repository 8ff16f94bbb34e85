//! The whole benchmark in one go: the stub and this process on one core, one peer at a time on the other, rounds
//! interleaved over the peers (A B C, A B C, …) so that a slow minute of the machine falls on all of them, then the
//! report. Children end with this process, whichever way it ends.

use crate::codec;
use crate::conversations;
use crate::delivery;
use crate::failures;
use crate::gateway::stub;
use crate::measure::{self, Plan};
use crate::metric::Figures;
use crate::peer::{Kind, Peer, Setting};
use crate::process::{first_line, settle_self};
use crate::report::{Conditions, Report};
use crate::section::carried_over;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::time::Duration;

/// The options of `run`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Where the report goes.
    #[arg(long, default_value = "docs/benchmarks.md")]
    out: PathBuf,
    /// Turnkeep's binary, built for release; without it only the bare proxy and nginx are measured.
    #[arg(long)]
    gateway: Option<PathBuf>,
    /// The folder of the engine's examples, built for release; with it and a gateway, and with all peers, admission,
    /// judgement and a storm of 429s are measured, too.
    #[arg(long)]
    examples: Option<PathBuf>,
    /// One short round: shows that everything works, not how fast.
    #[arg(long)]
    quick: bool,
    /// Rounds over all peers.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each single load.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Only peers whose name contains this (may be given several times).
    #[arg(long)]
    only: Vec<String>,
    /// Another peer, NAME=PORT:COMMAND: a Chat Completions gateway that listens on PORT of loopback, answers /healthz
    /// and passes the models instant, paced-10ms and hold to $STUB_URL.
    #[arg(long)]
    peer: Vec<String>,
    /// The core of the peer under test.
    #[arg(long, default_value_t = 0)]
    peer_core: usize,
    /// The core of the stub and the load generator.
    #[arg(long, default_value_t = 1)]
    load_core: usize,
}

/// Runs everything and writes the report; SIGINT and SIGTERM end it without one.
pub async fn run(options: Options) -> Result<()> {
    until_stopped(measured(options)).await
}

/// Measures admission, judgement and a storm of 429s alone.
pub async fn failures(options: failures::Options) -> Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    until_stopped(failures::run(&options, cores)).await
}

/// Measures receipts, closings, the ledger and slow readers alone.
pub async fn delivery(options: delivery::Options) -> Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    until_stopped(delivery::run(&options, cores)).await
}

/// Measures the codecs alone.
pub async fn codec(options: codec::Options) -> Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    until_stopped(codec::run(&options, cores)).await
}

/// Measures the keys of conversations, their leases and the bytes they save alone.
pub async fn conversations(options: codec::Options) -> Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    until_stopped(conversations::run(&options, cores)).await
}

async fn until_stopped(work: impl Future<Output = Result<()>>) -> Result<()> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        biased;
        result = work => result,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminated.recv() => bail!("terminated"),
    }
}

async fn measured(options: Options) -> Result<()> {
    let load = failures::load_average();
    let cores = std::thread::available_parallelism()?.get();
    let pin = cores > options.peer_core.max(options.load_core);
    let mut notes = settle_self(pin.then_some(options.load_core)).await;
    if !pin {
        notes.push("too few cores: peers and load generator were not kept apart".to_owned());
    }
    let gateway = options.gateway.as_ref().map(|path| path.canonicalize().context("--gateway")).transpose()?;
    let nginx = first_line("nginx", &["-v"]).await;
    let mut peers = Peer::all(nginx.is_some(), gateway.is_some(), &options.peer)?;
    peers.retain(|peer| options.only.is_empty() || options.only.iter().any(|part| peer.name.contains(part.as_str())));
    let plan = if options.quick {
        Plan { rounds: 1, window: Duration::from_secs(1), warm: Duration::from_millis(300), bursts: 1 }
    } else {
        let window = Duration::try_from_secs_f64(options.seconds.clamp(0.5, 60.0))?;
        Plan { rounds: options.rounds.clamp(1, 20), window, warm: Duration::from_secs(1), bursts: 3 }
    };

    let scratch = tempfile::tempdir()?;
    let (stub, stub_at) = stub(scratch.path(), pin.then_some(options.load_core)).await?;

    let setting = Setting {
        stub: stub_at,
        gateway: gateway.clone(),
        core: pin.then_some(options.peer_core),
        scratch: scratch.path().to_owned(),
    };
    let mut columns: Vec<(Peer, Figures)> = peers.into_iter().map(|peer| (peer, Figures::default())).collect();
    for round in 1..=plan.rounds {
        for (peer, figures) in &mut columns {
            eprintln!("round {round} of {}: {}", plan.rounds, peer.name);
            if let Err(error) = measure::round(peer, &setting, &plan, figures).await {
                eprintln!("{}: {error:#}", peer.name);
                figures.fault(format!("round {round} broke off: {error:#}"));
            }
        }
    }
    stub.stop().await?;

    let conditions = Conditions {
        notes,
        cores,
        rounds: plan.rounds,
        window: plan.window,
        quick: options.quick,
        nginx,
        gateway: match &gateway {
            Some(path) => first_line(&path.to_string_lossy(), &["--version"]).await,
            None => None,
        },
        commit: first_line("git", &["rev-parse", "--short", "HEAD"]).await,
        kernel: first_line("uname", &["-sr"]).await,
        load,
        others: columns
            .iter()
            .filter(|(peer, _)| matches!(peer.kind, Kind::Other { .. }))
            .map(|(peer, _)| peer.name.clone())
            .collect(),
    };
    if let Some(folder) = options.out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let text =
        Report { conditions, columns: columns.into_iter().map(|(p, f)| (p.name, p.kind, f)).collect() }.markdown();
    let before = std::fs::read_to_string(&options.out).unwrap_or_default();
    let parts = [failures::HEADING, delivery::HEADING, codec::HEADING, conversations::HEADING];
    let text = carried_over(&text, &before, &parts);
    std::fs::write(&options.out, text).with_context(|| options.out.display().to_string())?;
    eprintln!("wrote {}", options.out.display());
    if let (Some(gateway), Some(examples)) = (options.gateway, options.examples)
        && options.only.is_empty()
    {
        let (out, quick, rounds, seconds) = (options.out, options.quick, options.rounds, options.seconds);
        let (peer_core, load_core) = (options.peer_core, options.load_core);
        let codecs = codec::Options { out: out.clone(), examples: examples.clone(), quick, core: peer_core };
        let options = failures::Options { out, gateway, examples, quick, rounds, seconds, peer_core, load_core };
        failures::run(&options, cores).await?;
        delivery::run(&options, cores).await?;
        codec::run(&codecs, cores).await?;
        conversations::run(&codecs, cores).await?;
    }
    Ok(())
}
