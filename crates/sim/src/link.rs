//! A simulated connection: two directions, two ends, and the one task that carries bytes from the one to the other.

use crate::pipe::{Befalls, Carries, Ended, Pipe};
use crate::streams::Stream;
use bytes::Bytes;
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use turnkeep_http::{Link, Standing};
use turnkeep_lab::LabLink;
use turnkeep_upstream::Dialled;

/// What a connection is like, in the direction from who has made it and in the other one.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub carries: Carries,
    pub there: Option<Befalls>,
    pub back: Option<Befalls>,
}

#[derive(Debug)]
struct Wire {
    /// From who has made the connection, and to it.
    there: Mutex<Pipe>,
    back: Mutex<Pipe>,
    /// Something was written, read or ended.
    moved: Notify,
}

impl Wire {
    fn reset(&self) {
        self.there.lock().reset();
        self.back.lock().reset();
        self.moved.notify_one();
    }

    async fn carry(self: Arc<Self>) {
        loop {
            let now = Instant::now();
            let (there, there_ended) = {
                let mut pipe = self.there.lock();
                (pipe.carry(now), pipe.ended == Ended::Reset || pipe.over)
            };
            let (back, back_ended) = {
                let mut pipe = self.back.lock();
                (pipe.carry(now), pipe.ended == Ended::Reset || pipe.over)
            };
            if there_ended && back_ended {
                return;
            }
            let next = [there, back].into_iter().flatten().min();
            tokio::select! {
                biased;
                () = self.moved.notified() => {}
                () = sleep_until(next.unwrap_or(now)), if next.is_some() => {}
            }
        }
    }
}

/// One end of a connection. Dropped, it closes its direction; if bytes of the other one are unread, that resets both, as
/// TCP does.
#[derive(Debug)]
pub struct End {
    wire: Arc<Wire>,
    maker: bool,
    /// Its close is a reset.
    resets: AtomicBool,
}

/// A connection of this kind; the maker's end comes first.
pub fn connect(seed: u64, name: &str, line: Line) -> (End, End) {
    let pipe =
        |way: &str, befalls| Mutex::new(Pipe::new(line.carries, befalls, Stream::of(seed, &format!("{name} {way}"))));
    let wire = Arc::new(Wire { there: pipe("there", line.there), back: pipe("back", line.back), moved: Notify::new() });
    tokio::spawn(wire.clone().carry());
    let end = |maker| End { wire: wire.clone(), maker, resets: AtomicBool::new(false) };
    (end(true), end(false))
}

/// Ends a connection from outside, as a machine or a network does.
#[derive(Clone, Debug)]
pub struct Cutter(Weak<Wire>);

impl Cutter {
    /// Resets it, for both sides.
    pub fn cut(self) {
        if let Some(wire) = self.0.upgrade() {
            wire.reset();
        }
    }

    /// Somebody still holds an end of it.
    pub fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl End {
    fn outward(&self) -> &Mutex<Pipe> {
        if self.maker { &self.wire.there } else { &self.wire.back }
    }

    fn inward(&self) -> &Mutex<Pipe> {
        if self.maker { &self.wire.back } else { &self.wire.there }
    }

    /// What ends the connection from outside.
    pub fn cutter(&self) -> Cutter {
        Cutter(Arc::downgrade(&self.wire))
    }

    fn give(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = ready!(self.outward().lock().poll_write(cx, bytes))?;
        match taken {
            Some(taken) => {
                self.wire.moved.notify_one();
                Poll::Ready(Ok(taken))
            }
            None => {
                self.wire.reset();
                Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
            }
        }
    }

    fn fetch(&self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let piece: Bytes = ready!(self.inward().lock().poll_read(cx, buffer.remaining()))?;
        buffer.put_slice(&piece);
        self.wire.moved.notify_one();
        Poll::Ready(Ok(()))
    }

    fn close(&self) {
        self.outward().lock().close();
        self.wire.moved.notify_one();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let unread = {
            let into = self.inward().lock();
            into.written > into.arrived || into.has_unread()
        };
        if self.resets.load(Ordering::Relaxed) || unread {
            self.wire.reset();
        } else {
            self.close();
            // Nobody reads what may still come.
            self.inward().lock().close();
        }
    }
}

impl AsyncRead for End {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.fetch(cx, buffer)
    }
}

impl AsyncWrite for End {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.give(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}

impl Dialled for End {}

impl LabLink for End {
    fn reset_on_close(&self) {
        self.resets.store(true, Ordering::Relaxed);
    }

    fn half_close(&self) {
        self.close();
    }
}

/// The gateway's end of a client's connection, which somebody else may cut.
pub struct Accepted(pub Arc<End>);

impl fmt::Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Accepted")
    }
}

impl Link for Accepted {
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.fetch(cx, buffer)
    }

    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.give(cx, bytes)
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<bool> {
        self.0.inward().lock().poll_readable(cx)
    }

    fn poll_failed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut into = self.0.inward().lock();
        if into.ended == Ended::Reset {
            return Poll::Ready(());
        }
        into.wait(cx);
        Poll::Pending
    }

    fn standing(&self) -> Standing {
        let out = self.0.outward().lock();
        let over = out.ended == Ended::Reset || (out.over && self.0.inward().lock().over);
        Standing { acked: out.arrived, over }
    }

    fn shut_down(&self) {
        self.0.close();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends by panicking")]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const CARRIES: Carries = Carries { delay_us: (50, 900), piece: 7, window: 64 };

    fn line(there: Option<Befalls>) -> Line {
        Line { carries: CARRIES, there, back: None }
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_come_whole_and_in_order_however_they_are_cut_and_the_end_after_them() {
        let (mut one, mut other) = connect(1, "test", line(None));
        let sent: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let writes = sent.clone();
        tokio::spawn(async move {
            one.write_all(&writes).await.unwrap();
            one.shutdown().await.unwrap();
            // The end that is not read from stays until its own end is known.
            let _ = one.read(&mut [0; 1]).await;
        });
        let mut came = Vec::new();
        other.read_to_end(&mut came).await.unwrap();
        assert_eq!(came, sent);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reset_ends_both_directions_at_its_byte() {
        let (mut one, mut other) = connect(1, "test", line(Some(Befalls::Reset(10))));
        assert_eq!(one.write_all(&[0; 20]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(other.read(&mut [0; 1]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(other.write(&[0]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_acknowledged_is_what_has_arrived_and_a_stall_holds_it_up() {
        let stall = Some(Befalls::Stall(10, Duration::from_secs(60)));
        let (mut one, other) = connect(1, "test", line(stall));
        one.write_all(&[0; 10]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let one = Accepted(Arc::new(one));
        assert_eq!(one.standing(), Standing { acked: 10, over: false });
        let written = std::future::poll_fn(|cx| one.poll_write(cx, &[0; 10])).await.unwrap();
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert_eq!((written, one.standing().acked), (10, 10));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(one.standing().acked, 20);
        drop(other);
    }
}
