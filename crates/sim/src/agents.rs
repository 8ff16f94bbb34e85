//! Agents that are processes, in a run: the lab's own, each in a task behind two simulated pipes. Their accounts have scripts
//! that outlive a process, as what goes wrong is counted over all of them.

use crate::link::connect;
use crate::net::Net;
use crate::plan::{Family, Plan};
use crate::script;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::BufReader;
use tokio::sync::watch;
use tokio::time::Instant;
use turnkeep_agents::supervise::{Ended, Launched, Launcher, ProcessSpec};
use turnkeep_lab::{AgentEnd, AgentScript};

/// What a killed process ends by.
const KILL: i32 = 9;

/// What an agent has heard and said.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct Started {
    /// By process, in the order of their starts.
    logs: Vec<Log>,
    /// Ends those that run.
    kills: Vec<watch::Sender<bool>>,
    refused_until: Option<Instant>,
}

/// The agents of a run.
pub struct Agents {
    /// By account.
    scripts: BTreeMap<String, AgentScript>,
    started: Mutex<Started>,
}

impl Agents {
    /// Of a plan; none runs yet.
    pub fn of(plan: &Plan) -> Agents {
        let accounts = plan.upstreams.iter().filter(|upstream| upstream.family == Family::Acp);
        let accounts = accounts.flat_map(|upstream| 0..upstream.accounts);
        let script = |account: u8| (format!("a{account}"), AgentScript::of(script::of_agent(plan, account)));
        Agents { scripts: accounts.map(script).collect(), started: Mutex::default() }
    }

    /// From now on they answer by these scripts, and count requests anew.
    pub fn script(&self, of: impl Fn(u8) -> turnkeep_lab::Script) {
        for (account, script) in (0..).zip(self.scripts.values()) {
            script.set(of(account));
        }
    }

    /// None can be started for a time.
    pub fn refuse(&self, time: Duration) {
        self.started.lock().refused_until = Some(Instant::now() + time);
    }

    /// Ends all that run.
    pub fn kill(&self) {
        for kill in self.started.lock().kills.drain(..) {
            kill.send_replace(true);
        }
    }

    /// What was said in each session of each process: the prompts' texts, in order.
    pub fn sessions(&self) -> Vec<(String, Vec<String>)> {
        let mut all = Vec::new();
        for (number, log) in self.started.lock().logs.iter().enumerate() {
            let mut sessions = BTreeMap::<String, Vec<Said>>::new();
            for line in log.0.lock().split(|byte| *byte == b'\n') {
                match noted(line) {
                    Some(Noted::Prompt { session, id, text }) => {
                        sessions.entry(session).or_default().push(Said { id, text, begun: false });
                    }
                    Some(Noted::Update { session }) => {
                        sessions.entry(session).or_default().iter_mut().for_each(|said| said.begun = true);
                    }
                    // Refused before anything was done: the session has never heard it.
                    Some(Noted::Error { id }) => {
                        sessions.values_mut().for_each(|all| all.retain(|said| said.begun || said.id != id))
                    }
                    None => {}
                }
            }
            let texts = |all: Vec<Said>| all.into_iter().map(|said| said.text).collect();
            let name = |session| format!("process {number}, session {session}");
            all.extend(sessions.into_iter().map(|(session, said)| (name(session), texts(said))));
        }
        all
    }
}

/// A prompt that an agent was given.
struct Said {
    id: Value,
    text: String,
    /// Something was done of it.
    begun: bool,
}

/// What a line of a log tells of a session.
enum Noted {
    Prompt { session: String, id: Value, text: String },
    Update { session: String },
    Error { id: Value },
}

fn noted(line: &[u8]) -> Option<Noted> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let message = |who: &str| serde_json::from_str::<Value>(line.get(who)?.as_str()?).ok();
    let session = |message: &Value| Some(message.pointer("/params/sessionId")?.as_str()?.to_owned());
    if let Some(heard) = message("heard") {
        let blocks = heard.pointer("/params/prompt").filter(|_| heard["method"] == "session/prompt")?.as_array()?;
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        return Some(Noted::Prompt { session: session(&heard)?, id: heard["id"].clone(), text: texts.join(" ") });
    }
    let said = message("said")?;
    match said["method"].as_str() {
        Some("session/update") => Some(Noted::Update { session: session(&said)? }),
        Some(_) => None,
        None => said.get("error").map(|_| Noted::Error { id: said["id"].clone() }),
    }
}

/// Starts agents for one life of the gateway.
pub struct Starter(pub Arc<Net>);

impl Launcher for Starter {
    fn launch(&self, spec: &ProcessSpec) -> io::Result<Launched> {
        let Starter(net) = self;
        let mut started = net.agents.started.lock();
        if started.refused_until.is_some_and(|until| until > Instant::now()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let account = spec.name.rsplit('/').next().unwrap_or_default();
        let script = net.agents.scripts.get(account).ok_or(io::ErrorKind::NotFound)?.clone();
        let log = Log::default();
        started.logs.push(log.clone());
        // As long as any: what is said must not hang on the number of the simulation's own process.
        let process = format!("{:05}", started.logs.len());
        let name = format!("process {}", started.logs.len());
        net.trace.note(format_args!("{} starts as {name}", spec.name));
        let (stdin, theirs) = connect(net.seed, &format!("{name} input"), net.pipe(&name));
        let (said, stdout) = connect(net.seed, &format!("{name} output"), net.pipe(&name));
        let (kill, mut killed) = watch::channel(false);
        started.kills.retain(|kill| !kill.is_closed());
        started.kills.push(kill);
        let (stop, mut stopped) = watch::channel(false);
        let (told, ended) = watch::channel(None);
        tokio::spawn(async move {
            let serving = script.agent(&process, Some(Box::new(log)), BufReader::new(theirs), said);
            let how = tokio::select! {
                biased;
                // Its account may be gone: a sender that is dropped kills nobody.
                Ok(_) = killed.wait_for(|killed| *killed) => Ended::Signalled(KILL),
                _ = stopped.wait_for(|stopped| *stopped) => Ended::Stopped,
                end = serving => match end {
                    Ok(AgentEnd::Closed) => Ended::Exited(0),
                    Ok(AgentEnd::Crashed) => Ended::Exited(1),
                    Err(_) => Ended::Unknown,
                },
            };
            told.send_replace(Some(how));
        });
        Ok(Launched { stdin: Box::new(stdin), stdout: Box::new(stdout), ended, stop })
    }
}
