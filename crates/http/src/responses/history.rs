//! What a request only names: the responses before it, the items it stands for.

use super::items::{for_history, maker_of, outputs, string_field};
use super::library::Library;
use super::record::{StoredConversation, StoredResponse};
use super::state::{Reference, State};
use crate::read_body::Share;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use turnkeep_base::ClientError;

/// Responses that go on from each other, at most.
const CHAIN: usize = 1_000;

/// An error about one field.
fn wrong(status: u16, code: &'static str, param: &str, message: String) -> ClientError {
    ClientError { param: Some(param.to_owned()), ..ClientError::new(status, code, message) }
}

/// There is no such response for this caller, whoever else may have one.
pub(super) fn no_response(param: &str, id: &str) -> ClientError {
    let message = format!("{param}: there is no stored response {:?} that this key can use", shown(id));
    wrong(404, "previous_response_not_found", param, message)
}

/// There is no such conversation for this caller.
pub(super) fn no_conversation(id: &str) -> ClientError {
    let message = format!("conversation: there is no conversation {:?} that this key can use", shown(id));
    wrong(404, "conversation_not_found", "conversation", message)
}

/// Another turn has it.
pub(super) fn conversation_locked(id: &str) -> ClientError {
    let message = format!(
        "conversation: another request is under way in {id:?}; one at a time may go on from a conversation, so try \
         again when it is done"
    );
    wrong(409, "conversation_locked", "conversation", message)
}

/// A turn of it is missing.
pub(super) fn conversation_gone(id: &str) -> ClientError {
    let message = format!(
        "conversation: a turn of {id:?} was answered and its answer could not be stored, so the conversation is no longer \
         whole; begin another with the history as its items"
    );
    wrong(400, "history_is_gone", "conversation", message)
}

/// With its history a request is longer than one may be.
pub(super) fn too_long(param: &str, limit: usize) -> ClientError {
    let message = format!(
        "{param}: the request with its stored history is larger than {limit} bytes; begin anew with less of it as input, or \
         raise server.max_body"
    );
    wrong(400, "history_too_long", param, message)
}

/// An id as an error shows it: what is far longer than any id is cut.
pub(super) fn shown(id: &str) -> String {
    const CHARS: usize = 80;
    let mut short: String = id.chars().take(CHARS).collect();
    if short.len() < id.len() {
        short.push('…');
    }
    short
}

/// What a history may take.
pub(super) struct Room<'a> {
    /// The longest request, in bytes.
    pub(super) limit: usize,
    /// The memory for it, which it takes as it grows.
    pub(super) share: &'a mut Share,
}

/// The responses that this one goes on from, itself the last.
pub(super) async fn chain(
    library: &Library,
    scope: &Arc<str>,
    first: &str,
    room: &mut Room<'_>,
) -> Result<Vec<StoredResponse>, ClientError> {
    let limit = room.limit;
    const PARAM: &str = "previous_response_id";
    let mut chain: Vec<StoredResponse> = Vec::new();
    let mut next = Some(first.to_owned());
    let mut bytes = 0_usize;
    while let Some(id) = next {
        let running = library.running(scope, &id).is_some();
        let found = if running { None } else { library.response(scope, &id).await? };
        let Some(response) = found else {
            return Err(match (chain.is_empty(), running) {
                (true, true) => unfinished(PARAM, &id, "in_progress"),
                (true, false) => no_response(PARAM, &id),
                (false, _) => {
                    let message = format!(
                        "{PARAM}: the history of {first:?} cannot be rebuilt, as an earlier response of it was deleted or \
                         is no longer kept; send the history as input"
                    );
                    wrong(400, "history_is_gone", PARAM, message)
                }
            });
        };
        let status = response.status();
        if !matches!(status.as_str(), "completed" | "incomplete") {
            return Err(unfinished(PARAM, &id, &status));
        }
        if let Some(conversation) = &response.conversation {
            let message = format!(
                "{PARAM}: {id:?} is a part of the conversation {conversation:?}; send `conversation` instead to go on from it"
            );
            return Err(wrong(400, "response_of_a_conversation", PARAM, message));
        }
        let one = response.response.len().saturating_add(response.input.iter().map(String::len).sum());
        room.share.add(one)?;
        bytes = bytes.saturating_add(one);
        if bytes > limit.saturating_mul(2) {
            return Err(too_long(PARAM, limit));
        }
        if chain.len() >= CHAIN {
            let message = format!(
                "{PARAM}: more than {CHAIN} responses go on from each other up to {first:?}; begin anew with the history as \
                 input"
            );
            return Err(wrong(400, "history_too_long", PARAM, message));
        }
        next = response.previous.clone();
        chain.push(response);
    }
    chain.reverse();
    Ok(chain)
}

fn unfinished(param: &str, id: &str, status: &str) -> ClientError {
    let message = format!("{param}: the response {id:?} is {status}; only one that is complete can be gone on from");
    wrong(400, "response_not_complete", param, message)
}

/// What a chain says, as input.
pub(super) fn said(chain: &[StoredResponse]) -> Vec<String> {
    let of_one = |response: &StoredResponse| {
        let input: Vec<String> = response.input.iter().filter_map(|item| for_history(item)).collect();
        let output: Vec<String> = outputs(&response.response).into_iter().filter_map(for_history).collect();
        input.into_iter().chain(output).collect::<Vec<_>>()
    };
    chain.iter().flat_map(of_one).collect()
}

/// The input with what its references stand for, each of which is looked for once.
pub(super) async fn resolved(
    library: &Library,
    scope: &Arc<str>,
    state: &State<'_>,
    conversation: Option<&StoredConversation>,
    room: &mut Room<'_>,
) -> Result<Vec<String>, ClientError> {
    room.share.add(state.input.iter().map(|item| item.len()).sum())?;
    let mut input: Vec<String> = state.input.iter().map(|item| item.to_string()).collect();
    if state.references.is_empty() {
        return Ok(input);
    }
    let mut own: BTreeMap<String, &str> = BTreeMap::new();
    for item in conversation.iter().flat_map(|conversation| &conversation.items) {
        if let Some(id) = string_field(item, "id") {
            own.entry(id).or_insert(item);
        }
    }
    // Where what an id stands for has its first place.
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut bytes = 0_usize;
    for Reference { index, id } in &state.references {
        let path = || format!("input[{index}]");
        let item = match places.entry(id) {
            Entry::Occupied(first) => input.get(*first.get()).cloned(),
            Entry::Vacant(none) => {
                none.insert(*index);
                match own.get(id) {
                    Some(item) => Some((*item).to_owned()),
                    None => stored_item(library, scope, id).await?,
                }
            }
        };
        let Some(item) = item else {
            let path = path();
            let message =
                format!("{path}: there is no stored item {:?} that this key can use; send the item itself", shown(id));
            return Err(wrong(404, "item_not_found", &path, message));
        };
        bytes = bytes.saturating_add(item.len());
        if bytes > room.limit {
            return Err(too_long(&path(), room.limit));
        }
        room.share.add(item.len())?;
        if let Some(place) = input.get_mut(*index) {
            *place = item;
        }
    }
    Ok(input)
}

/// The input as it goes on: an item that a reference stands for leaves its id here.
pub(super) fn sent(state: &State<'_>, input: &[String]) -> Vec<String> {
    let sent = |(index, item): (usize, &String)| {
        // They are read in the order of their places.
        match state.references.binary_search_by_key(&index, |reference| reference.index) {
            Ok(_) => for_history(item),
            Err(_) => Some(item.clone()),
        }
    };
    input.iter().enumerate().filter_map(sent).collect()
}

async fn stored_item(library: &Library, scope: &Arc<str>, id: &str) -> Result<Option<String>, ClientError> {
    let mut holder = library.holder(scope, id).await?;
    if holder.is_none()
        && let Some(maker) = maker_of(id)
    {
        holder = library.holder(scope, maker).await?;
    }
    let Some(holder) = holder else { return Ok(None) };
    let response = library.response(scope, &holder).await?;
    Ok(response.and_then(|response| response.item(id).map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::super::test_library::library;
    use super::*;
    use crate::read_body;
    use turnkeep_engine::ports::StoredKind;

    const LIMIT: usize = 1 << 20;

    fn share() -> Share {
        Share::of(&read_body::memory(64 * LIMIT))
    }

    fn room(share: &mut Share) -> Room<'_> {
        Room { limit: LIMIT, share }
    }

    /// Responses that go on from each other: each the one before it, with so many bytes of input.
    async fn stored(count: usize, bytes: usize) -> (Arc<Library>, Arc<str>, String) {
        let (library, _) = library();
        let scope: Arc<str> = "ann".into();
        let text = format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(bytes));
        let things = (0..count).map(|number| {
            let id = format!("resp_{number}");
            let response = StoredResponse {
                id: id.clone(),
                previous: number.checked_sub(1).map(|before| format!("resp_{before}")),
                conversation: None,
                background: false,
                input: vec![text.clone()],
                response: format!(r#"{{"id":"{id}","status":"completed","output":[]}}"#),
            };
            library.thing(StoredKind::Response, &scope, &id, 0, response.to_bytes())
        });
        library.put(things.collect()).await.unwrap();
        (library, scope, format!("resp_{}", count - 1))
    }

    #[tokio::test]
    async fn a_chain_of_ten_thousand_responses_is_refused_by_name_and_one_of_a_thousand_is_read() {
        let (library, scope, last) = stored(10_000, 1).await;
        let error = chain(&library, &scope, &last, &mut room(&mut share())).await.unwrap_err();
        assert_eq!((error.status, error.code), (400, "history_too_long"));
        assert!(error.message.contains("more than 1000 responses"), "{}", error.message);
        let read = chain(&library, &scope, &format!("resp_{}", CHAIN - 1), &mut room(&mut share())).await.unwrap();
        assert_eq!((read.len(), said(&read).len()), (CHAIN, CHAIN));
        assert_eq!(read[0].id, "resp_0", "the oldest comes first");
    }

    #[tokio::test]
    async fn a_chain_of_few_large_responses_is_refused_before_all_of_it_is_in_memory() {
        let (library, scope, last) = stored(100, LIMIT / 10).await;
        let error = chain(&library, &scope, &last, &mut room(&mut share())).await.unwrap_err();
        assert_eq!((error.status, error.param.as_deref()), (400, Some("previous_response_id")));
        assert!(error.message.contains("larger than 1048576 bytes"), "{}", error.message);
    }

    #[tokio::test]
    async fn a_response_that_goes_on_from_itself_is_refused_too() {
        let (library, scope, _) = stored(1, 1).await;
        let own = StoredResponse {
            id: "resp_0".into(),
            previous: Some("resp_0".into()),
            conversation: None,
            background: false,
            input: Vec::new(),
            response: r#"{"status":"completed"}"#.into(),
        };
        library.put(vec![library.thing(StoredKind::Response, &scope, "resp_0", 0, own.to_bytes())]).await.unwrap();
        let error = chain(&library, &scope, "resp_0", &mut room(&mut share())).await.unwrap_err();
        assert_eq!(error.code, "history_too_long");
    }

    #[tokio::test]
    async fn a_history_takes_its_memory_as_it_grows() {
        let (library, scope, last) = stored(10, LIMIT / 10).await;
        let memory = read_body::memory(LIMIT / 2);
        let mut share = Share::of(&memory);
        let error = chain(&library, &scope, &last, &mut room(&mut share)).await.unwrap_err();
        assert_eq!((error.status, error.code), (503, "gateway_exhausted"));
        assert!(memory.available_permits() < 8, "it was read until there was no room for more");
    }

    fn conversation(bytes: usize) -> StoredConversation {
        let large = format!(r#"{{"id":"msg_1","role":"user","content":"{}"}}"#, "x".repeat(bytes));
        let second = r#"{"id":"msg_1","role":"user","content":"the second of its id"}"#.to_owned();
        let items = vec![large, second];
        StoredConversation { id: "conv_1".into(), created: 0, metadata: "{}".into(), gone: false, items }
    }

    fn referring(times: usize) -> String {
        let reference = r#"{"type":"item_reference","id":"msg_1"}"#;
        format!(r#"{{"input":["own",{}]}}"#, vec![reference; times].join(","))
    }

    #[tokio::test]
    async fn what_references_stand_for_is_bounded_by_the_longest_request_while_it_is_put_in_place() {
        let (library, _) = library();
        let (scope, conversation, body) = ("ann".into(), conversation(LIMIT / 10), referring(900));
        let state = State::read(body.as_bytes()).unwrap();
        let memory = read_body::memory(64 * LIMIT);
        let (mut share, before) = (Share::of(&memory), memory.available_permits());
        let error = resolved(&library, &scope, &state, Some(&conversation), &mut room(&mut share)).await.unwrap_err();
        assert_eq!((error.status, error.code, error.param.as_deref()), (400, "history_too_long", Some("input[10]")));
        assert!(before - memory.available_permits() <= 65, "no more than the limit was taken");
    }

    #[tokio::test]
    async fn an_id_that_stands_there_often_is_the_same_item_everywhere_and_leaves_its_id_when_it_goes_on() {
        let (library, _) = library();
        let (scope, conversation, body) = ("ann".into(), conversation(1), referring(3));
        let state = State::read(body.as_bytes()).unwrap();
        let mut share = share();
        let input = resolved(&library, &scope, &state, Some(&conversation), &mut room(&mut share)).await.unwrap();
        assert_eq!(input[0], r#""own""#);
        assert_eq!(input[1..], vec![conversation.items[0].clone(); 3]);
        let one = r#"{"role":"user","content":"x"}"#;
        assert_eq!(sent(&state, &input), [r#""own""#, one, one, one]);
    }

    #[test]
    fn an_id_is_shown_as_it_is_unless_it_is_longer_than_any() {
        assert_eq!(shown("resp_01ABC"), "resp_01ABC");
        assert_eq!(shown(&"é".repeat(5_000)), format!("{}…", "é".repeat(80)));
    }
}
