//! The paths of what is stored.

use http::Method;

/// What a path below `/v1/responses` or `/v1/conversations` names. Turns are not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredPlace<'a> {
    /// One stored response.
    Response(&'a str),
    /// Where one that is made in the background is cancelled.
    Cancel(&'a str),
    /// What one was asked with.
    InputItems(&'a str),
    /// Where conversations are made.
    Conversations,
    /// One conversation.
    Conversation(&'a str),
    /// Its items.
    Items(&'a str),
    /// One of its items.
    Item(&'a str, &'a str),
}

/// What stands below `/v1/responses` and is no id.
const RESERVED: [&str; 2] = ["input_tokens", "compact"];

/// Reads a path without a dialect's prefix.
pub fn place(path: &str) -> Option<StoredPlace<'_>> {
    let path = path.strip_prefix("/v1/")?;
    let mut parts = path.split('/');
    let root = parts.next()?;
    let rest: Vec<&str> = parts.collect();
    if rest.iter().any(|part| part.is_empty()) {
        return None;
    }
    match (root, rest.as_slice()) {
        ("responses", [id, ..]) if RESERVED.contains(id) => None,
        ("responses", [id]) => Some(StoredPlace::Response(id)),
        ("responses", [id, "cancel"]) => Some(StoredPlace::Cancel(id)),
        ("responses", [id, "input_items"]) => Some(StoredPlace::InputItems(id)),
        ("conversations", []) => Some(StoredPlace::Conversations),
        ("conversations", [id]) => Some(StoredPlace::Conversation(id)),
        ("conversations", [id, "items"]) => Some(StoredPlace::Items(id)),
        ("conversations", [id, "items", item]) => Some(StoredPlace::Item(id, item)),
        _ => None,
    }
}

/// The methods that a place takes.
pub fn methods(place: &StoredPlace<'_>) -> &'static [Method] {
    match place {
        StoredPlace::Response(_) | StoredPlace::Item(..) => &[Method::GET, Method::DELETE],
        StoredPlace::Cancel(_) | StoredPlace::Conversations => &[Method::POST],
        StoredPlace::InputItems(_) => &[Method::GET],
        StoredPlace::Conversation(_) => &[Method::GET, Method::POST, Method::DELETE],
        StoredPlace::Items(_) => &[Method::GET, Method::POST],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_thing_has_its_path_and_what_is_no_id_names_none() {
        for (path, expected) in [
            ("/v1/responses/resp_1", Some(StoredPlace::Response("resp_1"))),
            ("/v1/responses/resp_1/cancel", Some(StoredPlace::Cancel("resp_1"))),
            ("/v1/responses/resp_1/input_items", Some(StoredPlace::InputItems("resp_1"))),
            ("/v1/responses/resp_1/other", None),
            ("/v1/responses/input_tokens", None),
            ("/v1/responses/compact", None),
            ("/v1/responses", None),
            ("/v1/responses/", None),
            ("/v1/responses//cancel", None),
            ("/v1/conversations", Some(StoredPlace::Conversations)),
            ("/v1/conversations/conv_1", Some(StoredPlace::Conversation("conv_1"))),
            ("/v1/conversations/conv_1/items", Some(StoredPlace::Items("conv_1"))),
            ("/v1/conversations/conv_1/items/msg_1", Some(StoredPlace::Item("conv_1", "msg_1"))),
            ("/v1/conversations/", None),
            ("/v1/conversationsx", None),
        ] {
            assert_eq!(place(path), expected, "{path}");
        }
    }
}
