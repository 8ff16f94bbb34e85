//! One account's processes: one for all callers, or one for each where what the agent may do must not be shared.

use super::directories::Directories;
use super::process::{AgentService, Hold};
use super::spec::{AcpAccount, AcpSpec};
use crate::supervise::{NotReady, ProcessSpec, Supervisor};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tokio::time::Instant;
use turnkeep_base::FaultKind;

/// One account of an ACP upstream.
pub(super) struct Account {
    name: Arc<str>,
    spec: AcpAccount,
    upstream: Arc<AcpSpec>,
    pub(super) directories: Arc<Directories>,
    processes: Mutex<Processes>,
}

#[derive(Default)]
struct Processes {
    /// By caller; by the empty name where all share one.
    kept: BTreeMap<Arc<str>, Kept>,
    /// None is kept any more.
    let_go: bool,
}

struct Kept {
    supervisor: Arc<Supervisor<AgentService>>,
    used: Instant,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("name", &self.name).field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Account {
    pub(super) fn new(name: Arc<str>, spec: AcpAccount, upstream: Arc<AcpSpec>) -> Self {
        let directories = Arc::new(Directories::new(upstream.state.join(&*name)));
        directories.sweep();
        Account { name, spec, upstream, directories, processes: Mutex::default() }
    }

    /// It is this account, of the same agent.
    pub(super) fn is(&self, spec: &AcpAccount, upstream: &AcpSpec) -> bool {
        self.spec.is(spec) && self.upstream.is_of_agent(upstream)
    }

    /// It is no longer there, or another one has its place: its processes end with the last turns in them.
    pub(super) fn let_go(&self) {
        let mut processes = self.processes.lock();
        processes.let_go = true;
        processes.kept.values().for_each(|kept| kept.supervisor.let_go());
    }

    /// The method that is asked for when the agent wants a login.
    pub(super) fn auth_method(&self) -> Option<&str> {
        self.spec.auth_method.as_deref()
    }

    /// A hold of the process that serves this caller, started if need be.
    pub(super) async fn process(&self, caller: &Arc<str>) -> Result<Hold, NotReady> {
        let supervisor = self.supervisor(caller)?;
        loop {
            let running = supervisor.get().await?;
            let hold = Hold { running, supervisor: supervisor.clone() };
            match hold.peer().shared.broken() {
                None => return Ok(hold),
                // It still runs, and nothing more can come from it. Bounded by the restarts that are allowed.
                Some(broken) => {
                    tracing::warn!(process = %hold.running.process.name(), "given up: {}", broken.text());
                    hold.condemn();
                }
            }
        }
    }

    /// A process of this instance runs.
    pub(super) fn running(&self, instance: u128) -> Option<Hold> {
        let supervisors: Vec<_> = self.processes.lock().kept.values().map(|kept| kept.supervisor.clone()).collect();
        supervisors.into_iter().find_map(|supervisor| {
            let running = supervisor.running()?;
            let hold = Hold { running, supervisor };
            (hold.instance() == instance && hold.peer().shared.broken().is_none()).then_some(hold)
        })
    }

    /// How many processes run and are ready.
    pub(super) fn processes(&self) -> usize {
        self.processes.lock().kept.values().filter(|kept| kept.supervisor.running().is_some()).count()
    }

    fn supervisor(&self, caller: &Arc<str>) -> Result<Arc<Supervisor<AgentService>>, NotReady> {
        let key: Arc<str> = if self.upstream.permissions.one_process_per_caller() { caller.clone() } else { "".into() };
        let mut processes = self.processes.lock();
        let Processes { kept: processes, let_go } = &mut *processes;
        if let Some(kept) = processes.get_mut(&key) {
            kept.used = Instant::now();
            return Ok(kept.supervisor.clone());
        }
        if processes.len() >= self.upstream.processes.max(1) {
            // Dropped, a process ends. One that a turn holds stays as it is.
            let idle = processes.iter().filter(|(_, kept)| is_idle(kept)).min_by_key(|(_, kept)| kept.used);
            let Some(oldest) = idle.map(|(key, _)| key.clone()) else {
                // A bound of our own, which says nothing of the agent.
                let message = format!(
                    "{}/{}: all {} processes are in turns of other callers",
                    self.upstream.name,
                    self.name,
                    processes.len()
                );
                return Err(NotReady { kind: FaultKind::GatewayExhausted, message });
            };
            processes.remove(&oldest);
        }
        let supervisor = Arc::new(self.make());
        if *let_go {
            supervisor.let_go();
        }
        processes.insert(key, Kept { supervisor: supervisor.clone(), used: Instant::now() });
        Ok(supervisor)
    }

    fn make(&self) -> Supervisor<AgentService> {
        let name: Arc<str> = format!("{}/{}", self.upstream.name, self.name).into();
        let service = AgentService {
            name: name.clone(),
            policy: self.upstream.permissions,
            activity: self.upstream.tool_activity,
            answer_within: self.upstream.answer_within,
        };
        let process = ProcessSpec {
            name,
            command: self.upstream.command.clone(),
            home: self.spec.home.clone(),
            env: self.spec.env.clone(),
            directory: self.directories.root().to_owned(),
            limits: self.upstream.limits.clone(),
            launch: self.upstream.launch.clone(),
        };
        Supervisor::new(process, service)
    }
}

/// Nobody but the account holds it, and no turn runs in it.
fn is_idle(kept: &Kept) -> bool {
    Arc::strong_count(&kept.supervisor) == 1 && kept.supervisor.running().is_none_or(|it| it.client.shared.turns() == 0)
}
