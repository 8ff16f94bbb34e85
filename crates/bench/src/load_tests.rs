//! The load generator against the stub, through the bare proxy, and against a server that stalls.

use super::*;
use crate::answers::Dialect;
use crate::request::Size;
use tokio::net::TcpListener;
use tokio::task::LocalSet;

fn ask(dialect: Dialect, model: &str, size: Size, stream: bool) -> Ask {
    Ask { dialect, model: model.to_owned(), key: Some("k".to_owned()), size, stream }
}

/// Runs `test` with a stub and a bare proxy before it; its argument is the proxy's address.
fn with_proxy<F: Future<Output = ()>>(test: impl FnOnce(SocketAddr) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(async {
        let stub = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stub_at = stub.local_addr().unwrap();
        tokio::task::spawn_local(crate::stub::serve(stub));
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy_at = proxy.local_addr().unwrap();
        tokio::task::spawn_local(crate::proxy::serve(proxy, stub_at));
        test(proxy_at).await;
    }));
}

#[test]
fn every_dialect_and_size_and_stream_is_complete_through_the_bare_proxy() {
    with_proxy(|at| async move {
        for dialect in [Dialect::Chat, Dialect::Messages] {
            for (size, stream) in [(Size::Small, false), (Size::Agent, false), (Size::Small, true), (Size::Agent, true)]
            {
                let ask = ask(dialect, "instant", size, stream);
                let outcome = closed(at, &ask, 4, 40, Duration::from_secs(20)).await.unwrap();
                assert_eq!((outcome.done, outcome.failed), (40, 0), "{ask:?} {:?}", outcome.failures);
            }
        }
    });
}

#[test]
fn held_streams_bring_first_content_and_stay_open() {
    with_proxy(|at| async move {
        let ask = ask(Dialect::Messages, "hold", Size::Small, true);
        let (outcome, mut held) = hold(at, &ask, 50).await.unwrap();
        assert_eq!((outcome.done, held.len()), (50, 50), "{:?}", outcome.failures);
        let one = held.clients[0].conn.as_mut().unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(50), one.closed()).await.is_err());
    });
}

#[test]
fn an_answer_that_is_not_the_stubs_counts_as_failed() {
    with_proxy(|at| async move {
        let gone: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let small = ask(Dialect::Chat, "instant", Size::Small, false);
        assert_eq!(closed(gone, &small, 1, 3, Duration::from_secs(5)).await.unwrap().failed, 3);
        // Asks for no stream but expects one.
        let mut clients = clients(at, &small, 1, Expect::Content).unwrap();
        clients[0].stream = true;
        assert!(clients[0].turn().await.is_err());
    });
}

#[test]
fn refusals_are_answers_where_they_are_expected_and_the_stub_counts_them() {
    with_proxy(|at| async move {
        for refusal in crate::refusal::Refusal::ALL {
            let ask = ask(Dialect::Chat, refusal.model(), Size::Small, false);
            let before = crate::refusal::count(at).await.unwrap();
            let outcome = refused(at, &ask, 1, Duration::from_millis(20)).await.unwrap();
            assert!(outcome.done > 0 && outcome.failed == 0, "{:?}", outcome.failures);
            assert_eq!(crate::refusal::count(at).await.unwrap() - before, outcome.done);
            assert!(closed(at, &ask, 1, 3, Duration::from_secs(5)).await.unwrap().failed == 3);
        }
        let served = ask(Dialect::Chat, "instant", Size::Small, false);
        assert!(refused(at, &served, 1, Duration::from_millis(20)).await.unwrap().done == 0);
    });
}

#[tokio::test]
async fn a_stall_is_charged_to_every_request_that_was_due_during_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let mut conn = Conn::new(listener.accept().await.unwrap().0).unwrap();
        let mut served = 0;
        while let Some(head) = conn.head().await.unwrap() {
            conn.body(&head, |_| true).await.unwrap();
            served += 1;
            if served == 100 {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            conn.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nzq").await.unwrap();
        }
    });
    let small = ask(Dialect::Chat, "instant", Size::Small, false);
    // 500 requests over one second: the stall of 200 ms delays about 100 of them, not one.
    let outcome = open(at, &small, 1, 500.0, Duration::from_secs(1)).await.unwrap();
    assert_eq!(outcome.done, 500);
    assert!(outcome.p99_ms > 150.0, "{outcome:?}");
    server.await.unwrap();
}
