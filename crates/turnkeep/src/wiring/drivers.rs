//! The drivers of the upstreams' kinds, and what decides each: two equal recipes make the same driver.

use super::surroundings::Surroundings;
use crate::commands::Failure;
use crate::config::{Kind, Remote, Speaks, Upstream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::AccountId;
use turnkeep_engine::route::Speech;
use turnkeep_upstream::{Endpoint, EndpointSpec};

/// Through what an upstream's turns go.
#[derive(Clone)]
pub(crate) enum Driver {
    /// A client's dialect over HTTP.
    Dialect(Arc<Endpoint>),
}

impl Driver {
    /// By which way its calls leave.
    pub(super) fn egress(&self) -> Arc<str> {
        match self {
            Driver::Dialect(endpoint) => endpoint.egress().clone(),
        }
    }

    /// An account is no longer there: what waits for its next turn ends now, and what runs ends behind its turn.
    pub(super) fn forget_account(&self, id: &AccountId) {
        match self {
            Driver::Dialect(endpoint) => {
                endpoint.forget_account(id);
            }
        }
    }

    /// As the engine knows it.
    pub(super) fn speech(&self) -> Speech {
        match self {
            Driver::Dialect(endpoint) => {
                let chains = endpoint.kind() == turnkeep_upstream::Kind::OpenAiResponses;
                Speech::Dialect { dialect: endpoint.kind().dialect(), chains, port: endpoint.clone() }
            }
        }
    }
}

/// What decides a driver.
#[derive(Clone, PartialEq)]
pub(super) enum Recipe {
    Dialect { kind: turnkeep_upstream::Kind, remote: RemoteRecipe },
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

    fn endpoint(&self, name: &str, kind: turnkeep_upstream::Kind, loopback_only: bool) -> EndpointSpec {
        let mut spec = EndpointSpec::new(name, kind, self.base_url.as_str());
        spec.headers.clone_from(&self.headers);
        spec.ca_pem.clone_from(&self.ca);
        spec.proxy.clone_from(&self.proxy);
        spec.connect_timeout = self.connect_timeout;
        spec.max_connections = spec.max_connections.max(self.max_in_flight);
        spec.loopback_only = loopback_only;
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
            Speaks::Connect { .. } | Speaks::Cascade { .. } | Speaks::Acp { .. } | Speaks::Devin { .. } => {
                let _ = places;
                Err(later(upstream.speaks.kind()))
            }
        }
    }

    /// Makes the driver; starts no process and opens no connection.
    pub(super) fn make(&self, name: &str, loopback_only: bool) -> Result<Driver, Failure> {
        match self {
            Recipe::Dialect { kind, remote } => {
                let endpoint = Endpoint::new(remote.endpoint(name, *kind, loopback_only));
                endpoint.map(|endpoint| Driver::Dialect(Arc::new(endpoint))).map_err(refused)
            }
        }
    }
}

fn later(kind: Kind) -> Failure {
    Failure::Usage(format!("kind {:?} is not in this version", kind.name()))
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::Usage(format!("{} cannot be read: {error}", path.display())))
}
