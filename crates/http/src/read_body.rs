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

/// A further share of that memory, for what is added to a body.
pub fn more(memory: &Arc<Semaphore>, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, ClientError> {
    let full = || {
        let message = "the gateway holds as many request bodies as it may; try again in a moment";
        ClientError::new(503, "gateway_exhausted", message)
    };
    let units = u32::try_from(bytes.div_ceil(UNIT)).map_err(|_| full())?;
    memory.clone().try_acquire_many_owned(units).map(Some).map_err(|_| full())
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
    let full = || {
        let message = "the gateway holds as many request bodies as it may; try again in a moment";
        Unread::Refused(ClientError::new(503, "gateway_exhausted", message))
    };
    let mut share: Option<OwnedSemaphorePermit> = None;
    let mut reserve = |bytes: usize| -> Result<(), Unread> {
        let held = share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = bytes.div_ceil(UNIT);
        if wanted <= held {
            return Ok(());
        }
        let more = u32::try_from(wanted - held).map_err(|_| full())?;
        let more = memory.clone().try_acquire_many_owned(more).map_err(|_| full())?;
        match &mut share {
            Some(share) => share.merge(more),
            None => share = Some(more),
        }
        Ok(())
    };
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
    Ok(ReadBody { bytes, share })
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
