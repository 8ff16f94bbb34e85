//! A conversation as it is written down: its end in wall time, in place of an epoch (epochs are one process's own) the place
//! where its account's conversations were kept, and its position to be read again before it is used, for nobody knows what
//! became of it while the gateway was down.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::sync::Arc;
use turnkeep_base::{AccountId, Fingerprint};
use turnkeep_policy::Moment;
use turnkeep_policy::conversations::{Conversation, Handling, MAX_HANDLE, Record};

/// The form; another one is not read.
const VERSION: u8 = 2;
const MUTABLE: u8 = 1;
const POSITION: u8 = 2;
const INSTANCE: u8 = 4;
/// The longest name of an upstream, an account or a model that is read, in bytes.
const MAX_NAME: usize = 4096;

/// Writes one down that ends at this time, Unix milliseconds, and that is kept at this place.
pub(super) fn down(record: &Record, place: Fingerprint, ends_ms: u64) -> Bytes {
    let Record { conversation, handling, account, epoch: _, model, ends: _, reread: _ } = record;
    let Conversation { handle, position, instance } = conversation;
    let texts = [&**handle, &account.upstream, &account.account, model];
    let mut out = BytesMut::with_capacity(80 + texts.iter().map(|text| text.len() + 4).sum::<usize>());
    out.put_u8(VERSION);
    let mutable = match handling {
        Handling::Mutable => MUTABLE,
        Handling::Immutable => 0,
    };
    let known = |known: bool, flag| if known { flag } else { 0 };
    out.put_u8(mutable | known(position.is_some(), POSITION) | known(instance.is_some(), INSTANCE));
    out.put_u64(ends_ms);
    out.put_u64(position.unwrap_or_default());
    out.put_u128(instance.unwrap_or_default());
    out.put_slice(&place.0);
    for text in texts {
        out.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
        out.put_slice(text.as_bytes());
    }
    out.freeze()
}

/// Reads one: `stands` tells the place where its account's conversations are kept today, and the account's epoch there, `ends`
/// the moment of a wall time. `None` if the account is not there or at another place, or the bytes are not ours.
pub(super) fn read(
    content: &Bytes,
    stands: impl FnOnce(&AccountId) -> Option<(Fingerprint, u64)>,
    ends: impl FnOnce(u64) -> Moment,
) -> Option<Record> {
    let mut rest = content.clone();
    (rest.try_get_u8().ok()? == VERSION).then_some(())?;
    let flags = rest.try_get_u8().ok()?;
    let ends_ms = rest.try_get_u64().ok()?;
    let position = rest.try_get_u64().ok()?;
    let instance = rest.try_get_u128().ok()?;
    let place = Fingerprint(rest.try_get_u128().ok()?.to_be_bytes());
    let handle = text(&mut rest, MAX_HANDLE)?;
    let account = AccountId { upstream: text(&mut rest, MAX_NAME)?, account: text(&mut rest, MAX_NAME)? };
    let model = text(&mut rest, MAX_NAME)?;
    let mutable = flags & MUTABLE != 0;
    let (_, epoch) = stands(&account).filter(|(today, _)| *today == place)?;
    Some(Record {
        conversation: Conversation {
            handle,
            position: (flags & POSITION != 0).then_some(position),
            instance: (flags & INSTANCE != 0).then_some(instance),
        },
        handling: if mutable { Handling::Mutable } else { Handling::Immutable },
        epoch,
        account,
        model,
        ends: ends(ends_ms),
        reread: mutable,
    })
}

fn text(rest: &mut Bytes, longest: usize) -> Option<Arc<str>> {
    let length = usize::try_from(rest.try_get_u32().ok()?).ok()?;
    if length > longest || length > rest.remaining() {
        return None;
    }
    Some(std::str::from_utf8(&rest.split_to(length)).ok()?.into())
}
