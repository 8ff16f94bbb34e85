//! One peer, one round: start it, load it in every way, read the operating system's accounts before and after, stop it.
//! CPU is read again a moment after the last answer, so work put off (ledger writes, say) is charged to its turns.

use crate::answers::EVENTS;
use crate::load::{self, Outcome};
use crate::metric::{Figures, Metric};
use crate::peer::{Peer, Running, Setting};
use crate::request::{Ask, Size};
use anyhow::Result;
use std::time::Duration;

/// How long and how often.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Rounds over all peers.
    pub rounds: usize,
    /// The length of each single load.
    pub window: Duration,
    /// Load before the first measurement of each start.
    pub warm: Duration,
    /// Bursts of paced streams.
    pub bursts: usize,
}

/// After a load, before the accounts are read.
const SETTLE: Duration = Duration::from_millis(500);
/// After a start, before idle memory is read.
const REST: Duration = Duration::from_secs(1);
const MANY: u64 = u64::MAX;
/// Connections of the fixed-rate loads and of the peak.
const WIDE: usize = 64;
/// Connections of the CPU loads.
const NARROW: usize = 16;
/// Paced streams that begin at once.
const BURST: usize = 20;
const SLOW_RATE: f64 = 1000.0;
/// Failed requests per answered one above which a figure is not reported.
const TOLERATED: f64 = 0.001;

/// Takes one round of `peer` into `figures`. A failure of one measurement is noted and does not stop the others.
pub async fn round(peer: &Peer, setting: &Setting, plan: &Plan, figures: &mut Figures) -> Result<()> {
    let running = peer.start(setting).await?;
    figures.add(Metric::ColdStart, running.cold_start.as_secs_f64() * 1e3);
    tokio::time::sleep(REST).await;
    let idle = running.process.rss_mib()?;
    figures.add(Metric::IdleRss, idle);
    let mut session = Session { peer, setting, plan, running: &running, figures };
    session.cpu().await?;
    session.latency().await?;
    session.first_content().await?;
    running.process.stop().await?;

    // Again on a fresh process, or the memory of the loads before would hide that of the streams.
    let running = peer.start(setting).await?;
    tokio::time::sleep(REST).await;
    let fresh = running.process.rss_mib()?;
    for (count, metric) in [(1000, Metric::Rss1000), (5000, Metric::Rss5000)] {
        let (outcome, held) = load::hold(running.addr, &peer.ask("hold", Size::Small, true), count).await?;
        tokio::time::sleep(SETTLE).await;
        let resident = running.process.rss_mib()?;
        if accept(figures, &format!("{count} open streams"), &outcome) && held.len() == count {
            figures.add(metric, resident);
            if metric == Metric::Rss5000 {
                figures.add(Metric::PerStream, (resident - fresh) * 1024.0 / count as f64);
            }
        }
        drop(held);
        tokio::time::sleep(SETTLE).await;
    }
    running.process.stop().await
}

struct Session<'a> {
    peer: &'a Peer,
    setting: &'a Setting,
    plan: &'a Plan,
    running: &'a Running,
    figures: &'a mut Figures,
}

impl Session<'_> {
    async fn cpu(&mut self) -> Result<()> {
        let small = self.peer.ask("instant", Size::Small, false);
        let agent = self.peer.ask("instant", Size::Agent, false);
        let stream = self.peer.ask("instant", Size::Small, true);
        load::closed(self.running.addr, &small, NARROW, MANY, self.plan.warm).await?;

        if let Some((cpu, outcome)) = self.accounted("small turns", &small).await? {
            self.figures.add(Metric::SmallCpu, cpu / outcome.done as f64 * 1e4);
            self.figures.add(Metric::SmallRate, outcome.rate());
        }
        if let Some((cpu, outcome)) = self.accounted("agent turns", &agent).await? {
            self.figures.add(Metric::AgentCpu, cpu / outcome.done as f64 * 1e4);
            self.figures.add(Metric::AgentRate, outcome.rate());
        }
        if let Some((cpu, outcome)) = self.accounted("streams", &stream).await? {
            self.figures.add(Metric::EventCpu, cpu / (outcome.done * EVENTS as u64) as f64 * 1e6);
            self.figures.add(Metric::StreamRate, outcome.rate());
        }
        Ok(())
    }

    /// A closed loop with the CPU seconds that the peer spent on it.
    async fn accounted(&mut self, what: &str, ask: &Ask) -> Result<Option<(f64, Outcome)>> {
        let before = self.running.process.cpu()?;
        let outcome = load::closed(self.running.addr, ask, NARROW, MANY, self.plan.window).await?;
        tokio::time::sleep(SETTLE).await;
        let cpu = self.running.process.cpu()? - before;
        Ok(accept(self.figures, what, &outcome).then_some((cpu, outcome)))
    }

    async fn latency(&mut self) -> Result<()> {
        let small = self.peer.ask("instant", Size::Small, false);
        let peak = load::closed(self.running.addr, &small, WIDE, MANY, self.plan.window).await?;
        if !accept(self.figures, "peak", &peak) {
            return Ok(());
        }
        self.figures.add(Metric::Peak, peak.rate());
        self.figures.add(Metric::HalfRate, peak.rate() / 2.0);
        self.added(SLOW_RATE, Metric::Added50At1000, Metric::Added99At1000).await?;
        self.added(peak.rate() / 2.0, Metric::Added50AtHalf, Metric::Added99AtHalf).await
    }

    /// Latency through the peer less that of the stub alone at the same rate, measured just before.
    async fn added(&mut self, rate: f64, p50: Metric, p99: Metric) -> Result<()> {
        let direct = self.peer.direct("instant", Size::Small, false);
        let base = load::open(self.setting.stub, &direct, WIDE, rate, self.plan.window).await?;
        let small = self.peer.ask("instant", Size::Small, false);
        let outcome = load::open(self.running.addr, &small, WIDE, rate, self.plan.window).await?;
        if accept(self.figures, &format!("{rate:.0} turns/s"), &outcome) {
            self.figures.add(p50, outcome.p50_ms - base.p50_ms);
            self.figures.add(p99, outcome.p99_ms - base.p99_ms);
        }
        Ok(())
    }

    async fn first_content(&mut self) -> Result<()> {
        let direct = self.peer.direct("paced-10ms", Size::Small, true);
        let ask = self.peer.ask("paced-10ms", Size::Small, true);
        for _ in 0..self.plan.bursts {
            let base = load::burst(self.setting.stub, &direct, BURST).await?;
            let outcome = load::burst(self.running.addr, &ask, BURST).await?;
            if accept(self.figures, "paced streams", &outcome) {
                self.figures.add(Metric::First50, outcome.p50_ms - base.p50_ms);
                self.figures.add(Metric::First99, outcome.p99_ms - base.p99_ms);
            }
        }
        Ok(())
    }
}

/// Whether the figure stands; notes the failures if there were any.
fn accept(figures: &mut Figures, what: &str, outcome: &Outcome) -> bool {
    if outcome.failed > 0 {
        let first = outcome.failures.first().map(String::as_str).unwrap_or_default();
        let first: String = first.chars().filter(|c| !c.is_control()).take(200).collect();
        figures.fault(format!("{what}: {} answered, {} failed, first: {first}", outcome.done, outcome.failed));
    }
    outcome.done > 0 && (outcome.failed as f64) <= TOLERATED * outcome.done as f64
}
