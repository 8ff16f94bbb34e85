//! Reads a request body within its bounds: bytes, time, and the bytes that all requests together may hold.

use crate::client_body::ClientBody;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnkeep_base::ClientError;
use turnkeep_base::limit::BODY_TIMEOUT;

/// The unit in which memory is accounted for.
const UNIT: usize = 16 << 10;

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

/// Why a body could not be read.
#[derive(Debug)]
pub enum Unread {
    /// The client is told.
    Refused(ClientError),
    /// The client has left.
    Gone,
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
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(Unread::Gone) };
        let Ok(data) = frame.into_data() else { continue };
        let length = first.as_ref().map_or(joined.len(), Bytes::len) + data.len();
        if length > limit {
            return Err(too_large());
        }
        reserve(length)?;
        match first.take() {
            None if joined.is_empty() => first = Some(data),
            None => joined.extend_from_slice(&data),
            Some(before) => {
                joined.reserve(announced.map_or(length, |all| all as usize).max(length));
                joined.extend_from_slice(&before);
                joined.extend_from_slice(&data);
            }
        }
    }
    let bytes = first.unwrap_or_else(|| joined.freeze());
    Ok(ReadBody { bytes, share })
}
