//! `check --probe`: lists an account's models at its upstream. Costs no tokens.

use crate::commands::check::{Probe, ProbeAnswer};
use crate::config::{Account, Upstream};
use crate::wiring;
use http::{HeaderMap, Method};
use std::future::poll_fn;
use turnkeep_base::limit::MAX_EVENT;
use turnkeep_base::{AccountId, Dialect, Secret};
use turnkeep_engine::ports::{Call, Upstream as Port};

/// Asks over the real drivers.
pub struct Live;

impl Probe for Live {
    fn models<'a>(&'a self, upstream: &'a Upstream, account: &'a Account, secret: &'a Secret) -> ProbeAnswer<'a> {
        Box::pin(async move {
            let endpoint = wiring::endpoint(upstream, wiring::loopback_only(), 1).map_err(|error| error.to_string())?;
            let path = match endpoint.kind().dialect() {
                Dialect::Chat | Dialect::Responses => "/models",
                Dialect::Messages => "/v1/models",
                Dialect::Gemini => "/v1beta/models",
            };
            let call = Call {
                method: Method::GET,
                path: path.into(),
                headers: HeaderMap::new(),
                body: bytes::Bytes::new(),
                account: AccountId { upstream: upstream.name.as_str().into(), account: account.name.as_str().into() },
                secret: secret.clone(),
            };
            let mut answer = endpoint.send(call).await.map_err(|fault| fault.to_string())?;
            let mut body = Vec::new();
            while let Some(chunk) = poll_fn(|cx| answer.body.poll_chunk(cx)).await {
                body.extend_from_slice(&chunk.map_err(|fault| fault.to_string())?);
                if body.len() > MAX_EVENT {
                    return Err("the list of models is too long".into());
                }
            }
            if !answer.status.is_success() {
                let text: String = String::from_utf8_lossy(&body).chars().take(200).collect();
                return Err(format!("{}: {text}", answer.status));
            }
            let list: serde_json::Value =
                serde_json::from_slice(&body).map_err(|error| format!("not JSON: {error}"))?;
            let models = list["data"].as_array().ok_or("the answer holds no list of models")?;
            Ok(models.iter().filter_map(|model| model["id"].as_str()).map(str::to_owned).collect())
        })
    }
}
