//! Secrets at rest: the master key, what is derived from it, and sealing.
//!
//! A sealed value is a version byte, a random 24-byte nonce and XChaCha20-Poly1305's output; what it belongs to is
//! authenticated with it, so a value moved to another account does not open. It protects a stolen file or backup. It
//! does not protect against someone who can read this process's memory or environment.

use crate::key::random_bytes;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use std::fmt;
use subtle::ConstantTimeEq;
use turnkeep_base::Secret;
use turnkeep_engine::ports::StoreError;
use zeroize::Zeroizing;

/// Version 1: XChaCha20-Poly1305 under a key derived as [`SealKey::derive`] says.
const VERSION: u8 = 1;
const NONCE: usize = 24;
const TAG: usize = 16;

/// Argon2id for passphrases, part of version 1: 19 MiB, 2 passes, 1 lane.
const ARGON_KIB: u32 = 19 * 1024;
const ARGON_PASSES: u32 = 2;
const ARGON_LANES: u32 = 1;

/// The operator's master key: 32 bytes, or a passphrase that becomes such with each database's own salt.
#[derive(Clone, Debug)]
pub struct MasterKey(Form);

#[derive(Clone, Debug)]
enum Form {
    Hex(Secret),
    Passphrase(Secret),
}

/// The text is no master key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a master key is 64 hexadecimal digits, or a passphrase of at least 16 characters")]
pub struct MasterKeyError;

impl MasterKey {
    /// Reads it from its text; white space around it is not part of it. 64 hexadecimal digits are always taken as a
    /// key, never as a passphrase.
    pub fn parse(text: &Secret) -> Result<Self, MasterKeyError> {
        let trimmed = text.expose().trim();
        let secret = Secret::new(trimmed.to_owned());
        if unhex(trimmed).is_some() {
            return Ok(MasterKey(Form::Hex(secret)));
        }
        if trimmed.chars().count() < 16 {
            return Err(MasterKeyError);
        }
        Ok(MasterKey(Form::Passphrase(secret)))
    }
}

/// The key that a database's secrets are sealed with, and the value that proves the master key right.
#[derive(Clone)]
pub(crate) struct SealKey {
    seal: Zeroizing<[u8; 32]>,
    check: [u8; 32],
}

impl SealKey {
    /// A passphrase goes through Argon2id with the salt (tens of milliseconds, once a start); 32 bytes go as they are.
    /// BLAKE3 with the salt then makes a sealing key and a check value of it, which tell nothing of each other.
    pub fn derive(master: &MasterKey, salt: &[u8; 32]) -> Result<Self, StoreError> {
        let root = match &master.0 {
            Form::Hex(text) => unhex(text.expose()).ok_or_else(|| StoreError(MasterKeyError.to_string()))?,
            Form::Passphrase(text) => stretch(text.expose(), salt)?,
        };
        let part = |context: &str| {
            let mut hasher = blake3::Hasher::new_derive_key(context);
            hasher.update(root.as_slice());
            hasher.update(salt);
            *hasher.finalize().as_bytes()
        };
        Ok(SealKey {
            seal: Zeroizing::new(part("turnkeep store v1 sealed secrets")),
            check: part("turnkeep store v1 master key check"),
        })
    }

    /// What is kept to know this key again.
    pub fn check(&self) -> &[u8; 32] {
        &self.check
    }

    pub fn is_known_by(&self, check: &[u8]) -> bool {
        self.check.as_slice().ct_eq(check).into()
    }

    pub fn seal(&self, owner: &str, plain: &Secret) -> Result<Vec<u8>, StoreError> {
        self.seal_bytes(owner, plain.expose().as_bytes())
    }

    /// `None` if it was not sealed by this key for this owner.
    pub fn open(&self, owner: &str, sealed: &[u8]) -> Option<Secret> {
        let plain = self.open_bytes(owner, sealed)?;
        match String::from_utf8(plain) {
            Ok(text) => Some(Secret::new(text)),
            Err(error) => {
                drop(Zeroizing::new(error.into_bytes()));
                None
            }
        }
    }

    pub fn seal_bytes(&self, owner: &str, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        let nonce: [u8; NONCE] = random_bytes()?;
        let payload = Payload { msg: plain, aad: owner.as_bytes() };
        let sealed = self
            .cipher()
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| StoreError("it is too long to seal".into()))?;
        Ok([&[VERSION], nonce.as_slice(), &sealed].concat())
    }

    /// `None` if it was not sealed by this key for this owner.
    pub fn open_bytes(&self, owner: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (version, rest) = sealed.split_first()?;
        if *version != VERSION || rest.len() < NONCE + TAG {
            return None;
        }
        let (nonce, body) = rest.split_at(NONCE);
        let nonce: [u8; NONCE] = nonce.try_into().ok()?;
        let payload = Payload { msg: body, aad: owner.as_bytes() };
        self.cipher().decrypt(&XNonce::from(nonce), payload).ok()
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.seal).into())
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[seal key]")
    }
}

fn stretch(passphrase: &str, salt: &[u8; 32]) -> Result<Zeroizing<[u8; 32]>, StoreError> {
    let failed = |error: argon2::Error| StoreError(format!("the passphrase could not be used: {error}"));
    let params = argon2::Params::new(ARGON_KIB, ARGON_PASSES, ARGON_LANES, Some(32)).map_err(failed)?;
    let argon = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let mut root = Zeroizing::new([0; 32]);
    argon.hash_password_into(passphrase.as_bytes(), salt, root.as_mut_slice()).map_err(failed)?;
    Ok(root)
}

fn unhex(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut bytes = Zeroizing::new([0; 32]);
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str, salt: u8) -> SealKey {
        SealKey::derive(&MasterKey::parse(&Secret::new(text.into())).unwrap(), &[salt; 32]).unwrap()
    }

    #[test]
    fn a_sealed_secret_opens_for_its_owner_and_key_alone() {
        let one = key(&"0f".repeat(32), 1);
        let sealed = one.seal("openai/a", &Secret::new("sk-1".into())).unwrap();
        assert_eq!(one.open("openai/a", &sealed).unwrap().expose(), "sk-1");
        assert!(one.open("openai/b", &sealed).is_none());
        assert!(key(&"0e".repeat(32), 1).open("openai/a", &sealed).is_none());
        assert!(key(&"0f".repeat(32), 2).open("openai/a", &sealed).is_none());
    }

    #[test]
    fn a_sealed_secret_with_any_byte_changed_or_cut_does_not_open() {
        let one = key(&"0f".repeat(32), 1);
        let sealed = one.seal("o/a", &Secret::new("sk-1".into())).unwrap();
        for at in 0..sealed.len() {
            let mut bent = sealed.clone();
            bent[at] ^= 1;
            assert!(one.open("o/a", &bent).is_none(), "byte {at}");
            assert!(one.open("o/a", &sealed[..at]).is_none(), "cut at {at}");
        }
    }

    #[test]
    fn a_passphrase_needs_sixteen_characters_and_gives_the_same_key_again() {
        assert!(MasterKey::parse(&Secret::new("fifteen letters".into())).is_err());
        let (one, again) = (key("correct horse battery", 1), key(" correct horse battery\n", 1));
        assert!(one.is_known_by(again.check()));
        assert!(!one.is_known_by(key("correct horse batterz", 1).check()));
    }
}
