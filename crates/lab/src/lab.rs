//! The running lab: its handle, its accept loop, its connections.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::accounts::{AccountCounts, AccountState};
use crate::cascade::{CascadeCounts, Transcript};
use crate::devin::DevinSession;
use crate::fault::AcceptFault;
use crate::handler::{State, handle};
use crate::kept::KeptAnswer;
use crate::ledger::{OpenConnection, Recorded};
use crate::script::Script;
use crate::socket::{Control, LabLink, LabSocket, Transport, half_close, reset_on_close};
use crate::tls::{LabTls, acceptor};

/// How a lab is started.
#[derive(Debug, Clone)]
pub struct LabOptions {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Its certificate; plain TCP without.
    pub tls: Option<LabTls>,
    /// What it answers.
    pub script: Script,
}

impl Default for LabOptions {
    /// A free loopback port, plain, no script.
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 0)), tls: None, script: Script::default() }
    }
}

/// Why a lab did not start.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The address could not be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The certificate could not be made or read.
    #[error("the lab's certificate: {0}")]
    Tls(String),
}

/// A running lab. Dropped, it stops.
#[derive(Debug)]
pub struct Lab {
    addr: SocketAddr,
    ca_pem: Option<String>,
    state: Arc<State>,
    accepting: Option<JoinHandle<()>>,
    /// Connections that were brought.
    brought: AtomicU64,
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

impl Lab {
    /// Listens and answers from now on.
    pub async fn start(options: LabOptions) -> Result<Self, LabError> {
        let (tls, ca_pem) = match &options.tls {
            Some(tls) => {
                let (acceptor, ca) = acceptor(tls)?;
                (Some(acceptor), ca)
            }
            None => (None, None),
        };
        let listen = |error| LabError::Listen(options.listen, error);
        let listener = TcpListener::bind(options.listen).await.map_err(listen)?;
        let addr = listener.local_addr().map_err(listen)?;
        let state = Arc::new(State::default());
        state.set_script(options.script);
        let accepting = Some(tokio::spawn(accept(listener, tls, Arc::clone(&state))));
        Ok(Self { addr, ca_pem, state, accepting, brought: AtomicU64::new(0) })
    }

    /// A lab that listens nowhere: it answers on the connections that are brought to it.
    pub fn unbound(script: Script) -> Self {
        let state = Arc::new(State::default());
        state.set_script(script);
        let addr = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { addr, ca_pem: None, state, accepting: None, brought: AtomicU64::new(0) }
    }

    /// Answers on this connection until it ends, also once the lab is gone. Faults at accepting do not befall it.
    pub fn bring(&self, link: Box<dyn LabLink>) -> impl Future<Output = ()> + Send + 'static {
        let number = self.brought.fetch_add(1, Ordering::Relaxed) + 1;
        let state = Arc::clone(&self.state);
        async move {
            let _open = OpenConnection::new(Arc::clone(&state.ledger));
            serve(Transport::Link(link), state, number).await;
        }
    }

    /// Where it listens; port 0 if nowhere.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The authority to trust, of a self-signed lab.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// The last requests ([`MAX_RECORDED`](crate::MAX_RECORDED) at most), oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.ledger.recorded()
    }

    /// Waits until this many requests have been read, in all.
    pub async fn wait_for_requests(&self, count: usize) {
        self.state.ledger.wait(|counts| counts.requests >= count).await;
    }

    /// The Responses answers that are kept ([`Rule`](crate::Rule)s' too), oldest first, each with all that was said up to it.
    pub fn kept_answers(&self) -> Vec<KeptAnswer> {
        self.state.kept.all()
    }

    /// Forgets all of them: who goes on from one is told that it is not found.
    pub fn forget_kept_answers(&self) {
        self.state.kept.forget();
    }

    /// Connections now open.
    pub fn open_connections(&self) -> usize {
        self.state.ledger.counts.borrow().connections
    }

    /// Waits until no connection is open.
    pub async fn wait_no_connections(&self) {
        self.state.ledger.wait(|counts| counts.connections == 0).await;
    }

    /// Requests now being read or answered.
    pub fn in_flight(&self) -> usize {
        self.state.ledger.counts.borrow().in_flight
    }

    /// Waits until nothing is being answered.
    pub async fn wait_idle(&self) {
        self.state.ledger.wait(|counts| counts.in_flight == 0).await;
    }

    /// Replies the peer abandoned: it closed, reset or cancelled before the reply's end was written.
    pub fn aborted(&self) -> usize {
        self.state.ledger.counts.borrow().aborted
    }

    /// Waits until this many replies have been abandoned, in all.
    pub async fn wait_aborted(&self, count: usize) {
        self.state.ledger.wait(|counts| counts.aborted >= count).await;
    }

    /// Puts an account (a credential as sent) into a state, from the next request on.
    pub fn set_account(&self, secret: &str, state: AccountState) {
        self.state.accounts.set(secret, state, None);
    }

    /// The same, and `retry-after` says so many seconds.
    pub fn set_account_waiting(&self, secret: &str, state: AccountState, retry_after: u64) {
        self.state.accounts.set(secret, state, Some(retry_after));
    }

    /// What an account has sent and got; all zero of one that was never seen.
    pub fn account(&self, secret: &str) -> AccountCounts {
        self.state.accounts.counts(secret)
    }

    /// The same of every account, by credential ([`MAX_ACCOUNTS`](crate::MAX_ACCOUNTS) at most).
    pub fn accounts(&self) -> BTreeMap<String, AccountCounts> {
        self.state.accounts.every_count()
    }

    /// The sessions of the lab's Devin, in the order of their making, with all that was said in them.
    pub fn devin_sessions(&self) -> Vec<DevinSession> {
        self.state.devin.list()
    }

    /// Closes the connections on which nothing is being answered; the number of those. They are gone for sure once
    /// [`wait_connections`](Self::wait_connections) says so.
    pub fn close_idle(&self) -> usize {
        self.state.connections.close_idle()
    }

    /// The same by a TCP reset.
    pub fn reset_idle(&self) -> usize {
        self.state.connections.reset_idle()
    }

    /// Says goodbye on every connection: HTTP/2 sends `GOAWAY` and answers what it has taken; HTTP/1 closes when idle.
    pub fn goaway(&self) -> usize {
        self.state.connections.goaway()
    }

    /// Waits until exactly so many connections are open.
    pub async fn wait_connections(&self, count: usize) {
        self.state.ledger.wait(|counts| counts.connections == count).await;
    }

    /// Replaces the script for requests from now on; its counts start anew, and so do the states of accounts.
    pub fn set_script(&self, script: Script) {
        self.state.set_script(script);
    }

    /// The conversations of the Cascade server, in the order in which they were begun.
    pub fn transcripts(&self) -> Vec<Transcript> {
        self.state.cascade.transcripts()
    }

    /// What the Cascade server was asked so far.
    pub fn cascade(&self) -> CascadeCounts {
        *self.state.cascade.counts.borrow()
    }

    /// Waits until the counts are so.
    pub async fn wait_cascade(&self, mut reached: impl FnMut(&CascadeCounts) -> bool) {
        // The sender lives in the state, so the channel cannot close here.
        let _ = self.state.cascade.counts.subscribe().wait_for(|counts| reached(counts)).await;
    }

    /// The Cascade server is another process from now on: it knows none of its conversations.
    pub fn restart_cascade(&self) {
        self.state.cascade.restart();
    }

    /// Opens a gate for all who wait there and all who come.
    pub fn release(&self, gate: &str) {
        self.state.gates.release(gate);
    }

    /// Waits until this many replies have come to a gate, in all.
    pub async fn wait_at_gate(&self, gate: &str, count: usize) {
        self.state.gates.arrived(gate, count).await;
    }

    /// Stops listening and drops every connection.
    pub async fn stop(mut self) {
        if let Some(accepting) = &mut self.accepting {
            accepting.abort();
            // It ends by the abort just ordered: there is no other outcome to look at.
            let _ = accepting.await;
        }
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, state: Arc<State>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        // Ended tasks are reaped as new ones come.
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((tcp, _)) => {
                number += 1;
                connections.spawn(connection(tcp, tls.clone(), Arc::clone(&state), number));
            }
            Err(error) => {
                tracing::warn!(%error, "the lab could not accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(mut tcp: TcpStream, tls: Option<TlsAcceptor>, state: Arc<State>, number: u64) {
    let _open = OpenConnection::new(Arc::clone(&state.ledger));
    if let Err(error) = tcp.set_nodelay(true) {
        tracing::debug!(%error, "the socket takes no option");
    }
    let fault = state.chooser().accept();
    if let Some(fault) = fault {
        misbehave(&mut tcp, fault).await;
        return;
    }
    let transport = match tls {
        None => Transport::Plain(tcp),
        Some(acceptor) => match acceptor.accept(tcp).await {
            Ok(stream) => Transport::Tls(Box::new(stream)),
            Err(error) => {
                tracing::debug!(%error, "the handshake failed");
                return;
            }
        },
    };
    serve(transport, state, number).await;
}

async fn serve(transport: Transport, state: Arc<State>, number: u64) {
    let control = Arc::new(Control::default());
    let socket = TokioIo::new(LabSocket::new(transport, Arc::clone(&control)));
    let _registered = state.connections.register(number, &control);
    let service = service_fn(|request| {
        let busy = control.begin();
        handle(Arc::clone(&state), Arc::clone(&control), busy, number, request)
    });
    let builder = Builder::new(TokioExecutor::new());
    let mut serving = pin!(builder.serve_connection(socket, service));
    loop {
        tokio::select! {
            biased;
            ended = serving.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "the connection ended");
                }
                return;
            }
            () = control.goaway.notified() => serving.as_mut().graceful_shutdown(),
            () = control.close.notified() => return,
        }
    }
}

/// Carries out a fault of accepting.
async fn misbehave(tcp: &mut TcpStream, fault: AcceptFault) {
    let answer: &[u8] = match fault {
        AcceptFault::ResetOnAccept => {
            reset_on_close(tcp);
            return;
        }
        AcceptFault::CloseOnAccept => {
            half_close(tcp);
            drain(tcp).await;
            return;
        }
        AcceptFault::HangOnAccept => {
            drain(tcp).await;
            return;
        }
        // A fatal alert, handshake_failure.
        AcceptFault::TlsAlert => &[21, 3, 3, 0, 2, 2, 40],
        AcceptFault::TlsWrongVersion => b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    };
    let spoken = async {
        tcp.readable().await?;
        tcp.write_all(answer).await?;
        io::Result::Ok(())
    };
    if let Err(error) = spoken.await {
        tracing::debug!(%error, "the peer left early");
    }
    half_close(tcp);
    drain(tcp).await;
}

/// Reads and forgets until the peer leaves, so that a close here is no reset.
async fn drain(tcp: &mut TcpStream) {
    let mut sink = [0; 4096];
    while matches!(tcp.read(&mut sink).await, Ok(1..)) {}
}
