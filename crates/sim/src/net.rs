//! The network of a run: the upstreams, each a lab of its own behind simulated connections, and the way clients take to the
//! gateway that runs.

use crate::agents::Agents;
use crate::link::{Accepted, Cutter, End, Line, connect};
use crate::pipe::{Befalls, Carries};
use crate::plan::{Family, Plan};
use crate::script;
use crate::streams::Stream;
use crate::trace::Trace;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use turnkeep_http::Link;
use turnkeep_lab::{Lab, Script};
use turnkeep_upstream::{Dial, Dialled};

/// Clients' connections that wait to be accepted.
const BACKLOG: usize = 1024;

/// Where a family's upstream is.
pub fn host(family: Family) -> String {
    format!("{}.sim", family.name())
}

struct Upstream {
    lab: Lab,
    refused_until: Option<Instant>,
    connections: Vec<Cutter>,
    /// Connections that were made to it.
    made: u64,
}

/// Everything that connects.
pub struct Net {
    pub seed: u64,
    /// Of a hundred connections, how many are rough; none once all is healed.
    rough: u64,
    healed: AtomicBool,
    pub trace: Arc<Trace>,
    /// Upstreams that are processes.
    pub agents: Agents,
    upstreams: Mutex<BTreeMap<String, Upstream>>,
    clients: AtomicU64,
    accepted: Mutex<Vec<Cutter>>,
    /// When a gateway last went away; none is there while `front` is empty.
    ended: Mutex<Option<Instant>>,
    /// The gateway is on its way out: at some moment it takes no connections any more.
    ending: AtomicBool,
    front: Mutex<Option<mpsc::Sender<Box<dyn Link>>>>,
}

impl Net {
    /// The upstreams of a plan, none of them connected yet.
    pub fn of(plan: &Plan, trace: Arc<Trace>) -> Arc<Net> {
        let upstream = |family: Family| {
            let lab = Lab::unbound(script::of(plan, family));
            (host(family), Upstream { lab, refused_until: None, connections: Vec::new(), made: 0 })
        };
        let upstreams =
            plan.upstreams.iter().map(|one| one.family).filter(|family| *family != Family::Acp).map(upstream).collect();
        Arc::new(Net {
            seed: plan.seed,
            rough: u64::from(plan.rough),
            healed: AtomicBool::new(false),
            trace,
            agents: Agents::of(plan),
            upstreams: Mutex::new(upstreams),
            clients: AtomicU64::new(0),
            accepted: Mutex::default(),
            ended: Mutex::default(),
            ending: AtomicBool::new(false),
            front: Mutex::new(None),
        })
    }

    /// Looks at an upstream's lab.
    pub fn lab<T>(&self, family: Family, look: impl FnOnce(&Lab) -> T) -> Option<T> {
        self.upstreams.lock().get(&host(family)).map(|upstream| look(&upstream.lab))
    }

    /// From now on clients come to a new gateway, through this.
    pub fn open_front(&self) -> mpsc::Receiver<Box<dyn Link>> {
        let (front, back) = mpsc::channel(BACKLOG);
        self.ending.store(false, Ordering::Relaxed);
        *self.front.lock() = Some(front);
        back
    }

    /// No gateway is there any more.
    pub fn close_front(&self) {
        *self.front.lock() = None;
        *self.ended.lock() = Some(Instant::now());
    }

    /// The gateway is told to end.
    pub fn ending(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// A gateway has gone away since then, or none is there.
    pub fn ended_since(&self, since: Instant) -> bool {
        let none = self.front.lock().is_none() || self.ending.load(Ordering::Relaxed);
        none || self.ended.lock().is_some_and(|at| at >= since)
    }

    /// A client's connection, and whether it will be reset by the network; `None`: it is refused.
    pub fn client(&self, back: Option<Befalls>) -> Option<(End, bool)> {
        let number = self.clients.fetch_add(1, Ordering::Relaxed);
        let mut stream = Stream::of(self.seed, &format!("client line {number}"));
        let line = self.line(&mut stream, back);
        let front = self.front.lock().clone()?;
        let (mine, theirs) = connect(self.seed, &format!("client {number}"), line);
        let mut accepted = self.accepted.lock();
        accepted.retain(Cutter::is_open);
        accepted.push(theirs.cutter());
        let resets = [line.there, line.back].iter().any(|befalls| matches!(befalls, Some(Befalls::Reset(_))));
        front.try_send(Box::new(Accepted(Arc::new(theirs)))).ok()?;
        Some((mine, resets))
    }

    /// What a connection is like that a client makes, or the gateway: rough in one of its directions, or in none, if nothing
    /// is planned.
    fn line(&self, stream: &mut Stream, planned: Option<Befalls>) -> Line {
        let carries = carries(stream);
        if planned.is_some() || self.healed.load(Ordering::Relaxed) || !stream.percent(self.rough) {
            return Line { carries, there: None, back: planned };
        }
        let at = stream.within(0..=3000);
        // No longer than a client may read nothing, nor an upstream say nothing.
        let befalls = if stream.percent(70) {
            Befalls::Stall(at, Duration::from_millis(stream.within(100..=20_000)))
        } else {
            Befalls::Reset(at)
        };
        if stream.percent(50) {
            Line { carries, there: Some(befalls), back: None }
        } else {
            Line { carries, there: None, back: Some(befalls) }
        }
    }

    /// A pipe of this process: one that is never rough.
    pub fn pipe(&self, name: &str) -> Line {
        let mut stream = Stream::of(self.seed, &format!("pipes of {name}"));
        Line { carries: carries(&mut stream), there: None, back: None }
    }

    /// Refuses connections to an upstream for a time.
    pub fn refuse(&self, family: Family, time: Duration) {
        if family == Family::Acp {
            self.agents.refuse(time);
        }
        if let Some(upstream) = self.upstreams.lock().get_mut(&host(family)) {
            upstream.refused_until = Some(Instant::now() + time);
        }
    }

    /// Resets every connection to an upstream; kills its processes.
    pub fn cut(&self, family: Family) {
        if family == Family::Acp {
            self.agents.kill();
        }
        if let Some(upstream) = self.upstreams.lock().get_mut(&host(family)) {
            upstream.connections.drain(..).for_each(Cutter::cut);
        }
    }

    /// Resets every connection that a gateway has, to upstreams and to clients: its process is gone.
    pub fn cut_all(&self) {
        self.agents.kill();
        self.accepted.lock().drain(..).for_each(Cutter::cut);
        for upstream in self.upstreams.lock().values_mut() {
            upstream.connections.drain(..).for_each(Cutter::cut);
        }
    }

    /// An upstream forgets the conversations that it keeps.
    pub fn forget(&self, family: Family) {
        if family == Family::Acp {
            self.agents.kill();
        }
        self.lab(family, |lab| {
            lab.restart_cascade();
            lab.forget_kept_answers();
        });
    }

    /// From now on upstreams answer by these scripts; an upstream counts requests anew.
    fn script(&self, of: impl Fn(Family) -> Script) {
        for family in Family::ALL {
            self.lab(family, |lab| lab.set_script(of(family)));
        }
    }

    /// Every upstream fails from now on; or, with a plan, goes on as that has it.
    pub fn outage(&self, over: Option<&Plan>) {
        match over {
            None => {
                self.script(|_| script::outage());
                self.agents.script(|_| script::outage());
            }
            Some(plan) => {
                self.script(|family| script::of(plan, family));
                self.agents.script(|account| script::of_agent(plan, account));
            }
        }
    }

    /// From now on nothing goes wrong upstream.
    pub fn heal(&self) {
        self.healed.store(true, Ordering::Relaxed);
        self.script(|_| script::healthy());
        self.agents.script(|_| script::healthy_agent());
        self.agents.refuse(Duration::ZERO);
        self.upstreams.lock().values_mut().for_each(|upstream| upstream.refused_until = None);
    }

    fn dial(&self, host: &str) -> io::Result<End> {
        let mut upstreams = self.upstreams.lock();
        let upstream = upstreams.get_mut(host).ok_or(io::ErrorKind::NotFound)?;
        if upstream.refused_until.is_some_and(|until| until > Instant::now()) {
            self.trace.note(format_args!("dial {host} refused"));
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        upstream.made += 1;
        let name = format!("{host} {}", upstream.made);
        let mut stream = Stream::of(self.seed, &format!("line {name}"));
        let line = self.line(&mut stream, None);
        let (mine, theirs) = connect(self.seed, &name, line);
        upstream.connections.retain(Cutter::is_open);
        upstream.connections.push(mine.cutter());
        self.trace.note(format_args!("dial {name}"));
        tokio::spawn(upstream.lab.bring(Box::new(theirs)));
        Ok(mine)
    }
}

fn carries(stream: &mut Stream) -> Carries {
    let slowest = stream.one_of(&[100, 1000, 20_000]);
    Carries {
        delay_us: (50, 50 + slowest),
        piece: if stream.percent(5) { 7 } else { stream.one_of(&[200, 1500, 1500, 1500, 16_384, 16_384, 16_384]) },
        window: stream.one_of(&[2048, 65_536]) as usize,
    }
}

/// The way out of one life of the gateway.
pub struct WayOut {
    net: Arc<Net>,
    over: AtomicBool,
}

impl WayOut {
    /// Open, until [`WayOut::end`].
    pub fn through(net: Arc<Net>) -> Arc<WayOut> {
        Arc::new(WayOut { net, over: AtomicBool::new(false) })
    }

    /// The process is gone.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.net.cut_all();
    }
}

impl Dial for WayOut {
    fn dial(&self, host: &str, _: u16) -> BoxFuture<'_, io::Result<Box<dyn Dialled>>> {
        let host = host.to_owned();
        Box::pin(async move {
            if self.over.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::NetworkDown.into());
            }
            tokio::time::sleep(Duration::from_micros(300)).await;
            if self.over.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::NetworkDown.into());
            }
            self.net.dial(&host).map(|end| Box::new(end) as Box<dyn Dialled>)
        })
    }
}
