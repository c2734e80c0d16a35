//! Subscriptions that nobody has to ask for: any number of them follows from a seed, for demos and load tests.
//!
//! All have one key pair, so that a million of them is computed in a moment. Each has its own path and its own `auth`.

use super::keys::{AUTH_BYTES, SubscriptionKeys, derive_auth};
use super::subscriptions::push_token;
use crate::dice::mix;
use crate::error::EmulatorError;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const NAME: &[u8] = b"synthetic subscriptions";
const PATH_SALT: u64 = 0x7375_6273_6372_6962;
const AUTH_SALT: u64 = 0x6175_7468_2073_616c;
const MARK_CHARS: usize = 16;
/// The bytes at the end of `auth` that hold the number.
const NUMBER_BYTES: usize = 3;

/// The synthetic subscriptions of a push service.
#[derive(Clone)]
pub struct SyntheticSubscriptions {
    origin: String,
    seed: u64,
    p256dh: String,
}

/// Shows the origin, never a key.
impl std::fmt::Debug for SyntheticSubscriptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SyntheticSubscriptions").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl SyntheticSubscriptions {
    /// Derives them from the seed of the emulator at this origin, such as `https://localhost:8443`.
    pub fn new(origin: &str, seed: u64) -> Result<Self, EmulatorError> {
        let p256dh = URL_SAFE_NO_PAD.encode(synthetic_keys(seed)?.public());
        Ok(Self { origin: origin.trim_end_matches('/').to_owned(), seed, p256dh })
    }

    /// Returns the push token of the n-th subscription, as a device registers it:
    /// `https://localhost:8443/push/9a3f0c5e7d21b846-17#p256dh=…&auth=…`. The last four letters give the lowest 20 bits of `n`.
    pub fn token(&self, n: u64) -> String {
        let auth = URL_SAFE_NO_PAD.encode(synthetic_auth(self.seed, n));
        push_token(&format!("{}/push/{}", self.origin, self.path_token(n)), &self.p256dh, &auth)
    }

    /// Returns the last part of the path of the n-th subscription. Counts and scripts of the emulator know the subscription by it. It
    /// begins with 16 hexadecimal digits, evenly distributed.
    pub fn path_token(&self, n: u64) -> String {
        synthetic_path(self.seed, n)
    }
}

/// Returns the push token of the n-th synthetic subscription of the emulator at an origin with a seed. For many of them,
/// [`SyntheticSubscriptions`] computes the common key once.
pub fn synthetic_token(origin: &str, n: u64, seed: u64) -> Result<String, EmulatorError> {
    SyntheticSubscriptions::new(origin, seed).map(|subscriptions| subscriptions.token(n))
}

/// Derives the key pair that all synthetic subscriptions of a seed have.
pub(super) fn synthetic_keys(seed: u64) -> Result<SubscriptionKeys, EmulatorError> {
    SubscriptionKeys::derive(seed, NAME)
}

/// Returns the `auth` of a synthetic subscription.
pub(super) fn synthetic_auth(seed: u64, n: u64) -> [u8; AUTH_BYTES] {
    let common = derive_auth(seed, NAME);
    let own = mix(seed ^ AUTH_SALT ^ mix(n)).to_le_bytes();
    let mut auth: [u8; AUTH_BYTES] = std::array::from_fn(|at| common[at] ^ own[at % own.len()]);
    auth[AUTH_BYTES - NUMBER_BYTES..].copy_from_slice(&n.to_be_bytes()[8 - NUMBER_BYTES..]);
    auth
}

/// Returns the last part of the path of the n-th synthetic subscription of a seed.
pub fn synthetic_path(seed: u64, n: u64) -> String {
    format!("{:016x}-{n}", mark(seed, n))
}

/// Returns the digits by which the emulator recognizes the path of a synthetic subscription.
fn mark(seed: u64, n: u64) -> u64 {
    mix(seed ^ PATH_SALT ^ mix(n))
}

/// Returns the number of a synthetic subscription; `None` for other paths, and for those of another seed.
pub(super) fn synthetic_number(seed: u64, token: &str) -> Option<u64> {
    let (digits, number) = token.split_at_checked(MARK_CHARS)?;
    let n = number.strip_prefix('-')?.parse().ok()?;
    let is_ours = u64::from_str_radix(digits, 16).ok()? == mark(seed, n);
    // A number is written in one way: otherwise the counts of a subscription would be in two places.
    (is_ours && synthetic_path(seed, n) == token).then_some(n)
}
