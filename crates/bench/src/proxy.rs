//! The floor: the least reverse proxy that hyper makes possible. One thread, pooled upstream connections, bodies streamed
//! both ways, nothing read, counted, checked or rewritten. What a gateway costs above this is what its features cost.

use crate::stub::listen;
use http::header::{CONNECTION, HOST};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::net::{TcpListener, TcpStream};

/// Idle upstream connections kept; more than the bench ever has in flight would only hide a leak.
const MAX_IDLE: usize = 1024;

struct Upstream {
    addr: SocketAddr,
    host: HeaderValue,
    idle: RefCell<Vec<SendRequest<Incoming>>>,
}

/// Forwards every request at `listen_on` to `upstream` until the future is dropped. Must run inside a `LocalSet`.
pub async fn run(listen_on: SocketAddr, upstream: SocketAddr) -> anyhow::Result<()> {
    serve(listen(listen_on)?, upstream).await
}

/// As [`run`], on a listener that is already bound.
pub async fn serve(listener: TcpListener, addr: SocketAddr) -> anyhow::Result<()> {
    let host = HeaderValue::from_str(&addr.to_string())?;
    let upstream = Rc::new(Upstream { addr, host, idle: RefCell::new(Vec::new()) });
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let upstream = Rc::clone(&upstream);
        tokio::task::spawn_local(async move {
            let service = hyper::service::service_fn(|request| answer(Rc::clone(&upstream), request));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    upstream: Rc<Upstream>,
    request: Request<Incoming>,
) -> Result<Response<BoxBody<Bytes, hyper::Error>>, std::convert::Infallible> {
    Ok(match forward(upstream, request).await {
        Ok(response) => response.map(BodyExt::boxed),
        Err(_) => {
            let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed());
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    })
}

async fn forward(upstream: Rc<Upstream>, mut request: Request<Incoming>) -> anyhow::Result<Response<Incoming>> {
    request.headers_mut().insert(HOST, upstream.host.clone());
    request.headers_mut().remove(CONNECTION);
    let mut sender = loop {
        let pooled = upstream.idle.borrow_mut().pop();
        match pooled {
            Some(sender) if sender.is_ready() => break sender,
            Some(_) => {}
            None => break connect(upstream.addr).await?,
        }
    };
    let mut response = sender.send_request(request).await?;
    response.headers_mut().remove(CONNECTION);
    tokio::task::spawn_local(async move {
        // Ready again once this answer's body has been read to its end.
        if sender.ready().await.is_ok() && upstream.idle.borrow().len() < MAX_IDLE {
            upstream.idle.borrow_mut().push(sender);
        }
    });
    Ok(response)
}

async fn connect(addr: SocketAddr) -> anyhow::Result<SendRequest<Incoming>> {
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::task::spawn_local(connection);
    Ok(sender)
}
