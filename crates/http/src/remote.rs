//! What URLs in a request name, fetched before the turn starts where one of its upstreams takes bytes only.

use crate::read_body::Share;
use crate::service::Gateway;
use futures_util::StreamExt;
use futures_util::stream;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use turnkeep_base::{ClientError, Dialect};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::remote::remote_urls;
use turnkeep_dialect::request::{ClientRequest, Operation};
use turnkeep_dialect::turn::Turn;
use turnkeep_engine::fetched::Fetches;
use turnkeep_engine::ports::Fetch;
use turnkeep_engine::route::{Route, Tier};

/// URLs of one turn that are fetched; each counts once, however often it stands there.
const MAX_URLS: usize = 20;
/// Bytes of all of one turn.
const MAX_BYTES: u64 = 40 << 20;
/// Fetches of one turn at once.
const AT_ONCE: usize = 4;

/// Fetches what the request's URLs name for a caller, by its key's name, if one of the routes needs it. What failed is an
/// error of the routes that need it; where none of the model's own routes could do without, of the whole turn. Comes with its
/// share of the memory that bodies may take, which grows with each fetch.
pub async fn fetch(
    gateway: &Gateway,
    caller: &str,
    request: &ClientRequest,
    routes: &[Route],
) -> Result<(Arc<Fetches>, Option<OwnedSemaphorePermit>), ClientError> {
    let needs = |route: &Route| route.upstream.dialect() == Some(Dialect::Gemini);
    let generates = match request.operation {
        Operation::Generate | Operation::CountTokens => true,
        Operation::Complete | Operation::Embed => false,
    };
    if !generates || request.dialect == Dialect::Gemini || !routes.iter().any(needs) {
        return Ok((Arc::default(), None));
    }
    let turn = request.turn().map_err(ClientError::from)?;
    let wanted = wanted(&turn);
    if wanted.is_empty() {
        return Ok((Arc::default(), None));
    }
    let fetch = gateway.fetch.load();
    let tally = &gateway.engine.tally;
    let mut share = Share::of(&gateway.memory);
    let fetched = all(fetch.as_ref().as_deref(), caller, wanted, &mut share).await?;
    for outcome in fetched.values() {
        tally.fetches.add();
        match outcome {
            Ok(fetched) => tally.fetched_bytes.add_many(fetched.bytes),
            Err(_) => tally.fetches_failed.add(),
        }
    }
    let mut own = routes.iter().filter(|route| route.tier == Tier::Own);
    let unavoidable = own.all(needs);
    match fetched.values().find_map(|outcome| outcome.as_ref().err()).filter(|_| unavoidable) {
        Some(invalid) => Err(invalid.clone().into()),
        None => Ok((Arc::new(fetched), share.whole())),
    }
}

async fn all(
    fetch: Option<&dyn Fetch>,
    caller: &str,
    wanted: Vec<(&str, String)>,
    share: &mut Share,
) -> Result<Fetches, ClientError> {
    let mut out = Fetches::new();
    let invalid = |path: &str, message: String| Invalid { path: path.to_owned(), message, at: 0 };
    let Some(fetch) = fetch else {
        let message = "the model's upstream takes bytes, not URLs, and this gateway does not fetch; send the bytes";
        out.extend(wanted.iter().map(|(url, path)| ((*url).to_owned(), Err(invalid(path, message.into())))));
        return Ok(out);
    };
    let (now, beyond) = wanted.split_at(wanted.len().min(MAX_URLS));
    for (url, path) in beyond {
        let message =
            format!("a turn may name {MAX_URLS} URLs that have to be fetched for its upstream; send the bytes");
        out.insert((*url).to_owned(), Err(invalid(path, message)));
    }
    let fetching = |(url, path): &(&str, String)| {
        let (url, path) = ((*url).to_owned(), path.clone());
        async move {
            let outcome = fetch.fetch(caller, &url).await;
            (url, path, outcome)
        }
    };
    let mut outcomes = stream::iter(now.iter().map(fetching)).buffered(AT_ONCE);
    let mut bytes = 0;
    while let Some((url, path, outcome)) = outcomes.next().await {
        let outcome = match outcome {
            Ok(fetched) if bytes + fetched.bytes <= MAX_BYTES => {
                bytes += fetched.bytes;
                share.add(fetched.base64.len())?;
                Ok(fetched)
            }
            Ok(_) => Err(format!("what the turn's URLs name is longer than {MAX_BYTES} bytes together; send less")),
            Err(error) => Err(format!("what the URL names could not be fetched: {error}")),
        };
        out.insert(url, outcome.map_err(|message| invalid(&path, message)));
    }
    Ok(out)
}

/// The URLs, each once, with the path in the client's body where it first stands.
fn wanted<'t>(turn: &'t Turn<'_>) -> Vec<(&'t str, String)> {
    remote_urls(turn).into_iter().map(|(url, at)| (url, at.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_body;
    use futures_util::future::BoxFuture;
    use parking_lot::Mutex;
    use turnkeep_dialect::request;
    use turnkeep_engine::ports::{FetchError, Fetched};

    /// Serves `size` bytes for every URL but those with `bad` in them.
    struct Scripted {
        size: u64,
        base64: String,
        asked: Mutex<Vec<String>>,
    }

    impl Fetch for Scripted {
        fn fetch<'a>(&'a self, caller: &'a str, url: &'a str) -> BoxFuture<'a, Result<Fetched, FetchError>> {
            assert_eq!(caller, "tester");
            self.asked.lock().push(url.to_owned());
            let outcome = if url.contains("bad") {
                Err(FetchError { why: "a.example: it answered 404".into(), refused: false })
            } else {
                Ok(Fetched { media_type: "image/png", base64: self.base64.as_str().into(), bytes: self.size })
            };
            Box::pin(std::future::ready(outcome))
        }
    }

    fn request(urls: &[&str]) -> ClientRequest {
        let part = |url: &&str| format!(r#"{{"type":"image_url","image_url":{{"url":"{url}"}}}}"#);
        let parts: Vec<String> = urls.iter().map(part).collect();
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{}]}}]}}"#, parts.join(","));
        request::read(Dialect::Chat, Operation::Generate, body.into()).unwrap()
    }

    fn share(bytes: usize) -> Share {
        Share::of(&read_body::memory(bytes))
    }

    #[tokio::test]
    async fn what_is_fetched_takes_its_memory_as_it_comes_and_no_more_is_fetched_than_has_room() {
        let urls: Vec<String> = (0..MAX_URLS).map(|at| format!("https://a.example/{at}.png")).collect();
        let request = request(&urls.iter().map(String::as_str).collect::<Vec<_>>());
        let turn = request.turn().unwrap();
        let base64 = "A".repeat(16 << 10);
        let scripted = Scripted { size: 3, base64, asked: Mutex::default() };
        let error = all(Some(&scripted), "tester", wanted(&turn), &mut share(32 << 10)).await.unwrap_err();
        assert_eq!((error.status, error.code), (503, "gateway_exhausted"));
        assert!(scripted.asked.into_inner().len() <= 2 + AT_ONCE);
    }

    async fn fetch_all(size: u64, urls: &[&str]) -> (Fetches, Vec<String>) {
        let scripted = Scripted { size, base64: "AA==".into(), asked: Mutex::default() };
        let request = request(urls);
        let turn = request.turn().unwrap();
        let fetched = all(Some(&scripted), "tester", wanted(&turn), &mut share(1 << 20)).await.unwrap();
        (fetched, scripted.asked.into_inner())
    }

    #[tokio::test]
    async fn each_url_is_fetched_once_and_a_failure_names_its_place_and_no_query() {
        let (good, bad) = ("https://a.example/1.png", "https://a.example/bad.png?sig=secret");
        let (fetched, mut asked) = fetch_all(3, &[good, bad, good]).await;
        asked.sort();
        assert_eq!(asked, [good, bad]);
        assert_eq!(fetched[good].as_ref().unwrap().media_type, "image/png");
        let failed = fetched[bad].as_ref().unwrap_err();
        assert_eq!(failed.path, "messages[0].content[1]");
        assert!(failed.message.contains("it answered 404") && !failed.message.contains("secret"), "{failed}");
    }

    #[tokio::test]
    async fn more_urls_or_bytes_than_a_turn_may_have_are_refused_and_not_left_out() {
        let urls: Vec<String> = (0..=MAX_URLS).map(|at| format!("https://a.example/{at}.png")).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        let (fetched, asked) = fetch_all(3, &urls).await;
        assert_eq!((asked.len(), fetched.len()), (MAX_URLS, MAX_URLS + 1));
        assert!(fetched[urls[MAX_URLS]].as_ref().unwrap_err().message.contains("20 URLs"));
        let (fetched, _) = fetch_all(MAX_BYTES / 2, &urls[..3]).await;
        assert!(fetched[urls[1]].is_ok());
        assert!(fetched[urls[2]].as_ref().unwrap_err().message.contains("together"));
    }

    #[tokio::test]
    async fn a_gateway_that_does_not_fetch_says_so() {
        let request = request(&["https://a.example/1.png"]);
        let turn = request.turn().unwrap();
        let fetched = all(None, "tester", wanted(&turn), &mut share(1 << 20)).await.unwrap();
        let refused = fetched["https://a.example/1.png"].as_ref().unwrap_err();
        assert!(refused.message.contains("does not fetch") && refused.path == "messages[0].content[0]");
    }

    #[test]
    fn urls_inside_tool_results_are_found_with_their_path() {
        let body = r#"{"model":"m","max_tokens":9,"messages":[
            {"role":"user","content":"x"},
            {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[
                {"type":"image","source":{"type":"url","url":"https://a.example/1.png"}}]}]}]}"#;
        let request = request::read(Dialect::Messages, Operation::Generate, body.into()).unwrap();
        let turn = request.turn().unwrap();
        let wanted = wanted(&turn);
        assert_eq!(wanted, [("https://a.example/1.png", "messages[2].content[0].content[0]".to_owned())]);
    }
}
