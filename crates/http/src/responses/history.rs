//! What a request only names: the responses before it, the items it stands for.

use super::items::{for_history, maker_of, outputs, string_field};
use super::library::Library;
use super::record::{StoredConversation, StoredResponse};
use super::state::{Reference, State};
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

/// The responses that this one goes on from, itself the last.
pub(super) async fn chain(
    library: &Library,
    scope: &Arc<str>,
    first: &str,
    limit: usize,
) -> Result<Vec<StoredResponse>, ClientError> {
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
        bytes = bytes.saturating_add(response.response.len());
        bytes = bytes.saturating_add(response.input.iter().map(String::len).sum());
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

/// The input with what its references stand for.
pub(super) async fn resolved(
    library: &Library,
    scope: &Arc<str>,
    state: &State<'_>,
    conversation: Option<&StoredConversation>,
) -> Result<Vec<String>, ClientError> {
    let mut input: Vec<String> = state.input.iter().map(|item| item.to_string()).collect();
    for Reference { index, id } in &state.references {
        let own = conversation.and_then(|conversation| {
            let mut items = conversation.items.iter();
            items.find(|item| string_field(item, "id").as_ref() == Some(id)).cloned()
        });
        let item = match own {
            Some(item) => Some(item),
            None => stored_item(library, scope, id).await?,
        };
        let path = format!("input[{index}]");
        let Some(item) = item else {
            let message =
                format!("{path}: there is no stored item {:?} that this key can use; send the item itself", shown(id));
            return Err(wrong(404, "item_not_found", &path, message));
        };
        if let Some(place) = input.get_mut(*index) {
            *place = item;
        }
    }
    Ok(input)
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
    use turnkeep_engine::ports::StoredKind;

    const LIMIT: usize = 1 << 20;

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
        let error = chain(&library, &scope, &last, LIMIT).await.unwrap_err();
        assert_eq!((error.status, error.code), (400, "history_too_long"));
        assert!(error.message.contains("more than 1000 responses"), "{}", error.message);
        let read = chain(&library, &scope, &format!("resp_{}", CHAIN - 1), LIMIT).await.unwrap();
        assert_eq!((read.len(), said(&read).len()), (CHAIN, CHAIN));
        assert_eq!(read[0].id, "resp_0", "the oldest comes first");
    }

    #[tokio::test]
    async fn a_chain_of_few_large_responses_is_refused_before_all_of_it_is_in_memory() {
        let (library, scope, last) = stored(100, LIMIT / 10).await;
        let error = chain(&library, &scope, &last, LIMIT).await.unwrap_err();
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
        assert_eq!(chain(&library, &scope, "resp_0", LIMIT).await.unwrap_err().code, "history_too_long");
    }

    #[test]
    fn an_id_is_shown_as_it_is_unless_it_is_longer_than_any() {
        assert_eq!(shown("resp_01ABC"), "resp_01ABC");
        assert_eq!(shown(&"é".repeat(5_000)), format!("{}…", "é".repeat(80)));
    }
}
