//! The drivers of the upstreams' kinds, and what decides each: two equal recipes make the same driver.

use super::hosts::{Daemons, limits};
use super::surroundings::{Place, Surroundings};
use crate::commands::Failure;
use crate::config::{
    Account, CascadeServer, Credential, Permissions, Process, Remote, Rpc, RpcProtocol, Speaks, ToolActivity, Upstream,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_agents::acp::{Acp, AcpAccount, AcpSpec};
use turnkeep_agents::supervise::Launch;
use turnkeep_base::AccountId;
use turnkeep_engine::route::{Handling, Speech};
use turnkeep_upstream::rpc::RpcSpec;
use turnkeep_upstream::{Cascade, CascadeSpec, ConnectChat, Devin, DevinSpec, Egress, Endpoint, EndpointSpec};

/// What drivers reach beyond this process by.
#[derive(Clone, Debug)]
pub(crate) struct Outside {
    /// Where their connections may lead.
    pub(crate) egress: Egress,
    /// Who starts agents' processes.
    pub(crate) launch: Launch,
}

/// Through what an upstream's turns go.
#[derive(Clone)]
pub(crate) enum Driver {
    /// A client's dialect over HTTP.
    Dialect(Arc<Endpoint>),
    /// The gateway's own chat service.
    Connect(Arc<ConnectChat>),
    /// The gateway's own service of conversations, and its processes where it has any.
    Cascade(Arc<Cascade>, Option<Arc<Daemons>>),
    /// An agent that is a process.
    Acp(Arc<Acp>),
    /// Devin's sessions.
    Devin(Arc<Devin>),
}

impl Driver {
    /// By which way its calls leave. An agent calls its provider itself, from this machine.
    pub(super) fn egress(&self) -> Arc<str> {
        match self {
            Driver::Dialect(endpoint) => endpoint.egress().clone(),
            Driver::Connect(chat) => chat.rpc().egress().clone(),
            Driver::Cascade(cascade, _) => cascade.egress().clone(),
            Driver::Acp(_) => "direct".into(),
            Driver::Devin(devin) => devin.endpoint().egress().clone(),
        }
    }

    /// An account is no longer there: connections that wait for its next turn end now, and those in use behind their turns.
    /// Its processes were let go of with the driver before ([`Driver::let_go`]).
    pub(super) fn forget_account(&self, id: &AccountId) {
        match self {
            Driver::Dialect(endpoint) => {
                endpoint.forget_account(id);
            }
            Driver::Connect(chat) => {
                chat.rpc().forget_account(id);
            }
            Driver::Cascade(cascade, _) => cascade.forget_account(id),
            Driver::Acp(_) => {}
            Driver::Devin(devin) => {
                devin.endpoint().forget_account(id);
            }
        }
    }

    /// It is used no more, but for the turns that run: accounts' processes that `next` does not go on with end behind theirs.
    pub(super) fn let_go(&self, next: Option<&Driver>) {
        match self {
            Driver::Acp(agent) => agent.let_go(next.and_then(Driver::agent).map(Arc::as_ref)),
            Driver::Cascade(_, Some(daemons)) => {
                daemons.let_go(next.and_then(Driver::hosted).map(|(_, daemons)| daemons.as_ref()));
            }
            Driver::Cascade(_, None) | Driver::Dialect(_) | Driver::Connect(_) | Driver::Devin(_) => {}
        }
    }

    fn agent(&self) -> Option<&Arc<Acp>> {
        match self {
            Driver::Acp(agent) => Some(agent),
            Driver::Cascade(..) | Driver::Dialect(_) | Driver::Connect(_) | Driver::Devin(_) => None,
        }
    }

    fn hosted(&self) -> Option<(&Arc<Cascade>, &Arc<Daemons>)> {
        match self {
            Driver::Cascade(cascade, daemons) => Some((cascade, daemons.as_ref()?)),
            Driver::Acp(_) | Driver::Dialect(_) | Driver::Connect(_) | Driver::Devin(_) => None,
        }
    }

    /// As the engine knows it.
    pub(super) fn speech(&self) -> Speech {
        match self {
            Driver::Dialect(endpoint) => {
                let chains = endpoint.kind() == turnkeep_upstream::Kind::OpenAiResponses;
                Speech::Dialect { dialect: endpoint.kind().dialect(), chains, port: endpoint.clone() }
            }
            Driver::Connect(chat) => Speech::Native { conversations: None, replay_safe: true, port: chat.clone() },
            Driver::Cascade(cascade, _) => {
                Speech::Native { conversations: Some(Handling::Mutable), replay_safe: true, port: cascade.clone() }
            }
            Driver::Acp(agent) => Speech::Native {
                conversations: Some(Acp::HANDLING),
                replay_safe: Acp::REPLAY_SAFE,
                port: agent.clone(),
            },
            Driver::Devin(devin) => {
                Speech::Native { conversations: Some(Handling::Mutable), replay_safe: false, port: devin.clone() }
            }
        }
    }
}

/// What decides a driver.
#[derive(Clone, PartialEq)]
pub(super) enum Recipe {
    Dialect {
        kind: turnkeep_upstream::Kind,
        remote: RemoteRecipe,
    },
    Connect {
        remote: RemoteRecipe,
        rpc: Rpc,
    },
    Cascade {
        server: CascadeAt,
        protocol: RpcProtocol,
    },
    Acp {
        process: Process,
        permissions: Permissions,
        tool_activity: ToolActivity,
        /// What is around each account's process, by its name.
        places: BTreeMap<Arc<str>, Place>,
    },
    Devin {
        remote: RemoteRecipe,
        quiet: Duration,
        /// By the accounts' names.
        organizations: BTreeMap<Arc<str>, Arc<str>>,
    },
}

/// What decides where a server of conversations is.
#[derive(Clone, PartialEq)]
pub(super) enum CascadeAt {
    /// At an address.
    Remote(RemoteRecipe),
    /// In a process for each account.
    Process {
        process: Process,
        /// What is around each account's, by its name.
        places: BTreeMap<Arc<str>, Place>,
        max_in_flight: usize,
    },
}

/// What decides the way to an address.
#[derive(Clone, PartialEq)]
pub(super) struct RemoteRecipe {
    base_url: String,
    headers: Vec<(String, String)>,
    ca: Option<Vec<u8>>,
    proxy: Option<String>,
    connect_timeout: Duration,
    max_in_flight: usize,
}

impl RemoteRecipe {
    fn of(remote: &Remote, upstream: &Upstream, max_in_flight: usize) -> Result<RemoteRecipe, Failure> {
        let headers = remote.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        Ok(RemoteRecipe {
            base_url: remote.base_url.clone(),
            headers: headers.collect(),
            ca: remote.ca.as_deref().map(read_file).transpose()?,
            proxy: remote.proxy.as_ref().map(|proxy| proxy.expose().to_owned()),
            connect_timeout: upstream.timeouts.connect,
            max_in_flight,
        })
    }

    fn endpoint(&self, name: &str, kind: turnkeep_upstream::Kind, egress: &Egress) -> EndpointSpec {
        let mut spec = EndpointSpec::new(name, kind, self.base_url.as_str());
        spec.headers.clone_from(&self.headers);
        spec.ca_pem.clone_from(&self.ca);
        spec.proxy.clone_from(&self.proxy);
        spec.connect_timeout = self.connect_timeout;
        spec.max_connections = spec.max_connections.max(self.max_in_flight);
        spec.egress = egress.clone();
        spec
    }

    fn rpc(&self, name: &str, protocol: RpcProtocol, egress: &Egress) -> RpcSpec {
        let mut spec = RpcSpec::new(name, self.base_url.as_str());
        spec.protocol = protocol;
        spec.headers.clone_from(&self.headers);
        spec.ca_pem.clone_from(&self.ca);
        spec.proxy.clone_from(&self.proxy);
        spec.connect_timeout = self.connect_timeout;
        spec.max_connections = spec.max_connections.max(self.max_in_flight);
        spec.egress = egress.clone();
        spec
    }
}

impl Recipe {
    /// `max_in_flight` is the most slots that an account of the upstream has.
    pub(super) fn of(upstream: &Upstream, places: &Surroundings, max_in_flight: usize) -> Result<Recipe, Failure> {
        let remote = |remote: &Remote| RemoteRecipe::of(remote, upstream, max_in_flight);
        let dialect = |kind, at| Ok(Recipe::Dialect { kind, remote: remote(at)? });
        match &upstream.speaks {
            Speaks::Openai(at) => dialect(turnkeep_upstream::Kind::OpenAi, at),
            Speaks::OpenaiResponses { remote: at, .. } => dialect(turnkeep_upstream::Kind::OpenAiResponses, at),
            Speaks::Anthropic(at) => dialect(turnkeep_upstream::Kind::Anthropic, at),
            Speaks::Gemini(at) => dialect(turnkeep_upstream::Kind::Gemini, at),
            Speaks::Connect { remote: at, rpc } => Ok(Recipe::Connect { remote: remote(at)?, rpc: *rpc }),
            Speaks::Acp { process, permissions, tool_activity, reuse: _ } => Ok(Recipe::Acp {
                process: process.clone(),
                permissions: *permissions,
                tool_activity: *tool_activity,
                places: places_of(&upstream.name, places),
            }),
            Speaks::Cascade { server, protocol, reuse: _ } => {
                let server = match server {
                    CascadeServer::Remote(at) => CascadeAt::Remote(remote(at)?),
                    CascadeServer::Process(process) => CascadeAt::Process {
                        process: process.clone(),
                        places: places_of(&upstream.name, places),
                        max_in_flight,
                    },
                };
                Ok(Recipe::Cascade { server, protocol: *protocol })
            }
            Speaks::Devin { remote: at, quiet, reuse: _ } => {
                let organization = |account: &Account| match &account.credential {
                    Credential::Member { organization, .. } => {
                        Some((account.name.as_str().into(), organization.as_str().into()))
                    }
                    Credential::Secret(_) | Credential::Surroundings { .. } => None,
                };
                Ok(Recipe::Devin {
                    remote: remote(at)?,
                    quiet: *quiet,
                    organizations: upstream.accounts.iter().filter_map(organization).collect(),
                })
            }
        }
    }

    /// Makes the driver; starts no process and opens no connection. Processes of `before` whose account has not changed go on
    /// in it.
    pub(super) fn make(&self, name: &str, outside: &Outside, before: Option<&Driver>) -> Result<Driver, Failure> {
        let Outside { egress, launch } = outside;
        match self {
            Recipe::Dialect { kind, remote } => {
                let endpoint = Endpoint::new(remote.endpoint(name, *kind, egress));
                endpoint.map(|endpoint| Driver::Dialect(Arc::new(endpoint))).map_err(refused)
            }
            Recipe::Connect { remote, rpc } => {
                let mut spec = remote.rpc(name, rpc.protocol, egress);
                spec.codec = rpc.codec;
                ConnectChat::new(&spec).map(|chat| Driver::Connect(Arc::new(chat))).map_err(refused)
            }
            Recipe::Cascade { server, protocol } => {
                match server {
                    CascadeAt::Remote(remote) => {
                        let made = Cascade::new(CascadeSpec::new(remote.rpc(name, *protocol, egress)));
                        made.map(|cascade| Driver::Cascade(Arc::new(cascade), None)).map_err(refused)
                    }
                    CascadeAt::Process { process, places, max_in_flight } => {
                        // Where it is the host tells, on this machine always.
                        let mut rpc = RpcSpec::new(name, "");
                        (rpc.protocol, rpc.egress) = (*protocol, Egress::Loopback);
                        rpc.max_connections = rpc.max_connections.max(*max_in_flight);
                        let before = before.and_then(Driver::hosted);
                        let kept = before.map(|(_, daemons)| daemons.as_ref());
                        let daemons = Arc::new(Daemons::new(name, process, places, kept));
                        let spec = CascadeSpec { host: Some(daemons.clone()), ..CascadeSpec::new(rpc) };
                        let made = match before {
                            Some((cascade, _)) => Cascade::after(cascade, spec),
                            None => Cascade::new(spec),
                        };
                        made.map(|cascade| Driver::Cascade(Arc::new(cascade), Some(daemons))).map_err(refused)
                    }
                }
            }
            Recipe::Acp { process, permissions, tool_activity, places } => {
                let mut spec = AcpSpec::new(name, process.command.clone(), &process.state);
                (spec.permissions, spec.tool_activity) = (*permissions, *tool_activity);
                (spec.limits, spec.launch) = (limits(process), launch.clone());
                spec.accounts = places.iter().map(|(account, place)| (account.clone(), agent_account(place))).collect();
                let agent = match before.and_then(Driver::agent) {
                    Some(before) => Acp::after(before, spec),
                    None => Acp::new(spec),
                };
                Ok(Driver::Acp(Arc::new(agent)))
            }
            Recipe::Devin { remote, quiet, organizations } => {
                let defaults = DevinSpec::new(name);
                let spec = DevinSpec {
                    base_url: remote.base_url.clone(),
                    organizations: organizations.clone(),
                    quiet: *quiet,
                    headers: remote.headers.clone(),
                    ca_pem: remote.ca.clone(),
                    proxy: remote.proxy.clone(),
                    connect_timeout: remote.connect_timeout,
                    max_connections: defaults.max_connections.max(remote.max_in_flight),
                    egress: egress.clone(),
                    ..defaults
                };
                Devin::new(spec).map(|devin| Driver::Devin(Arc::new(devin))).map_err(refused)
            }
        }
    }
}

/// An account of an agent with what is around it.
fn agent_account(place: &Place) -> AcpAccount {
    AcpAccount { home: Some(place.home.clone()), env: place.variables(), auth_method: place.auth_method.clone() }
}

/// What is around the processes of this upstream's accounts.
fn places_of(upstream: &str, places: &Surroundings) -> BTreeMap<Arc<str>, Place> {
    let its = places.iter().filter(|(id, _)| *id.upstream == *upstream);
    its.map(|(id, place)| (id.account.clone(), place.clone())).collect()
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::Usage(format!("{} cannot be read: {error}", path.display())))
}
