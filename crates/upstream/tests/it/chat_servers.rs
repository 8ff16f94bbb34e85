//! The driver against servers that others wrote: the `connectrpc` crate (Connect over HTTP/1.1, gRPC, both codecs, its own
//! compression) and `tonic` (gRPC). What they serve is the published service, by the script that the model's name asks for.

use crate::chat::{HOW, ask, events, everything};
use crate::peer;
use crate::rpc_peer::{idle, spec};
use bytes::Bytes;
use connectrpc::{
    CodecFormat, ConnectError, ConnectRpcService, Dispatcher, EncodedBody, EncodedStream, Payload, RequestContext,
    dispatcher::{MethodDescriptor, RequestStream, StreamingResult, UnaryResult},
};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use prost::Message as _;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::codec::CompressionEncoding;
use turnkeep_base::FaultKind;
use turnkeep_dialect::event::{Delta, Event};
use turnkeep_engine::ports::{Native, Writing};
use turnkeep_proto::connect::v1::{
    BlockStart, BlockStop, ChatEvent, ChatRequest, Finish, TextBlock, block_start, chat_event, delta, finish,
};
use turnkeep_upstream::rpc::{Codec, Protocol};
use turnkeep_upstream::{ConnectChat, ConnectSpec};

/// Text that a server compresses.
const LONG: usize = 300_000;

/// What a server is asked to do.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Script {
    /// One event, then nothing for ever.
    Hang,
    /// An error before any event.
    Refuse,
    /// An error after two events.
    Break,
    /// The request as JSON, as the answer's text.
    Echo,
    /// A long text.
    Long,
}

fn script(request: &ChatRequest) -> Script {
    match request.model.as_str() {
        "hang" => Script::Hang,
        "refuse" => Script::Refuse,
        "break" => Script::Break,
        "long" => Script::Long,
        _ => Script::Echo,
    }
}

fn step(event: chat_event::Event) -> ChatEvent {
    ChatEvent { event: Some(event) }
}

/// Both servers' answer: events, and whether an error ends them.
fn played(request: &ChatRequest) -> (Vec<ChatEvent>, bool) {
    let kind = Some(block_start::Kind::Text(TextBlock {}));
    let begin = step(chat_event::Event::BlockStart(BlockStart { block: 0, kind }));
    let text = |text: String| {
        let delta = Some(delta::Delta::Text(text));
        step(chat_event::Event::Delta(turnkeep_proto::connect::v1::Delta { block: 0, delta }))
    };
    let whole = |said: String| {
        let stop = step(chat_event::Event::BlockStop(BlockStop { block: 0 }));
        let finish = Finish { reason: finish::Reason::Stop.into(), stop_sequence: None };
        vec![begin.clone(), text(said), stop, step(chat_event::Event::Finish(finish))]
    };
    match script(request) {
        Script::Refuse => (Vec::new(), true),
        Script::Hang => (vec![begin], false),
        Script::Break => (vec![begin.clone(), text("half".into())], true),
        Script::Long => (whole("a".repeat(LONG)), false),
        Script::Echo => (whole(serde_json::to_string(request).unwrap()), false),
    }
}

/// Tells when it is dropped.
struct Guard(mpsc::Sender<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}

/// The stream of an answer; one that hangs tells when it is dropped.
fn streamed<E: Send + 'static>(
    request: &ChatRequest,
    error: impl FnOnce() -> E,
    dropped: mpsc::Sender<()>,
) -> BoxStream<'static, Result<ChatEvent, E>> {
    let (events, fails) = played(request);
    let events = stream::iter(events.into_iter().map(Ok)).chain(stream::iter(fails.then(|| Err(error()))));
    match script(request) {
        Script::Hang => {
            let guard = Guard(dropped);
            let forever = stream::pending().inspect(move |_| {
                let _ = &guard;
            });
            events.chain(forever).boxed()
        }
        Script::Refuse | Script::Break | Script::Long | Script::Echo => events.boxed(),
    }
}

/// The service for `connectrpc`, which hands over and takes bytes.
struct Served(mpsc::Sender<()>);

impl Dispatcher for Served {
    fn lookup(&self, path: &str) -> Option<MethodDescriptor> {
        (path == "turnkeep.connect.v1.ChatService/Chat").then(MethodDescriptor::server_streaming)
    }

    fn call_unary(&self, path: &str, _: RequestContext, _: Payload, _: CodecFormat) -> UnaryResult {
        connectrpc::dispatcher::unimplemented_unary(path)
    }

    fn call_server_streaming(
        &self,
        _: &str,
        ctx: RequestContext,
        request: Bytes,
        format: CodecFormat,
    ) -> StreamingResult {
        assert!(ctx.deadline().is_some(), "the deadline was told");
        let request: ChatRequest = match format {
            CodecFormat::Json => serde_json::from_slice(&request).unwrap(),
            CodecFormat::Proto | _ => ChatRequest::decode(request).unwrap(),
        };
        let events = streamed(&request, || ConnectError::resource_exhausted("too many"), self.0.clone());
        let encoded = events.map(move |event| {
            let event = event?;
            let bytes: Bytes = match format {
                CodecFormat::Json => serde_json::to_vec(&event).unwrap().into(),
                CodecFormat::Proto | _ => event.encode_to_vec().into(),
            };
            Ok(EncodedBody::from(bytes))
        });
        let stream: EncodedStream = Box::pin(encoded);
        Box::pin(async move { connectrpc::Response::ok(stream) })
    }

    fn call_client_streaming(&self, path: &str, _: RequestContext, _: RequestStream, _: CodecFormat) -> UnaryResult {
        connectrpc::dispatcher::unimplemented_unary(path)
    }

    fn call_bidi_streaming(&self, path: &str, _: RequestContext, _: RequestStream, _: CodecFormat) -> StreamingResult {
        connectrpc::dispatcher::unimplemented_streaming(path)
    }
}

/// The service for `tonic`.
struct TonicService(mpsc::Sender<()>);

impl tonic::server::ServerStreamingService<ChatRequest> for TonicService {
    type Response = ChatEvent;
    type ResponseStream = BoxStream<'static, Result<ChatEvent, tonic::Status>>;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Self::ResponseStream>, tonic::Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<ChatRequest>) -> Self::Future {
        assert!(request.metadata().contains_key("grpc-timeout"), "the deadline was told");
        let stream = streamed(request.get_ref(), || tonic::Status::resource_exhausted("too many"), self.0.clone());
        Box::pin(async move { Ok(tonic::Response::new(stream)) })
    }
}

/// A server, its authority, and what tells of a hanging answer that was dropped.
struct Server {
    authority: String,
    task: JoinHandle<()>,
    dropped: mpsc::Receiver<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Which server.
#[derive(Clone, Copy, Debug)]
enum Peer {
    Connectrpc,
    Tonic,
}

async fn serve(peer: Peer) -> Server {
    let (listener, authority) = peer::listen().await;
    let (told, dropped) = mpsc::channel(1);
    let task = match peer {
        Peer::Connectrpc => tokio::spawn(serve_connectrpc(listener, told)),
        Peer::Tonic => tokio::spawn(serve_tonic(listener, told)),
    };
    Server { authority, task, dropped }
}

async fn serve_connectrpc(listener: TcpListener, told: mpsc::Sender<()>) {
    let service = TowerToHyperService::new(ConnectRpcService::new(Served(told)));
    while let Ok((stream, _)) = listener.accept().await {
        let service = service.clone();
        tokio::spawn(async move {
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn serve_tonic(listener: TcpListener, told: mpsc::Sender<()>) {
    while let Ok((stream, _)) = listener.accept().await {
        let told = told.clone();
        let service = hyper::service::service_fn(move |request| {
            let service = TonicService(told.clone());
            async move {
                let codec = tonic_prost::ProstCodec::<ChatEvent, ChatRequest>::default();
                let mut grpc = tonic::server::Grpc::new(codec)
                    .send_compressed(CompressionEncoding::Zstd)
                    .send_compressed(CompressionEncoding::Gzip);
                Ok::<_, Infallible>(grpc.server_streaming(service, request).await)
            }
        });
        tokio::spawn(async move {
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Every way to talk to a server.
const WAYS: [(Peer, Protocol, Codec); 5] = [
    (Peer::Connectrpc, Protocol::Connect, Codec::Proto),
    (Peer::Connectrpc, Protocol::Connect, Codec::Json),
    (Peer::Connectrpc, Protocol::Grpc, Codec::Proto),
    (Peer::Connectrpc, Protocol::Grpc, Codec::Json),
    (Peer::Tonic, Protocol::Grpc, Codec::Proto),
];

fn driver(server: &Server, protocol: Protocol, codec: Codec) -> Arc<ConnectChat> {
    let spec = ConnectSpec { protocol, codec, ..spec(format!("http://{}", server.authority)) };
    Arc::new(ConnectChat::new(&spec).unwrap())
}

fn texts(events: &[Event]) -> String {
    let mut said = String::new();
    for event in events {
        if let Event::Delta { delta: Delta::Text(text), .. } = event {
            said.push_str(text);
        }
    }
    said
}

#[tokio::test]
async fn a_whole_turn_reaches_every_server_and_its_answer_comes_back() {
    for (peer, protocol, codec) in WAYS {
        let server = serve(peer).await;
        let driver = driver(&server, protocol, codec);
        let turn = everything();
        let body = driver.write(&turn, HOW).unwrap().body;
        let request: ChatRequest = codec.read(&body).unwrap();
        // Twice, so that a connection is used again.
        for _ in 0..2 {
            let (events, fault) = events(driver.send(ask(body.clone())).await).await;
            assert_eq!(fault, None, "{peer:?} {protocol:?} {codec:?}");
            assert_eq!(events.last(), Some(&Event::End));
            let heard: ChatRequest = serde_json::from_str(&texts(&events)).unwrap();
            assert_eq!(heard, request, "{peer:?} {protocol:?} {codec:?}");
            idle(driver.rpc()).await;
        }
        assert_eq!(driver.rpc().open_connections(), 1, "{peer:?} {protocol:?} {codec:?}");
    }
}

#[tokio::test]
async fn every_servers_compressed_answer_is_read() {
    for (peer, protocol, codec) in WAYS {
        let server = serve(peer).await;
        let driver = driver(&server, protocol, codec);
        let body = driver.write(&everything(), Writing { model: "long", ..HOW }).unwrap().body;
        let (events, fault) = events(driver.send(ask(body)).await).await;
        assert_eq!((fault, texts(&events).len()), (None, LONG), "{peer:?} {protocol:?} {codec:?}");
    }
}

#[tokio::test]
async fn every_servers_error_is_named_and_proves_a_refusal_only_before_the_first_event() {
    for (peer, protocol, codec) in WAYS {
        let server = serve(peer).await;
        let driver = driver(&server, protocol, codec);
        let body = |model| driver.write(&everything(), Writing { model, ..HOW }).unwrap().body;
        let error = driver.send(ask(body("refuse"))).await.err().unwrap();
        assert_eq!(error.fault.kind, FaultKind::RateLimited, "{peer:?} {protocol:?} {codec:?}: {}", error.fault);
        assert!(error.refused.is_some(), "{peer:?} {protocol:?} {codec:?}");
        let (events, fault) = events(driver.send(ask(body("break"))).await).await;
        assert_eq!(texts(&events), "half");
        assert_eq!(fault.unwrap().kind, FaultKind::RateLimited, "{peer:?} {protocol:?} {codec:?}");
    }
}

#[tokio::test]
async fn dropping_an_answer_cancels_it_at_every_server() {
    for (peer, protocol, codec) in WAYS {
        let mut server = serve(peer).await;
        let driver = driver(&server, protocol, codec);
        let body = driver.write(&everything(), Writing { model: "hang", ..HOW }).unwrap().body;
        let answer = driver.send(ask(body)).await.unwrap();
        assert!(server.dropped.try_recv().is_err(), "{peer:?} {protocol:?} {codec:?}");
        drop(answer);
        assert_eq!(server.dropped.recv().await, Some(()), "{peer:?} {protocol:?} {codec:?}");
    }
}
