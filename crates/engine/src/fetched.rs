//! What the gateway has fetched for a turn, put in place of its URLs for an upstream that takes bytes only.

use crate::ports::Fetched;
use std::collections::BTreeMap;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::remote::{put_bytes, remote_urls};
use turnkeep_dialect::turn::Turn;

/// What the URLs of a turn name, by URL; or why that could not be had, with the place in the client's body.
pub type Fetches = BTreeMap<String, Result<Fetched, Invalid>>;

/// Puts the bytes in place of the URLs.
///
/// # Errors
/// What a URL of the turn names could not be had.
pub(crate) fn put<'a>(turn: &mut Turn<'a>, fetches: &'a Fetches) -> Result<(), Invalid> {
    if let Some(failed) = remote_urls(turn).into_iter().find_map(|(url, _)| fetches.get(url)?.as_ref().err()) {
        return Err(failed.clone());
    }
    for (url, fetched) in fetches {
        if let Ok(Fetched { media_type, base64, bytes: _ }) = fetched {
            put_bytes(turn, url, media_type, base64);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_base::Dialect;
    use turnkeep_dialect::request::{self, ClientRequest, Operation};
    use turnkeep_dialect::turn::{Body, Image};

    const URL: &str = "https://a.example/1.png";

    fn request() -> ClientRequest {
        let part = format!(r#"{{"type":"image_url","image_url":{{"url":"{URL}"}}}}"#);
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{part}]}}]}}"#);
        request::read(Dialect::Chat, Operation::Generate, body.into()).unwrap()
    }

    #[test]
    fn bytes_stand_where_the_url_stood() {
        let fetched = Fetched { media_type: "image/png", base64: "QUJD".into(), bytes: 3 };
        let fetches = Fetches::from([(URL.to_owned(), Ok(fetched))]);
        let request = request();
        let mut turn = request.turn().unwrap();
        put(&mut turn, &fetches).unwrap();
        let image = Body::Image(Image::Data { media_type: "image/png".into(), data: "QUJD".into() });
        assert_eq!(turn.messages[0].parts[0].body, image);
    }

    #[test]
    fn a_url_that_could_not_be_fetched_is_an_error_with_its_place() {
        let failed = Invalid { path: "messages[0].content[0]".into(), message: "it answered 404".into(), at: 0 };
        let fetches = Fetches::from([(URL.to_owned(), Err(failed.clone()))]);
        let request = request();
        assert_eq!(put(&mut request.turn().unwrap(), &fetches), Err(failed));
    }
}
