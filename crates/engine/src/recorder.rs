//! What a turn's client is sent, written down while it is sent, so that it is still there when the client has not got it.
//!
//! Bounded twice: one answer by its size, all answers under way by theirs together. An answer beyond a bound is delivered
//! all the same and simply not kept. Only what belongs to the answer is recorded, no sign of life and no comment.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use turnkeep_base::limit::{ALL_RECORDED, MAX_RECORDED};

/// The bytes that all recordings of one gateway hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room(Arc<AtomicUsize>);

impl Room {
    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let fits = before + bytes <= ALL_RECORDED;
        if !fits {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }
}

/// A recording.
#[derive(Debug)]
pub(crate) struct Recorder {
    room: Room,
    bytes: Vec<u8>,
    taken: usize,
    /// Not everything is here.
    broken: bool,
}

impl Recorder {
    /// An empty recording; one that is not wanted keeps nothing.
    pub(crate) fn new(room: &Room, wanted: bool) -> Self {
        Recorder { room: room.clone(), bytes: Vec::new(), taken: 0, broken: !wanted }
    }

    /// Adds a piece of the answer.
    pub(crate) fn add(&mut self, piece: &Bytes) {
        if self.broken {
            return;
        }
        if self.bytes.len() + piece.len() > MAX_RECORDED || !self.room.take(piece.len()) {
            self.give_up();
            return;
        }
        self.taken += piece.len();
        self.bytes.extend_from_slice(piece);
    }

    /// The recording is of no use any more.
    pub(crate) fn give_up(&mut self) {
        self.broken = true;
        self.bytes = Vec::new();
        self.room.0.fetch_sub(std::mem::take(&mut self.taken), Ordering::Relaxed);
    }

    /// The whole answer; `None` if it is not all here, or nothing is. Its room stays taken until the recording is given
    /// up: the answer is still held in memory while its receipt is waited for.
    pub(crate) fn finish(&mut self) -> Option<Bytes> {
        let bytes = std::mem::take(&mut self.bytes);
        let whole = !std::mem::replace(&mut self.broken, true) && !bytes.is_empty();
        whole.then(|| bytes.into())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_whole_or_nothing_and_gives_its_room_back() {
        let room = Room::default();
        let mut recorder = Recorder::new(&room, true);
        recorder.add(&Bytes::from_static(b"one "));
        recorder.add(&Bytes::from_static(b"two"));
        assert_eq!(room.used(), 7);
        assert_eq!(recorder.finish(), Some(Bytes::from_static(b"one two")));
        assert_eq!((recorder.finish(), room.used()), (None, 7), "it is still somewhere");
        recorder.give_up();
        assert_eq!(room.used(), 0);

        let mut long = Recorder::new(&room, true);
        long.add(&Bytes::from_static(b"x"));
        long.add(&Bytes::from(vec![0; MAX_RECORDED]));
        assert_eq!((long.finish(), room.used()), (None, 0));

        let mut left = Recorder::new(&room, true);
        left.add(&Bytes::from_static(b"x"));
        drop(left);
        assert_eq!(room.used(), 0);

        let mut unwanted = Recorder::new(&room, false);
        unwanted.add(&Bytes::from_static(b"x"));
        assert_eq!((unwanted.finish(), room.used()), (None, 0));
    }

    #[test]
    fn all_recordings_together_are_bounded() {
        let room = Room::default();
        let mut recorders: Vec<Recorder> =
            (0..=ALL_RECORDED / MAX_RECORDED).map(|_| Recorder::new(&room, true)).collect();
        let piece = Bytes::from(vec![0; MAX_RECORDED]);
        recorders.iter_mut().for_each(|recorder| recorder.add(&piece));
        assert_eq!(room.used(), ALL_RECORDED);
        let kept = recorders.iter_mut().filter_map(Recorder::finish).count();
        assert_eq!(kept, ALL_RECORDED / MAX_RECORDED, "the last one found no room");
        drop(recorders);
        assert_eq!(room.used(), 0);
    }
}
