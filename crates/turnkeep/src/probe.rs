//! `check --probe`: lists an account's models at its upstream. Costs no tokens.

use crate::commands::check::{Probe, ProbeAnswer, Probed};
use crate::config::{Account, Upstream};
use crate::wiring::{self, Driver, Outside};
use http::{HeaderMap, Method};
use std::future::poll_fn;
use turnkeep_agents::supervise::Launch;
use turnkeep_base::limit::MAX_EVENT;
use turnkeep_base::{AccountId, Dialect, Secret};
use turnkeep_engine::ports::{Call, Upstream as Port};
use turnkeep_upstream::Endpoint;

/// Pages of one list that are read, at most.
const MAX_PAGES: usize = 50;

/// Asks over the real drivers.
pub struct Live;

impl Probe for Live {
    fn models<'a>(&'a self, upstream: &'a Upstream, account: &'a Account, secret: &'a Secret) -> ProbeAnswer<'a> {
        Box::pin(async move {
            let place = wiring::surroundings_of(account).await?;
            let id = AccountId { upstream: upstream.name.as_str().into(), account: account.name.as_str().into() };
            let places = place.map(|place| (id.clone(), place)).into_iter().collect();
            let outside = Outside { egress: wiring::egress(), launch: Launch::System };
            let driver = wiring::driver(upstream, &places, &outside);
            match driver.map_err(|error| error.to_string())? {
                Driver::Dialect(endpoint) => list(&endpoint, id, secret).await.map(Probed::Models),
                Driver::Connect(_) => {
                    Ok(Probed::Words("a connect server lists no models; its turns are not tried".into()))
                }
                Driver::Cascade(cascade, _) => match cascade.health(&id, secret).await {
                    Ok(()) => Ok(Probed::Words("the server takes turns".into())),
                    Err(fault) => Err(fault.to_string()),
                },
                Driver::Devin(_) => Ok(Probed::Words("Devin lists no models; its sessions are not tried".into())),
                Driver::Acp(_) => Ok(Probed::Words("an agent is started with its first turn, and not before".into())),
            }
        })
    }
}

/// The models of an account, page by page.
async fn list(endpoint: &Endpoint, account: AccountId, secret: &Secret) -> Result<Vec<String>, String> {
    let dialect = endpoint.kind().dialect();
    let mut models = Vec::new();
    let mut next = None;
    for _ in 0..MAX_PAGES {
        let call = Call {
            method: Method::GET,
            path: path(dialect, next.as_deref()).into(),
            headers: HeaderMap::new(),
            body: bytes::Bytes::new(),
            account: account.clone(),
            secret: secret.clone(),
        };
        let page = read(dialect, &ask(endpoint, call).await?)?;
        models.extend(page.models);
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    Ok(models)
}

async fn ask(endpoint: &impl Port, call: Call) -> Result<Vec<u8>, String> {
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
    Ok(body)
}

/// Where a list is below the base URL, or the page of it that follows.
fn path(dialect: Dialect, next: Option<&str>) -> String {
    let (path, size, token) = match dialect {
        Dialect::Chat | Dialect::Responses => return "/models".into(),
        Dialect::Messages => ("/v1/models", "limit", "after_id"),
        Dialect::Gemini => ("/v1beta/models", "pageSize", "pageToken"),
    };
    match next {
        None => format!("{path}?{size}=1000"),
        Some(next) => format!("{path}?{size}=1000&{token}={}", escaped(next)),
    }
}

/// A value of a query.
fn escaped(text: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    text.bytes().map(|byte| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Page {
    models: Vec<String>,
    next: Option<String>,
}

fn read(dialect: Dialect, body: &[u8]) -> Result<Page, String> {
    let list: serde_json::Value = serde_json::from_slice(body).map_err(|error| format!("not JSON: {error}"))?;
    let (models, name) = match dialect {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => ("data", "id"),
        Dialect::Gemini => ("models", "name"),
    };
    let models = list[models].as_array().ok_or("the answer holds no list of models")?;
    let names = models.iter().filter_map(|model| model[name].as_str());
    let next = match dialect {
        Dialect::Chat | Dialect::Responses => None,
        Dialect::Messages => list["last_id"].as_str().filter(|_| list["has_more"] == true),
        Dialect::Gemini => list["nextPageToken"].as_str().filter(|token| !token.is_empty()),
    };
    Ok(Page {
        models: names.map(|name| name.strip_prefix("models/").unwrap_or(name).to_owned()).collect(),
        next: next.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_page_by_page_in_its_own_shape() {
        let page = |models: &[&str], next: Option<&str>| Page {
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            next: next.map(str::to_owned),
        };
        for (dialect, body, expected) in [
            (Dialect::Chat, r#"{"data":[{"id":"a"},{"id":"b"}]}"#, page(&["a", "b"], None)),
            (Dialect::Responses, r#"{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}"#, page(&["a"], None)),
            (Dialect::Messages, r#"{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}"#, page(&["a"], Some("a"))),
            (Dialect::Messages, r#"{"data":[{"id":"a"}],"has_more":false,"last_id":"a"}"#, page(&["a"], None)),
            (
                Dialect::Gemini,
                r#"{"models":[{"name":"models/gemini-3"},{"name":"tunedModels/t"}],"nextPageToken":"x+/="}"#,
                page(&["gemini-3", "tunedModels/t"], Some("x+/=")),
            ),
            (Dialect::Gemini, r#"{"models":[],"nextPageToken":""}"#, page(&[], None)),
        ] {
            assert_eq!(read(dialect, body.as_bytes()).unwrap(), expected, "{body}");
        }
        assert!(read(Dialect::Gemini, br#"{"data":[]}"#).is_err());
        assert_eq!(path(Dialect::Gemini, Some("x+/=")), "/v1beta/models?pageSize=1000&pageToken=x%2B%2F%3D");
        assert_eq!(path(Dialect::Messages, None), "/v1/models?limit=1000");
        assert_eq!(path(Dialect::Responses, None), "/models");
    }
}
