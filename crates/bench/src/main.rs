//! The benchmark: an instant stub upstream, the bare proxy that is the floor, a load generator without coordinated
//! omission, and `run`, which measures every peer with them and writes the report. Everything stays on the addresses it
//! is given; `run` uses loopback alone.

mod answers;
mod codec;
mod codec_report;
mod conversations;
mod delivery;
mod delivery_report;
mod failures;
mod gateway;
mod goal;
mod h1;
mod load;
mod measure;
mod metric;
mod peer;
mod process;
mod proxy;
mod refusal;
mod report;
mod request;
mod run;
mod section;
mod speed;
mod storm;
mod stub;

use answers::Dialect;
use anyhow::Result;
use clap::{Parser, Subcommand};
use request::{Ask, Size};
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::LocalSet;

#[derive(Parser)]
#[command(name = "turnkeep-bench", version, about = "Measures Turnkeep beside a bare proxy and nginx")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// An upstream that answers at once; the model's name (instant, paced-10ms, hold) chooses how it streams.
    Stub {
        /// Where to listen.
        #[arg(long)]
        listen: SocketAddr,
    },
    /// The bare reverse proxy.
    Proxy {
        /// Where to listen.
        #[arg(long)]
        listen: SocketAddr,
        /// Where to forward to.
        #[arg(long)]
        upstream: SocketAddr,
    },
    /// One load against one address; prints the outcome as JSON.
    Load(LoadOptions),
    /// Measures everything and writes the report.
    Run(run::Options),
    /// Measures admission, judgement and a storm of 429s alone, and writes their section of the report.
    Failures(failures::Options),
    /// Measures what receipts, closings and the ledger cost, and slow readers, and writes their section of the report.
    Delivery(delivery::Options),
    /// Measures the codecs alone, and writes their section of the report.
    Codec(codec::Options),
    /// Measures the keys of conversations, their leases and the bytes they save alone, and writes their section of the report.
    Conversations(codec::Options),
}

#[derive(clap::Args)]
struct LoadOptions {
    /// How to load.
    #[arg(value_enum)]
    mode: Mode,
    /// The address under load.
    #[arg(long)]
    target: SocketAddr,
    /// The client's protocol.
    #[arg(long, value_enum, default_value = "chat")]
    dialect: Dialect,
    /// The model to ask for.
    #[arg(long, default_value = "instant")]
    model: String,
    /// The body's size.
    #[arg(long, value_enum, default_value = "small")]
    size: Size,
    /// Ask for streams.
    #[arg(long)]
    stream: bool,
    /// Sent as a bearer token.
    #[arg(long)]
    key: Option<String>,
    /// Connections (hold: open streams).
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// At most this many requests (closed loop).
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// At most this long.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Arrivals per second (open loop).
    #[arg(long, default_value_t = 1000.0)]
    rate: f64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Mode {
    /// Each connection sends its next request when its last is answered.
    Closed,
    /// Requests fall due at a fixed rate; latency counts from then.
    Open,
    /// Opens streams and keeps them until a line (or the end) comes on standard input.
    Hold,
    /// As closed, over turns that the gateway refuses.
    Refused,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    // One thread throughout: the stub, the proxy and the load generator each have one core, or share one.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(LocalSet::new().run_until(async {
        match cli.command {
            Command::Stub { listen } => Ok(stub::serve(stub::listen(listen)?).await?),
            Command::Proxy { listen, upstream } => proxy::run(listen, upstream).await,
            Command::Load(options) => load_once(options).await,
            Command::Run(options) => run::run(options).await,
            Command::Failures(options) => run::failures(options).await,
            Command::Delivery(options) => run::delivery(options).await,
            Command::Codec(options) => run::codec(options).await,
            Command::Conversations(options) => run::conversations(options).await,
        }
    }))
}

async fn load_once(options: LoadOptions) -> Result<()> {
    let ask = Ask {
        dialect: options.dialect,
        model: options.model,
        key: options.key,
        size: options.size,
        stream: options.stream || matches!(options.mode, Mode::Hold),
    };
    let time = Duration::try_from_secs_f64(options.seconds.clamp(0.0, 3600.0))?;
    let (target, connections) = (options.target, options.connections);
    let (outcome, held) = match options.mode {
        Mode::Closed => (load::closed(target, &ask, connections, options.requests, time).await?, None),
        Mode::Open => (load::open(target, &ask, connections, options.rate, time).await?, None),
        Mode::Refused => (load::refused(target, &ask, connections, time).await?, None),
        Mode::Hold => {
            let (outcome, held) = load::hold(target, &ask, connections).await?;
            (outcome, Some(held))
        }
    };
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&outcome)?)?;
    if let Some(held) = held {
        eprintln!("{} streams are open; a line on standard input ends them", held.len());
        tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
        drop(held);
    }
    Ok(())
}
