//! A sender of Web Push: it encrypts and signs by its own reading of RFC 8291 and RFC 8292.

use crate::rig::{Client, Reply};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use rcgen::KeyPair;
use serde_json::{Value, json};
use stentor_emulators::web_push::{SubscriptionRequest, WebPushSubscription};
use stentor_emulators::{RunningWebPush, TlsConfig, WebPushConfig, WebPushEmulator};

/// Starts an emulator without TLS.
pub(crate) async fn web_push(config: WebPushConfig) -> RunningWebPush {
    let control = Some(crate::rig::CONTROL.parse().unwrap());
    let config = WebPushConfig { tls: TlsConfig::Plaintext, control, ..config };
    WebPushEmulator::start(config).await.unwrap()
}

/// An app server with its signing key.
pub(crate) struct AppServer(KeyPair);

/// The request headers of a message.
pub(crate) type Headers<'a> = Vec<(&'a str, String)>;

impl AppServer {
    pub(crate) fn new() -> Self {
        Self(KeyPair::generate().unwrap())
    }

    /// Returns the public key as browsers and requests name it.
    pub(crate) fn key(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key_raw())
    }

    /// Signs claims.
    pub(crate) fn token(&self, claims: &Value) -> String {
        let key = EncodingKey::from_ec_pem(self.0.serialize_pem().as_bytes()).unwrap();
        encode(&Header::new(Algorithm::ES256), claims, &key).unwrap()
    }

    /// Returns the identification for an origin.
    pub(crate) fn identity(&self, origin: &str) -> String {
        let claims = json!({"aud": origin, "exp": in_seconds(3600), "sub": "mailto:push@example.com"});
        format!("vapid t={}, k={}", self.token(&claims), self.key())
    }

    /// Returns the headers of a message for an origin.
    pub(crate) fn headers(&self, origin: &str) -> Headers<'static> {
        vec![
            ("ttl", "600".to_owned()),
            ("content-encoding", "aes128gcm".to_owned()),
            ("authorization", self.identity(origin)),
        ]
    }

    /// Encrypts a text for a subscription and sends it.
    pub(crate) async fn send(
        &self,
        client: &mut Client,
        subscription: &WebPushSubscription,
        text: &str,
    ) -> Reply {
        let (origin, path) = divide(&subscription.endpoint);
        let body = seal(&subscription.keys.p256dh, &subscription.keys.auth, text.as_bytes());
        post(client, path, &self.headers(origin), &body).await
    }
}

/// Sends a request.
pub(crate) async fn post(client: &mut Client, path: &str, headers: &Headers<'_>, body: &[u8]) -> Reply {
    let request =
        headers.iter().fold(client.request(path), |request, (name, value)| request.header(*name, value));
    client.send(request.body(()).unwrap(), body).await.unwrap()
}

/// Divides an endpoint into its origin and its path.
pub(crate) fn divide(endpoint: &str) -> (&str, &str) {
    let at = endpoint.find("/push/").unwrap();
    endpoint.split_at(at)
}

/// Subscribes a device for any sender.
pub(crate) fn subscribe(emulator: &RunningWebPush) -> WebPushSubscription {
    emulator.subscribe(SubscriptionRequest::default()).unwrap()
}

pub(crate) fn in_seconds(seconds: u64) -> u64 {
    get_current_timestamp() + seconds
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

fn derive<const BYTES: usize>(salt: &[u8], secret: &[u8], info: &[u8]) -> [u8; BYTES] {
    let mut output = [0; BYTES];
    let key = Salt::new(HKDF_SHA256, salt).extract(secret);
    key.expand(&[info], Bytes(BYTES)).unwrap().fill(&mut output).unwrap();
    output
}

/// Encrypts for the keys of a subscription, in base64url.
pub(crate) fn seal(p256dh: &str, auth: &str, text: &[u8]) -> Vec<u8> {
    let receiver = URL_SAFE_NO_PAD.decode(p256dh).unwrap();
    let private = PrivateKey::generate(&ECDH_P256).unwrap();
    let public = private.compute_public_key().unwrap();
    let peer = UnparsedPublicKey::new(&ECDH_P256, &receiver);
    let secret = agree(&private, peer, (), |secret| Ok(secret.to_vec())).unwrap();
    let info = [b"WebPush: info\0", receiver.as_slice(), public.as_ref()].concat();
    let shared: [u8; 32] = derive(&URL_SAFE_NO_PAD.decode(auth).unwrap(), &secret, &info);
    let salt = [7; 16];
    let key: [u8; 16] = derive(&salt, &shared, b"Content-Encoding: aes128gcm\0");
    let nonce: [u8; 12] = derive(&salt, &shared, b"Content-Encoding: nonce\0");
    let mut record = [text, &[2, 0, 0, 0]].concat();
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).unwrap());
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record).unwrap();
    [&salt, &4096_u32.to_be_bytes()[..], &[65], public.as_ref(), &record].concat()
}
