//! One process and whatever talks to it, kept: started when it is first wanted, started anew when it has ended.

use super::process::{self, Ended, Process, Spawned};
use super::{Input, Launch, Output, ProcessSpec, Restarts};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};

/// A process that has just been started.
pub struct Started {
    /// This start's own id.
    pub instance: u128,
    /// Its number, and its group's; 0 for one that the system did not start.
    pub pid: u32,
    /// Its standard input. It closes when the gateway ends, however that ends.
    pub stdin: Input,
    /// Its standard output.
    pub stdout: Output,
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started").field("instance", &self.instance).field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// Why a process is of no use. Nothing of any turn was sent to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NotReady {
    /// What it is as a fault of a turn that wanted it.
    pub kind: FaultKind,
    /// What went wrong and what to do, without secrets.
    pub message: String,
}

impl NotReady {
    /// A process that does not come up.
    pub fn unavailable(message: impl Into<String>) -> Self {
        NotReady { kind: FaultKind::UpstreamUnavailable, message: message.into() }
    }

    /// As the fault of a turn of which nothing has left.
    pub fn fault(&self) -> Fault {
        Fault::new(self.kind, Phase::Unsent, Evidence::text(self.message.clone()))
    }
}

/// Variables that a process is told something by.
pub type Variables = Vec<(String, String)>;

/// What is to be done with a process.
pub trait Service: Send + Sync + 'static {
    /// Whatever talks to the process once it is ready. It lives as long as the process is wanted.
    type Client: Send + Sync + 'static;
    /// What is settled before the start, such as an address.
    type Place: Send + 'static;

    /// Settles what must be known before the start, and the variables that tell the process.
    fn place(&self, instance: u128) -> Result<(Variables, Self::Place), NotReady>;

    /// Waits until the process is ready. It is given up (and stopped) after the spec's `ready_within`, and when the process
    /// ends.
    fn ready(&self, started: Started, place: Self::Place) -> BoxFuture<'_, Result<Self::Client, NotReady>>;
}

/// A process that is ready.
pub struct Running<C> {
    /// The process.
    pub process: Process,
    /// What talks to it.
    pub client: C,
}

impl<C> fmt::Debug for Running<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("process", &self.process).finish_non_exhaustive()
    }
}

type Outcome<C> = Option<Result<Arc<Running<C>>, NotReady>>;

enum State<C> {
    Idle,
    /// One start for however many wait.
    Starting(watch::Receiver<Outcome<C>>, AbortHandle),
    Running(Arc<Running<C>>),
}

struct Shared<S: Service> {
    spec: ProcessSpec,
    service: S,
    state: Mutex<State<S::Client>>,
    restarts: Mutex<Restarts>,
    /// What is started is not kept. Changed and read with `state` locked.
    let_go: AtomicBool,
}

/// Keeps one process. Dropped, it starts none any more, and the process ends with the last hold of it.
pub struct Supervisor<S: Service> {
    shared: Arc<Shared<S>>,
}

impl<S: Service> fmt::Debug for Supervisor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("spec", &self.shared.spec).finish_non_exhaustive()
    }
}

impl<S: Service> Supervisor<S> {
    /// Keeps what this spec tells. Nothing is started yet.
    pub fn new(spec: ProcessSpec, service: S) -> Self {
        let (state, restarts) = (Mutex::new(State::Idle), Mutex::default());
        Supervisor { shared: Arc::new(Shared { spec, service, state, restarts, let_go: AtomicBool::new(false) }) }
    }

    /// The running process, or a new one. Dropping the future does not end a start that others may wait for.
    pub async fn get(&self) -> Result<Arc<Running<S::Client>>, NotReady> {
        let mut starting = {
            let mut state = self.shared.state.lock();
            match &*state {
                State::Running(running) => match running.process.exit() {
                    None => return Ok(running.clone()),
                    Some(exit) => {
                        if exit.ended != Ended::Stopped {
                            self.shared.restarts.lock().failed(exit.at, &self.shared.spec.limits);
                        }
                        self.start(&mut state)
                    }
                },
                State::Starting(outcome, _) => outcome.clone(),
                State::Idle => self.start(&mut state),
            }
        };
        match starting.wait_for(Option::is_some).await {
            Ok(outcome) => match &*outcome {
                Some(outcome) => outcome.clone(),
                None => Err(NotReady::unavailable(format!("{}: the start was given up", self.shared.spec.name))),
            },
            Err(_) => Err(NotReady::unavailable(format!("{}: the start was given up", self.shared.spec.name))),
        }
    }

    /// The running process, if there is one.
    pub fn running(&self) -> Option<Arc<Running<S::Client>>> {
        match &*self.shared.state.lock() {
            State::Running(running) if running.process.exit().is_none() => Some(running.clone()),
            State::Running(_) | State::Starting(..) | State::Idle => None,
        }
    }

    /// Keeps none any more: what runs, or is being started, ends with the last hold of it. Who asks late has one started that
    /// is not kept either.
    pub fn let_go(&self) {
        let mut state = self.shared.state.lock();
        self.shared.let_go.store(true, Relaxed);
        match &*state {
            State::Running(_) => *state = State::Idle,
            State::Starting(..) | State::Idle => {}
        }
    }

    /// The process of this instance is not used for anything new; it ends with the last hold of it. False: it was not.
    pub fn retire(&self, instance: u128) -> bool {
        let mut state = self.shared.state.lock();
        let current = matches!(&*state, State::Running(running) if running.process.instance() == instance);
        if current {
            *state = State::Idle;
        }
        current
    }

    /// The same, and it counts as a failure, once.
    pub fn dismiss(&self, instance: u128) -> bool {
        let was = self.retire(instance);
        if was {
            self.shared.restarts.lock().failed(Instant::now(), &self.shared.spec.limits);
        }
        was
    }

    /// This process is of no use: it is ended now, and that counts as a failure.
    pub fn condemn(&self, running: &Running<S::Client>) {
        self.dismiss(running.process.instance());
        running.process.stop();
    }

    fn start(&self, state: &mut State<S::Client>) -> watch::Receiver<Outcome<S::Client>> {
        let (told, outcome) = watch::channel(None);
        let shared = self.shared.clone();
        let task = tokio::spawn(async move {
            let started = shared.start().await;
            {
                let mut state = shared.state.lock();
                *state = match &started {
                    Ok(running) if !shared.let_go.load(Relaxed) => State::Running(running.clone()),
                    Ok(_) => State::Idle,
                    Err(not_ready) => {
                        tracing::warn!(process = %shared.spec.name, "not started: {not_ready}");
                        State::Idle
                    }
                };
            }
            told.send_replace(Some(started));
        });
        *state = State::Starting(outcome.clone(), task.abort_handle());
        outcome
    }
}

impl<S: Service> Drop for Supervisor<S> {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *self.shared.state.lock(), State::Idle);
        match state {
            State::Starting(_, start) => start.abort(),
            State::Running(_) | State::Idle => {}
        }
    }
}

impl<S: Service> Shared<S> {
    async fn start(&self) -> Result<Arc<Running<S::Client>>, NotReady> {
        let limits = &self.spec.limits;
        let next = self.restarts.lock().next(Instant::now(), limits);
        match next {
            Ok(wait) => tokio::time::sleep(wait).await,
            Err(until) => {
                return Err(NotReady::unavailable(format!(
                    "{} failed more than {} times in {} s and is not started again for {} s; its stderr is in the log (debug)",
                    self.spec.name,
                    limits.restarts,
                    limits.window.as_secs(),
                    until.as_secs() + 1,
                )));
            }
        }
        let outcome = self.bring_up().await;
        if outcome.is_err() {
            self.restarts.lock().failed(Instant::now(), limits);
        }
        outcome
    }

    async fn bring_up(&self) -> Result<Arc<Running<S::Client>>, NotReady> {
        let limits = &self.spec.limits;
        let name = &self.spec.name;
        let instance = random()?;
        let (added, place) = self.service.place(instance)?;
        let spawned = match &self.spec.launch {
            Launch::System => process::start(&self.spec, instance, &added),
            Launch::By(other) => other.launch(&self.spec).map(|one| process::launched(&self.spec, instance, one)),
        };
        let Spawned { process, stdin, stdout } =
            spawned.map_err(|error| NotReady::unavailable(format!("{name} could not be started: {error}")))?;
        let with_last_words = |process: &Process, message: String| match process.last_words() {
            words if words.is_empty() => message,
            words => format!("{message}. Its last words: {words}"),
        };
        let ready = self.service.ready(Started { instance, pid: process.pid(), stdin, stdout }, place);
        let ready = tokio::select! {
            biased;
            ready = tokio::time::timeout(limits.ready_within, ready) => ready,
            exit = process.ended() => {
                let message = format!("{name} did not become ready: {}", exit.ended);
                return Err(NotReady::unavailable(with_last_words(&process, message)));
            }
        };
        match ready {
            Ok(Ok(client)) => Ok(Arc::new(Running { process, client })),
            Ok(Err(NotReady { kind, message })) => {
                let message = with_last_words(&process, format!("{name} did not become ready: {message}"));
                Err(NotReady { kind, message })
            }
            Err(_) => {
                let message = format!("{name} was not ready within {} s", limits.ready_within.as_secs());
                Err(NotReady::unavailable(with_last_words(&process, message)))
            }
        }
    }
}

/// 128 random bits.
pub(crate) fn random() -> Result<u128, NotReady> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| NotReady { kind: FaultKind::GatewayExhausted, message: format!("no randomness: {error}") })?;
    Ok(u128::from_le_bytes(bytes))
}
