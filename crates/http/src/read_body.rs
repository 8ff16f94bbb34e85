//! Reads a request body within its bounds: bytes, time, and the bytes that all requests together may hold.

use crate::client_body::{BodyError, ClientBody};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnkeep_base::ClientError;
use turnkeep_base::limit::BODY_TIMEOUT;

/// The unit in which memory is accounted for.
const UNIT: usize = 16 << 10;
/// The first room for a body that comes in pieces, in bytes.
const FIRST_ROOM: usize = 64 << 10;

/// A body and its share of the memory that bodies may take; the share is given back when the body is dropped.
#[derive(Debug)]
pub struct ReadBody {
    /// The bytes.
    pub bytes: Bytes,
    /// The share.
    pub share: Option<OwnedSemaphorePermit>,
}

/// The memory for bodies, in units.
pub fn memory(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS)))
}

/// A share of that memory that grows with what it is for.
#[derive(Debug)]
pub struct Share {
    memory: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    bytes: usize,
}

impl Share {
    /// Of this memory, for nothing yet.
    pub fn of(memory: &Arc<Semaphore>) -> Self {
        Share { memory: memory.clone(), permit: None, bytes: 0 }
    }

    /// Takes room for so many more bytes, before they are held.
    ///
    /// # Errors
    /// A 503 where the memory has no such room; what was taken stays.
    pub fn add(&mut self, bytes: usize) -> Result<(), ClientError> {
        self.reserve(self.bytes.saturating_add(bytes))
    }

    /// Takes room for so many bytes in all.
    ///
    /// # Errors
    /// As [`Share::add`].
    pub fn reserve(&mut self, bytes: usize) -> Result<(), ClientError> {
        let full = || {
            let message = "the gateway holds as many request bodies as it may; try again in a moment";
            ClientError::new(503, "gateway_exhausted", message)
        };
        let held = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = bytes.div_ceil(UNIT);
        if wanted > held {
            let more = u32::try_from(wanted - held).map_err(|_| full())?;
            let more = self.memory.clone().try_acquire_many_owned(more).map_err(|_| full())?;
            match &mut self.permit {
                Some(permit) => permit.merge(more),
                None => self.permit = Some(more),
            }
        }
        self.bytes = self.bytes.max(bytes);
        Ok(())
    }

    /// Gives back what is beyond so many bytes; the rest is held until this is dropped.
    pub fn shrunk(mut self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        if let Some(permit) = &mut self.permit {
            let surplus = permit.num_permits().saturating_sub(bytes.div_ceil(UNIT));
            drop(permit.split(surplus));
        }
        self.permit
    }

    /// All of it, held until this is dropped.
    pub fn whole(self) -> Option<OwnedSemaphorePermit> {
        self.permit
    }
}

/// Why a body could not be read.
#[derive(Debug)]
pub enum Unread {
    /// The client is told.
    Refused(ClientError),
    /// The client has left, or broke the framing of its body; it is told, should it still be there.
    Broken(ClientError),
}

/// Reads a body of at most `limit` bytes.
pub async fn read(body: ClientBody, limit: usize, memory: &Arc<Semaphore>) -> Result<ReadBody, Unread> {
    let too_large = || {
        let message = format!("the request body is larger than {limit} bytes; send less, or raise server.max_body");
        Unread::Refused(ClientError::new(413, "too_large", message))
    };
    let announced = body.size_hint().exact();
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let late = || {
        let message = format!("the request body did not arrive within {} s", BODY_TIMEOUT.as_secs());
        Unread::Refused(ClientError::new(408, "body_timeout", message))
    };
    tokio::time::timeout(BODY_TIMEOUT, collect(body, announced, limit, memory, too_large)).await.map_err(|_| late())?
}

async fn collect(
    mut body: ClientBody,
    announced: Option<u64>,
    limit: usize,
    memory: &Arc<Semaphore>,
    too_large: impl Fn() -> Unread,
) -> Result<ReadBody, Unread> {
    let mut share = Share::of(memory);
    let mut reserve = |bytes: usize| share.reserve(bytes).map_err(Unread::Refused);
    let mut first: Option<Bytes> = None;
    let mut joined = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = first.as_ref().map_or(joined.len(), Bytes::len) + data.len();
        if length > limit {
            return Err(too_large());
        }
        if first.is_none() && joined.is_empty() {
            reserve(length)?;
            first = Some(data);
            continue;
        }
        if length > joined.capacity() {
            let mut capacity = grown(joined.capacity(), length, announced, limit);
            if reserve(capacity).is_err() {
                capacity = length;
                reserve(capacity)?;
            }
            joined.reserve_exact(capacity - joined.len());
        }
        if let Some(before) = first.take() {
            joined.extend_from_slice(&before);
        }
        joined.extend_from_slice(&data);
    }
    let bytes = first.unwrap_or_else(|| joined.into());
    Ok(ReadBody { bytes, share: share.whole() })
}

/// The room for a body of which `length` bytes have come: doubled, so that it is not copied for every piece, but never
/// what was announced and has not come: a client may announce much and send nothing.
fn grown(capacity: usize, length: usize, announced: Option<u64>, limit: usize) -> usize {
    let announced = announced.map_or(limit, |all| usize::try_from(all).unwrap_or(limit));
    capacity.saturating_mul(2).max(FIRST_ROOM).min(announced).min(limit).max(length)
}

fn broken(error: &BodyError) -> Unread {
    let mut why = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        why = format!("{why}: {cause}");
        source = cause.source();
    }
    Unread::Broken(ClientError::invalid("", format!("the request body could not be read: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_with_what_it_is_for_and_gives_back_what_it_does_not_need() {
        let all = memory(4 * UNIT);
        let mut share = Share::of(&all);
        share.add(UNIT / 2).unwrap();
        share.add(UNIT / 2).unwrap();
        assert_eq!(all.available_permits(), 3, "bytes are added up, not units");
        share.add(2 * UNIT).unwrap();
        let error = share.add(UNIT + 1).unwrap_err();
        assert_eq!((error.status, error.code, all.available_permits()), (503, "gateway_exhausted", 1));
        let rest = share.shrunk(UNIT);
        assert_eq!(all.available_permits(), 3);
        drop(rest);
        assert_eq!(all.available_permits(), 4);
    }

    #[test]
    fn the_room_for_a_body_follows_what_has_come_not_what_was_announced() {
        let (limit, mib) = (32 << 20, 1 << 20);
        assert_eq!(grown(0, 100, Some(32 << 20), limit), FIRST_ROOM);
        assert_eq!(grown(FIRST_ROOM, FIRST_ROOM + 1, Some(32 << 20), limit), 2 * FIRST_ROOM);
        assert_eq!(grown(0, 100, Some(200), limit), 200);
        assert_eq!(grown(mib, mib + 1, Some(mib as u64 + 5), limit), mib + 5);
        assert_eq!(grown(20 * mib, 20 * mib + 1, None, limit), limit);
        assert_eq!(grown(0, mib, None, limit), mib);
    }
}
