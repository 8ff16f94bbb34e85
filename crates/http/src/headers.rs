//! Which of a client's headers cross to a same-dialect upstream: an allow-list, and never a credential.

use crate::dialects::query_value;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::time::Duration;
use turnkeep_base::ClientError;

const UP: [HeaderName; 7] = [
    header::CONTENT_TYPE,
    header::ACCEPT,
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

/// The headers that go up.
pub fn up(client: &HeaderMap) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(UP.len());
    for name in &UP {
        for value in client.get_all(name) {
            out.append(name.clone(), value.clone());
        }
    }
    if !out.contains_key(header::CONTENT_TYPE) {
        out.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    out
}

/// The caller's key: `Authorization: Bearer`, `x-api-key` or `x-goog-api-key`.
pub fn caller_key(client: &HeaderMap) -> Option<&str> {
    let text = |name: &str| client.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let bearer = text("authorization").and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    bearer.or_else(|| text("x-api-key")).or_else(|| text("x-goog-api-key")).filter(|key| !key.is_empty())
}

/// The caller's key where a Gemini client may put it beside those: in the query.
pub fn key_in_query(query: Option<&str>) -> Option<String> {
    let key = query_value(query, "key")?;
    let key = key.trim();
    (!key.is_empty()).then(|| key.to_owned())
}

/// The time that `x-turnkeep-timeout` asks for: a number with `ms`, `s` or `m`. `Err` holds the value as it was sent.
pub fn timeout(client: &HeaderMap) -> Result<Option<Duration>, String> {
    let Some(value) = client.get("x-turnkeep-timeout") else { return Ok(None) };
    let text = value.to_str().unwrap_or("").trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let milliseconds = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return Err(text.to_owned()),
    };
    match number.parse::<u64>() {
        Ok(number) if number > 0 => Ok(Some(Duration::from_millis(number.saturating_mul(milliseconds)))),
        Ok(_) | Err(_) => Err(text.to_owned()),
    }
}

/// What a client asks for of the gateway itself, beside its request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// A key under which the same request is not answered anew.
    pub idempotency: Option<String>,
    /// Held and cached answers are not wanted.
    pub bypass: bool,
}

impl Asked {
    /// From the headers. One that cannot be meant is refused by name: ignored, it would do what the client does not want.
    pub fn of(client: &HeaderMap) -> Result<Asked, ClientError> {
        // What it names is the session's (`dialect::identity`); here it is only refused where it cannot be a name.
        visible(client, "x-turnkeep-conversation", 200)?;
        let bypass = match client.get("x-turnkeep-cache") {
            None => false,
            Some(value) if value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"bypass") => true,
            Some(value) => {
                let message = format!("x-turnkeep-cache: {value:?} is not known; it takes \"bypass\"");
                return Err(ClientError::invalid("x-turnkeep-cache", message));
            }
        };
        Ok(Asked { idempotency: visible(client, "idempotency-key", 255)?, bypass })
    }
}

/// A header of visible ASCII, once, and not too long.
fn visible(client: &HeaderMap, name: &'static str, most: usize) -> Result<Option<String>, ClientError> {
    let mut values = client.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.as_bytes().trim_ascii();
    let fits = (1..=most).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic);
    if !fits || values.next().is_some() {
        let message = format!("{name}: send one value of 1 to {most} visible ASCII characters, without blanks");
        return Err(ClientError::invalid(name, message));
    }
    Ok(Some(String::from_utf8_lossy(text).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn credentials_cookies_and_addresses_do_not_cross() {
        let client = map(&[
            ("authorization", "Bearer k"),
            ("x-api-key", "k"),
            ("cookie", "c"),
            ("x-forwarded-for", "1.2.3.4"),
            ("anthropic-beta", "a,b"),
            ("x-anything", "y"),
        ]);
        let names: Vec<String> = up(&client).keys().map(|name| name.to_string()).collect();
        assert_eq!(names, ["anthropic-beta", "content-type"]);
    }

    #[test]
    fn a_key_is_taken_from_each_of_its_places() {
        assert_eq!(caller_key(&map(&[("authorization", "bearer  k1 ")])), Some("k1"));
        assert_eq!(caller_key(&map(&[("x-api-key", "k2")])), Some("k2"));
        assert_eq!(caller_key(&map(&[("authorization", "Basic x"), ("x-goog-api-key", "k3")])), Some("k3"));
        assert_eq!(caller_key(&map(&[("authorization", "Bearer ")])), None);
    }

    #[test]
    fn what_is_asked_of_the_gateway_is_plain_or_refused_by_name() {
        let asked = Asked::of(&map(&[
            ("idempotency-key", "8e03978e-40d5"),
            ("x-turnkeep-cache", "Bypass"),
            ("x-turnkeep-conversation", "chat-1"),
        ]));
        let expected = Asked { idempotency: Some("8e03978e-40d5".into()), bypass: true };
        assert_eq!(asked.unwrap(), expected);
        assert_eq!(Asked::of(&HeaderMap::new()).unwrap(), Asked::default());
        for (name, value) in [
            ("idempotency-key", ""),
            ("idempotency-key", "two words"),
            ("idempotency-key", "t\u{e9}"),
            ("x-turnkeep-conversation", " "),
            ("x-turnkeep-cache", "off"),
            ("x-turnkeep-cache", ""),
        ] {
            let mut client = HeaderMap::new();
            client.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            let refused = Asked::of(&client).unwrap_err();
            assert_eq!((refused.status, refused.param.as_deref()), (400, Some(name)), "{value:?}");
        }
        let long = HeaderValue::from_str(&"k".repeat(256)).unwrap();
        let mut client = HeaderMap::new();
        client.insert("idempotency-key", long);
        assert!(Asked::of(&client).is_err());
        let twice: HeaderMap = map(&[("idempotency-key", "a")]);
        let mut twice = twice;
        twice.append("idempotency-key", HeaderValue::from_static("b"));
        assert!(Asked::of(&twice).is_err());
    }

    #[test]
    fn a_timeout_has_a_unit_or_is_refused() {
        assert_eq!(timeout(&map(&[("x-turnkeep-timeout", "1500ms")])), Ok(Some(Duration::from_millis(1500))));
        assert_eq!(timeout(&map(&[("x-turnkeep-timeout", "2m")])), Ok(Some(Duration::from_secs(120))));
        for bad in ["5", "s", "-1s", "0s", "1h"] {
            assert_eq!(timeout(&map(&[("x-turnkeep-timeout", bad)])), Err(bad.to_owned()));
        }
    }
}
