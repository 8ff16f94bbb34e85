//! Endpoints and accounts that go while calls are on their way: what runs ends well, what is idle closes.

use crate::peer::{self, OK};
use crate::tls::{endpoint, server};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;
use turnkeep_base::AccountId;
use turnkeep_engine::ports::Upstream as _;
use turnkeep_upstream::{Endpoint, EndpointSpec};

fn account(name: &str) -> AccountId {
    AccountId { upstream: "lab".into(), account: name.into() }
}

const HALF: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n{\"";

#[tokio::test]
async fn an_answer_outlives_its_endpoint_and_its_connection_closes_behind_it() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::serve(&mut stream, HALF).await;
    let mut answer = call.await.unwrap().unwrap();
    let weak = Arc::downgrade(&endpoint);
    drop(endpoint);
    assert!(weak.upgrade().is_none(), "a running answer holds no endpoint");
    stream.write_all(b"\"}").await.unwrap();
    assert_eq!(peer::rest(&mut answer).await.unwrap(), b"{\"\"}");
    peer::closed(&mut stream).await;
}

#[tokio::test]
async fn a_call_that_waits_for_its_answer_keeps_what_it_needs() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    drop(endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::serve(&mut stream, OK).await;
    assert_eq!(peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap(), b"{}");
    peer::closed(&mut stream).await;
}

#[tokio::test]
async fn dropping_an_endpoint_closes_its_idle_connections() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::serve(&mut stream, OK).await;
    peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap();
    drop(endpoint);
    peer::closed(&mut stream).await;
}

#[tokio::test]
async fn a_forgotten_account_closes_its_idle_connections_and_no_others() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let mut streams = Vec::new();
    for name in ["one", "two"] {
        let sender = Arc::clone(&endpoint);
        let call = tokio::spawn(async move { sender.send(peer::call_for(name)).await });
        let (mut stream, _) = listener.accept().await.unwrap();
        peer::serve(&mut stream, OK).await;
        peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap();
        streams.push(stream);
    }
    assert!(endpoint.forget_account(&account("one")));
    peer::closed(&mut streams[0]).await;
    assert_eq!((endpoint.open_connections(), endpoint.idle_connections()), (1, 1));
    assert!(!endpoint.forget_account(&account("one")));
}

#[tokio::test]
async fn what_a_forgotten_account_has_under_way_ends_well_and_then_its_connection_closes() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::serve(&mut stream, HALF).await;
    let mut answer = call.await.unwrap().unwrap();
    assert!(endpoint.forget_account(&account("one")));
    stream.write_all(b"\"}").await.unwrap();
    assert_eq!(peer::rest(&mut answer).await.unwrap(), b"{\"\"}");
    peer::closed(&mut stream).await;
    assert_eq!(endpoint.open_connections(), 0);
}

#[tokio::test]
async fn over_http2_too_an_answer_outlives_the_account_and_the_endpoint() {
    for forget in [true, false] {
        let (config, ca) = server(&["h2"], rustls::ALL_VERSIONS);
        let (listener, authority) = peer::listen().await;
        let endpoint = endpoint(&authority, Some(ca));
        let call = peer::sending(&endpoint);
        let (stream, _) = listener.accept().await.unwrap();
        let stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await.unwrap();
        let (chunks, body) = tokio::sync::mpsc::channel::<&'static str>(1);
        let body = Arc::new(std::sync::Mutex::new(Some(body)));
        let service = hyper::service::service_fn(move |_| {
            let mut body = body.lock().unwrap().take().unwrap();
            let frames = futures_util::stream::poll_fn(move |cx| {
                body.poll_recv(cx).map(|chunk| {
                    chunk.map(|text| Ok::<_, std::io::Error>(hyper::body::Frame::data(bytes::Bytes::from(text))))
                })
            });
            std::future::ready(Ok::<_, std::io::Error>(http::Response::new(http_body_util::StreamBody::new(frames))))
        });
        let builder = hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new());
        let serving = tokio::spawn(builder.serve_connection(hyper_util::rt::TokioIo::new(stream), service));
        chunks.send("before ").await.unwrap();
        let mut answer = call.await.unwrap().unwrap();
        let kept = if forget {
            assert!(endpoint.forget_account(&account("one")));
            Some(endpoint)
        } else {
            drop(endpoint);
            None
        };
        chunks.send("after").await.unwrap();
        drop(chunks);
        assert_eq!(peer::rest(&mut answer).await.unwrap(), b"before after");
        drop(answer);
        // The client closes it: nobody is left who could use it.
        let _ = serving.await.unwrap();
        drop(kept);
    }
}

#[tokio::test]
async fn an_endpoint_says_by_which_way_its_calls_leave_and_not_with_which_login() {
    let through = |proxy: Option<&str>| {
        let spec = EndpointSpec { proxy: proxy.map(str::to_owned), ..peer::spec("http://127.0.0.1:9/v1") };
        Endpoint::new(spec).unwrap().egress().to_string()
    };
    assert_eq!(through(None), "direct");
    assert_eq!(through(Some("http://me:hunter2@proxy.test:3128")), "proxy proxy.test:3128");
    assert_eq!(through(Some("socks5h://me:hunter2@[::1]")), "proxy [::1]:1080");
}
