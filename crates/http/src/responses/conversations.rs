//! Conversations: their items are the history of the turns that name them.

use super::StoredPlace;
use super::history::{conversation_locked, no_conversation};
use super::items::{string_field, with_id};
use super::library::Library;
use super::metadata;
use super::page::{Page, list};
use super::record::StoredConversation;
use super::retrieve::{Wanted, deleted};
use crate::dialects::percent_decoded;
use crate::reply_body::ReplyBody;
use crate::respond;
use crate::service::Gateway;
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use turnkeep_base::ClientError;
use turnkeep_dialect::json::{Invalid, Kind, Reader};
use turnkeep_engine::ports::StoredKind;

/// Items that one request may add.
const ADDED: usize = 20;
/// What the body of a request about conversations says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    items: Option<Vec<String>>,
    metadata: Option<String>,
}

fn read(body: &[u8]) -> Result<Said, Invalid> {
    let mut said = Said::default();
    if body.trim_ascii().is_empty() {
        return Ok(said);
    }
    let mut r = Reader::new(body)?;
    r.object::<Invalid>(|r, key| {
        match key {
            "items" if !r.null()? => {
                let mut items = Vec::new();
                r.array::<Invalid>(|r, _| {
                    if r.kind()? != Kind::Object {
                        return Err(r.fail("expected an item, which is an object"));
                    }
                    items.push(r.raw()?.to_owned());
                    Ok(())
                })?;
                if items.len() > ADDED {
                    return Err(r.fail(format!("expected at most {ADDED} items, found {}", items.len())));
                }
                said.items = Some(items);
            }
            "metadata" if !r.null()? => said.metadata = Some(metadata::read(r)?),
            "items" | "metadata" => {}
            _ => {
                r.skip()?;
            }
        }
        Ok(())
    })?;
    r.end()?;
    Ok(said)
}

/// Answers a request about conversations.
pub(super) async fn answer(
    gateway: &Arc<Gateway>,
    scope: &Arc<str>,
    wanted: Wanted<'_>,
) -> Result<Response<ReplyBody>, ClientError> {
    let library = &gateway.library;
    let Wanted { place, method, query, body, turn } = wanted;
    let maker = turn.to_string().trim_start_matches("turn_").to_owned();
    let ok = |text: String| Ok(respond::json(StatusCode::OK, text));
    match place {
        StoredPlace::Conversations => {
            let said = read(&body)?;
            let made_ms = library.now_ms();
            let conversation = StoredConversation {
                id: format!("conv_{maker}"),
                created: made_ms / 1000,
                metadata: said.metadata.unwrap_or_else(|| "{}".into()),
                gone: false,
                items: named(said.items.unwrap_or_default(), &maker),
            };
            put(library, scope, &conversation, made_ms).await?;
            ok(conversation.shown())
        }
        StoredPlace::Conversation(id) if method == Method::GET => {
            let (conversation, _) = found(library, scope, &percent_decoded(id)).await?;
            ok(conversation.shown())
        }
        StoredPlace::Conversation(id) if method == Method::POST => {
            let id = percent_decoded(id);
            let said = read(&body)?;
            let (mut conversation, made_ms, _held) = taken(library, scope, &id).await?;
            if let Some(metadata) = said.metadata {
                conversation.metadata = metadata;
            }
            put(library, scope, &conversation, made_ms).await?;
            ok(conversation.shown())
        }
        StoredPlace::Conversation(id) => {
            let id = percent_decoded(id);
            let _held = library.hold(scope, &id).ok_or_else(|| conversation_locked(&id))?;
            if !library.remove(StoredKind::Conversation, scope, &id).await? {
                return Err(no_conversation(&id));
            }
            Ok(respond::json(StatusCode::OK, deleted("conversation.deleted", &id)))
        }
        StoredPlace::Items(id) if method == Method::GET => {
            let page = Page::of(query)?;
            let (conversation, _) = found(library, scope, &percent_decoded(id)).await?;
            ok(page.list(&conversation.items)?)
        }
        StoredPlace::Items(id) => {
            let id = percent_decoded(id);
            let said = read(&body)?;
            let Some(items) = said.items.filter(|items| !items.is_empty()) else {
                return Err(ClientError::invalid("items", "items: expected a list of one item or more"));
            };
            let (mut conversation, made_ms, _held) = taken(library, scope, &id).await?;
            let items = named(items, &maker);
            conversation.items.extend(items.iter().cloned());
            let bytes: usize = conversation.items.iter().map(String::len).sum();
            let limit = gateway.max_body.load(Ordering::Relaxed);
            if bytes > limit {
                let message = format!("items: the conversation would be larger than {limit} bytes; begin another");
                return Err(ClientError::new(413, "too_large", message));
            }
            put(library, scope, &conversation, made_ms).await?;
            ok(list(&items.iter().collect::<Vec<_>>(), false))
        }
        StoredPlace::Item(id, item) if method == Method::GET => {
            let item = percent_decoded(item);
            let (conversation, _) = found(library, scope, &percent_decoded(id)).await?;
            let there = conversation.items.iter().find(|one| string_field(one, "id").as_deref() == Some(&*item));
            ok(there.cloned().ok_or_else(|| no_item(&item))?)
        }
        StoredPlace::Item(id, item) => {
            let (id, item) = (percent_decoded(id), percent_decoded(item));
            let (mut conversation, made_ms, _held) = taken(library, scope, &id).await?;
            let had = conversation.items.len();
            conversation.items.retain(|one| string_field(one, "id").as_deref() != Some(&*item));
            if conversation.items.len() == had {
                return Err(no_item(&item));
            }
            put(library, scope, &conversation, made_ms).await?;
            ok(conversation.shown())
        }
        // Those are answered elsewhere.
        StoredPlace::Response(id) | StoredPlace::Cancel(id) | StoredPlace::InputItems(id) => Err(no_conversation(id)),
    }
}

fn no_item(id: &str) -> ClientError {
    ClientError::new(404, "item_not_found", format!("there is no item {id:?} in this conversation"))
}

fn named(items: Vec<String>, maker: &str) -> Vec<String> {
    items.iter().enumerate().map(|(number, item)| with_id(item, maker, number)).collect()
}

async fn found(library: &Library, scope: &Arc<str>, id: &str) -> Result<(StoredConversation, u64), ClientError> {
    library.conversation(scope, id).await?.ok_or_else(|| no_conversation(id))
}

/// The conversation, for one change.
async fn taken(
    library: &Arc<Library>,
    scope: &Arc<str>,
    id: &str,
) -> Result<(StoredConversation, u64, super::library::Held), ClientError> {
    let held = library.hold(scope, id);
    let (conversation, made_ms) = found(library, scope, id).await?;
    Ok((conversation, made_ms, held.ok_or_else(|| conversation_locked(id))?))
}

async fn put(
    library: &Library,
    scope: &Arc<str>,
    conversation: &StoredConversation,
    made_ms: u64,
) -> Result<(), ClientError> {
    let content: Bytes = conversation.to_bytes();
    let thing = library.thing(StoredKind::Conversation, scope, &conversation.id, made_ms, content);
    library.put(vec![thing]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_may_bring_items_and_metadata_or_nothing() {
        assert_eq!(read(b" ").unwrap(), Said::default());
        assert_eq!(read(br#"{"items":null,"metadata":null,"x":1}"#).unwrap(), Said::default());
        let said = read(br#"{"items":[{"role":"user","content":"a"}],"metadata":{"k":"v"}}"#).unwrap();
        assert_eq!(said.items, Some(vec![r#"{"role":"user","content":"a"}"#.into()]));
        assert_eq!(said.metadata.as_deref(), Some(r#"{"k":"v"}"#));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_path() {
        let many = format!(r#"{{"items":[{}]}}"#, vec!["{}"; ADDED + 1].join(","));
        for (body, path) in [
            (r#"{"items":{}}"#, "items"),
            (r#"{"items":[1]}"#, "items[0]"),
            (many.as_str(), "items"),
            (r#"{"metadata":[]}"#, "metadata"),
            (r#"{"metadata":{"a":1}}"#, "metadata.a"),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap_err().path, path, "{body}");
        }
    }
}
