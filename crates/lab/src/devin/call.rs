//! The calls: which path asks for what, what is refused, and what is answered.

use http::Method;
use serde_json::{Value, json};

use super::sessions::{Owner, Refusal, Sessions};
use crate::accounts::{AccountState, Accounts};
use crate::gates::Gates;

/// What a path of Devin's API asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call<'a> {
    organization: &'a str,
    what: What<'a>,
    query: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What<'a> {
    Create,
    List,
    Session(&'a str),
    Say(&'a str),
    Messages(&'a str),
    /// The path is known, and not by this method.
    NoMethod,
}

/// What is done, or refused, with how long to wait where that is said.
pub(crate) struct Done {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) retry_after: Option<u64>,
}

/// Reads a path; `None`: it is none of Devin's.
pub(crate) fn call<'a>(method: &Method, uri: &'a http::Uri) -> Option<Call<'a>> {
    let mut parts = uri.path().strip_prefix("/v3/organizations/")?.split('/');
    let organization = parts.next().filter(|id| !id.is_empty())?;
    if parts.next()? != "sessions" {
        return None;
    }
    let (id, below, end) = (parts.next(), parts.next(), parts.next());
    let (get, post) = (method == Method::GET, method == Method::POST);
    let what = match (id, below, end) {
        (None, None, None) if post => What::Create,
        (None, None, None) if get => What::List,
        (Some(id), None, None) if get => What::Session(id),
        (Some(id), Some("messages"), None) if post => What::Say(id),
        (Some(id), Some("messages"), None) if get => What::Messages(id),
        (None, None, None) | (Some(_), None | Some("messages"), None) => What::NoMethod,
        (_, _, _) => return None,
    };
    Some(Call { organization, what, query: uri.query().unwrap_or_default() })
}

impl Call<'_> {
    /// Why the call is refused before anything is done; `None`: it is not.
    pub(crate) fn refused(&self, accounts: &Accounts, account: Option<&str>) -> Option<Done> {
        let refuse = |status, detail: Value, retry_after| Some(Done { status, body: detail_of(detail), retry_after });
        let Some(account) = account.filter(|account| !account.is_empty()) else {
            return refuse(401, json!("Unauthorized"), None);
        };
        let (state, wait) = accounts.state(account);
        match state {
            AccountState::Valid => None,
            AccountState::Revoked => refuse(401, json!("Invalid API key"), None),
            AccountState::Quota => refuse(402, json!({"code": "out_of_credits", "message": "No credits left."}), wait),
            AccountState::Suspended => refuse(403, json!("This organization is disabled."), None),
            AccountState::RateLimited => refuse(429, json!("Too many requests"), Some(wait.unwrap_or(1))),
            AccountState::NotEntitled => refuse(403, json!("Missing permission: ManageOrgSessions"), None),
        }
    }

    /// Does what is asked for.
    pub(crate) fn perform(&self, sessions: &Sessions, gates: &Gates, account: &str, body: &[u8]) -> Done {
        let owner = Owner { organization: self.organization, account };
        let done = match self.what {
            What::Create => text(body, "prompt").and_then(|prompt| sessions.create(owner, &prompt)),
            What::Say(id) => text(body, "message").and_then(|message| sessions.say(owner, id, &message)),
            What::Session(id) => sessions.session(owner, id, gates),
            What::Messages(id) => {
                self.page().and_then(|(after, first)| sessions.messages(owner, id, after.as_deref(), first))
            }
            What::List => Ok(sessions.page(owner)),
            What::NoMethod => Err((405, json!("Method Not Allowed"))),
        };
        match done {
            Ok(body) => Done { status: 200, body, retry_after: None },
            Err((status, detail)) => Done { status, body: detail_of(detail), retry_after: None },
        }
    }

    /// `after` and `first` of the query.
    fn page(&self) -> Result<(Option<String>, usize), Refusal> {
        let value = |name: &str| {
            self.query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value)
        };
        let first = value("first").map_or(Some(100), |first| first.parse::<usize>().ok());
        match first.filter(|first| (1..=200).contains(first)) {
            Some(first) => Ok((value("after").map(unescaped), first)),
            None => Err((422, json!([{"loc": ["query", "first"], "msg": "expected 1 to 200", "type": "value_error"}]))),
        }
    }
}

/// An error's body.
pub(crate) fn detail_of(detail: Value) -> Value {
    json!({ "detail": detail })
}

/// The text that a body must have.
fn text(body: &[u8], field: &str) -> Result<String, Refusal> {
    let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    match body[field].as_str().filter(|text| !text.trim().is_empty()) {
        Some(text) => Ok(text.to_owned()),
        None => Err((422, json!([{"loc": ["body", field], "msg": "field required", "type": "value_error.missing"}]))),
    }
}

fn unescaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let code = (byte == b'%').then(|| [bytes.next(), bytes.next()]);
        match code {
            Some([Some(high), Some(low)]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0);
                out.push(u8::try_from(digit(high) * 16 + digit(low)).unwrap_or(b'?'));
            }
            Some(_) | None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_asks_for_one_thing_by_its_method() {
        let what = |method: Method, path: &'static str| {
            let uri = http::Uri::from_static(path);
            call(&method, &uri).map(|call| format!("{:?}", call.what))
        };
        let id = "/v3/organizations/org-1/sessions/devin-1";
        assert_eq!(what(Method::POST, "/v3/organizations/org-1/sessions").as_deref(), Some("Create"));
        assert_eq!(what(Method::GET, id).as_deref(), Some("Session(\"devin-1\")"));
        assert_eq!(what(Method::PUT, id).as_deref(), Some("NoMethod"));
        for path in [
            "/v3/organizations/org-1",
            "/v3/organizations//sessions",
            "/v3/organizations/o/sessions/a/b/c",
            "/v1/sessions",
        ] {
            assert_eq!(what(Method::GET, path), None, "{path}");
        }
    }

    #[test]
    fn a_cursor_comes_through_a_query() {
        assert_eq!(unescaped("after%203"), "after 3");
        assert_eq!(unescaped("a%2"), "a%");
    }
}
