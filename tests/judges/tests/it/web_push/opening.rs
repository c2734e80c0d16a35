//! The decryption of a message on a device (RFC 8291, and the draft before it): an independent implementation, so that it does not share
//! the server's mistakes.

use anyhow::{Context, ensure};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// Bytes of the secret beside the key.
const AUTH: [u8; 16] = *b"sixteen letters.";
/// Bytes of an uncompressed point of P-256.
const POINT_BYTES: usize = 65;

/// The keys of a subscription, as a browser makes them.
pub(crate) struct DeviceKeys {
    private: PrivateKey,
    public: Vec<u8>,
}

impl DeviceKeys {
    pub(crate) fn make() -> anyhow::Result<Self> {
        let private = PrivateKey::generate(&ECDH_P256)?;
        let public = private.compute_public_key()?.as_ref().to_vec();
        Ok(Self { private, public })
    }

    /// Returns the keys that a sender receives beside the URL.
    pub(crate) fn told(&self) -> Value {
        json!({"p256dh": URL_SAFE_NO_PAD.encode(&self.public), "auth": URL_SAFE_NO_PAD.encode(AUTH)})
    }

    /// Opens a notification.
    pub(crate) fn open(&self, notification: &Value) -> anyhow::Result<Vec<u8>> {
        let data = bytes_of(notification["data"].as_str().context("no data")?)?;
        let headers = &notification["headers"];
        match headers["encoding"].as_str() {
            Some("aes128gcm") => self.open_standard(&data),
            Some("aesgcm") => self.open_draft(&data, headers),
            other => anyhow::bail!("an encoding that nobody sent: {other:?}"),
        }
    }

    fn open_standard(&self, data: &[u8]) -> anyhow::Result<Vec<u8>> {
        let (salt, rest) = data.split_at_checked(16).context("no salt")?;
        let (head, rest) = rest.split_at_checked(5).context("no header")?;
        ensure!(usize::from(head[4]) == POINT_BYTES, "no point of P-256");
        let (sender, record) = rest.split_at_checked(POINT_BYTES).context("no key")?;
        let info = [b"WebPush: info\0", &self.public[..], sender].concat();
        let secret: [u8; 32] = derived(&AUTH, &self.agreed(sender)?, &info)?;
        let key = derived(salt, &secret, b"Content-Encoding: aes128gcm\0")?;
        let nonce = derived(salt, &secret, b"Content-Encoding: nonce\0")?;
        let mut text = opened(key, nonce, record)?;
        // Bytes after the last mark are padding.
        while text.pop_if(|byte| *byte == 0).is_some() {}
        ensure!(text.pop() == Some(2), "the record is not the last");
        Ok(text)
    }

    fn open_draft(&self, data: &[u8], headers: &Value) -> anyhow::Result<Vec<u8>> {
        let sender = bytes_of(parameter(&headers["crypto_key"], "dh")?)?;
        let salt = bytes_of(parameter(&headers["encryption"], "salt")?)?;
        let secret: [u8; 32] = derived(&AUTH, &self.agreed(&sender)?, b"Content-Encoding: auth\0")?;
        let length = u16::try_from(POINT_BYTES)?.to_be_bytes();
        let context = [b"P-256\0", &length[..], &self.public, &length, &sender].concat();
        let key = derived(&salt, &secret, &[b"Content-Encoding: aesgcm\0", &context[..]].concat())?;
        let nonce = derived(&salt, &secret, &[b"Content-Encoding: nonce\0", &context[..]].concat())?;
        let text = opened(key, nonce, data)?;
        let (padding, text) = text.split_at_checked(2).context("no length of the padding")?;
        let padding = u16::from_be_bytes(padding.try_into()?);
        Ok(text.get(usize::from(padding)..).context("more padding than text")?.to_vec())
    }

    fn agreed(&self, sender: &[u8]) -> anyhow::Result<Vec<u8>> {
        let peer = UnparsedPublicKey::new(&ECDH_P256, sender);
        Ok(agree(&self.private, peer, Unspecified, |shared| Ok(shared.to_vec()))?)
    }
}

fn parameter<'a>(header: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    let text = header.as_str().with_context(|| format!("no header with {name}"))?;
    let found = text.split([';', ',']).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='));
    found.with_context(|| format!("{name} is missing: {text}"))
}

fn bytes_of(text: &str) -> anyhow::Result<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).with_context(|| text.to_owned())
}

/// A length, for the library.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derived<const N: usize>(salt: &[u8], input: &[u8], info: &[u8]) -> anyhow::Result<[u8; N]> {
    let mut key = [0; N];
    Salt::new(HKDF_SHA256, salt).extract(input).expand(&[info], Length(N))?.fill(&mut key)?;
    Ok(key)
}

fn opened(key: [u8; 16], nonce: [u8; 12], record: &[u8]) -> anyhow::Result<Vec<u8>> {
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
    let mut record = record.to_vec();
    let text = key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record);
    Ok(text.context("nobody sealed this for the device")?.to_vec())
}
