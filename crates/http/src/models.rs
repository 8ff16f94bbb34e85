//! The lists of models, in the shape of each dialect, page by page where its clients ask so. A page begins behind a name,
//! whether or not there still is a model of that name.

use crate::callers::Caller;
use crate::dialects::query_value;
use crate::reply_body::ReplyBody;
use crate::respond;
use crate::service::Gateway;
use bytes::Bytes;
use http::{Response, StatusCode};
use turnkeep_base::{ClientError, Dialect};
use turnkeep_dialect::json::Object;
use turnkeep_dialect::{chat, gemini, messages};

/// The models of one page, at most; also where a client names no number.
const MAX_PAGE: usize = 1000;

/// The models that a key may use, in the dialect's shape.
pub fn list(
    gateway: &Gateway,
    caller: &Caller,
    dialect: Dialect,
    query: Option<&str>,
) -> Result<Response<ReplyBody>, ClientError> {
    let catalog = gateway.catalog.load();
    let names = catalog.names(&caller.models);
    let body = match dialect {
        // OpenAI's list has no pages.
        Dialect::Chat | Dialect::Responses => chat::models::list(&names, started(gateway)),
        Dialect::Messages => {
            let (page, more) = anthropic_page(&names, query)?;
            messages::models::page(page, more, started(gateway))
        }
        Dialect::Gemini => {
            let (page, next) = gemini_page(&names, query)?;
            with_next_page(gemini::models::list(page), next)
        }
    };
    Ok(respond::json(StatusCode::OK, body))
}

/// One of them.
pub fn one(
    gateway: &Gateway,
    caller: &Caller,
    dialect: Dialect,
    name: &str,
) -> Result<Response<ReplyBody>, ClientError> {
    let catalog = gateway.catalog.load();
    if catalog.resolve(name).is_none() || !caller.models.allow(name) {
        let message = format!("model: there is no model {name:?} that this key may use");
        return Err(ClientError::new(404, "model_not_found", message));
    }
    let body = match dialect {
        Dialect::Chat | Dialect::Responses => chat::models::one(name, started(gateway)),
        Dialect::Messages => messages::models::one(name, started(gateway)),
        Dialect::Gemini => gemini::models::one(name),
    };
    Ok(respond::json(StatusCode::OK, body))
}

/// Unix seconds of the gateway's start: the lists' `created`, as the configuration tells no other time.
fn started(gateway: &Gateway) -> u64 {
    (gateway.engine.clock.unix_ms() / 1000).saturating_sub(gateway.started.elapsed().as_secs())
}

/// How many models a page holds, by the parameter of this name.
fn size(query: Option<&str>, name: &'static str) -> Result<usize, ClientError> {
    let Some(value) = query_value(query, name) else { return Ok(MAX_PAGE) };
    match value.parse::<usize>() {
        Ok(size) if size > 0 => Ok(size.min(MAX_PAGE)),
        Ok(_) | Err(_) => Err(ClientError::invalid(
            name,
            format!("{name}: {value:?} is no number of models; it takes 1 to {MAX_PAGE}"),
        )),
    }
}

/// `limit`, `after_id` and `before_id`: a page, and whether there are more in its direction. `names` are in order.
fn anthropic_page<'a, 'n>(names: &'a [&'n str], query: Option<&str>) -> Result<(&'a [&'n str], bool), ClientError> {
    let limit = size(query, "limit")?;
    match (query_value(query, "after_id"), query_value(query, "before_id")) {
        (Some(_), Some(_)) => {
            let message =
                "before_id: a page is after one model or before one, not both; leave after_id or before_id out";
            Err(ClientError::invalid("before_id", message))
        }
        (None, Some(before)) => {
            let (rest, _) = names.split_at(names.partition_point(|name| *name < before.as_ref()));
            let (more, page) = rest.split_at(rest.len().saturating_sub(limit));
            Ok((page, !more.is_empty()))
        }
        (after, None) => {
            let (page, more) = behind(names, after.as_deref(), limit);
            Ok((page, more))
        }
    }
}

/// `pageSize` and `pageToken`: a page, and the token of the next, which is the last name of this.
fn gemini_page<'a, 'n>(
    names: &'a [&'n str],
    query: Option<&str>,
) -> Result<(&'a [&'n str], Option<&'n str>), ClientError> {
    let size = size(query, "pageSize")?;
    let (page, more) = behind(names, query_value(query, "pageToken").as_deref(), size);
    Ok((page, page.last().copied().filter(|_| more)))
}

fn behind<'a, 'n>(names: &'a [&'n str], after: Option<&str>, size: usize) -> (&'a [&'n str], bool) {
    let from = after.map_or(0, |after| names.partition_point(|name| *name <= after));
    let (_, rest) = names.split_at(from);
    let (page, more) = rest.split_at(size.min(rest.len()));
    (page, !more.is_empty())
}

/// A Gemini list with `nextPageToken` behind its models.
fn with_next_page(list: Bytes, token: Option<&str>) -> Bytes {
    let (Some(token), Some(open)) = (token, list.strip_suffix(b"}")) else { return list };
    let mut tail = Vec::new();
    Object::open(&mut tail).string("nextPageToken", token);
    let mut out = open.to_vec();
    if !open.ends_with(b"{") {
        out.push(b',');
    }
    out.extend_from_slice(tail.strip_prefix(b"{").unwrap_or(&tail));
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

    #[test]
    fn an_anthropic_client_pages_forward_and_backward() {
        let page = |query| anthropic_page(&NAMES, query).unwrap();
        assert_eq!(page(None), (&NAMES[..], false));
        assert_eq!(page(Some("limit=2")), (&["a", "b"][..], true));
        assert_eq!(page(Some("limit=2&after_id=b")), (&["c", "d"][..], true));
        assert_eq!(page(Some("after_id=d&limit=2")), (&["e"][..], false));
        assert_eq!(page(Some("after_id=e")), (&[][..], false));
        assert_eq!(page(Some("limit=2&before_id=d")), (&["b", "c"][..], true));
        assert_eq!(page(Some("limit=3&before_id=d")), (&["a", "b", "c"][..], false));
        // A model that is gone since still says where.
        assert_eq!(page(Some("limit=1&after_id=bb")), (&["c"][..], true));
        assert_eq!(page(Some("limit=100000")), (&NAMES[..], false));
    }

    #[test]
    fn a_gemini_client_pages_by_a_token_until_there_is_none() {
        let mut seen = Vec::new();
        let mut query = "pageSize=2".to_owned();
        loop {
            let (page, next) = gemini_page(&NAMES, Some(&query)).unwrap();
            seen.extend_from_slice(page);
            let Some(next) = next else { break };
            query = format!("pageSize=2&pageToken={next}");
        }
        assert_eq!(seen, NAMES);
    }

    #[test]
    fn a_page_that_cannot_be_meant_is_refused_by_name() {
        for (query, name) in [("limit=0", "limit"), ("limit=x", "limit"), ("after_id=a&before_id=b", "before_id")] {
            assert_eq!(anthropic_page(&NAMES, Some(query)).unwrap_err().param.as_deref(), Some(name), "{query}");
        }
        assert_eq!(gemini_page(&NAMES, Some("pageSize=-1")).unwrap_err().param.as_deref(), Some("pageSize"));
    }

    #[test]
    fn the_token_of_the_next_page_stands_behind_the_models() {
        let list = Bytes::from_static(br#"{"models":[{"name":"models/a"}]}"#);
        assert_eq!(with_next_page(list.clone(), None), list);
        let with = with_next_page(list, Some("a\"b"));
        assert_eq!(with, &br#"{"models":[{"name":"models/a"}],"nextPageToken":"a\"b"}"#[..]);
        assert_eq!(with_next_page(Bytes::from_static(b"{}"), Some("a")), &br#"{"nextPageToken":"a"}"#[..]);
    }
}
