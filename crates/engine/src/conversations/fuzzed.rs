//! The written form of a conversation by itself, for the fuzz targets and nobody else (the layer check looks).

use super::written;
use bytes::Bytes;
use std::time::Duration;
use turnkeep_base::Fingerprint;
use turnkeep_policy::Moment;

/// A conversation as it is written again, for an account that stands at this place; `None` for what is none.
pub fn kept(content: &Bytes, place: Fingerprint) -> Option<Bytes> {
    let mut ends_ms = 0;
    let ends = |ms| {
        ends_ms = ms;
        Moment::default().after(Duration::ZERO)
    };
    let record = written::read(content, |_| Some((place, 0)), ends)?;
    Some(written::down(&record, place, ends_ms))
}
