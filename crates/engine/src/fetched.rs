//! What the gateway has fetched for a turn, put in place of its URLs for an upstream that takes bytes only.

use crate::ports::Fetched;
use std::borrow::Cow;
use std::collections::BTreeMap;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::turn::{Body, FileSource, Image, Part, Turn};

/// What the URLs of a turn name, by URL; or why that could not be had, with the place in the client's body.
pub type Fetches = BTreeMap<String, Result<Fetched, Invalid>>;

/// Puts the bytes in place of the URLs.
///
/// # Errors
/// What a URL of the turn names could not be had.
pub(crate) fn put(turn: &mut Turn<'_>, fetches: &Fetches) -> Result<(), Invalid> {
    if fetches.is_empty() {
        return Ok(());
    }
    turn.messages.iter_mut().flat_map(|message| &mut message.parts).try_for_each(|part| put_into(part, fetches))
}

fn put_into(part: &mut Part<'_>, fetches: &Fetches) -> Result<(), Invalid> {
    let found = |url: &str| fetches.get(url).map(|fetched| fetched.as_ref().map_err(Clone::clone)).transpose();
    match &mut part.body {
        Body::Image(image) => {
            if let Image::Url(url) = image
                && let Some(fetched) = found(url)?
            {
                part.body = bytes(fetched);
            }
        }
        Body::File(file) => {
            if let FileSource::Url(url) = &file.source
                && let Some(fetched) = found(url)?
            {
                file.media_type = Some(Cow::Borrowed(fetched.media_type));
                file.source = FileSource::Data(Cow::Owned(fetched.base64.to_string()));
            }
        }
        Body::ToolResult { id: _, content, is_error: _ } => {
            content.iter_mut().try_for_each(|part| put_into(part, fetches))?;
        }
        Body::Text(_)
        | Body::ToolCall { .. }
        | Body::Thinking { .. }
        | Body::RedactedThinking(_)
        | Body::Refusal(_)
        | Body::Other(_) => {}
    }
    Ok(())
}

/// What was called an image may be a document.
fn bytes<'a>(fetched: &Fetched) -> Body<'a> {
    let data = Cow::Owned(fetched.base64.to_string());
    if fetched.media_type.starts_with("image/") {
        return Body::Image(Image::Data { media_type: Cow::Borrowed(fetched.media_type), data });
    }
    let source = FileSource::Data(data);
    Body::File(turnkeep_dialect::turn::File { media_type: Some(Cow::Borrowed(fetched.media_type)), name: None, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_base::Dialect;
    use turnkeep_dialect::request::{self, Operation};

    const URL: &str = "https://a.example/1.png";

    fn put_for(fetched: Result<Fetched, Invalid>) -> (Result<(), Invalid>, Body<'static>) {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"{URL}"}}}}]}}]}}"#
        );
        let request = request::read(Dialect::Chat, Operation::Generate, body.into()).unwrap();
        let mut turn = request.turn().unwrap();
        let outcome = put(&mut turn, &Fetches::from([(URL.to_owned(), fetched)]));
        let owned = match &turn.messages[0].parts[0].body {
            Body::Image(Image::Data { media_type, data }) => {
                Body::Image(Image::Data { media_type: media_type.to_string().into(), data: data.to_string().into() })
            }
            Body::File(file) => Body::File(turnkeep_dialect::turn::File {
                media_type: file.media_type.as_ref().map(|kind| kind.to_string().into()),
                name: None,
                source: FileSource::Plain("".into()),
            }),
            other => Body::Other(format!("{other:?}")),
        };
        (outcome, owned)
    }

    fn fetched(media_type: &'static str) -> Fetched {
        Fetched { media_type, base64: "QUJD".into(), bytes: 3 }
    }

    #[test]
    fn bytes_stand_where_the_url_stood_and_a_document_is_no_image() {
        let image = Body::Image(Image::Data { media_type: "image/png".into(), data: "QUJD".into() });
        assert_eq!(put_for(Ok(fetched("image/png"))), (Ok(()), image));
        let (_, file) = put_for(Ok(fetched("application/pdf")));
        let Body::File(file) = file else { panic!("{file:?}") };
        assert_eq!(file.media_type.as_deref(), Some("application/pdf"));
    }

    #[test]
    fn a_url_that_could_not_be_fetched_is_an_error_with_its_place() {
        let failed = Invalid { path: "messages[0].content[0]".into(), message: "it answered 404".into(), at: 0 };
        assert_eq!(put_for(Err(failed.clone())).0, Err(failed));
    }
}
