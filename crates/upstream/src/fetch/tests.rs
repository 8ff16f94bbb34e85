//! Fetching over real sockets on loopback, with names that a test's own resolver answers.

use super::*;
use parking_lot::Mutex;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use turnkeep_engine::ports::Fetch;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0123456789";

/// Answers a name once with each of its lists of addresses, then as with the last, and counts.
struct Scripted {
    answers: Vec<Vec<&'static str>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Resolve for Scripted {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut asked = self.asked.lock();
        let at = asked.len().min(self.answers.len().saturating_sub(1));
        asked.push(name.to_owned());
        let found = self.answers.get(at).cloned().unwrap_or_default();
        Box::pin(async move { Ok(found.iter().map(|address| address.parse().unwrap()).collect()) })
    }
}

/// A fetcher whose names have these addresses, and the names that it asks for.
fn fetcher(spec: FetchSpec, answers: &[&[&'static str]]) -> (Fetcher, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::default();
    let answers = answers.iter().map(|answer| answer.to_vec()).collect();
    let resolver = Scripted { answers, asked: Arc::clone(&asked) };
    (Fetcher::over(spec, Box::new(resolver)), asked)
}

fn allowing(port: u16) -> FetchSpec {
    FetchSpec { allow: vec![Allowed::parse(&format!("127.0.0.1:{port}")).unwrap()], ..FetchSpec::default() }
}

/// A server that answers every connection with the next of these replies; and the heads of the requests it got.
async fn server(replies: Vec<Vec<u8>>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let heads = Arc::clone(&seen);
    tokio::spawn(async move {
        for reply in replies {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read_exact(&mut byte).await.is_err() {
                    break;
                }
                head.push(byte[0]);
            }
            heads.lock().push(String::from_utf8_lossy(&head).into_owned());
            // The client may have heard enough already.
            let _ = stream.write_all(&reply).await;
        }
    });
    (port, seen)
}

fn reply(headers: &str, body: &[u8]) -> Vec<u8> {
    let mut reply = format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n", body.len()).into_bytes();
    reply.extend_from_slice(body);
    reply
}

fn redirect(status: u16, to: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

async fn error_of(spec: impl FnOnce(u16) -> FetchSpec, answer: Vec<u8>) -> FetchError {
    let (port, _) = server(vec![answer]).await;
    let (fetcher, _) = fetcher(spec(port), &[]);
    fetcher.fetch("tester", &format!("http://127.0.0.1:{port}/a.png?token=secret")).await.unwrap_err()
}

#[tokio::test]
async fn what_an_allowed_place_serves_comes_as_it_is_and_nothing_of_ours_goes_there() {
    let (port, seen) = server(vec![reply("content-type: image/png\r\n", PNG)]).await;
    let (fetcher, _) = fetcher(allowing(port), &[]);
    let fetched = fetcher.fetch("tester", &format!("http://127.0.0.1:{port}/a.png?w=1#x")).await.unwrap();
    assert_eq!((fetched.media_type, fetched.bytes), ("image/png", PNG.len() as u64));
    assert_eq!(STANDARD.decode(&*fetched.base64).unwrap(), PNG);
    let head = seen.lock()[0].to_ascii_lowercase();
    assert!(head.starts_with("get /a.png?w=1 http/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: 127.0.0.1:{port}\r\n")) && head.contains("accept-encoding: identity"));
    for never in ["cookie", "authorization", "referer", "x-"] {
        assert!(!head.contains(never), "{head}");
    }
}

#[tokio::test]
async fn a_special_address_is_refused_in_every_spelling_before_anything_is_sent() {
    let (port, seen) = server(vec![reply("content-type: image/png\r\n", PNG)]).await;
    // Only this very place is allowed.
    let (fetcher, asked) = fetcher(allowing(port), &[]);
    for url in [
        "http://127.0.0.1/".to_owned(),
        format!("http://127.0.0.2:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://localhost:{port}/"),
        "http://2130706433/".to_owned(),
        "http://0x7f.1/".to_owned(),
        "http://0177.0.0.1/".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[fd00:ec2::254]/".to_owned(),
        "http://metadata.google.internal/computeMetadata/v1/".to_owned(),
        "http://metadata/".to_owned(),
        "http://[64:ff9b::a00:1]/".to_owned(),
        "http://[2002:7f00:1::]/".to_owned(),
        "http://0/".to_owned(),
        "http://10.1.2.3/".to_owned(),
        "http://192.168.1.1/".to_owned(),
        "https://user@example.com/".to_owned(),
        "http://example.com:22/".to_owned(),
        "ftp://example.com/a.png".to_owned(),
    ] {
        let error = fetcher.fetch("tester", &url).await.unwrap_err();
        assert!(error.refused, "{url}: {error}");
    }
    assert!(seen.lock().is_empty() && asked.lock().is_empty());
}

#[tokio::test]
async fn one_address_within_is_enough_to_refuse_a_name() {
    for answers in [
        &["93.184.216.34", "10.0.0.1"][..],
        &["127.0.0.1"],
        &["2606:4700::1111", "::1"],
        &["93.184.216.34", "::ffff:169.254.169.254"],
    ] {
        let (fetcher, asked) = fetcher(FetchSpec::default(), &[answers]);
        let error = fetcher.fetch("tester", "http://pictures.example.com/a.png").await.unwrap_err();
        assert!(error.refused && error.why.starts_with("pictures.example.com: "), "{error}");
        assert_eq!(*asked.lock(), ["pictures.example.com"]);
    }
}

#[tokio::test]
async fn a_name_is_looked_up_once_and_what_was_checked_is_what_is_dialled() {
    let (port, seen) = server(vec![reply("content-type: image/png\r\n", PNG)]).await;
    let spec = FetchSpec { allow: vec![Allowed::parse(&format!("a.example:{port}")).unwrap()], ..FetchSpec::default() };
    // A second look-up would lead to a place where nobody listens.
    let (fetcher, asked) = fetcher(spec, &[&["127.0.0.1"], &["127.0.0.9"]]);
    fetcher.fetch("tester", &format!("http://A.example.:{port}/a.png")).await.unwrap();
    assert_eq!((asked.lock().len(), seen.lock().len()), (1, 1));
}

#[tokio::test]
async fn a_redirect_is_judged_like_the_first_url() {
    for to in [
        "http://127.0.0.1:1/x",
        "http://10.0.0.1/x",
        "//169.254.169.254/x",
        "http://[::1]/x",
        "http://inside.example/x",
        "file:///etc/passwd",
        "http://u@127.0.0.1/x",
    ] {
        let (port, _) = server(vec![redirect(302, to)]).await;
        let (fetcher, _) = fetcher(allowing(port), &[&["192.168.0.1"]]);
        let error = fetcher.fetch("tester", &format!("http://127.0.0.1:{port}/a.png")).await.unwrap_err();
        assert!(error.refused, "{to}: {error}");
    }
}

#[tokio::test]
async fn three_redirects_are_followed_and_a_fourth_is_not() {
    let hops = |count: usize| {
        let mut replies: Vec<Vec<u8>> =
            [301, 302, 307, 308].iter().take(count).map(|status| redirect(*status, "/next.png")).collect();
        replies.push(reply("content-type: image/png\r\n", PNG));
        replies
    };
    let (port, seen) = server(hops(3)).await;
    let (three, _) = fetcher(allowing(port), &[]);
    three.fetch("tester", &format!("http://127.0.0.1:{port}/a.png")).await.unwrap();
    assert_eq!(seen.lock().len(), 4);
    let (port, seen) = server(hops(4)).await;
    let (four, _) = fetcher(allowing(port), &[]);
    let error = four.fetch("tester", &format!("http://127.0.0.1:{port}/a.png")).await.unwrap_err();
    assert!(error.why.contains("redirects"), "{error}");
    assert_eq!(seen.lock().len(), 4);
}

#[tokio::test]
async fn what_is_too_long_ends_the_fetch_whether_or_not_it_says_so() {
    let small = |port| FetchSpec { max_bytes: PNG.len() - 1, ..allowing(port) };
    let said = error_of(small, reply("content-type: image/png\r\n", PNG)).await;
    assert!(said.why.contains("longer than 17 bytes"), "{said}");
    let mut unsaid = b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\nconnection: close\r\n\r\n".to_vec();
    unsaid.extend_from_slice(PNG);
    let unsaid = error_of(small, unsaid).await;
    assert!(unsaid.why.contains("longer than 17 bytes"), "{unsaid}");
    // What is said is enough: nothing of it is waited for.
    let empty =
        error_of(small, b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 18\r\n\r\n".to_vec()).await;
    assert!(empty.why.contains("longer than 17 bytes"), "{empty}");
    let fits = |port| FetchSpec { max_bytes: PNG.len(), ..allowing(port) };
    let (port, _) = server(vec![reply("content-type: image/png\r\n", PNG)]).await;
    fetcher(fits(port), &[]).0.fetch("tester", &format!("http://127.0.0.1:{port}/")).await.unwrap();
}

#[tokio::test]
async fn content_of_another_kind_or_that_lies_or_is_cut_or_compressed_is_an_error_that_says_so() {
    let long = b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 99\r\n\r\n\x89PNG\r\n\x1a\n".to_vec();
    for (answer, says) in [
        (reply("content-type: text/html\r\n", b"<html>"), "its content-type is \"text/html\""),
        (reply("", PNG), "its content-type is \"\""),
        (reply("content-type: image/jpeg\r\n", PNG), "called image/jpeg and is image/png"),
        (reply("content-type: image/png\r\n", b"<html>"), "called image/png and does not begin as one"),
        (reply("content-type: image/png\r\n", b""), "does not begin as one"),
        (reply("content-type: image/png\r\ncontent-encoding: gzip\r\n", PNG), "compressed"),
        (long, "broke off"),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(), "it answered 404"),
        (b"HTTP/1.1 206 Partial\r\ncontent-length: 0\r\n\r\n".to_vec(), "it answered 206"),
        (b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n".to_vec(), "a redirect to nowhere"),
        (b"no http at all\r\n\r\n".to_vec(), "the connection"),
        (Vec::new(), "the connection"),
    ] {
        let error = error_of(allowing, answer).await;
        assert!(error.why.contains(says) && error.why.starts_with("127.0.0.1: "), "{error}");
        assert!(!error.refused && !error.why.contains("secret") && !error.why.contains("a.png"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_slow_ends_the_fetch_when_its_time_is_over() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (fetcher, _) = fetcher(allowing(port), &[]);
    let begun = Instant::now();
    // It takes the connection and never answers.
    let error = fetcher.fetch("tester", &format!("http://127.0.0.1:{port}/a.png")).await.unwrap_err();
    assert!(error.why.contains("longer than 10 s"), "{error}");
    assert_eq!(begun.elapsed().as_secs(), 10);
    drop(listener);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_finds_no_place_waits_within_its_own_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (fetcher, _) = fetcher(FetchSpec { at_once: 1, ..allowing(port) }, &[]);
    let url = format!("http://127.0.0.1:{port}/a.png");
    let taken = fetcher.places.take("other").await.unwrap();
    let error = fetcher.fetch("tester", &url).await.unwrap_err();
    assert!(error.why.contains("longer than 10 s"), "{error}");
    drop(taken);
    assert!(fetcher.places.take("tester").await.is_some());
}

#[tokio::test]
async fn a_machine_that_must_stay_silent_fetches_from_loopback_only() {
    let allow = vec![Allowed::parse("93.184.216.34:80").unwrap()];
    let (fetcher, _) = fetcher(FetchSpec { allow, loopback_only: true, ..FetchSpec::default() }, &[]);
    let error = fetcher.fetch("tester", "http://93.184.216.34/a.png").await.unwrap_err();
    assert!(error.refused && error.why.contains("only loopback"), "{error}");
}

/// A server behind TLS, as `pictures.example`, that answers everything so; and the certificate in PEM.
async fn tls_server(answer: Vec<u8>) -> (u16, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(vec!["pictures.example".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, made.cert.pem().into_bytes())
}

#[tokio::test]
async fn the_certificate_of_an_https_place_is_verified_by_the_name_in_the_url() {
    let (port, pem) = tls_server(reply("content-type: image/png\r\n", PNG)).await;
    let place = |host: &str| Allowed::parse(&format!("{host}:{port}")).unwrap();
    let allow = vec![place("pictures.example"), place("other.example")];
    let spec = FetchSpec { allow, ca_pem: Some(pem), ..FetchSpec::default() };
    let (trusting, _) = fetcher(spec, &[&["127.0.0.1"]]);
    let fetched = trusting.fetch("tester", &format!("https://pictures.example:{port}/a.png")).await.unwrap();
    assert_eq!(fetched.media_type, "image/png");
    let error = trusting.fetch("tester", &format!("https://other.example:{port}/a.png")).await.unwrap_err();
    assert!(error.why.contains("TLS handshake"), "{error}");
}

#[tokio::test]
async fn a_redirect_from_https_to_http_is_not_followed_to_a_place_that_is_allowed_either() {
    let (plain, seen) = server(vec![reply("content-type: image/png\r\n", PNG)]).await;
    let (port, pem) = tls_server(redirect(302, &format!("http://127.0.0.1:{plain}/a.png"))).await;
    let allow = [format!("pictures.example:{port}"), format!("127.0.0.1:{plain}")];
    let allow = allow.iter().map(|place| Allowed::parse(place).unwrap()).collect();
    let (fetcher, _) = fetcher(FetchSpec { allow, ca_pem: Some(pem), ..FetchSpec::default() }, &[&["127.0.0.1"]]);
    let error = fetcher.fetch("tester", &format!("https://pictures.example:{port}/a.png")).await.unwrap_err();
    assert!(error.refused && error.why.contains("from https to http"), "{error}");
    assert!(seen.lock().is_empty());
}

#[test]
fn an_allowed_place_is_a_host_and_a_port_and_nothing_else() {
    for place in ["127.0.0.1:8080", "[::1]:80", "files.example.com:8443", "0x7f.1:1"] {
        assert!(Allowed::parse(place).is_ok(), "{place}");
    }
    for place in ["", "127.0.0.1", "example.com", "http://a:80", "a:0", "a:x", "a:80/x", "u@a:80", "::1:80x", "a:80?b"]
    {
        assert!(Allowed::parse(place).is_err(), "{place}");
    }
}
